import Glibc

/// The lexical rules that field values share (RFC 9110 §5.6): tokens, optional white space, lists, quoted strings.
///
/// What is generic here is public and inlinable: only so does the compiler specialize it for the bytes of other rooms, and not
/// specialized it costs a miss tens of microseconds.
public enum FieldSyntax {
    @inline(__always)
    package static func isWhitespace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    /// Whether the byte is a letter of ASCII, in either case.
    @inline(__always)
    package static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 }

    @inline(__always)
    package static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    /// Whether the byte is allowed in a token (RFC 9110 §5.6.2).
    @inlinable
    public static func isTokenByte(_ byte: UInt8) -> Bool {
        // One bit per ASCII code point: ! # $ % & ' * + - . 0-9 A-Z ^ _ ` a-z | ~
        let low: UInt64 = 0x03FF_6CFA_0000_0000
        let high: UInt64 = 0x57FF_FFFF_C7FF_FFFE
        guard byte < 128 else { return false }
        return (byte < 64 ? low >> UInt64(byte) : high >> UInt64(byte &- 64)) & 1 == 1
    }

    @inlinable
    public static func isToken(_ bytes: some Collection<UInt8>) -> Bool {
        !bytes.isEmpty && bytes.allSatisfy(isTokenByte)
    }

    /// A text of ASCII as a quoted string (RFC 9110 §5.6.4), which is also a string of RFC 9651.
    package static func quoted(_ text: String) -> String {
        "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }

    /// The value of a hexadecimal digit in either case; nil for any other byte.
    package static func hexDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }

    /// The bytes without leading and trailing spaces and tabs.
    package static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var slice = bytes
        while let first = slice.first, isWhitespace(first) { slice.removeFirst() }
        while let last = slice.last, isWhitespace(last) { slice.removeLast() }
        return slice
    }

    /// The bytes with `A`–`Z` converted to `a`–`z`.
    @inlinable
    public static func lowercased(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        bytes.map { asciiLowercased($0) }
    }

    /// Whether the bytes equal a name in any case; `lowercased` must be in lower case.
    @inlinable
    public static func equalsIgnoringCase(_ bytes: some Collection<UInt8>, _ lowercased: some Collection<UInt8>)
        -> Bool
    {
        guard bytes.count == lowercased.count else { return false }
        var wanted = lowercased.makeIterator()
        for byte in bytes where asciiLowercased(byte) != wanted.next() { return false }
        return true
    }

    /// Whether the bytes equal a name in any case; `lowercased` must be in lower case.
    @inline(__always)
    package static func equalsIgnoringCase(_ bytes: UnsafeRawBufferPointer, _ lowercased: StaticString) -> Bool {
        let count = lowercased.utf8CodeUnitCount
        guard bytes.count == count else { return false }
        let wanted = lowercased.utf8Start
        for index in 0..<count where asciiLowercased(bytes[index]) != wanted[index] { return false }
        return true
    }

    @inline(__always)
    package static func isSame(_ bytes: UnsafeRawBufferPointer, _ other: [UInt8]) -> Bool {
        guard bytes.count == other.count, let start = bytes.baseAddress else { return bytes.count == other.count }
        // Several times faster than comparing elements, which matters because it happens on every request.
        return other.withUnsafeBytes { $0.baseAddress.map { memcmp(start, $0, bytes.count) == 0 } ?? true }
    }

    /// Where a text stands in a value for the last time, in the same case.
    static func last(_ text: StaticString, in value: [UInt8]) -> Range<Int>? {
        let count = text.utf8CodeUnitCount
        return text.withUTF8Buffer { text in
            let start = value.indices.dropLast(count - 1).last { value[$0...].starts(with: text) }
            return start.map { $0..<$0 + count }
        }
    }

    /// The members of a comma-separated list, trimmed, without empty ones (RFC 9110 §5.6.1.2).
    ///
    /// A comma within a closed quoted string does not separate; an unclosed quote does not hide the rest.
    package static func members(_ value: ArraySlice<UInt8>, separator: UInt8 = 0x2C, escapes: Bool = true)
        -> [ArraySlice<UInt8>]
    {
        var members: [ArraySlice<UInt8>] = []
        var (start, index) = (value.startIndex, value.startIndex)
        while index < value.endIndex {
            if value[index] == 0x22, let close = endOfQuotedString(value, openedAt: index, escapes: escapes) {
                index = close
                continue
            }
            if value[index] == separator {
                append(value[start..<index], to: &members)
                start = index + 1
            }
            index += 1
        }
        append(value[start..<value.endIndex], to: &members)
        return members
    }

    package static func members(_ value: [UInt8]) -> [ArraySlice<UInt8>] { members(value[...]) }

    /// A media type or range without its parameters.
    package static func essence(of type: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        type.prefix { $0 != 0x3B && $0 != 0x20 && $0 != 0x09 }
    }

    /// The position after the closing quote of the string opened at `start`; nil if it is never closed.
    package static func endOfQuotedString(_ value: ArraySlice<UInt8>, openedAt start: Int, escapes: Bool = true) -> Int?
    {
        var index = start + 1
        while index < value.endIndex {
            switch value[index] {
            case 0x5C where escapes: index += 2
            case 0x22: return index + 1
            default: index += 1
            }
        }
        return nil
    }

    private static func append(_ member: ArraySlice<UInt8>, to members: inout [ArraySlice<UInt8>]) {
        let trimmed = trimmed(member)
        if !trimmed.isEmpty { members.append(trimmed) }
    }
}

/// A non-negative number of seconds in a directive or the `Age` field (RFC 9111 §1.2.2).
package enum DeltaSeconds {
    /// The value for a number that is too large to represent, by the same section.
    package static let maximum: Int64 = 2_147_483_648

    /// Parses one or more digits; nil for a sign, a fraction, white space, or anything else.
    @inline(__always)
    package static func parse(_ bytes: some Collection<UInt8>) -> Int64? {
        guard !bytes.isEmpty else { return nil }
        var value: Int64 = 0
        for byte in bytes {
            guard FieldSyntax.isDigit(byte) else { return nil }
            // Stops growing above the maximum, so that no number of digits overflows.
            if value <= maximum { value = value &* 10 &+ Int64(byte &- 0x30) }
        }
        return min(value, maximum)
    }
}

extension BinaryInteger {
    /// Lower-case hexadecimal digits, padded with zeros to a width.
    package func hexadecimal(width: Int) -> String {
        let digits = String(self, radix: 16)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

extension Collection<UInt8> {
    /// Two lower-case hexadecimal digits for each byte.
    @inlinable public var hexadecimal: String {
        func digit(_ value: UInt8) -> UInt8 { value + (value < 10 ? 0x30 : 0x57) }
        return String(unsafeUninitializedCapacity: 2 * count) { text in
            for (index, byte) in enumerated() {
                (text[2 * index], text[2 * index + 1]) = (digit(byte >> 4), digit(byte & 15))
            }
            return 2 * count
        }
    }
}

extension [UInt8] {
    /// The bytes for which pairs of hexadecimal digits stand, in either case; nil for any other text.
    package init?(hexadecimal text: some Collection<UInt8>) {
        let digits = text.compactMap(FieldSyntax.hexDigit)
        guard digits.count == text.count, digits.count.isMultiple(of: 2) else { return nil }
        self = stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
}
