import Glibc

/// A text that was made of another by decoding escapes or leaving out bytes, with the place of each byte in the other.
///
/// All kinds of escapes are decoded at once: those of URLs (`%2B`), of JSON and JavaScript (`\u002B`, `\/`), and of HTML and XML
/// (`&#43;`, `&amp;`). Which of them a text really has is not known.
package struct UnescapedText: Sendable {
    package private(set) var bytes: [UInt8] = []
    /// Where the distance to the source changes: what follows `place` here follows `source` there.
    private var steps: [(place: Int, source: Int)] = []
    /// Whether bytes were left out, so that a range ends right after its last byte, and not where the next one begins.
    private let leavesOut: Bool

    /// Kinds of escapes, by the byte that begins them.
    package struct Escapes: OptionSet, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        package static let percent = Escapes(rawValue: 1)
        package static let backslash = Escapes(rawValue: 2)
        static let reference = Escapes(rawValue: 4)
        static let all: Escapes = [.percent, .backslash, .reference]
    }

    /// Decodes each escape once; nil if there is none.
    package init?(unescaping source: UnsafeBufferPointer<UInt8>, _ escapes: Escapes = .all) {
        leavesOut = false
        var next = NextEscape(source, escapes)
        var (copied, position) = (0, 0)
        while let place = next.place(from: position) {
            guard let escape = Escape(source, at: place) else {
                position = place + 1
                continue
            }
            if steps.isEmpty { bytes.reserveCapacity(source.count) }
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: source[copied..<place]))
            step(to: place)
            escape.append(to: &bytes)
            position = place + escape.count
            copied = position
            step(to: position)
        }
        guard !steps.isEmpty else { return nil }
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: source[copied...]))
    }

    /// Leaves out ranges, each found by a byte in it; nil if there are none.
    private init?(_ source: UnsafeBufferPointer<UInt8>, around byte: UInt8, leavingOut range: (Int) -> Range<Int>?) {
        leavesOut = true
        var (copied, position) = (0, 0)
        while let place = source.place(of: byte, from: position) {
            position = place + 1
            guard let range = range(place), range.lowerBound >= copied else { continue }
            if steps.isEmpty { bytes.reserveCapacity(source.count) }
            bytes.append(contentsOf: UnsafeBufferPointer(rebasing: source[copied..<range.lowerBound]))
            position = range.upperBound
            copied = position
            step(to: position)
        }
        guard !steps.isEmpty else { return nil }
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: source[copied...]))
    }

    /// Leaves out all NULs, which stand between the letters of UTF-16 and UTF-32; nil if there are none.
    init?(withoutNULs source: UnsafeBufferPointer<UInt8>) { self.init(source, around: 0) { $0..<$0 + 1 } }

    /// Leaves out the line ends within Base64; nil if there are none.
    init?(joiningBase64Lines source: UnsafeBufferPointer<UInt8>) {
        // Shorter lines are no folded Base64.
        let shortest = 20
        self.init(source, around: 0x0A) { place in
            let start = place > 0 && source[place - 1] == 0x0D ? place - 1 : place
            var end = place + 1
            while end < source.count, FieldSyntax.isWhitespace(source[end]) { end += 1 }
            guard start >= shortest, end < source.count, Base64.isDigit(source[end]),
                source[(start - shortest)..<start].allSatisfy({ Base64.isDigit($0) })
            else { return nil }
            return start..<end
        }
    }

    private mutating func step(to source: Int) {
        if steps.last?.place == bytes.count { steps.removeLast() }
        steps.append((bytes.count, source))
    }

    /// The place in the source of the byte at a place here.
    private func source(of place: Int) -> Int {
        var (low, high) = (0, steps.count)
        while low < high {
            let middle = (low + high) / 2
            if steps[middle].place <= place { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? place : steps[low - 1].source + place - steps[low - 1].place
    }

    /// The range in the source of which a range here was made.
    package func source(of range: Range<Int>) -> Range<Int> {
        guard !range.isEmpty else { return source(of: range.lowerBound)..<source(of: range.lowerBound) }
        let upper = leavesOut ? source(of: range.upperBound - 1) + 1 : source(of: range.upperBound)
        return source(of: range.lowerBound)..<upper
    }
}

/// Finds the bytes that may begin an escape, with one search for each kind.
private struct NextEscape {
    private let source: UnsafeBufferPointer<UInt8>
    private var places: (percent: Int, backslash: Int, ampersand: Int)

    init(_ source: UnsafeBufferPointer<UInt8>, _ escapes: UnescapedText.Escapes) {
        self.source = source
        func first(_ kind: UnescapedText.Escapes) -> Int { escapes.contains(kind) ? -1 : .max }
        places = (first(.percent), first(.backslash), first(.reference))
    }

    mutating func place(from position: Int) -> Int? {
        func next(_ byte: UInt8, _ known: Int) -> Int {
            known >= position ? known : source.place(of: byte, from: position) ?? .max
        }
        places = (next(0x25, places.percent), next(0x5C, places.backslash), next(0x26, places.ampersand))
        let place = min(places.percent, places.backslash, places.ampersand)
        return place == .max ? nil : place
    }
}

private struct Escape {
    private(set) var count: Int
    private let value: Value

    private enum Value {
        case byte(UInt8)
        case scalar(Unicode.Scalar)
    }

    init?(_ source: UnsafeBufferPointer<UInt8>, at place: Int) {
        guard place + 1 < source.count else { return nil }
        let reader = Reader(source: source)
        let next = source[place + 1]
        switch source[place] {
        case 0x25:
            if let byte = reader.hex(place + 1, digits: 2) {
                (count, value) = (3, .byte(UInt8(byte)))
            } else if next | 0x20 == 0x75, let unit = reader.hex(place + 2, digits: 4),
                let scalar = Unicode.Scalar(unit)
            {
                // As JavaScript's `escape` writes it.
                (count, value) = (6, .scalar(scalar))
            } else {
                return nil
            }
        case 0x5C:
            guard let found = Self.backslashed(reader, place, next) else { return nil }
            (count, value) = found
        default:
            guard let found = Self.reference(reader, place, next) else { return nil }
            (count, value) = found
        }
    }

    private static func backslashed(_ reader: Reader, _ place: Int, _ next: UInt8) -> (Int, Value)? {
        switch next {
        case 0x22, 0x27, 0x2F, 0x5C: return (2, .byte(next))
        case 0x6E: return (2, .byte(0x0A))
        case 0x72: return (2, .byte(0x0D))
        case 0x74: return (2, .byte(0x09))
        case 0x62: return (2, .byte(0x08))
        case 0x66: return (2, .byte(0x0C))
        case 0x78: return reader.hex(place + 2, digits: 2).flatMap(Unicode.Scalar.init).map { (4, .scalar($0)) }
        case 0x75:
            guard let unit = reader.hex(place + 2, digits: 4) else { return nil }
            if let scalar = Unicode.Scalar(unit) { return (6, .scalar(scalar)) }
            guard unit < 0xDC00, reader.at(place + 6) == 0x5C, reader.at(place + 7) == 0x75,
                let low = reader.hex(place + 8, digits: 4), (0xDC00..<0xE000).contains(low)
            else { return nil }
            return Unicode.Scalar((unit - 0xD800) << 10 + (low - 0xDC00) + 0x10000).map { (12, .scalar($0)) }
        default: return nil
        }
    }

    /// A character reference of HTML, whose semicolon browsers do without.
    private static func reference(_ reader: Reader, _ place: Int, _ next: UInt8) -> (Int, Value)? {
        let isNumber = next == 0x23
        let isHex = isNumber && (reader.at(place + 2) ?? 0) | 0x20 == 0x78
        let start = place + (isHex ? 3 : isNumber ? 2 : 1)
        var end = start
        while end - start < 8, let byte = reader.at(end),
            FieldSyntax.isDigit(byte) || !isNumber && FieldSyntax.isLetter(byte)
                || isHex && FieldSyntax.hexDigit(byte) != nil
        { end += 1 }
        guard end > start else { return nil }
        let name = String(decoding: reader.source[start..<end], as: UTF8.self)
        let semicolon = reader.at(end) == 0x3B ? 1 : 0
        guard isNumber else {
            guard semicolon == 1, let scalar = names[name] else { return nil }
            return (end + 1 - place, .scalar(scalar))
        }
        guard let scalar = UInt32(name, radix: isHex ? 16 : 10).flatMap(Unicode.Scalar.init) else { return nil }
        return (end + semicolon - place, .scalar(scalar))
    }

    /// The names of HTML for characters of ASCII.
    private static let names: [String: Unicode.Scalar] = [
        "amp": "&", "AMP": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'", "sol": "/", "plus": "+", "equals": "=",
        "colon": ":", "semi": ";", "comma": ",", "period": ".", "excl": "!", "num": "#", "dollar": "$", "percnt": "%",
        "lpar": "(", "rpar": ")", "ast": "*", "quest": "?", "commat": "@", "lsqb": "[", "lbrack": "[", "bsol": "\\",
        "rsqb": "]", "rbrack": "]", "Hat": "^", "lowbar": "_", "grave": "`", "lcub": "{", "lbrace": "{", "vert": "|",
        "verbar": "|", "rcub": "}", "rbrace": "}",
    ]

    func append(to bytes: inout [UInt8]) {
        switch value {
        case .byte(let byte): bytes.append(byte)
        case .scalar(let scalar): bytes += UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter
        }
    }

    private struct Reader {
        let source: UnsafeBufferPointer<UInt8>

        func at(_ place: Int) -> UInt8? { place < source.count ? source[place] : nil }

        func hex(_ place: Int, digits: Int) -> UInt32? {
            guard place + digits <= source.count else { return nil }
            var value: UInt32 = 0
            for index in place..<place + digits {
                guard let digit = FieldSyntax.hexDigit(source[index]) else { return nil }
                value = value << 4 | UInt32(digit)
            }
            return value
        }
    }
}

/// Base64 in both alphabets, which differ in two digits (RFC 4648 §4 and §5).
package enum Base64 {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    /// The value of each byte that is a digit of either alphabet; 255 for all others.
    private static let values: [UInt8] = {
        var values = [UInt8](repeating: 255, count: 256)
        for (value, digit) in digits.enumerated() { values[Int(digit)] = UInt8(value) }
        (values[0x2D], values[0x5F]) = (62, 63)
        return values
    }()

    package static func isDigit(_ byte: UInt8) -> Bool { values[Int(byte)] != 255 }

    package enum Alphabet { case standard, urls }

    /// The only alphabet that a digit belongs to; nil if it belongs to both.
    package static func alphabet(of digit: UInt8) -> Alphabet? {
        switch digit {
        case 0x2D, 0x5F: .urls
        case 0x2B, 0x2F: .standard
        default: nil
        }
    }

    /// The bytes that the leading digits stand for; bits of a byte that is not complete are dropped.
    package static func decode(_ text: some Sequence<UInt8>) -> [UInt8] {
        var (bytes, bits, count): ([UInt8], UInt32, Int) = ([], 0, 0)
        for byte in text {
            let value = values[Int(byte)]
            guard value != 255 else { break }
            bits = bits << 6 | UInt32(value)
            count += 6
            if count >= 8 {
                count -= 8
                bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return bytes
    }

    /// The digits for bytes.
    package static func encode(_ bytes: [UInt8], in alphabet: Alphabet = .standard, isPadded: Bool = true) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            var bits: UInt32 = 0
            for offset in 0..<3 {
                bits = bits << 8 | (start + offset < bytes.count ? UInt32(bytes[start + offset]) : 0)
            }
            for place in 0...group.count { result.append(digits[Int(bits >> UInt32(18 - 6 * place) & 63)]) }
            if isPadded { result += repeatElement(0x3D, count: 3 - group.count) }
        }
        guard alphabet == .urls else { return result }
        return result.map { $0 == 0x2B ? 0x2D : $0 == 0x2F ? 0x5F : $0 }
    }
}

extension UnsafeBufferPointer<UInt8> {
    /// The first place of a byte from a position on; nil if there is none.
    package func place(of byte: UInt8, from position: Int) -> Int? {
        guard position < count, let start = baseAddress,
            let found = memchr(start + position, Int32(byte), count - position)
        else { return nil }
        return UnsafeRawPointer(start).distance(to: UnsafeRawPointer(found))
    }
}
