import Foundation
import TestSupport
import Testing

/// Whatever a client sends or does: it gets a clear answer, and no one else is hurt.
@Suite(.scripts) struct HostileClientTests {
    /// Messages whose framing could be read in two ways, or in none.
    static let ambiguous: [(what: String, message: String)] = [
        (
            "a length and chunks",
            "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
        ("two lengths", "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
        ("a list of lengths", "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3, 4\r\n\r\nabcd"),
        ("a signed length", "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: +3\r\n\r\nabc"),
        ("a negative length", "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: -3\r\n\r\nabc"),
        ("a length in hexadecimal", "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0x3\r\n\r\nabc"),
        ("an empty length", "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: \r\n\r\n"),
        ("a length beyond all numbers", "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n"),
        ("a space before the colon", "GET /x HTTP/1.1\r\nHost: h\r\nContent-Length : 3\r\n\r\n"),
        ("a folded line", "GET /x HTTP/1.1\r\nHost: h\r\nX-A: one\r\n two\r\n\r\n"),
        ("a bare LF", "GET /x HTTP/1.1\nHost: h\n\n"),
        ("a bare CR in a value", "GET /x HTTP/1.1\r\nHost: h\r\nX-A: one\rX-B: two\r\n\r\n"),
        ("a NUL in a value", "GET /x HTTP/1.1\r\nHost: h\r\nX-A: one\u{0}two\r\n\r\n"),
        ("a NUL in the target", "GET /x\u{0}y HTTP/1.1\r\nHost: h\r\n\r\n"),
        ("an unknown coding", "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n"),
        ("chunked not last", "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
        (
            "chunked twice",
            "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        ),
        ("a hidden coding", "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
        (
            "a chunk size that is none",
            "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n"
        ),
        (
            "a signed chunk size",
            "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n"
        ),
        (
            "a chunk longer than it says",
            "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n"
        ),
        (
            "an endless chunk size",
            "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc"
        ),
        ("a chunk ended by LF", "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\n0\n\n"),
        ("no host", "GET /x HTTP/1.1\r\n\r\n"),
        ("two hosts", "GET /x HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"),
        ("a name with a space", "GET /x HTTP/1.1\r\nHost: h\r\nX A: 1\r\n\r\n"),
        ("no name", "GET /x HTTP/1.1\r\nHost: h\r\n: 1\r\n\r\n"),
        ("no colon", "GET /x HTTP/1.1\r\nHost: h\r\nnonsense\r\n\r\n"),
        ("two spaces", "GET  /x HTTP/1.1\r\nHost: h\r\n\r\n"),
        ("a space in the target", "GET /x y HTTP/1.1\r\nHost: h\r\n\r\n"),
        ("no target", "GET HTTP/1.1\r\nHost: h\r\n\r\n"),
        ("a method of symbols", "G@T /x HTTP/1.1\r\nHost: h\r\n\r\n"), ("noise", "\u{16}\u{3}\u{1} noise\r\n\r\n"),
        ("a version of letters", "GET /x HTTP/x.y\r\nHost: h\r\n\r\n"),
    ]

    @Test(arguments: Array(ambiguous.indices)) func `ambiguous framing is refused and the connection closed`(index: Int)
        throws
    {
        let (what, message) = Self.ambiguous[index]
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(origin)
        let client = try larder.client()
        let smuggled = "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
        try client.send(message.replacingOccurrences(of: "Host: h\r\n", with: "Host: localhost\r\n") + smuggled)
        let answer = try client.response()
        let others = what.contains("version") ? [505] : what.contains("beyond") ? [413] : []
        #expect(answer.status == 400 || others.contains(answer.status), "\(what): \(answer.status)")
        #expect(try client.isClosed(), "\(what)")
        #expect(origin.count("/smuggled") == 0, "\(what)")
        #expect(try larder.get("/fine").status == 200, "\(what)")
    }

    @Test func `a request that is too long is refused with the fitting status`() throws {
        let origin = try Origin { _ in .json("[]") }
        let larder = try Larder(config: Configs.plain(origin, top: ["limits: { body: 10KiB }"]))
        let long = String(repeating: "x", count: 20_000)
        #expect(try larder.get("/" + long).status == 414)
        #expect(try larder.get("/x", ["X-Long": long + long]).status == 431)
        let many = FieldLines((1...200).map { .init(name: "X-\($0)", value: "1") })
        #expect(try larder.get("/x", many).status == 431)
        #expect(try larder.request("POST", "/x", body: long).status == 413)
        let chunked = try larder.client()
        try chunked.send("POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in 1...4 { try? chunked.send(OriginResponse.framed([UInt8](repeating: 0x61, count: 5000))) }
        try? chunked.send("0\r\n\r\n")
        #expect(try chunked.response().status == 413)
        #expect(origin.count(method: "GET") == 0)
        #expect(try larder.get("/fine").status == 200)
    }

    @Test func `a request may arrive one byte at a time`() throws {
        let origin = try Origin { .body($0.body) }
        let larder = try Larder(origin)
        let client = try larder.client()
        for byte in Array("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody".utf8) {
            try client.send([byte])
            pause(.milliseconds(1))
        }
        #expect(try client.response().text == "body")
    }

    @Test func `a request that never ends gets 408`() throws {
        let origin = try Origin { _ in .json("[]", Fresh.hour) }
        let larder = try Larder(
            config: Configs.plain(origin, top: ["timeouts: { request_head: 1s, request_body: 1s }"])
        )
        let slow = try larder.client()
        let socket = slow.socket
        try slow.send("GET /x HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        let isOver = Gate()
        let dribble = Background { while !isOver.wait(.milliseconds(100)) { try? socket.send(Array("X".utf8)) } }
        #expect(try slow.response().status == 408)
        isOver.open()
        #expect(try slow.isClosed())
        try dribble.value()

        let stuck = try larder.client()
        try stuck.send("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nfour")
        #expect(try stuck.response().status == 408)
        #expect(try larder.get("/x").status == 200)
    }

    @Test func `pipelined requests are answered in their order`() throws {
        let gate = Gate()
        let origin = try Origin { request in
            request.path == "/slow" ? OriginResponse.text("/slow").after(gate) : .text(request.path, Fresh.hour)
        }
        let larder = try Larder(origin)
        _ = try larder.get("/hit")
        let client = try larder.client()
        try client.send(
            ["/hit", "/slow", "/hit", "/miss"].map { "GET \($0) HTTP/1.1\r\nHost: localhost\r\n\r\n" }.joined()
        )
        #expect(try client.response().text == "/hit")
        origin.waitForRequests(1, "/slow")
        gate.open()
        #expect(try client.response().text == "/slow")
        #expect(try client.response().text == "/hit")
        #expect(try client.response().text == "/miss")
    }

    @Test func `a thousand pipelined requests are answered`() throws {
        let origin = try Origin { _ in .text("hit", Fresh.hour) }
        let larder = try Larder(origin)
        _ = try larder.get("/x")
        let client = try larder.client()
        let requests = String(repeating: "GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n", count: 1000)
        let socket = client.socket
        let sending = Background { try socket.send(requests.utf8) }
        for _ in 1...1000 { #expect(try client.response().text == "hit") }
        try sending.value()
    }

    @Test func `an HTTP/1.0 client gets a body without chunks, and its connection is closed`() throws {
        let origin = try Origin { _ in .chunked([Array("ab".utf8), Array("cd".utf8)]) }
        let larder = try Larder(origin)
        let client = try larder.client()
        try client.send("GET /x HTTP/1.0\r\nHost: localhost\r\n\r\n")
        let answer = try client.response()
        #expect(answer["Transfer-Encoding"] == nil)
        #expect(answer.text == "abcd")
        #expect(try client.isClosed())
    }

    @Test func `an absolute URL is accepted as the target`() throws {
        let origin = try Origin { .text("\($0.target) of \($0["Host"] ?? "")") }
        let larder = try Larder(origin)
        let answer = try larder.get("http://localhost:\(larder.port)/x?y=1")
        #expect(answer.text == "/x?y=1 of 127.0.0.1:\(origin.port)")
    }

    @Test func `a client that leaves ends its fetch, unless others wait for it`() throws {
        let gate = Gate()
        let origin = try Origin { _ in
            OriginResponse(steps: [
                .send(OriginResponse.head(200, "OK", Fresh.hour + ["Content-Length": "4"])), .send(Array("ab".utf8)),
                .wait(gate),
                .send(Array("cd".utf8)),
            ])
        }
        let larder = try Larder.patient(origin)
        var leaving: Client? = try larder.client()
        try leaving?.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try leaving?.head().status == 200)
        let staying = Background { try larder.get("/x") }
        #expect(try larder.waitForFollowers(1))
        leaving?.socket.resetOnClose()
        leaving = nil
        #expect(try larder.waitForConnections(1))
        gate.open()
        #expect(try staying.value().text == "abcd")
        #expect(try larder.get("/x").text == "abcd")
    }

    @Test func `connections beyond the limit are refused unless others are idle; the admin limit is separate`() throws {
        let gate = Gate()
        let origin = try Origin { request in
            let here = OriginResponse.text("here", Fresh.hour)
            return request.path == "/x" ? here : here.after(gate)
        }
        let larder = try Larder(
            config: Configs.plain(origin, top: ["limits: { connections: 8 }"]),
            arguments: ["--workers", "2"]
        )
        let busy = try (1...8).map { _ in try larder.client() }
        for client in busy { try client.send("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n") }
        #expect(try larder.waitForConnections(8))
        for _ in 0..<100 {
            let refused = try larder.client()
            #expect(try refused.response().status == 503)
        }
        #expect(try larder.admin("GET", "/count").status == 200)
        gate.open()
        for client in busy { #expect(try client.response().text == "here") }
        // They stay connected, but idle.
        #expect(eventually { (try? larder.get("/x").status) == 200 })
        _ = busy
    }

    @Test(
        arguments: [
            "", "GET /x HTTP/1.1\r\nHost: localhost\r\n",
            "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1",
        ]
    )
    func `incomplete requests do not keep others out`(request: String) throws {
        let origin = try Origin { _ in .text("here", Fresh.hour) }
        let larder = try Larder(
            config: Configs.plain(origin, top: ["limits: { connections: 8 }"]),
            arguments: ["--workers", "2"]
        )
        let stuck = try (1...40).map { _ in try larder.client() }
        for client in stuck { try? client.send(request) }
        for _ in 1...20 { #expect(try larder.get("/x").text == "here") }
        withExtendedLifetime(stuck) {}
    }

    @Test func `four hundred idle connections do not disturb other clients`() throws {
        let origin = try Origin { _ in .text("here", Fresh.hour) }
        let larder = try Larder(origin)
        let idle = try (1...400).map { _ in try larder.client() }
        #expect(try larder.get("/x").text == "here")
        #expect(try idle[200].get("/x").text == "here")
        idle.forEach { $0.socket.resetOnClose() }
    }

    @Test func `TRACE and CONNECT are refused`() throws {
        let origin = try Origin { _ in .text("here") }
        let larder = try Larder(origin)
        for method in ["TRACE", "CONNECT"] {
            let client = try larder.client()
            try client.send(
                "\(method) \(method == "CONNECT" ? "example.org:443" : "/x") HTTP/1.1\r\nHost: localhost\r\n\r\n"
            )
            #expect([400, 405, 421, 501].contains(try client.response().status))
        }
        #expect(origin.count() == 0)
    }
}
