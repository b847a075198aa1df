import Foundation
import Glibc
import TestSupport
import Testing

@testable import HTTPSemantics
@testable import Upstream

@Suite struct `Upstream connections` {
    @Test func `a connection serves one request after another`() async throws {
        let server = RawServer { connection in
            while connection.readHead() != nil { connection.answer("\(connection.number)") }
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        for turn in 0..<5 {
            let answer = await bench.get(server.url)
            #expect(answer.text == "0")
            #expect(answer.summary?.reusedConnection == (turn > 0))
        }
    }

    /// Answers the first request of the first connection and does something nasty with the second.
    static func deadly(_ nasty: @escaping @Sendable (RawServer.Connection) -> Void) -> RawServer {
        RawServer { connection in
            if connection.number > 0 {
                while let head = connection.readHead() {
                    connection.answer(String(decoding: connection.readBody(contentLength(head)), as: UTF8.self))
                }
                return
            }
            _ = connection.readHead()
            connection.answer("first")
            nasty(connection)
        }
    }

    static func contentLength(_ head: String) -> Int {
        guard let range = head.firstRange(of: "Content-Length: ") else { return 0 }
        return Int(head[range.upperBound...].prefix { $0.isNumber }) ?? 0
    }

    /// How a connection from the pool ends under a request that the server has read.
    enum Death: CaseIterable { case reset, close, resetWithRequestUnread }

    private static func dying(_ death: Death) -> RawServer {
        deadly { connection in
            switch death {
            case .reset, .close:
                if let head = connection.readHead() { _ = connection.readBody(contentLength(head)) }
                death == .reset ? connection.reset() : connection.close()
            case .resetWithRequestUnread:
                connection.waitUntilReadable()
                connection.close()
            }
        }
    }

    @Test(
        arguments: ["POST", "PUT", "PATCH", "DELETE", "PROPPATCH", "QUERY", "LARDER"],
        Death.allCases
    )
    func `an unsafe request is never sent again, with or without a body`(method: String, death: Death) async throws {
        for body in [nil, "once", String(repeating: "large", count: 40_000)] {
            let server = Self.dying(death)
            defer { server.stop() }
            let bench = try UpstreamBench()
            defer { bench.stop() }
            _ = await bench.get(server.url)
            let answer = await bench.send(
                UpstreamRequest(method: method, url: server.url + "/x", body: body.map { RequestBody($0) })
            )
            #expect(answer.error == .reset(afterBytes: 0))
            #expect(answer.error?.requestMayHaveBeenProcessed == true)
            // The first request, and this one at most once.
            #expect(server.heads.count == (death == .resetWithRequestUnread ? 1 : 2))
        }
    }

    @Test(arguments: ["GET", "HEAD", "OPTIONS"], Death.allCases)
    func `a safe request is sent again when a pooled connection dies under it`(method: String, death: Death)
        async throws
    {
        let server = Self.dying(death)
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        _ = await bench.get(server.url)
        let answer = await bench.send(UpstreamRequest(method: method, url: server.url + "/x"))
        #expect(answer.error == nil)
        #expect(answer.summary?.attempts == 2)
        #expect(server.heads.count == (death == .resetWithRequestUnread ? 2 : 3))
    }

    @Test(arguments: ["POST", "GET"])
    func `a connection closed while idle is not used`(method: String) async throws {
        let closed = Gate()
        let server = Self.deadly { connection in
            connection.close()
            closed.open()
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        _ = await bench.get(server.url)
        await closed.waitAsync()
        let answer = await bench.send(UpstreamRequest(method: method, url: server.url, body: RequestBody("fresh")))
        #expect(answer.text == "fresh")
        #expect(answer.summary?.attempts == 1)
        #expect(server.heads.count == 2)
    }

    @Test(arguments: ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"])
    func `a request that got a line of a response is never sent again`(start: String) async throws {
        for method in ["GET", "PUT"] {
            let server = Self.deadly { connection in
                _ = connection.readHead()
                connection.write(start)
            }
            defer { server.stop() }
            let bench = try UpstreamBench()
            defer { bench.stop() }
            _ = await bench.get(server.url)
            let answer = await bench.send(UpstreamRequest(method: method, url: server.url + "/x"))
            #expect(answer.error != nil)
            #expect(server.heads.count == 2, "\(method) after \(start)")
        }
    }

    @Test func `a request on dead connections is tried a limited number of times`() async throws {
        let server = RawServer { connection in
            _ = connection.readHead()
            connection.answer("one")
            _ = connection.readHead()
        }
        defer { server.stop() }
        let bench = try UpstreamBench()
        defer { bench.stop() }
        // Several connections in the pool, each of which dies at its second request.
        let url = server.url
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<20 { group.addTask { _ = await bench.get(url) } }
        }
        for _ in 0..<10 {
            let answer = await bench.get(server.url)
            #expect(answer.error == nil || answer.error == .reset(afterBytes: 0), "\(String(describing: answer.error))")
            #expect(answer.summary.map(\.attempts) ?? 1 <= 7)
        }
    }

    @Test func `a thousand concurrent transfers all succeed`() async throws {
        let server = RawServer { connection in
            while let head = connection.readHead() {
                connection.answer(String(head.split(separator: " ")[1]))
            }
        }
        defer { server.stop() }
        var options = UpstreamBench.options
        options.maxConnectionsPerHost = 50
        let bench = try UpstreamBench(options)
        defer { bench.stop() }
        let url = server.url
        let wrong = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<1000 {
                group.addTask { await bench.get(url + "/\(number)").text != "/\(number)" }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(wrong == 0)
        #expect(server.heads.count == 1000)
        #expect(server.connectionCount <= 50)
        let active = await bench.onLoop { $0.activeCount }
        #expect(active == 0)
    }

    @Test func `without a limit a thousand transfers have a thousand connections`() async throws {
        let server = RawServer { connection in
            while connection.readHead() != nil { connection.answer("ok") }
        }
        defer { server.stop() }
        var options = UpstreamBench.options
        options.maxConnectionsPerHost = 0
        let bench = try UpstreamBench(options)
        defer { bench.stop() }
        let url = server.url
        let failures = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<1000 {
                group.addTask { await bench.get(url).error != nil }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(failures == 0)
    }

    @Test func `a configured proxy is used, and its refusal has its own error`() async throws {
        let proxy = RawServer { connection in
            while let head = connection.readHead() {
                if head.hasPrefix("CONNECT ") {
                    connection.answer("no", status: "403 Forbidden")
                } else {
                    connection.answer("by proxy")
                }
            }
        }
        defer { proxy.stop() }
        var options = UpstreamOptions()
        options.proxy = .url(proxy.url)
        let bench = try UpstreamBench(options)
        defer { bench.stop() }
        let plain = await bench.get("http://api.invalid/a/../b?c")
        #expect(plain.text == "by proxy")
        #expect(proxy.heads.first?.prefix { $0 != "\r\n" } == "GET http://api.invalid/a/../b?c HTTP/1.1")
        #expect(proxy.heads.first?.contains("Proxy-Connection") == false)
        let tunnelled = await bench.get("https://api.invalid/")
        #expect(tunnelled.head == nil)
        #expect(tunnelled.error?.label == "proxy")
        #expect(tunnelled.error?.requestMayHaveBeenProcessed == false)
    }

    @Test func `a proxy that cannot be reached has another error than an upstream that cannot`() async throws {
        let dead = RawServer { _ in }
        dead.stop()
        var options = UpstreamOptions()
        options.proxy = .url(dead.url)
        let bench = try UpstreamBench(options)
        defer { bench.stop() }
        let error = await bench.get("http://api.invalid:8080/").error
        #expect(error?.label == "proxy")
        #expect(error?.message.contains("127.0.0.1") == true)
        let direct = try UpstreamBench()
        defer { direct.stop() }
        #expect(await direct.get(dead.url + "/").error?.label != "proxy")
    }

    @Test(arguments: [
        ("http://localhost:8080/x", "localhost:8080", true), ("http://localhost/x", "localhost:80", true),
        ("https://api.internal/", "a.example, .internal:443", true), ("https://API.internal", "*.INTERNAL:443", true),
        ("http://[::1]:9/", "[::1]:9", true), ("http://localhost:8081/", "localhost:8080", false),
        ("http://localhost:8080/", "localhost", false), ("http://notinternal:80/", "internal:80", false),
        ("http://x.example/", ":80", false), ("http://[::1]:9/", "::1:9", false), ("nonsense", "nonsense:80", false),
    ])
    func `no_proxy may name a host with its port`(url: String, list: String, isNamed: Bool) {
        #expect((Destination(url)?.isNamed(inNoProxy: list) ?? false) == isNamed)
    }
}
