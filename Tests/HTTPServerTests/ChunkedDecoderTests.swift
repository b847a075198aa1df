import DaemonTestSupport
import TestSupport
import Testing

@testable import HTTPSemantics
@testable import HTTPServer

@Suite(.scripts) struct ChunkedDecoderTests {
    static let good: [(String, String)] = [
        ("0\r\n\r\n", ""),
        ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("1\r\na\r\n2\r\nbc\r\n000\r\n\r\n", "abc"),
        ("A\r\n0123456789\r\n0\r\n\r\n", "0123456789"),
        ("a;x=y\r\n0123456789\r\n0;last\r\n\r\n", "0123456789"),
        ("1 ; x=\"a b;c\"\r\na\r\n0\r\n\r\n", "a"),
        ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n"),
        ("1\r\na\r\n0\r\nTrailer: x\r\nOther:\r\n\r\n", "a"),
    ]

    static let bad: [(String, RequestFault)] = [
        ("\r\n", .badChunk),
        ("g\r\n", .badChunk),
        ("-1\r\n", .badChunk),
        ("+1\r\na\r\n", .badChunk),
        ("0x1\r\na\r\n", .badChunk),
        (" 1\r\na\r\n", .badChunk),
        ("1 \r\na\r\n", .badChunk),
        ("1\na\n", .badChunk),
        ("1\r\na\n0\r\n\r\n", .badChunk),
        ("1\r\nab\r\n", .badChunk),
        ("1\rxa\r\n", .badChunk),
        ("1;a\nb\r\na\r\n", .badChunk),
        ("1;a\rb\r\na\r\n", .badChunk),
        ("1;a\0\r\na\r\n", .badChunk),
        ("10000000000000000\r\n", .badChunk),
        ("0\r\n \r\n", .badTrailer),
        ("0\r\nbad name: x\r\n\r\n", .badTrailer),
        ("0\r\nnocolon\r\n\r\n", .badTrailer),
        ("0\r\nA: b\n\r\n", .badTrailer),
        ("0\r\nA: b\0\r\n\r\n", .badTrailer),
        ("0\r\n\rx", .badTrailer),
        ("0\r\n\n", .badTrailer),
        ("0\r\nA: b\r\n folded\r\n\r\n", .badTrailer),
        ("1;" + String(repeating: "x", count: 20_000), .chunkExtensionTooLong),
        ("0\r\nA: " + String(repeating: "x", count: 40_000), .badTrailer),
        ("0\r\n" + String(repeating: "A: b\r\n", count: 101), .badTrailer),
    ]

    /// Decodes in pieces of one size; the body, or what was wrong.
    private func decode(_ text: String, pieces: Int) -> (body: String, end: Int?, fault: RequestFault?) {
        var decoder = ChunkedDecoder(limits: HTTPLimits())
        let bytes = Array(text.utf8)
        var body: [UInt8] = []
        var start = 0
        while start < bytes.count {
            let piece = Array(bytes[start..<min(bytes.count, start + pieces)])
            var offset = 0
            reading: while true {
                switch piece.withUnsafeBytes({ decoder.next($0, from: &offset) }) {
                case .body(let range): body += piece[range]
                case .needsMore: break reading
                case .end(let end): return (String(decoding: body, as: UTF8.self), start + end, nil)
                case .refused(let fault): return (String(decoding: body, as: UTF8.self), nil, fault)
                }
            }
            start += piece.count
        }
        return (String(decoding: body, as: UTF8.self), nil, nil)
    }

    @Test(arguments: good)
    func `a chunked body is decoded alike however its bytes are split`(text: String, body: String) {
        for pieces in 1...text.utf8.count {
            let result = decode(text + "GET", pieces: pieces)
            #expect(result.body == body)
            #expect(result.end == text.utf8.count)
        }
    }

    @Test(arguments: bad)
    func `a malformed chunked body is refused however its bytes are split`(text: String, fault: RequestFault) {
        for pieces in [1, 2, 3, 7, text.utf8.count] { #expect(decode(text, pieces: pieces).fault == fault) }
    }

    @Test(arguments: good)
    func `a chunked request is answered, and the next one on the connection is found`(text: String, body: String)
        async throws
    {
        try await withServer { server in
            let client = try server.connect()
            client.send("PUT /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n")
            for byte in text.utf8 { client.send([byte]) }
            client.send("GET /next HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try client.answer().text == "PUT: \(body)\n")
            #expect(try client.answer().text == "GET /next h\n")
        }
    }

    @Test(arguments: bad)
    func `a malformed chunked request gets 400, and the connection is closed`(
        text: String,
        fault: RequestFault
    ) async throws {
        try await withServer { server in
            let client = try server.connect()
            client.send("PUT /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\(text)")
            let answer = try client.answer()
            #expect(answer.status == 400)
            #expect(answer.body == fault.problem.bytes)
            #expect(client.readToEnd().isEmpty)
        }
    }
}
