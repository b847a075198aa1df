/// The white space between the tokens of JSON.
public enum JSONLayout {
    /// The deepest nesting that is indented: each level costs a column in every line.
    private static let depthLimit = 64

    /// JSON without the white space between its tokens.
    public static func compact(_ text: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(text.count)
        var string = StringState()
        for byte in text where string.contains(byte) || ![0x20, 0x09, 0x0A, 0x0D].contains(byte) {
            result.append(byte)
        }
        return result
    }

    /// JSON with a line for each member and element, from which `compact` makes the same bytes again.
    ///
    /// Nil for anything but a compact object or list that has contents, and is not nested too deep.
    public static func indented(_ text: [UInt8]) -> [UInt8]? {
        guard text.count > 2, [0x5B, 0x7B].contains(text[0]), JSONBody.isWhole(text), compact(text) == text else {
            return nil
        }
        var result: [UInt8] = []
        result.reserveCapacity(2 * text.count)
        var string = StringState()
        var (depth, isOpen) = (0, false)
        func breakLine() {
            result.append(0x0A)
            result.append(contentsOf: repeatElement(0x20, count: 2 * depth))
        }
        for byte in text {
            let isInString = string.contains(byte)
            let isEnd = !isInString && (byte == 0x5D || byte == 0x7D)
            if isEnd { depth -= 1 }
            // An empty container stays on its line.
            if isOpen != isEnd { breakLine() }
            isOpen = false
            result.append(byte)
            guard !isInString else { continue }
            switch byte {
            case 0x5B, 0x7B:
                depth += 1
                isOpen = true
                guard depth <= depthLimit else { return nil }
            case 0x2C: breakLine()
            case 0x3A: result.append(0x20)
            default: break
            }
        }
        return result + [0x0A]
    }

    /// Whether the walk over JSON's bytes is within a string.
    private struct StringState {
        private var isInside = false
        private var isEscaped = false

        /// Whether the next byte belongs to a string, its quotes included.
        mutating func contains(_ byte: UInt8) -> Bool {
            if byte == 0x22, !isEscaped {
                isInside.toggle()
                return true
            }
            isEscaped = byte == 0x5C && isInside && !isEscaped
            return isInside
        }
    }
}
