/// Scans JSON text (RFC 8259) as bytes and finds where each value ends, without allocating anything.
///
/// Positions are offsets into the text. A scanning function returns the offset after what it scanned, or one of the
/// negative values of `Failure`. The grammar is checked strictly, but the contents of strings are not: lone surrogates
/// are valid JSON, and bytes that are not UTF-8 are kept, never repaired. A byte order mark is not JSON.
struct JSONScanner {
    enum Failure {
        static let malformed = -1
        static let tooDeep = -2
        /// A string begins with the prefix reserved for references (see `Reference`).
        static let reserved = -3
        /// A body contains more objects of declared models than the limit allows.
        static let tooManyObjects = -4
    }

    /// The deepest allowed nesting of arrays and objects: real responses reach 57, and every level uses stack.
    static let maximumDepth = 512

    let base: UnsafePointer<UInt8>
    let end: Int
    /// Whether the text is a skeleton or payload, which may contain reference literals.
    let allowsReferences: Bool

    /// Scans `text`, which must outlive the scanner.
    init(_ text: UnsafeBufferPointer<UInt8>, allowsReferences: Bool) {
        // An empty buffer may have no address; nothing is read from it.
        base = text.baseAddress ?? UnsafePointer(bitPattern: 1)!
        end = text.count
        self.allowsReferences = allowsReferences
    }

    /// The byte at an offset, or 0 at the end; valid JSON never contains a 0 byte.
    @inline(__always)
    func byte(_ position: Int) -> UInt8 { position < end ? base[position] : 0 }

    /// Scans a whole text: white space, a value, white space.
    func scanText() -> Int {
        let valueEnd = scanValue(skipSpace(0), depth: 0)
        guard valueEnd >= 0 else { return valueEnd }
        return skipSpace(valueEnd) == end ? end : Failure.malformed
    }

    func scanValue(_ position: Int, depth: Int) -> Int {
        switch byte(position) {
        case UInt8(ascii: "\""): scanName(position).end
        case UInt8(ascii: "{"): scanObject(position, depth: depth)
        case UInt8(ascii: "["): scanArray(position, depth: depth)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): scanNumber(position)
        case UInt8(ascii: "t"): scanWord(position, "true")
        case UInt8(ascii: "f"): scanWord(position, "false")
        case UInt8(ascii: "n"): scanWord(position, "null")
        default: Failure.malformed
        }
    }

    private func scanObject(_ open: Int, depth: Int) -> Int {
        scanMembers(open, depth: depth) { scanValue($2, depth: depth + 1) }
    }

    private func scanArray(_ open: Int, depth: Int) -> Int {
        scanElements(open, depth: depth) { scanValue($0, depth: depth + 1) }
    }

    /// Scans the object that begins here; `value` returns the end of each value, or a negative number to stop.
    @inline(__always)
    func scanMembers(
        _ open: Int,
        depth: Int,
        _ value: (_ nameStart: Int, _ name: (end: Int, isEscaped: Bool), _ value: Int) -> Int
    ) -> Int {
        scanEntries(open, to: UInt8(ascii: "}"), depth: depth) { start in
            guard byte(start) == UInt8(ascii: "\"") else { return Failure.malformed }
            let name = scanName(start)
            guard name.end >= 0 else { return name.end }
            let colon = skipSpace(name.end)
            return byte(colon) == UInt8(ascii: ":") ? value(start, name, skipSpace(colon + 1)) : Failure.malformed
        }
    }

    /// Scans the array that begins here; `element` returns the end of each element, or a negative number to stop.
    @inline(__always)
    func scanElements(_ open: Int, depth: Int, _ element: (_ element: Int) -> Int) -> Int {
        scanEntries(open, to: UInt8(ascii: "]"), depth: depth, element)
    }

    @inline(__always)
    private func scanEntries(_ open: Int, to close: UInt8, depth: Int, _ entry: (_ start: Int) -> Int) -> Int {
        guard depth < Self.maximumDepth else { return Failure.tooDeep }
        var position = skipSpace(open + 1)
        if byte(position) == close { return position + 1 }
        while true {
            position = entry(position)
            guard position >= 0 else { return position }
            position = skipSpace(position)
            let byte = byte(position)
            guard byte == UInt8(ascii: ",") else { return byte == close ? position + 1 : Failure.malformed }
            position = skipSpace(position + 1)
        }
    }

    @inline(__always)
    func skipSpace(_ position: Int) -> Int { byte(position) > 0x20 ? position : skipSpaceRun(position) }

    @inline(never)
    private func skipSpaceRun(_ start: Int) -> Int {
        var position = start
        while position < end {
            switch base[position] {
            case 0x20:
                // Indentation comes in runs: skip eight spaces at a time.
                while position + 8 <= end, word(position) == 0x2020_2020_2020_2020 { position += 8 }
                while position < end, base[position] == 0x20 { position += 1 }
            case 0x0A, 0x0D, 0x09:
                position += 1
            default:
                return position
            }
        }
        return position
    }

    @inline(__always)
    func word(_ position: Int) -> UInt64 {
        UInt64(littleEndian: UnsafeRawPointer(base + position).loadUnaligned(as: UInt64.self))
    }

    private func scanWord(_ start: Int, _ expected: StaticString) -> Int {
        let (name, length) = (expected.utf8Start, expected.utf8CodeUnitCount)
        let isMeant = start + length <= end && (0..<length).allSatisfy { base[start + $0] == name[$0] }
        return isMeant ? start + length : Failure.malformed
    }

    func scanNumber(_ start: Int) -> Int {
        var position = byte(start) == UInt8(ascii: "-") ? start + 1 : start
        position = byte(position) == UInt8(ascii: "0") ? position + 1 : scanDigits(position)
        guard position >= 0 else { return position }
        if byte(position) == UInt8(ascii: ".") {
            position = scanDigits(position + 1)
            guard position >= 0 else { return position }
        }
        if byte(position) | 0x20 == UInt8(ascii: "e") {
            position += 1
            if byte(position) == UInt8(ascii: "+") || byte(position) == UInt8(ascii: "-") { position += 1 }
            position = scanDigits(position)
        }
        return position
    }

    @inline(__always)
    private func scanDigits(_ start: Int) -> Int {
        var position = start
        while byte(position).isDigit { position += 1 }
        return position > start ? position : Failure.malformed
    }

    /// Scans the string whose opening quote is here, and finds whether it contains an escape.
    @inline(__always)
    func scanName(_ open: Int) -> (end: Int, isEscaped: Bool) {
        let stop = firstSpecial(open + 1)
        guard stop < end else { return (Failure.malformed, false) }
        return base[stop] == UInt8(ascii: "\"") ? (stop + 1, false) : (scanEscapedString(stop), true)
    }

    /// The position of the first quote, backslash or control character from `start` on, or `end`.
    ///
    /// Works on eight bytes at a time. Each of the three masks can have false hits only above its lowest true one, so
    /// the lowest bit of their union is right.
    @inline(__always)
    func firstSpecial(_ start: Int) -> Int {
        let ones: UInt64 = 0x0101_0101_0101_0101
        let highs: UInt64 = 0x8080_8080_8080_8080
        var position = start
        while position + 8 <= end {
            let word = word(position)
            let quotes = word ^ (ones &* UInt64(UInt8(ascii: "\"")))
            let backslashes = word ^ (ones &* UInt64(UInt8(ascii: "\\")))
            let hits =
                (((quotes &- ones) & ~quotes) | ((backslashes &- ones) & ~backslashes)
                    | ((word &- (ones &* 0x20)) & ~word)) & highs
            if hits != 0 { return position + hits.trailingZeroBitCount >> 3 }
            position += 8
        }
        while position < end, base[position] >= 0x20, base[position] != 0x22, base[position] != 0x5C { position += 1 }
        return position
    }

    /// Scans the rest of a string from its first special character, which is not the closing quote.
    @inline(never)
    private func scanEscapedString(_ start: Int) -> Int {
        var position = start
        while true {
            switch byte(position) {
            case UInt8(ascii: "\""): return position + 1
            case UInt8(ascii: "\\"):
                position = scanEscape(position)
                guard position >= 0 else { return position }
                position = firstSpecial(position)
            default: return Failure.malformed
            }
        }
    }

    private func scanEscape(_ backslash: Int) -> Int {
        switch byte(backslash + 1) {
        case UInt8(ascii: "u"):
            var value = 0
            for offset in 2..<6 {
                guard let digit = hexadecimalDigit(byte(backslash + offset)) else { return Failure.malformed }
                value = value << 4 | digit
            }
            // This also rejects the sequence after an escaped quote: recomposition searches for these seven bytes
            // without parsing.
            if value == 1, !allowsReferences, base[backslash - 1] == UInt8(ascii: "\"") { return Failure.reserved }
            return backslash + 6
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return backslash + 2
        default: return Failure.malformed
        }
    }
}

extension UInt8 {
    @inline(__always)
    var isDigit: Bool { self &- UInt8(ascii: "0") < 10 }

    var isLetter: Bool { (self | 0x20) &- UInt8(ascii: "a") < 26 }
}

/// The value of a hexadecimal digit in either case.
func hexadecimalDigit(_ byte: UInt8) -> Int? {
    if byte.isDigit { return Int(byte - UInt8(ascii: "0")) }
    let letter = Int(byte | 0x20) - Int(UInt8(ascii: "a"))
    return (0..<6).contains(letter) ? letter + 10 : nil
}

/// Tests of bodies that claim to be JSON.
public enum JSONBody {
    /// Whether a text is not JSON, or only the beginning of it.
    ///
    /// A text nested deeper than the scanner goes does not count as malformed.
    public static func isMalformed(_ text: [UInt8]) -> Bool { end(of: text) == JSONScanner.Failure.malformed }

    /// Whether a text, in which references may stand for objects, is JSON that the scanner reads to its end.
    public static func isWhole(_ text: [UInt8]) -> Bool { end(of: text) >= 0 }

    private static func end(of text: [UInt8]) -> Int {
        text.withUnsafeBufferPointer { JSONScanner($0, allowsReferences: true).scanText() }
    }

    /// Whether a text is the result of a GraphQL request with data and without errors, or a list of such results.
    public static func isGraphQLResult(_ text: [UInt8]) -> Bool {
        guard let index = try? JSONIndex(text) else { return false }
        let results = index.kind(0) == .array ? index.children(of: 0) : [0]
        return !results.isEmpty
            && results.allSatisfy { result in
                guard let data = index.member("data".utf8, of: result), index.kind(data) != .null else { return false }
                guard let errors = index.lastMember("errors".utf8, of: result) else { return true }
                let isEmpty = index.kind(errors.value) == .array && index.children(of: errors.value).isEmpty
                return !errors.isRepeated && (isEmpty || index.kind(errors.value) == .null)
            }
    }

    /// Whether a text is a valid JSON number.
    public static func isNumber(_ text: String) -> Bool {
        Array(text.utf8).withUnsafeBufferPointer { JSONScanner($0, allowsReferences: true).scanNumber(0) == $0.count }
    }
}
