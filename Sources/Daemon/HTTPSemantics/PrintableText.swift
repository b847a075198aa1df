extension StringProtocol {
    /// The text with an escape for each character that could change what surrounds it: control characters, ANSI escapes among
    /// them, line ends of all kinds, and those that turn the direction of writing or cannot be seen.
    ///
    /// Whatever comes from clients and upstreams passes through here before it is part of a line for people.
    package var printable: String {
        guard unicodeScalars.contains(where: \.isDeceptive) else { return String(self) }
        var result = ""
        for scalar in unicodeScalars {
            switch scalar {
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where !scalar.isDeceptive: result.unicodeScalars.append(scalar)
            case _ where scalar.value < 0x100: result += "\\x" + scalar.value.hexadecimal(width: 2)
            default: result += "\\u{\(String(scalar.value, radix: 16))}"
            }
        }
        return result
    }
}

extension Unicode.Scalar {
    /// Whether it must not reach a terminal as it is.
    package var isDeceptive: Bool {
        switch value {
        case 0x20..<0x7F: false
        case 0..<0x20, 0x7F..<0xA0: true
        // They join characters in some scripts and in emoji, and do nothing else.
        case 0x200C, 0x200D: false
        // Whatever else has no width: Unicode's soft hyphen, marks of direction, invisible operators, tags.
        case 0xAD, 0x61C, 0x180E, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xFFF9...0xFFFB: true
        case 0xE0000...0xE007F: true
        default: false
        }
    }
}
