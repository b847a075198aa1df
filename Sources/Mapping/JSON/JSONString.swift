extension [UInt8] {
    /// Appends a comma before the next member or element; none after the bracket that opens the list or object.
    mutating func appendComma() {
        if last != UInt8(ascii: "{"), last != UInt8(ascii: "[") { append(UInt8(ascii: ",")) }
    }

    /// Whether the bytes are valid UTF-8, the only encoding in which text moves between bodies.
    var isUTF8: Bool { (try? UTF8Span(validating: span)) != nil }
}

/// Reads and writes the escapes of JSON strings.
enum JSONString {
    /// The code points of a string, lone surrogates included.
    ///
    /// Two JSON strings are equal if these are. `literal` is valid, quotes included. Each byte that is not UTF-8 becomes
    /// a distinct value above U+10FFFF, so that it equals only itself.
    static func codePoints(_ literal: UnsafeBufferPointer<UInt8>) -> [UInt32] {
        var points: [UInt32] = []
        points.reserveCapacity(literal.count)
        var position = 1
        let end = literal.count - 1
        while position < end {
            let isEscape = literal[position] == UInt8(ascii: "\\")
            let (unit, length) = isEscape ? escape(literal, position) : rawCodePoint(literal, position, end)
            position += length
            // A low surrogate completes a pair. Both were escaped: raw bytes encode none.
            if unit & ~0x3FF == 0xDC00, let high = points.last, high & ~0x3FF == 0xD800 {
                points[points.count - 1] = 0x10000 + (high & 0x3FF) << 10 + (unit & 0x3FF)
            } else {
                points.append(unit)
            }
        }
        return points
    }

    /// The content as text; nil for lone surrogates and bytes that are not UTF-8.
    static func text(_ literal: UnsafeBufferPointer<UInt8>) -> String? {
        let content = UnsafeBufferPointer(rebasing: literal[1..<literal.count - 1])
        guard content.contains(UInt8(ascii: "\\")) else { return String(validating: content, as: UTF8.self) }
        var scalars = String.UnicodeScalarView()
        for point in codePoints(literal) {
            guard let scalar = Unicode.Scalar(point) else { return nil }
            scalars.append(scalar)
        }
        return String(scalars)
    }

    /// Whether the content is this text, given as UTF-8.
    static func content(of literal: UnsafeBufferPointer<UInt8>, is name: some Sequence<UInt8>) -> Bool {
        guard literal.contains(UInt8(ascii: "\\")) else { return literal.dropFirst().dropLast().elementsEqual(name) }
        return text(literal).map { $0.utf8.elementsEqual(name) } ?? false
    }

    /// Appends text as the inside of a JSON string.
    static func appendEscaped(_ text: String, to output: inout [UInt8]) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                output.append(UInt8(ascii: "\\"))
                output.append(byte)
            case 0..<0x20:
                output.append(contentsOf: (byte < 0x10 ? "\\u000" : "\\u001").utf8)
                output.append(contentsOf: String(byte & 15, radix: 16).utf8)
            default: output.append(byte)
            }
        }
    }

    static func append(_ text: String, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        appendEscaped(text, to: &output)
        output.append(UInt8(ascii: "\""))
    }

    static func literal(_ text: String) -> [UInt8] {
        var literal: [UInt8] = []
        append(text, to: &literal)
        return literal
    }

    /// The code unit of the escape at a backslash, and the length of the escape in bytes.
    private static func escape(_ literal: UnsafeBufferPointer<UInt8>, _ backslash: Int) -> (UInt32, Int) {
        switch literal[backslash + 1] {
        case UInt8(ascii: "u"):
            let digits = literal[backslash + 2..<backslash + 6]
            return (digits.reduce(0) { $0 << 4 | UInt32(hexadecimalDigit($1) ?? 0) }, 6)
        case UInt8(ascii: "b"): return (0x08, 2)
        case UInt8(ascii: "f"): return (0x0C, 2)
        case UInt8(ascii: "n"): return (0x0A, 2)
        case UInt8(ascii: "r"): return (0x0D, 2)
        case UInt8(ascii: "t"): return (0x09, 2)
        case let other: return (UInt32(other), 2)
        }
    }

    /// The code point encoded here in shortest-form UTF-8, or else the byte itself, raised above the range of Unicode.
    private static func rawCodePoint(_ text: UnsafeBufferPointer<UInt8>, _ position: Int, _ end: Int) -> (UInt32, Int) {
        let first = text[position]
        guard first >= 0x80 else { return (UInt32(first), 1) }
        let invalid = (0x11_0000 + UInt32(first), 1)
        let (length, smallest): (Int, UInt32) = first >= 0xF0 ? (4, 0x10000) : first >= 0xE0 ? (3, 0x800) : (2, 0x80)
        guard (0xC2...0xF4).contains(first), position + length <= end else { return invalid }
        var point = UInt32(first) & (0x7F >> UInt32(length))
        for next in text[position + 1..<position + length] {
            guard next & 0xC0 == 0x80 else { return invalid }
            point = point << 6 | UInt32(next & 0x3F)
        }
        return point >= smallest && point <= 0x10FFFF && point & ~0x7FF != 0xD800 ? (point, length) : invalid
    }
}
