/// How a document separates the elements of its containers, as evidence for a list of one element that grows.
///
/// A list of one element shows no separator. Two styles of writing cover nearly all documents: the same separator
/// everywhere (`,` or `, `), or a comma followed by the white space after the opening bracket (indented text). A
/// separator is known only if the document shows at least one and all of them agree with a style (law 6).
struct SeparatorStyle {
    /// Whether any separator has a line break, and whether any has none.
    private var (breaksLines, staysInLine) = (false, false)
    /// The separator that all containers share, if there is one.
    private var shared: ArraySlice<UInt8>?
    /// Whether each separator is a comma and the white space after its container's opening bracket.
    private var repeatsOpening = true

    /// Reads the separators of all texts of a document: its skeleton and its payloads.
    init(of texts: [[UInt8]]) {
        for text in texts {
            guard let index = try? JSONIndex(text) else { continue }
            for container in index.nodes.indices {
                var opening: ArraySlice<UInt8>?
                var position = index.range(container).lowerBound + 1
                index.forEachEntry(of: container) { first, value in
                    let between = text[position..<index.range(first).lowerBound]
                    if let opening { record(between, opening: opening) } else { opening = between }
                    position = index.range(value).upperBound
                }
            }
        }
    }

    /// The separator of a list with this white space after its opening bracket; nil if the document does not show it.
    func separator(afterOpening opening: ArraySlice<UInt8>) -> [UInt8]? {
        // Indented text indents each level differently, and is no evidence for lists written in one line.
        let isShown = Self.hasLineBreak(opening) ? breaksLines : staysInLine
        let repeated = repeatsOpening && isShown ? [UInt8(ascii: ",")] + opening : nil
        let shared = breaksLines || Self.hasLineBreak(opening) ? nil : self.shared.map { Array($0) }
        guard let repeated, let shared else { return repeated ?? shared }
        return repeated == shared ? shared : nil
    }

    private mutating func record(_ separator: ArraySlice<UInt8>, opening: ArraySlice<UInt8>) {
        let isFirst = !breaksLines && !staysInLine
        shared = isFirst || shared == separator ? separator : nil
        if Self.hasLineBreak(separator) { breaksLines = true } else { staysInLine = true }
        if separator != [UInt8(ascii: ",")] + opening { repeatsOpening = false }
    }

    private static func hasLineBreak(_ space: ArraySlice<UInt8>) -> Bool { space.contains(UInt8(ascii: "\n")) }
}

extension CompositionAttempt {
    /// The separator between two elements of a container; the attempt fails if the document does not show it.
    ///
    /// - Parameters:
    ///   - shown: the first separator within the container itself.
    ///   - opening: the white space after its opening bracket.
    ///   - count: how many elements it will contain.
    mutating func separator(_ shown: ArraySlice<UInt8>?, afterOpening opening: ArraySlice<UInt8>, between count: Int)
        -> [UInt8]?
    {
        if let shown { return Array(shown) }
        guard count > 1 else { return [] }
        let style = separatorStyle ?? SeparatorStyle(of: [tree.skeleton] + tree.pins)
        separatorStyle = style
        let separator = style.separator(afterOpening: opening)
        if separator == nil { fail("a list of one element has grown, and the document shows no separator for it") }
        return separator
    }
}
