/// Walks over JSON text (RFC 8259) as bytes, and finds where each value ends.
///
/// Positions are offsets into the text. A function that scans returns the offset just behind what it scanned, or one of
/// the negative values of `Failure`. Nothing is allocated; nesting is bounded, and so is the stack.
///
/// Strict in the grammar; what is inside strings passes as it is: lone surrogates are valid JSON text, and bytes that
/// are not UTF-8 are kept, never repaired. A byte order mark is not JSON.
struct JSONScanner {
    /// Why a scan stopped.
    enum Failure {
        static let malformed = -1
        static let tooDeep = -2
        /// A string begins in the spelling reserved for references (see `Reference`).
        static let reserved = -3
        /// A body holds more objects of declared models than are taken apart.
        static let tooManyObjects = -4
    }

    /// How deep arrays and objects may be nested.
    ///
    /// Real answers reach 57; every level costs stack.
    static let maximumDepth = 512

    let base: UnsafePointer<UInt8>
    let end: Int
    /// Whether the text is a skeleton or payload, in which reference literals are at home.
    let allowsReferences: Bool

    /// Looks at `text`, which must outlive the scanner.
    init(_ text: UnsafeBufferPointer<UInt8>, allowsReferences: Bool) {
        // An empty buffer may have no address; it is never read then.
        base = text.baseAddress ?? UnsafePointer(bitPattern: 1)!
        end = text.count
        self.allowsReferences = allowsReferences
    }

    /// The byte at an offset, 0 at the end (which no JSON text contains outside of an error).
    @inline(__always)
    func byte(_ position: Int) -> UInt8 {
        position < end ? base[position] : 0
    }

    /// Scans one whole text: white space, a value, white space.
    func scanText() -> Int {
        let valueEnd = scanValue(skipSpace(0), depth: 0)
        guard valueEnd >= 0 else { return valueEnd }
        let textEnd = skipSpace(valueEnd)
        return textEnd == end ? textEnd : Failure.malformed
    }

    /// Scans the value that begins here.
    func scanValue(_ position: Int, depth: Int) -> Int {
        switch byte(position) {
        case UInt8(ascii: "\""): scanString(position)
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
        guard depth < Self.maximumDepth else { return Failure.tooDeep }
        var position = skipSpace(open + 1)
        if byte(position) == UInt8(ascii: "}") { return position + 1 }
        while true {
            guard byte(position) == UInt8(ascii: "\"") else { return Failure.malformed }
            position = scanString(position)
            guard position >= 0 else { return position }
            position = skipColon(position)
            guard position >= 0 else { return position }
            position = scanValue(position, depth: depth + 1)
            guard position >= 0 else { return position }
            position = skipSpace(position)
            let byte = byte(position)
            guard byte == UInt8(ascii: ",") else {
                return byte == UInt8(ascii: "}") ? position + 1 : Failure.malformed
            }
            position = skipSpace(position + 1)
        }
    }

    private func scanArray(_ open: Int, depth: Int) -> Int {
        guard depth < Self.maximumDepth else { return Failure.tooDeep }
        var position = skipSpace(open + 1)
        if byte(position) == UInt8(ascii: "]") { return position + 1 }
        while true {
            position = scanValue(position, depth: depth + 1)
            guard position >= 0 else { return position }
            position = skipSpace(position)
            let byte = byte(position)
            guard byte == UInt8(ascii: ",") else {
                return byte == UInt8(ascii: "]") ? position + 1 : Failure.malformed
            }
            position = skipSpace(position + 1)
        }
    }

    /// From behind a member's name to its value.
    @inline(__always)
    func skipColon(_ position: Int) -> Int {
        let colon = skipSpace(position)
        return byte(colon) == UInt8(ascii: ":") ? skipSpace(colon + 1) : Failure.malformed
    }

    @inline(__always)
    func skipSpace(_ position: Int) -> Int {
        byte(position) > 0x20 ? position : skipSpaceRun(position)
    }

    @inline(never)
    private func skipSpaceRun(_ start: Int) -> Int {
        var position = start
        while position < end {
            switch base[position] {
            case 0x20:
                // Indentation comes in runs; eight blanks at a time.
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
        let wordEnd = start + expected.utf8CodeUnitCount
        guard wordEnd <= end else { return Failure.malformed }
        for offset in 0..<expected.utf8CodeUnitCount where base[start + offset] != expected.utf8Start[offset] {
            return Failure.malformed
        }
        return wordEnd
    }

    func scanNumber(_ start: Int) -> Int {
        var position = start
        if byte(position) == UInt8(ascii: "-") { position += 1 }
        if byte(position) == UInt8(ascii: "0") {
            position += 1
        } else {
            position = scanDigits(position)
            guard position >= 0 else { return position }
        }
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

    /// One digit or more.
    @inline(__always)
    private func scanDigits(_ start: Int) -> Int {
        var position = start
        while byte(position) &- UInt8(ascii: "0") < 10 { position += 1 }
        return position > start ? position : Failure.malformed
    }
}
