import Foundation
import TestSupport
import Testing

/// Whatever an upstream sends: the client gets its bytes or a clear problem, the daemon goes on, nothing wrong is kept.
@Suite(.scripts) struct HostileOriginTests {
    /// Bodies that claim to be JSON; whole ones are kept as they are.
    static let oddBodies: [(what: String, body: String)] = [
        ("nothing", ""), ("no JSON", "<html>no</html>"), ("cut short", #"[{"id":1,"name":"Ad"#),
        ("white space", " \n "),
        ("two values", #"{"id":1} {"id":2}"#), ("a lone surrogate", #"[{"id":1,"name":"\ud800"}]"#),
        ("a duplicate key", #"[{"id":1,"name":"a","name":"b"}]"#), ("a duplicate id", #"[{"id":1,"id":2,"name":"a"}]"#),
        ("huge numbers", #"[{"id":123456789012345678901234567890,"name":1e400,"company":-0.0}]"#),
        ("an id that is an object", #"[{"id":{"x":1},"name":"a"}]"#), ("a null id", #"[{"id":null,"name":"a"}]"#),
        ("a boolean id", #"[{"id":true,"name":"a"}]"#), ("an empty id", #"[{"id":"","name":"a"}]"#),
        ("a long id", #"[{"id":"\#(String(repeating: "x", count: 2000))","name":"a"}]"#),
        ("what looks like a reference", #"[{"id":1,"name":"\u0001User:1"}]"#),
        ("a NUL", "[{\"id\":1,\"name\":\"a\u{0}b\"}]"), ("control characters", "[{\"id\":1,\"name\":\"a\nb\"}]"),
        ("a byte order mark", "\u{feff}[{\"id\":1}]"), ("a scalar", "42"), ("null", "null"),
        ("10,000 levels", String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000)),
        (
            "10,000 objects inside each other",
            String(repeating: #"{"id":1,"author":"#, count: 10_000) + "1" + String(repeating: "}", count: 10_000)
        ),
    ]

    @Test(arguments: Array(oddBodies.indices)) func `odd bodies are passed on and served unchanged`(index: Int) throws {
        let (what, body) = Self.oddBodies[index]
        let origin = try Origin { _ in .json(body, Fresh.hour) }
        let larder = try Larder(config: Configs.blog(origin))
        for path in ["/users", "/users/1", "/posts"] {
            let first = try larder.get(path)
            #expect(first.status == 200, "\(what)")
            #expect(first.text == body, "\(what)")
            #expect(try eventually { try larder.get(path).isHit }, "\(what)")
            #expect(try larder.get(path).text == body, "\(what)")
        }
        larder.kill()
        try larder.start()
        #expect(try larder.get("/users").text == body, "\(what)")
    }

    @Test func `bytes that are not UTF-8 are passed on and served unchanged`() throws {
        let body = Array(#"[{"id":1,"name":""#.utf8) + [0xff, 0xfe, 0xc0, 0x80] + Array(#""}]"#.utf8)
        let origin = try Origin { _ in .body(body, Fresh.hour + ["Content-Type": "application/json"]) }
        let larder = try Larder(config: Configs.blog(origin))
        for _ in 1...2 { #expect(try larder.get("/users").body == body) }
        #expect(try larder.waitForDocuments(1))
        #expect(try larder.get("/users").body == body)
    }

    /// Responses that break off, by what they send before they do.
    static let brokenResponses: [(what: String, bytes: String, reset: Bool)] = [
        (
            "a length not reached", "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 100\r\n\r\n[1,2",
            false
        ),
        (
            "a reset in the body", "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 100\r\n\r\n[1,2",
            true
        ),
        (
            "chunks without an end",
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n[1,2\r\n", false
        ),
        (
            "a chunk cut short",
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n[1,2", true
        ),
        (
            "a bad chunk size",
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n[1,2\r\nzz\r\n",
            false
        ),
    ]

    @Test(arguments: Array(brokenResponses.indices))
    func `a truncated response looks truncated to the client, and is not stored`(index: Int) throws {
        let (what, bytes, reset) = Self.brokenResponses[index]
        let origin = try Origin { _ in .raw(bytes, thenReset: reset) }
        let larder = try Larder(origin)
        // Either the head had left already, and then the body visibly breaks off; or it is a problem.
        let answer = try? larder.get("/x")
        #expect(answer == nil || answer?.status == 502, "\(what)")
        origin.always(.json("[1,2,3]", Fresh.hour))
        let again = try larder.get("/x")
        #expect(again.text == "[1,2,3]", "\(what)")
        #expect(!again.isHit, "\(what)")
    }

    /// Responses that are none.
    static let garbage: [(what: String, bytes: String)] = [
        ("nothing", ""), ("noise", "\u{1}\u{2}\u{3} noise noise noise\r\n\r\n"),
        ("another protocol", "SSH-2.0-OpenSSH_9.2\r\n"),
        ("a status that is none", "HTTP/1.1 banana OK\r\n\r\n"), ("a head cut short", "HTTP/1.1 200 OK\r\nContent-Le"),
        ("two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x"),
        ("a length that is none", "HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n{}"),
        ("a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}"),
    ]

    @Test(arguments: Array(garbage.indices))
    func `a response that is not valid HTTP becomes a problem document, and is not stored`(index: Int) throws {
        let (what, bytes) = Self.garbage[index]
        let origin = try Origin { _ in .raw(bytes) }
        let larder = try Larder(origin)
        if let answer = try? larder.get("/x") {
            #expect(answer.status == 502 && answer.isProblem, "\(what): \(answer.status) \(answer.text)")
        }
        origin.always(.json("[]", Fresh.hour))
        #expect(try larder.get("/x").text == "[]", "\(what)")
    }

    @Test(arguments: [false, true]) func `truncated compressed JSON reaches the client truncated, and is not stored`(
        isRewritten: Bool
    ) throws {
        let text = Array(#"[{"id":1},{"id":"#.utf8)
        // One block of deflate, stored as it is and not the last, in a length and with an ending that are in order.
        let count = UInt8(text.count)
        let packed: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0, count, 0, ~count, 0xFF] + text
        let fields = Fresh.hour + ["Content-Type": "application/json", "Content-Encoding": "gzip"]
        let origin = try Origin { _ in .body(packed, fields) }
        let larder = try Larder(config: Configs.plain(origin, upstream: ["rewrite_links: \(isRewritten)"]))
        let client = try larder.client()
        try client.send(Client.message("GET", "/x", host: "127.0.0.1:\(larder.port)"))
        #expect(try client.head().status == 200)
        #expect(try client.chunk() == text)
        #expect(try client.isClosed())
        origin.always(.json("[]", Fresh.hour))
        #expect(try larder.get("/x").text == "[]")
    }

    @Test(arguments: 1...9) func `a body that ends inside its coding looks truncated, and is not stored`(missing: Int)
        throws
    {
        let text = Array("some text, which looks whole".utf8)
        let packed = Array(gzipStored(text).dropLast(missing))
        let origin = try Origin { request in
            let fields = Fresh.hour + ["Content-Type": "text/plain", "Content-Encoding": "gzip"]
            return request.path == "/chunked" ? .chunked([packed], fields) : .body(packed, fields)
        }
        let larder = try Larder(origin)
        for path in ["/length", "/chunked"] {
            // What there is reaches the client, who can tell that it is not all; a write is no different.
            for method in ["GET", "GET", "POST"] {
                let client = try larder.client()
                try client.send(Client.message(method, path, host: "127.0.0.1:\(larder.port)"))
                let head = try client.head()
                #expect(head.status == 200 && head.fields["Content-Length"] == nil)
                var received: [UInt8] = []
                let decoded = Array(text.dropLast(max(0, missing - 8)))
                while received.count < decoded.count, let chunk = try client.chunk() { received += chunk }
                #expect(received == decoded)
                #expect(try client.isClosed())
            }
            #expect(origin.count(path) == 3)
        }
        #expect(try larder.documents() == 0)
    }

    @Test func `gzip of several members is one body, and stored`() throws {
        let members = ["[1,", "", "2,3", "]"].map { gzipStored(Array($0.utf8)) }
        let origin = try Origin { request in
            let fields = Fresh.hour + ["Content-Type": "application/json", "Content-Encoding": "gzip"]
            return request.path == "/chunked" ? .chunked(members, fields) : .body(Array(members.joined()), fields)
        }
        let larder = try Larder(origin)
        for path in ["/length", "/chunked"] {
            #expect(try larder.get(path).text == "[1,2,3]")
            let again = try larder.get(path)
            #expect(again.text == "[1,2,3]")
            #expect(again.isHit)
        }
    }

    @Test(arguments: [false, true]) func `the bytes of a response that breaks off reach the client before the reset`(
        isChunked: Bool
    ) throws {
        let part = Array(String(repeating: "part ", count: 20_000).utf8)
        let head =
            isChunked
            ? "Transfer-Encoding: chunked\r\n\r\n\(String(part.count, radix: 16))\r\n"
            : "Content-Length: 1000000\r\n\r\n"
        let bytes = Array("HTTP/1.1 200 OK\r\n\(head)".utf8) + part + (isChunked ? [13, 10] : [])
        let origin = try Origin { _ in .raw(bytes) }
        let larder = try Larder(origin)
        for number in 0..<50 {
            let client = try larder.client()
            try client.send(Client.message("GET", "/\(number)", host: "127.0.0.1:\(larder.port)"))
            #expect(try client.head().status == 200)
            var received: [UInt8] = []
            if isChunked {
                while received.count < part.count, let chunk = try client.chunk() { received += chunk }
            } else {
                received = try client.bytes(part.count)
            }
            #expect(received == part)
            #expect(try client.isClosed())
        }
        #expect(try larder.documents() == 0)
    }

    @Test func `a body that is not in the coding it claims reaches the client as it came, and is not stored`() throws {
        let origin = try Origin { _ in .text("plain after all", Fresh.hour + ["Content-Encoding": "gzip"]) }
        let larder = try Larder(origin)
        for _ in 0..<2 {
            let answer = try larder.get("/x", ["Accept-Encoding": "gzip"])
            #expect(answer.status == 200)
            #expect(answer.text == "plain after all")
            #expect(answer["Content-Encoding"] == "gzip")
            #expect(!answer.isHit)
        }
        #expect(try larder.documents() == 0)
    }

    @Test func `an interim response is not taken for the final one`() throws {
        let origin = try Origin { _ in
            .raw(
                "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
                    + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: max-age=60\r\n\r\n[]"
            )
        }
        let larder = try Larder(origin)
        #expect(try larder.get("/x").text == "[]")
        #expect(try larder.get("/x").isHit)
    }

    @Test func `a bare CR in an upstream's field does not begin another field`() throws {
        let origin = try Origin { _ in
            .raw("HTTP/1.1 200 OK\r\nX-A: one\rX-B: two\r\nContent-Length: 2\r\nCache-Control: max-age=60\r\n\r\n[]")
        }
        let larder = try Larder(origin)
        for _ in 1...2 {
            let answer = try? larder.get("/x")
            #expect(answer?["X-B"] == nil)
            #expect(answer?.fields["X-A"]?.contains("\r") != true)
        }
    }

    @Test func `an upstream that refuses, or whose name does not exist, is a problem with a reason`() throws {
        let nobody = try Socket.bound()
        for upstream in ["http://127.0.0.1:\(nobody.port)", "http://larder.invalid"] {
            let larder = try Larder(upstream: upstream)
            let answer = try larder.get("/x")
            #expect([502, 504].contains(answer.status))
            #expect(answer.isProblem)
            #expect((answer.object["detail"] as? String)?.isEmpty == false)
            #expect(answer.cacheStatus.hasPrefix("larder"))
        }
    }

    @Test func `an upstream with an untrusted certificate is refused, unless ca_file names it`() throws {
        let folder = TemporaryFolder()
        try TestProcess.run(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                "-subj",
                "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", folder.file("key.pem"), "-out",
                folder.file("cert.pem"),
            ]
        )
        let script = """
            import http.server, ssl, sys
            class Handler(http.server.BaseHTTPRequestHandler):
                def do_GET(self):
                    self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"[]")
                def log_message(self, *arguments): pass
            server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[1], sys.argv[2])
            server.socket = context.wrap_socket(server.socket, server_side=True)
            print(server.server_address[1], file=sys.stderr, flush=True)
            server.serve_forever()
            """
        let server = try TestProcess("python3", ["-c", script, folder.file("cert.pem"), folder.file("key.pem")])
        #expect(server.waitForErrors { $0.contains("\n") })
        let port = server.errors.split(separator: "\n").first ?? ""
        let distrustful = try Larder(upstream: "https://localhost:\(port)")
        let answer = try distrustful.get("/x")
        #expect(answer.status == 502)
        #expect(answer.isProblem)
        // The log says which key mends it.
        #expect(distrustful.process.waitForErrors { $0.contains("the upstream cannot be reached") })
        #expect(
            distrustful.log.contains("self-signed certificate")
                && distrustful.log.contains("upstreams.upstream.ca_file")
        )

        let config = """
            upstreams:
              api: { url: "https://localhost:\(port)", ca_file: "\(folder.file("cert.pem"))" }
            """
        let trusting = try Larder(config: config)
        #expect(try trusting.get("/x").text == "[]")
    }
}
