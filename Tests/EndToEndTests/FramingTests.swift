import TestSupport
import Testing

/// Whether a response over TLS is whole, which only its framing shows (RFC 9112 §8, RFC 9113 §8.1).
@Suite(.scripts) struct FramingTests {
    static let json: FieldLines = Fresh.hour + ["Content-Type": "application/json"]
    static let part = #"{"cut":"#

    /// Sends a request, and reads the response until it ends or breaks off.
    ///
    /// - Parameter arrived: called when the first chunk is there.
    private func ask(
        _ larder: Larder,
        _ path: String,
        method: String = "GET",
        arrived: () -> Void = {}
    ) throws -> (status: Int, body: String, isWhole: Bool) {
        let client = try larder.client()
        try client.send(Client.message(method, path, host: "127.0.0.1:\(larder.port)"))
        let head = try client.head()
        guard head.fields["Transfer-Encoding"] == "chunked" else { return (head.status, "", true) }
        var body: [UInt8] = []
        do {
            while let chunk = try client.chunk() {
                body += chunk
                arrived()
            }
            return (head.status, String(decoding: body, as: UTF8.self), true)
        } catch {
            return (head.status, String(decoding: body, as: UTF8.self), false)
        }
    }

    // MARK: HTTP/2

    /// What ends a stream without showing that its body is whole; the peer of a faulty connection closes it.
    static let cuts: [(what: String, bytes: @Sendable (UInt32) -> [UInt8])] = [
        ("RST_STREAM with NO_ERROR", { HTTP2.resetStream($0) }),
        ("RST_STREAM with CANCEL", { HTTP2.resetStream($0, code: 8) }),
        ("a frame that is too large", { HTTP2.data($0, [UInt8](repeating: 120, count: 20_000)) }),
        ("bad padding", { HTTP2.frame(.data, flags: 8, stream: $0, [255, 123]) }),
        ("SETTINGS of a wrong size", { _ in HTTP2.frame(.settings, [1, 2, 3]) }),
        ("SETTINGS with a forbidden value", { _ in HTTP2.frame(.settings, [0, 2, 0, 0, 0, 2]) }),
        ("WINDOW_UPDATE of 0", { _ in HTTP2.frame(.windowUpdate, [0, 0, 0, 0]) }),
        ("trailers that HPACK cannot read", { HTTP2.frame(.headers, flags: 5, stream: $0, [255, 255, 255, 255]) }),
        ("trailers that do not end the stream", { HTTP2.frame(.headers, flags: 4, stream: $0, [0, 1, 97, 1, 97]) }),
        ("PUSH_PROMISE", { HTTP2.frame(.pushPromise, flags: 4, stream: $0, [0, 0, 0, 2, 0x82]) }),
        ("GOAWAY", { HTTP2.goAway(last: $0) }),
        ("END_STREAM, which libcurl does not tell from RST_STREAM", { HTTP2.data($0, [], ends: true) }),
    ]

    @Test(arguments: Array(cuts.indices))
    func `an HTTP/2 body that may be truncated is passed on as truncated, and not stored`(
        index: Int
    ) throws {
        let (what, bytes) = Self.cuts[index]
        let gate = Gate()
        let origin = try HTTP2Origin { request in
            [
                .send(HTTP2.head(request.stream, Self.json) + HTTP2.data(request.stream, Self.part.utf8)), .wait(gate),
                .send(bytes(request.stream)), .close,
            ]
        }
        let larder = try Larder(config: origin.config)
        let answer = try ask(larder, "/x") { gate.open() }
        #expect(answer == (200, Self.part, false), "\(what)")
        let whole = "[1,2]"
        origin.behave { request in
            let fields = Self.json + ["Content-Length": "\(whole.utf8.count)"]
            return [.send(HTTP2.head(request.stream, fields) + HTTP2.data(request.stream, whole.utf8, ends: true))]
        }
        let again = try larder.get("/x")
        #expect(again.text == whole && !again.isHit, "\(what)")
    }

    @Test func `a response in HTTP/2 without any body is not stored as an empty one`() throws {
        let gate = Gate()
        let origin = try HTTP2Origin { request in
            [.send(HTTP2.head(request.stream, Self.json)), .wait(gate), .send(HTTP2.resetStream(request.stream))]
        }
        let larder = try Larder(config: origin.config)
        let client = try larder.client()
        try client.send(Client.message("GET", "/x", host: "127.0.0.1:\(larder.port)"))
        #expect(try client.head().status == 200)
        gate.open()
        #expect(try client.isClosed())
        #expect(try larder.documents() == 0)
    }

    @Test func `an HTTP/2 stream that breaks its connection truncates the bodies beside it`() throws {
        let gate = Gate()
        let origin = try HTTP2Origin { request in
            let start = HTTP2.head(request.stream, Self.json) + HTTP2.data(request.stream, Self.part.utf8)
            // The first request is there so that the others know that the connection carries several.
            switch request.number {
            case 0: return [.send(HTTP2.head(request.stream, status: 204, [:], ends: true))]
            case 1: return [.send(start)]
            default:
                let tooLarge = [UInt8](repeating: 1, count: 20_000)
                return [.send(start), .wait(gate), .send(HTTP2.data(request.stream, tooLarge))]
            }
        }
        let larder = try Larder(config: origin.config)
        #expect(try larder.get("/first").status == 204)
        let clients = [try larder.client(), try larder.client()]
        for (client, path) in zip(clients, ["/a", "/b"]) {
            try client.send(Client.message("GET", path, host: "127.0.0.1:\(larder.port)"))
            #expect(try client.head().status == 200)
            #expect(try client.chunk() == Array(Self.part.utf8))
        }
        #expect(origin.connections == 1)
        gate.open()
        for client in clients { #expect(try client.isClosed()) }
        #expect(try larder.documents() <= 1)
    }

    @Test func `a write whose HTTP/2 response is truncated counts as done, but its values are not used`() throws {
        let gate = Gate()
        let user = #"{"id":1,"name":"Ada"}"#
        let origin = try HTTP2Origin { request in
            let fields = Self.json + ["Content-Length": "\(user.utf8.count)"]
            return [.send(HTTP2.head(request.stream, fields) + HTTP2.data(request.stream, user.utf8, ends: true))]
        }
        let larder = try Larder(
            config: origin.config + """

                models:
                  User: { identity: id, properties: { name: name } }
                routes:
                  - { path: "users/{id:#}", model: User }
                """
        )
        _ = try larder.get("/users/1")
        #expect(try eventually { try larder.get("/users/1").isHit })
        let isStoredAgain = origin.requests.count
        origin.behave { request in
            let changed = #"{"id":1,"name":"Eve"}"#
            return [
                .send(HTTP2.head(request.stream, Self.json) + HTTP2.data(request.stream, changed.utf8)), .wait(gate),
                .send(HTTP2.resetStream(request.stream)),
            ]
        }
        gate.open()
        let answer = try? larder.request("PATCH", "/users/1")
        #expect(answer == nil || answer?.status == 502)
        origin.behave { request in
            let fields = Self.json + ["Content-Length": "\(user.utf8.count)"]
            return [.send(HTTP2.head(request.stream, fields) + HTTP2.data(request.stream, user.utf8, ends: true))]
        }
        let read = try larder.get("/users/1")
        #expect(!read.isHit && read.text == user)
        #expect(origin.requests.count == isStoredAgain + 2)
    }

    /// Responses whose framing shows that they are whole.
    static let wholes: [(what: String, status: Int, bytes: @Sendable (UInt32) -> [UInt8], body: String)] = [
        (
            "a length", 200,
            { HTTP2.head($0, json + ["Content-Length": "5"]) + HTTP2.data($0, "[1,2]".utf8, ends: true) }, "[1,2]"
        ),
        (
            "a length of 0", 200, { HTTP2.head($0, json + ["Content-Length": "0"], ends: true) }, ""
        ),
        (
            "a length, and an empty frame at the end", 200,
            {
                HTTP2.head($0, json + ["Content-Length": "5"]) + HTTP2.data($0, "[1,2]".utf8)
                    + HTTP2.data($0, [], ends: true)
            }, "[1,2]"
        ),
        (
            "a length, and trailers", 200,
            {
                HTTP2.head($0, json + ["Content-Length": "5"]) + HTTP2.data($0, "[1,2]".utf8)
                    + HTTP2.trailers($0, ["Checked": "yes"])
            }, "[1,2]"
        ),
        (
            "a coding", 200,
            {
                HTTP2.head($0, json + ["Content-Encoding": "gzip"])
                    + HTTP2.data($0, gzipStored(Array("[1,2]".utf8)), ends: true)
            }, "[1,2]"
        ),
        ("a status without a body", 204, { HTTP2.head($0, status: 204, Fresh.hour, ends: true) }, ""),
    ]

    @Test(arguments: Array(wholes.indices)) func `an HTTP/2 response that is provably whole is stored`(
        index: Int
    ) throws {
        let whole = Self.wholes[index]
        let origin = try HTTP2Origin { [.send(whole.bytes($0.stream))] }
        let larder = try Larder(config: origin.config)
        for isHit in [false, true] {
            // A response without a body is sent before the stream ends.
            if isHit { #expect(try larder.waitForDocuments(1)) }
            let answer = try larder.get("/x")
            #expect(answer.status == whole.status && answer.text == whole.body, "\(whole.what)")
            #expect(answer.isHit == isHit, "\(whole.what)")
        }
    }

    @Test func `a response to HEAD in HTTP/2 is complete without a length`() throws {
        let origin = try HTTP2Origin { [.send(HTTP2.head($0.stream, Self.json, ends: true))] }
        let larder = try Larder(config: origin.config)
        #expect(try larder.request("HEAD", "/x").status == 200)
        #expect(try larder.request("HEAD", "/y").status == 200)
        #expect(origin.requests.count == 2)
    }

    @Test func `a GET is sent again if the server ends the HTTP/2 connection before processing it`() throws {
        let origin = try HTTP2Origin { request in
            guard request.number > 0 else { return [.send(HTTP2.goAway(last: 0)), .close] }
            let fields = Self.json + ["Content-Length": "2"]
            return [.send(HTTP2.head(request.stream, fields) + HTTP2.data(request.stream, "[]".utf8, ends: true))]
        }
        let larder = try Larder(config: origin.config)
        #expect(try larder.get("/x").text == "[]")
        #expect(origin.requests.count == 2)
    }

    @Test func `if the server ends each HTTP/2 connection, a GET is sent twice at most, and a write once`() throws {
        let origin = try HTTP2Origin { _ in [.send(HTTP2.goAway(last: 0)), .close] }
        let larder = try Larder(config: origin.config)
        #expect(try larder.get("/x").status == 502)
        #expect((1...2).contains(origin.requests.count))
        let asked = origin.requests.count
        #expect(try larder.request("POST", "/x").status == 502)
        #expect(origin.requests.count == asked + 1)
    }

    @Test func `a large head in HTTP/2 arrives, and does not delay its connection`() throws {
        let padding = String(repeating: "x", count: 1_000)
        let many = FieldLines((0..<60).map { FieldLines.Line(name: "X-Field-\($0)", value: padding) })
        let origin = try HTTP2Origin { request in
            let fields = Self.json + ["Content-Length": "2"] + (request.number == 1 ? many : [:])
            return [.send(HTTP2.head(request.stream, fields) + HTTP2.data(request.stream, "[]".utf8, ends: true))]
        }
        let larder = try Larder(config: origin.config + "\ntimeouts: { first_byte: 60s }")
        #expect(try larder.get("/before").text == "[]")
        let large = try larder.get("/large")
        #expect(large.text == "[]" && large["X-Field-59"] == padding)
        #expect(try larder.get("/after").text == "[]")
        #expect(origin.connections == 1)
    }

    @Test func `HTTP/1.1 is used unless the config says otherwise, and its responses are stored`() throws {
        let origin = try Origin(["/x": .json("[1,2]", Fresh.hour), "/y": .chunked([[91], [93]], Self.json)])
        let front = try TLSFront(of: origin.port, protocols: ["h2", "http/1.1"])
        let larder = try Larder(config: front.config())
        for isHit in [false, true] {
            #expect(try larder.get("/x").isHit == isHit)
            #expect(try larder.get("/y").isHit == isHit)
        }
        #expect(origin.mistakes.isEmpty)
    }

    // MARK: The end of a TLS connection

    @Test(arguments: ["1.0", "1.1"], [false, true])
    func `a body that ends with its TLS connection is whole only with a closure alert`(
        version: String,
        announcesClosure: Bool
    ) throws {
        let origin = try Origin { _ in .raw("HTTP/\(version) 200 OK\r\n\(Self.json.text)\r\n\(Self.part)") }
        let front = try TLSFront(of: origin.port, announcesClosure: announcesClosure)
        let larder = try Larder(config: front.config())
        let answer = try ask(larder, "/x")
        #expect(answer == (200, Self.part, announcesClosure))
        #expect(try eventually { try larder.documents() == (announcesClosure ? 1 : 0) })
        _ = try? larder.get("/x")
        #expect(origin.count("/x") == (announcesClosure ? 1 : 2))
        if !announcesClosure {
            #expect(try larder.command("explain", "/x").output.contains("closure alert"))
            #expect(larder.log.contains("closure alert"))
        }
    }

    @Test func `an empty body that ends with its TLS connection is not stored without a closure alert`() throws {
        let origin = try Origin { _ in .raw("HTTP/1.1 200 OK\r\n\(Self.json.text)\r\n") }
        let front = try TLSFront(of: origin.port, announcesClosure: false)
        let larder = try Larder(config: front.config())
        #expect(try ask(larder, "/x").isWhole == false)
        #expect(try larder.documents() == 0)
    }

    @Test func `a response whose end is known needs no closure alert`() throws {
        let packed = gzipStored(Array("[1,2]".utf8))
        let head = "HTTP/1.1 200 OK\r\n\(Self.json.text)"
        let origin = try Origin { request in
            switch request.path {
            case "/length": .raw("\(head)Content-Length: 5\r\n\r\n[1,2]")
            case "/chunks": .raw("\(head)Transfer-Encoding: chunked\r\n\r\n5\r\n[1,2]\r\n0\r\n\r\n")
            case "/coding": .raw(Array("\(head)Content-Encoding: gzip\r\n\r\n".utf8) + packed)
            default: .raw("HTTP/1.1 204 No Content\r\n\(Fresh.hour.text)\r\n")
            }
        }
        let front = try TLSFront(of: origin.port, announcesClosure: false)
        let larder = try Larder(config: front.config())
        for path in ["/length", "/chunks", "/coding", "/none"] {
            for isHit in [false, true] {
                let answer = try larder.get(path)
                #expect(answer.text == (path == "/none" ? "" : "[1,2]") && answer.isHit == isHit, "\(path)")
            }
        }
    }

    // MARK: After the end of a coding

    @Test(arguments: ["\n", "\0\0\0\0\0\0\0\0", "<!-- served in 3 ms -->", "(c)", "\u{1F}\u{20}"])
    func `bytes after a coded body are dropped, and the response is not stored`(rest: String) throws {
        let packed = gzipStored(Array("[1,2]".utf8)) + rest.utf8
        let fields = Self.json + ["Content-Encoding": "gzip"]
        let origin = try Origin { $0.path == "/chunks" ? .chunked([packed], fields) : .body(packed, fields) }
        let larder = try Larder(origin)
        for path in ["/length", "/chunks"] {
            for _ in 1...2 {
                let answer = try larder.get(path)
                #expect(answer.status == 200 && answer.text == "[1,2]" && !answer.isHit)
            }
            #expect(try larder.request("POST", path).text == "[1,2]")
        }
        #expect(try larder.documents() == 0)
        #expect(!larder.log.contains("the upstream cannot be reached"))
        #expect(try larder.command("explain", "/length").output.contains("follow the end"))
    }
}
