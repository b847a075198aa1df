@testable import HTTPSemantics
@testable import HTTPServer

/// A request that arrives whole and in pieces: both are refused, or both are the same request with the same body.
enum RequestFuzzing: FuzzTarget {
    /// Small ones, so that inputs reach them.
    private static let limits: HTTPLimits = {
        var limits = HTTPLimits()
        (limits.maxTarget, limits.maxHead, limits.maxFields) = (64, 512, 8)
        limits.maxBody = 1 << 20
        return limits
    }()

    static let seeds: [[UInt8]] = [
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "POST /a?b=c HTTP/1.1\r\nHost: h:80\r\nTransfer-Encoding: chunked\r\n\r\n5;a=\"b\"\r\nhello\r\n0\r\nA: b\r\n\r\n",
        "PUT http://h/a HTTP/1.0\r\nContent-Length: 3\r\nConnection: keep-alive, x\r\nX: \ty \r\n\r\nabc",
        "OPTIONS http://h?b HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: h\r\nCookie: a=b\r\nCookie: c\r\n\r\n",
    ].map { [3] + Array($0.utf8) }

    /// The result of parsing: the number of bytes of the head, its values, and what follows as a body.
    private struct Parsed: Equatable {
        var count: Int
        var method: String
        var target: String
        var fields: Fields
        var framing: BodyFraming
        var keepsAlive: Bool
        var expectsContinue: Bool
    }

    private enum Outcome: Equatable {
        case incomplete, refused
        case complete(Parsed)
    }

    static func run(_ input: ArraySlice<UInt8>) {
        var reader = InputReader(input)
        let step = reader.byte() + 1
        let text = Array(reader.rest)
        let whole = parse(text, step: max(1, text.count))
        let pieces = parse(text, step: step)
        require(whole == pieces, "whole: \(whole); in pieces of \(step): \(pieces)")
        guard case .complete(let request) = whole else { return }
        check(request)
        guard request.framing == .chunked else { return }
        let body = Array(text[request.count...])
        let (all, parts) = (decode(body, step: max(1, body.count)), decode(body, step: step))
        require(all == parts, "whole: \(all); in pieces of \(step): \(parts)")
    }

    private static func parse(_ text: [UInt8], step: Int) -> Outcome {
        let parser = RequestParser(limits: limits)
        var former: [UInt8] = []
        while former.count < text.count {
            let end = min(former.count + step, text.count)
            // Each time the bytes lie elsewhere, and end where the memory ends.
            let memory = UnsafeMutablePointer<UInt8>.allocate(capacity: end)
            defer { memory.deallocate() }
            memory.update(from: former + text[former.count..<end], count: end)
            let progress = parser.parse(memory, count: end)
            // The parser may have changed them.
            former = Array(UnsafeBufferPointer(start: memory, count: end))
            switch progress {
            case .incomplete: continue
            case .refused: return .refused
            case .complete(let count):
                let request = parser.head.owned()
                return .complete(
                    Parsed(
                        count: count,
                        method: request.method,
                        target: request.target,
                        fields: request.fields,
                        framing: parser.head.framing,
                        keepsAlive: parser.head.keepsAlive,
                        expectsContinue: parser.head.expectsContinue
                    )
                )
            }
        }
        return .incomplete
    }

    private static func check(_ request: Parsed) {
        let target = Array(request.target.utf8)
        require(target.first == UInt8(ascii: "/") || target == [UInt8(ascii: "*")], "the target \(request.target)")
        require(target.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "the target \(request.target)")
        require(FieldSyntax.isToken(request.method.utf8), "the method \(request.method)")
        for field in request.fields.lines { requireValid(field) }
    }

    /// The decoded body, and whether it ended or was refused; nil if it is incomplete.
    private static func decode(_ body: [UInt8], step: Int) -> [String] {
        var decoder = ChunkedDecoder(limits: limits)
        var decoded: [UInt8] = []
        var start = 0
        while start < body.count {
            let piece = Array(body[start..<min(start + step, body.count)])
            let result: String? = piece.withUnsafeBytes { bytes in
                var offset = 0
                while true {
                    switch decoder.next(bytes, from: &offset) {
                    case .body(let range): decoded += bytes[range]
                    case .needsMore: return nil
                    case .end(let end): return "ended at \(start + end)"
                    case .refused: return "refused"
                    }
                }
            }
            if let result { return [result, String(decoding: decoded, as: UTF8.self)] }
            start += step
        }
        return ["incomplete", String(decoding: decoded, as: UTF8.self)]
    }
}

/// Requires what every parser of heads must guarantee: the name is a token, and the value contains no line end, no NUL and no
/// blanks around it.
func requireValid(_ field: Field) {
    require(FieldSyntax.isToken(field.name), "the field name \(field.name)")
    require(!field.value.contains { [0, 0x0A, 0x0D].contains($0) }, "the field value \(field.value)")
    for end in [field.value.first, field.value.last] where end == 0x20 || end == 0x09 {
        require(false, "the field value \(field.value)")
    }
}
