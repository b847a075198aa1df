/// The body of a response for an event: the pieces it came in, shared with whoever else holds them.
struct LiveBody: Sendable {
    private(set) var pieces: [[UInt8]] = []
    private(set) var count = 0

    init(_ body: [UInt8] = []) {
        append(body)
    }

    mutating func append(_ piece: [UInt8]) {
        guard !piece.isEmpty else { return }
        pieces.append(piece)
        count += piece.count
    }

    /// Whether a JSON string can say it exactly: it is UTF-8 throughout, and begins with no byte order mark, which some
    /// readers of JSON swallow.
    var isText: Bool {
        if pieces.lazy.joined().starts(with: [0xEF, 0xBB, 0xBF]) { return false }
        // The start of a character whose rest is in the next piece.
        var rest: [UInt8] = []
        for piece in pieces {
            let text = rest.isEmpty ? piece : rest + piece
            let end = Self.endOfWholeCharacters(in: text)
            guard Self.isText(text, before: end) else { return false }
            rest = Array(text[end...])
        }
        return rest.isEmpty
    }

    private static func isText(_ bytes: [UInt8], before end: Int) -> Bool {
        let span = bytes.span
        return (try? UTF8Span(validating: span.extracting(0..<end))) != nil
    }

    /// Where a last character begins whose lead byte promises more bytes than there are; else the end.
    private static func endOfWholeCharacters(in bytes: [UInt8]) -> Int {
        for length in 1...3 where length <= bytes.count {
            let byte = bytes[bytes.count - length]
            if byte & 0xC0 == 0x80 { continue }
            let promised = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1
            return promised > length ? bytes.count - length : bytes.count
        }
        return bytes.count
    }
}

extension LiveBody: Equatable {
    /// Whether the bytes are the same, however they came in pieces.
    static func == (one: LiveBody, other: LiveBody) -> Bool {
        guard one.count == other.count else { return false }
        var (left, right) = (one.pieces[...], other.pieces[...])
        var (a, b): (ArraySlice<UInt8>, ArraySlice<UInt8>) = ([], [])
        while true {
            if a.isEmpty { a = left.popFirst()?[...] ?? [] }
            if b.isEmpty { b = right.popFirst()?[...] ?? [] }
            let length = min(a.count, b.count)
            if length == 0 { return true }
            guard a.prefix(length) == b.prefix(length) else { return false }
            a = a.dropFirst(length)
            b = b.dropFirst(length)
        }
    }
}
