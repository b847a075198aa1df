/// How a document separates the elements of its containers, as evidence for a list of one element that grows.
///
/// A list of one element shows no separator. Two styles of writing cover nearly all documents: the same separator
/// everywhere (`,` or `, `), or a comma followed by the white space after the opening bracket (indented text). A
/// separator is known only if the document shows at least one and all of them agree with a style (law 6).
struct SeparatorStyle {
    private var hasEvidence = false
    /// Whether any separator has a line break, and whether any has none.
    private var (breaksLines, staysInLine) = (false, false)
    /// The separator that all containers share; nil once two differ.
    private var shared: ArraySlice<UInt8>? = []
    /// Whether each separator is a comma and the white space after its container's opening bracket.
    private var repeatsOpening = true

    /// Adds the separators of one text: a skeleton or a payload.
    mutating func add(_ text: [UInt8]) {
        var openings: [ArraySlice<UInt8>] = []
        var position = 0
        while position < text.count {
            switch text[position] {
            case UInt8(ascii: "\""): position = Self.end(ofStringAt: position, in: text)
            case UInt8(ascii: "["), UInt8(ascii: "{"):
                openings.append(Self.space(in: text, from: position + 1))
                position += 1
            case UInt8(ascii: "]"), UInt8(ascii: "}"):
                _ = openings.popLast()
                position += 1
            case UInt8(ascii: ","):
                let before = Self.space(in: text, before: position)
                let after = Self.space(in: text, from: position + 1)
                note(text[before.startIndex..<after.endIndex], opening: openings.last ?? [])
                position = after.endIndex
            default: position += 1
            }
        }
    }

    /// The separator of a list with this white space after its opening bracket; nil if the document does not show it.
    func separator(afterOpening opening: ArraySlice<UInt8>) -> [UInt8]? {
        guard hasEvidence else { return nil }
        // Indented text indents each level differently, and is no evidence for lists written in one line.
        let isShown = Self.hasLineBreak(opening) ? breaksLines : staysInLine
        let repeated = repeatsOpening && isShown ? [UInt8(ascii: ",")] + opening : nil
        let shared = breaksLines || Self.hasLineBreak(opening) ? nil : self.shared.map { Array($0) }
        guard let repeated, let shared else { return repeated ?? shared }
        return repeated == shared ? shared : nil
    }

    private mutating func note(_ separator: ArraySlice<UInt8>, opening: ArraySlice<UInt8>) {
        if !hasEvidence { shared = separator } else if shared != separator { shared = nil }
        hasEvidence = true
        if Self.hasLineBreak(separator) { breaksLines = true } else { staysInLine = true }
        if separator != [UInt8(ascii: ",")] + opening { repeatsOpening = false }
    }

    private static func hasLineBreak(_ space: ArraySlice<UInt8>) -> Bool { space.contains(UInt8(ascii: "\n")) }

    private static func space(in text: [UInt8], from start: Int) -> ArraySlice<UInt8> {
        text[start...].prefix { $0 <= 0x20 }
    }

    private static func space(in text: [UInt8], before end: Int) -> ArraySlice<UInt8> {
        text[..<end].suffix(from: (text[..<end].lastIndex { $0 > 0x20 } ?? -1) + 1)
    }

    private static func end(ofStringAt start: Int, in text: [UInt8]) -> Int {
        var position = start + 1
        while position < text.count, text[position] != UInt8(ascii: "\"") {
            position += text[position] == UInt8(ascii: "\\") ? 2 : 1
        }
        return position + 1
    }
}

extension CompositionAttempt {
    /// The separator between two elements of a container.
    ///
    /// Nil, and the attempt fails, if the document does not show it.
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
        let style = separatorStyle ?? tree.separatorStyle
        separatorStyle = style
        let separator = style.separator(afterOpening: opening)
        if separator == nil { fail("a list of one element has grown, and the document shows no separator for it") }
        return separator
    }
}

extension PinTree {
    /// How the whole document separates elements; reads all of its bytes.
    var separatorStyle: SeparatorStyle {
        var style = SeparatorStyle()
        style.add(skeleton)
        for pin in pins { style.add(pin) }
        return style
    }
}
