import TestSupport
import DaemonTestSupport
import Testing

@testable import HTTPSemantics
@testable import HTTPServer

/// Requests as they come over the wire, and what is answered.
@Suite(.scripts) struct RequestParserTests {
    /// A request that must be refused, and how.
    struct Refusal: Sendable, CustomTestStringConvertible {
        var request: String
        var fault: RequestFault

        init(_ request: String, _ fault: RequestFault) {
            self.request = request
            self.fault = fault
        }

        var testDescription: String { request.debugDescription }
    }

    static let badRequestLines: [Refusal] = [
        Refusal("GET / HTTP/1.1\nHost: h\n\n", .bareLineFeed),
        Refusal("\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", .bareLineFeed),
        Refusal("GET /\r\n\r\n", .badRequestLine),
        Refusal("GET\r\n\r\n", .badMethod),
        Refusal(" GET / HTTP/1.1\r\nHost: h\r\n\r\n", .badMethod),
        Refusal("G(T / HTTP/1.1\r\nHost: h\r\n\r\n", .badMethod),
        Refusal("GET  / HTTP/1.1\r\nHost: h\r\n\r\n", .badTarget),
        Refusal("GET /  HTTP/1.1\r\nHost: h\r\n\r\n", .badVersion),
        Refusal("GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n", .badMethod),
        Refusal("GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", .badVersion),
        Refusal("GET /\rb HTTP/1.1\r\nHost: h\r\n\r\n", .badTarget),
        Refusal("GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n", .badTarget),
        Refusal("GET /\u{7F} HTTP/1.1\r\nHost: h\r\n\r\n", .badTarget),
        Refusal("GET /é HTTP/1.1\r\nHost: h\r\n\r\n", .badTarget),
        Refusal("GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n", .badTarget),
        Refusal("GET a/b HTTP/1.1\r\nHost: h\r\n\r\n", .badTarget),
        Refusal("GET * HTTP/1.1\r\nHost: h\r\n\r\n", .badTarget),
        Refusal("OPTIONS ** HTTP/1.1\r\nHost: h\r\n\r\n", .badTarget),
        Refusal("GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", .badTarget),
        Refusal("GET http:// HTTP/1.1\r\nHost: h\r\n\r\n", .badTarget),
        Refusal("GET http:///a HTTP/1.1\r\nHost: h\r\n\r\n", .badTarget),
        Refusal("GET http://user@h/ HTTP/1.1\r\nHost: h\r\n\r\n", .badTarget),
        Refusal("GET / HTTP/1.1 \r\nHost: h\r\n\r\n", .badVersion),
        Refusal("GET / http/1.1\r\nHost: h\r\n\r\n", .badVersion),
        Refusal("GET / HTTP/1.10\r\nHost: h\r\n\r\n", .badVersion),
        Refusal("GET / HTTP/11\r\nHost: h\r\n\r\n", .badVersion),
        Refusal("GET / HTTP/1.x\r\nHost: h\r\n\r\n", .badVersion),
        Refusal("GET / HTTP/2.0\r\nHost: h\r\n\r\n", .otherVersion),
        Refusal("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", .otherVersion),
        Refusal("GET / HTTP/0.9\r\n\r\n", .otherVersion),
        Refusal("CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", .tunnel),
        Refusal(String(repeating: "\r\n", count: 20), .badMethod),
    ]

    static let badFields: [Refusal] = [
        Refusal("GET / HTTP/1.1\r\n\r\n", .noHost),
        Refusal("GET http://h/ HTTP/1.1\r\n\r\n", .noHost),
        Refusal("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", .repeatedHost),
        Refusal("GET / HTTP/1.1\r\nHost: a\r\nhOST: b\r\n\r\n", .repeatedHost),
        Refusal("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", .badHost),
        Refusal("GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", .badHost),
        Refusal("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", .badHost),
        Refusal("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", .badHost),
        Refusal("GET / HTTP/1.1\r\nHost: é\r\n\r\n", .badHost),
        Refusal("GET / HTTP/1.1\r\nHost : h\r\n\r\n", .badFieldName),
        Refusal("GET / HTTP/1.1\r\nHost: h\r\nA\t: b\r\n\r\n", .badFieldName),
        Refusal("GET / HTTP/1.1\r\nHost: h\r\n: b\r\n\r\n", .badFieldName),
        Refusal("GET / HTTP/1.1\r\nHost: h\r\nab\r\n\r\n", .badFieldName),
        Refusal("GET / HTTP/1.1\r\nHost: h\r\na(b: c\r\n\r\n", .badFieldName),
        Refusal("GET / HTTP/1.1\r\nHost: h\r\né: c\r\n\r\n", .badFieldName),
        Refusal("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", .foldedLine),
        Refusal("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\tc\r\n\r\n", .foldedLine),
        Refusal("GET / HTTP/1.1\r\n Host: h\r\n\r\n", .foldedLine),
        Refusal("GET / HTTP/1.1\r\nHost: h\r\nA: b\0c\r\n\r\n", .badFieldValue),
        Refusal("GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n", .badFieldValue),
        Refusal("GET / HTTP/1.1\r\nHost: h\r\nA: 12345678\u{1}2345678\r\n\r\n", .badFieldValue),
        Refusal("GET / HTTP/1.1\r\nHost: h\r\nA: 12345678\u{7F}2345678\r\n\r\n", .badFieldValue),
        Refusal("GET / HTTP/1.1\r\nHost: h\r\nA: b\nB: c\r\n\r\n", .bareLineFeed),
        Refusal("GET / HTTP/1.1\r\nHost: h\r\n\n", .bareLineFeed),
        Refusal("GET / HTTP/1.1\r\nHost: h\r\nExpect: magic\r\n\r\n", .unknownExpectation),
        Refusal(
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-continue, x\r\n\r\n",
            .unknownExpectation
        ),
    ]

    static let badFraming: [Refusal] = [
        Refusal("Content-Length: 1\r\nTransfer-Encoding: chunked", .lengthAndCoding),
        Refusal("Transfer-Encoding: chunked\r\nContent-Length: 1", .lengthAndCoding),
        Refusal("Content-Length: 1\r\nContent-Length: 2", .repeatedContentLength),
        Refusal("Content-Length: 1\r\nContent-Length: 1", .repeatedContentLength),
        Refusal("Content-Length: 1, 1", .badContentLength),
        Refusal("Content-Length:", .badContentLength),
        Refusal("Content-Length: +1", .badContentLength),
        Refusal("Content-Length: -1", .badContentLength),
        Refusal("Content-Length: 1 2", .badContentLength),
        Refusal("Content-Length: 0x10", .badContentLength),
        Refusal("Content-Length: 1.0", .badContentLength),
        Refusal("Content-Length: ٣", .badContentLength),
        Refusal("Content-Length: 99999999999999999999999999", .bodyTooLarge),
        Refusal("Content-Length: 18446744073709551617", .bodyTooLarge),
        Refusal("Transfer-Encoding: gzip", .unknownCoding),
        Refusal("Transfer-Encoding: gzip, chunked", .unknownCoding),
        Refusal("Transfer-Encoding: chunked, chunked", .unknownCoding),
        Refusal("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", .unknownCoding),
        Refusal("Transfer-Encoding: chunked, identity", .unknownCoding),
        Refusal("Transfer-Encoding: identity", .unknownCoding),
        Refusal("Transfer-Encoding: xchunked", .unknownCoding),
        Refusal("Transfer-Encoding: \"chunked\"", .unknownCoding),
        Refusal("Transfer-Encoding: chunked;q=1", .unknownCoding),
        Refusal("Transfer-Encoding:", .unknownCoding),
    ]

    @Test(arguments: badRequestLines + badFields)
    func `a malformed head is refused with a problem document and the connection closed`(
        refusal: Refusal
    ) async throws {
        try await expect(refusal.fault, for: refusal.request)
    }

    @Test(arguments: badFraming)
    func `ambiguous framing is refused and what follows is not read as a request`(refusal: Refusal) async throws {
        let smuggled = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
        try await expect(refusal.fault, for: "POST / HTTP/1.1\r\nHost: h\r\n\(refusal.request)\r\n\r\n\(smuggled)")
    }

    @Test func `a transfer coding in HTTP 1_0 is refused`() async throws {
        try await expect(.unknownCoding, for: "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    }

    private func expect(_ fault: RequestFault, for request: String) async throws {
        try await withServer { server in
            let client = try server.connect()
            client.send(request)
            let answer = try client.answer()
            #expect(answer.status == fault.status)
            #expect(answer.fields["content-type"] == "application/problem+json")
            #expect(answer.fields["connection"] == "close")
            #expect(answer.body == fault.problem.bytes)
            #expect(client.readToEnd().isEmpty)
        }
    }

    @Test(arguments: badRequestLines + badFields)
    func `a malformed head is refused in the same way when it comes byte by byte`(refusal: Refusal) {
        let parser = RequestParser(limits: HTTPLimits())
        var bytes = Array(refusal.request.utf8)
        if bytes.starts(with: [13, 10]) { return }  // Empty lines in front are the connection's business.
        let fault = bytes.withUnsafeMutableBufferPointer { buffer -> RequestFault? in
            for count in 1...buffer.count {
                if case .refused(let fault) = parser.parse(buffer.baseAddress!, count: count) { return fault }
            }
            return nil
        }
        #expect(fault == refusal.fault)
    }

    static let targets: [(String, String)] = [
        ("GET /a/b?c=d&e HTTP/1.1\r\nHost: h:80\r\n\r\n", "GET /a/b?c=d&e h:80\n"),
        ("GET /a?b?c/d HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a?b?c/d h\n"),
        ("GET //a HTTP/1.1\r\nHost: h\r\n\r\n", "GET //a h\n"),
        ("GET http://x:81/a?b HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a?b x:81\n"),
        ("GET HTTPS://x/ HTTP/1.1\r\nHost: h\r\n\r\n", "GET / x\n"),
        ("GET http://x HTTP/1.1\r\nHost: h\r\n\r\n", "GET / x\n"),
        ("GET http://x?q=/ HTTP/1.1\r\nHost: h\r\n\r\n", "GET /?q=/ x\n"),
        ("GET http://[::1]:8/a HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a [::1]:8\n"),
        ("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS * h\n"),
        ("OPTIONS http://x:8001 HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS * x:8001\n"),
        ("OPTIONS /a HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS /a h\n"),
        ("BREW /pot HTTP/1.1\r\nHost: h\r\n\r\n", "BREW /pot h\n"),
        ("get /a HTTP/1.1\r\nHost: h\r\n\r\n", "get /a h\n"),
        ("GET /a HTTP/1.2\r\nHost: h\r\n\r\n", "GET /a h\n"),
        ("GET /a HTTP/1.1\r\nHost:\r\n\r\n", "GET /a \n"),
        ("GET /a HTTP/1.1\r\nhost:\t h \t\r\n\r\n", "GET /a h\n"),
        ("\r\n\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n", "GET /a h\n"),
        ("GET /a HTTP/1.1\r\nHost: h\r\nA: \tb\u{FF}é\t\r\nB:\r\n\r\n", "GET /a h\n"),
        ("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", "POST /a h\n"),
        ("GET /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi", "GET: hi\n"),
    ]

    @Test(arguments: targets)
    func `a well-formed request is parsed`(request: String, shown: String) async throws {
        try await withServer { server in
            let client = try server.connect()
            client.send(request + "GET /next HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try client.answer().text == shown)
            #expect(try client.answer().text == "GET /next h\n")
        }
    }

    @Test func `every known field is found, in any case, and no other`() {
        let table = KnownFieldTable.shared
        for field in KnownField.allCases {
            for name in ["\(field.name)", "\(field.name)".uppercased()] {
                let bytes = Array(name.utf8)
                #expect(bytes.withUnsafeBufferPointer { table.find($0.baseAddress!, $0.count) } == field)
            }
            let longer = Array("\(field.name)x".utf8)
            #expect(longer.withUnsafeBufferPointer { table.find($0.baseAddress!, $0.count) } == nil)
        }
    }

    @Test func `the table of known fields is in the order of the enum's cases`() {
        for field in KnownField.allCases {
            // Some cases leave out the beginning of the name.
            let words = "\(field)".map { $0.isUppercase ? "-\($0.lowercased())" : "\($0)" }.joined()
            #expect("-\(field.name)".hasSuffix("-" + words), "\(field): \(field.name)")
        }
        #expect(Set(KnownField.allCases.map { "\($0.name)" }).count == KnownField.allCases.count)
        #expect("\(KnownField.purpose.name)" == "purpose" && "\(KnownField.httpMethod.name)" == "x-http-method")
    }

    @Test func `fields are found by name and index, repeated ones counted`() async throws {
        try await withServer(handler: { request, connection in
            func text(_ bytes: UnsafeRawBufferPointer?) -> String {
                bytes.map { String(decoding: $0, as: UTF8.self) } ?? "-"
            }
            let seen = [
                text(request[.accept]), "\(request.count(of: .accept))", text(request[.range]),
                request.combined("x-other").map { String(decoding: $0, as: UTF8.self) } ?? "-",
                text(request.field(at: 2).name), "\(request.fieldCount)",
            ]
            connection.respond(status: 200, body: Array(seen.joined(separator: "|").utf8))
        }) { server in
            let client = try server.connect()
            client.send("GET / HTTP/1.1\r\nHost: h\r\nAccept: a\r\nX-Other: o\r\nACCEPT: b\r\nAccept-X: c\r\n\r\n")
            #expect(try client.answer().text == "a|2|-|o|X-Other|5")
            client.send("GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nRange: r\r\n\r\n")
            #expect(try client.answer().text == "-|0|r|-|Range|3")
        }
    }

    @Test func `a copied request has all parts of the original`() async throws {
        try await withServer(handler: { request, connection in
            let exchange = connection.takeOver(request)
            let request = exchange.request
            let seen = [request.method, request.target]
            let fields = request.fields.lines.map { "\(String(decoding: $0.name, as: UTF8.self))=\($0.text)" }
            exchange.reply.respond(
                status: 200,
                fields: Fields(),
                body: Array((seen + fields).joined(separator: "|").utf8)
            )
        }) { server in
            let client = try server.connect()
            client.send("GET http://x/a?b HTTP/1.1\r\nHost: h\r\nA:  b c \r\na: d\r\n\r\n")
            #expect(try client.answer().text == "GET|/a?b|Host=h|A=b c|a=d")
        }
    }
}
