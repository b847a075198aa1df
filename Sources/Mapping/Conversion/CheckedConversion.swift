/// A conversion that accepts values of one type and leaves them unchanged.
struct CheckedConversion: Conversion {
    private let expectation: String
    private let isAccepted: @Sendable (JSONSlice) -> Bool

    func forward(_ value: JSONSlice) -> ConversionResult {
        value.isNull || isAccepted(value) ? .value(value.json) : .failed(reason: expectation)
    }

    func reverse(_ value: JSONSlice) -> ConversionResult { forward(value) }

    static let string = CheckedConversion(expectation: "a string is expected") { $0.kind == .string }

    static let integer = CheckedConversion(expectation: "a whole number is expected") { $0.number?.isWhole ?? false }

    /// Accepts a number, or a string spelled like one, as APIs write amounts; both keep every digit.
    static let decimal = CheckedConversion(expectation: "a number, or a string of one, is expected") { value in
        value.kind == .number || value.string.map { Reference.isNumber($0) } ?? false
    }

    /// Accepts an absolute URL (RFC 3986; with letters outside ASCII, RFC 3987).
    static let url = CheckedConversion(expectation: "a string that is an absolute URL is expected") { value in
        value.string.map { URLSyntax.isAbsolute(Array($0.utf8)) } ?? false
    }

    static let uuid = CheckedConversion(expectation: "a string that is a UUID is expected") { value in
        guard let text = value.string?.utf8, text.count == 36 else { return false }
        return text.enumerated().allSatisfy { offset, byte in
            [8, 13, 18, 23].contains(offset) ? byte == UInt8(ascii: "-") : hexadecimalDigit(byte) != nil
        }
    }
}

extension JSONNumber {
    /// Whether the number has no fraction; `5.0` and `5e2` are whole.
    var isWhole: Bool {
        switch exponent {
        case .small(let power): power >= 0
        case .large(let isNegative, _): !isNegative
        }
    }
}

/// The syntax of URLs (RFC 3986 §2, §3; RFC 3987 §2.2).
enum URLSyntax {
    /// Whether a text is a scheme, a colon, and a nonempty rest in which nothing is left to be escaped.
    static func isAbsolute(_ text: [UInt8]) -> Bool {
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")), isScheme(text[..<colon]) else { return false }
        let rest = text[(colon + 1)...]
        return !rest.isEmpty && rest.indices.allSatisfy { isAllowed(rest, at: $0) }
    }

    private static func isScheme(_ text: ArraySlice<UInt8>) -> Bool {
        guard let first = text.first, isLetter(first) else { return false }
        return text.allSatisfy { isLetter($0) || isDigit($0) || "+-.".utf8.contains($0) }
    }

    private static func isAllowed(_ text: ArraySlice<UInt8>, at index: Int) -> Bool {
        let byte = text[index]
        if byte == UInt8(ascii: "%") {
            return index + 2 < text.endIndex && hexadecimalDigit(text[index + 1]) != nil
                && hexadecimalDigit(text[index + 2]) != nil
        }
        return byte >= 0x80 || isLetter(byte) || isDigit(byte) || "-._~:/?#[]@!$&'()*+,;=".utf8.contains(byte)
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- UInt8(ascii: "a") < 26 }

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }
}

/// Accepts true and false; 1 and 0 count as booleans too, and come back as `true` and `false`.
struct BooleanConversion: Conversion {
    func forward(_ value: JSONSlice) -> ConversionResult {
        if value.kind == .word { return .value(value.json) }
        switch value.number?.canonicalText {
        case "1": return .value(Array("true".utf8))
        case "0": return .value(Array("false".utf8))
        default: return .failed(reason: "true or false is expected")
        }
    }

    func reverse(_ value: JSONSlice) -> ConversionResult { forward(value) }
}
