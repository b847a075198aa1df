/// The white space between the tokens of JSON.
public enum JSONLayout {
    /// The deepest nesting that is indented: each level costs a column in every line.
    private static let depthLimit = 64

    /// JSON without the white space between its tokens.
    public static func compact(_ text: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(text.count)
        var (isInString, isEscaped) = (false, false)
        for byte in text where isInString || ![0x20, 0x09, 0x0A, 0x0D].contains(byte) {
            result.append(byte)
            if byte == UInt8(ascii: "\""), !isEscaped { isInString.toggle() }
            isEscaped = byte == UInt8(ascii: "\\") && isInString && !isEscaped
        }
        return result
    }

    /// JSON with a line for each member and element, from which `compact` makes the same bytes again.
    ///
    /// Nil for anything but a compact object or list that has contents, and is not nested too deep.
    public static func indented(_ text: [UInt8]) -> [UInt8]? {
        guard let index = try? JSONIndex(text), index.nodes.count > 1, compact(text) == text else { return nil }
        var result: [UInt8] = []
        result.reserveCapacity(2 * text.count)
        var isTooDeep = false
        func breakLine(_ depth: Int) { result += [0x0A] + repeatElement(0x20, count: 2 * depth) }
        func write(_ node: Int, _ depth: Int) {
            let children = index.children(of: node)
            isTooDeep = isTooDeep || depth == depthLimit && [.object, .array].contains(index.kind(node))
            // An empty container stays on its line.
            if children.isEmpty || isTooDeep { return result += index.bytes(node) }
            for child in children {
                result.append(child == children[0] ? text[index.range(node).lowerBound] : 0x2C)
                breakLine(depth + 1)
                if index.kind(node) == .object { result += index.bytes(child - 1) + [0x3A, 0x20] }
                write(child, depth + 1)
            }
            breakLine(depth)
            result.append(text[index.range(node).upperBound - 1])
        }
        write(0, 0)
        return isTooDeep ? nil : result + [0x0A]
    }
}
