extension StringProtocol {
    /// The text with escapes for characters that could alter the text around it.
    ///
    /// These are control characters, including those of ANSI escapes, line ends of all kinds, and characters that are invisible
    /// or change the writing direction. All text from clients and upstreams is escaped like this in lines for people.
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
    /// Whether the character must not reach a terminal.
    package var isDeceptive: Bool {
        switch value {
        case 0x20..<0x7F: false
        case 0..<0x20, 0x7F..<0xA0: true
        // These join characters in some scripts and in emoji, and have no other effect.
        case 0x200C, 0x200D: false
        // All other characters without width: Unicode's soft hyphen, direction marks, invisible operators, tags.
        case 0xAD, 0x61C, 0x180E, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xFFF9...0xFFFB: true
        case 0xE0000...0xE007F: true
        default: false
        }
    }
}
