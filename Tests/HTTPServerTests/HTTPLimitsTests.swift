import Glibc
import Synchronization
import TestSupport
import DaemonTestSupport
import Testing

@testable import HTTPSemantics
@testable import HTTPServer

@Suite(.scripts) struct HTTPLimitsTests {
    private var limits: HTTPLimits {
        var limits = HTTPLimits()
        limits.maxTarget = 100
        limits.maxHead = 1000
        limits.maxFields = 5
        limits.maxBody = 1000
        return limits
    }

    /// A text of so many `x`.
    private static func x(_ count: Int) -> String { String(repeating: "x", count: count) }

    static let tooMuch: [(String, RequestFault)] = [
        ("GET /\(x(100)) HTTP/1.1\r\nHost: h\r\n\r\n", .targetTooLong),
        ("GET /\(x(200))", .targetTooLong),
        // Refused also if it arrives in one piece: in two, the end might still be missing.
        ("\(x(200)) / HTTP/1.1\r\nHost: h\r\n\r\n", .targetTooLong),
        ("GET /\(x(5000)) HTTP/1.1\r\nHost: h\r\n\r\n", .targetTooLong),
        ("GET / HTTP/1.1\r\nHost: h\r\nA: \(x(1000))\r\n\r\n", .headTooLarge),
        ("GET / HTTP/1.1\r\nHost: h\r\nA: \(x(1000))", .headTooLarge),
        ("GET / HTTP/1.1\r\nHost: h\r\n\(x(1000))", .headTooLarge),
        ("GET / HTTP/1.1\r\nHost: h\r\n\(String(repeating: "A: b\r\n", count: 5))\r\n", .tooManyFields),
        ("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n", .bodyTooLarge),
        ("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n\(x(1001))\r\n", .bodyTooLarge),
    ]

    @Test(arguments: tooMuch)
    func `each exceeded limit has its own status`(request: String, fault: RequestFault) async throws {
        try await withServer(limits: limits) { server in
            let client = try server.connect()
            client.send(request)
            let answer = try client.answer()
            #expect(answer.status == fault.status)
            #expect(answer.body == fault.problem.bytes)
            #expect(client.readToEnd().isEmpty)
        }
    }

    @Test func `a request that just fits the limits is answered`() async throws {
        try await withServer(limits: limits) { server in
            let client = try server.connect()
            client.send("GET /\(Self.x(99)) HTTP/1.1\r\nHost: h\r\n\(String(repeating: "A: b\r\n", count: 4))\r\n")
            #expect(try client.answer().status == 200)
            client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n\(Self.x(1000))")
            #expect(try client.answer().text == "POST: \(Self.x(1000))\n")
            client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
            client.send("3e8\r\n\(Self.x(1000))\r\n0\r\n\r\n")
            #expect(try client.answer().status == 200)
        }
    }

    @Test func `a client that sends a large body learns that it is too large`() async throws {
        try await withServer(limits: limits) { server in
            let client = try server.connect()
            HTTPTestServer.onThread {
                client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 20000000\r\n\r\n")
                client.send([UInt8](repeating: 0x78, count: 20_000_000))
            }
            #expect(try client.answer().status == 413)
            #expect(client.readToEnd().isEmpty)
        }
    }

    @Test func `a connection beyond the limit gets 503 and is closed`() async throws {
        var limits = HTTPLimits()
        limits.maxConnections = 2
        limits.idleBeforeClosing = .seconds(3600)
        try await withServer(limits: limits) { server in
            let clients = try (0..<2).map { _ in try server.connect() }
            for client in clients {
                client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try client.answer().status == 200)
            }
            let third = try server.connect()
            #expect(try third.answer().status == 503)
            #expect(third.readToEnd().isEmpty)
            #expect(server.server.connectionCount <= 3)
        }
    }

    @Test func `every connection beyond the limit gets 503, and few of them stay open`() async throws {
        var limits = HTTPLimits()
        limits.maxConnections = 1
        limits.idleBeforeClosing = .seconds(3600)
        try await withServer(limits: limits) { server in
            let first = try server.connect()
            first.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try first.answer().status == 200)
            let others = try (0..<200).map { _ in
                let other = try server.connect()
                #expect(try other.answer().status == 503)
                return other
            }
            #expect(server.server.connectionCount <= 18)
            first.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try first.answer().status == 200)
            _ = others
        }
    }

    @Test(arguments: [1, 3]) func `an idle connection is closed to make room for a new one, a busy one is not`(
        workers: Int
    )
        async throws
    {
        var limits = HTTPLimits()
        limits.maxConnections = 2
        limits.idleBeforeClosing = .zero
        let held = Mutex<Reply?>(nil)
        try await withServer(
            limits: limits,
            workers: workers,
            handler: { request, connection in
                guard request.path.elementsEqual("/held".utf8) else { return HTTPTestServer.echo(request, connection) }
                let reply = connection.takeOver(request).reply
                held.withLock { $0 = reply }
            }
        ) { server in
            let busy = try server.connect()
            busy.send("GET /held HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(eventually { held.withLock { $0 != nil } })
            for _ in 0..<20 {
                let former = try server.connect()
                former.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                #expect(try former.answer().status == 200)
            }
            held.withLock { $0?.respond(status: 200, fields: Fields(), body: Array("at last".utf8)) }
            #expect(try busy.answer().text == "at last")
        }
    }

    /// What a client may have sent of a request that it does not complete.
    static let unfinished = [
        "", "GET / HT", "GET / HTTP/1.1\r\nHost: h\r\n", "POST /held HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n1",
        "POST /held HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n1",
        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 900000\r\n\r\n1", "nonsense\r\n\r\n",
    ]

    @Test(arguments: unfinished, [1, 3])
    func `the oldest incomplete requests make room; clients that wait for a response stay`(
        request: String,
        workers: Int
    ) async throws {
        var limits = HTTPLimits()
        limits.maxConnections = 8
        // Nobody is idle for long enough.
        limits.idleBeforeClosing = .seconds(3600)
        let held = Mutex<[Reply]>([])
        try await withServer(
            limits: limits,
            workers: workers,
            handler: { request, connection in
                guard request.path.elementsEqual("/held".utf8) else { return HTTPTestServer.echo(request, connection) }
                let reply = connection.takeOver(request).reply
                held.withLock { $0.append(reply) }
            }
        ) { server in
            let busy = try server.connect()
            busy.send("GET /held HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(eventually { held.withLock { $0.count == 1 } })
            var others: [HTTPTestClient] = []
            for _ in 0..<40 {
                let other = try server.connect()
                other.send(request)
                others.append(other)
            }
            for _ in 0..<20 {
                let client = try server.connect()
                client.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                #expect(try client.answer().status == 200)
            }
            #expect(server.server.connectionCount <= 8 + 16 * workers)
            held.withLock { $0[0] }.respond(status: 200, fields: Fields(), body: Array("at last".utf8))
            #expect(try busy.answer().text == "at last")
            withExtendedLifetime(others) {}
        }
    }

    // MARK: Time

    private func limits(_ change: (inout HTTPLimits) -> Void) -> HTTPLimits {
        var limits = HTTPLimits()
        change(&limits)
        return limits
    }

    @Test func `a head that takes too long gets 408`() async throws {
        try await withServer(limits: limits { $0.headTimeout = .milliseconds(80) }) { server in
            let client = try server.connect()
            client.send("GET / HTTP/1.1\r\nHo")
            #expect(try client.answer().status == 408)
            #expect(client.readToEnd().isEmpty)
        }
    }

    @Test func `a head that arrives byte by byte for too long gets 408`() async throws {
        try await withServer(limits: limits { $0.headTimeout = .milliseconds(100) }) { server in
            let client = try server.connect()
            HTTPTestServer.onThread {
                client.send("GET / HTTP/1.1\r\nX: ")
                while client.send("x") { usleep(5_000) }
            }
            #expect(try client.answer().status == 408)
            _ = client.readToEnd()
        }
    }

    @Test func `a body that stops arriving gets 408`() async throws {
        try await withServer(limits: limits { $0.bodyIdle = .milliseconds(80) }) { server in
            let client = try server.connect()
            client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n12345")
            #expect(try client.answer().status == 408)
            #expect(client.readToEnd().isEmpty)
        }
    }

    @Test func `an idle connection is closed without a response`() async throws {
        try await withServer(limits: limits { $0.idle = .milliseconds(80) }) { server in
            let silent = try server.connect()
            // On a busy machine it may be idle for too long before it asks; then it comes again.
            var used = try server.connect()
            var answer: HTTPTestResponse?
            for _ in 0..<50 where answer == nil {
                used = try server.connect()
                used.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                answer = try? used.answer()
            }
            #expect(answer?.status == 200)
            #expect(used.read() == [])
            #expect(silent.read() == [])
        }
    }

    @Test func `a client that never reads is disconnected`() async throws {
        let gone = Flag()
        let body = [UInt8](repeating: 0x78, count: 20_000_000)
        try await withServer(
            limits: limits { $0.writeStall = .milliseconds(150) },
            handler: { request, connection in
                let reply = connection.takeOver(request).reply
                reply.onDisconnect { gone.raise() }
                reply.start(status: 200, fields: Fields(), framing: .length(body.count * 2))
                reply.write(body)
                HTTPTestServer.keep(reply)
            }
        ) { server in
            let client = try HTTPTestClient(server.address, receiveBuffer: 4096)
            client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            await gone.wait()
        }
    }
}

/// Something that happens once and can be waited for.
final class Flag: Sendable {
    private let state = Mutex<(isRaised: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))

    var isRaised: Bool { state.withLock(\.isRaised) }

    func raise() {
        let waiting = state.withLock { state in
            state.isRaised = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isRaised = state.withLock { state in
                if !state.isRaised { state.waiting.append(continuation) }
                return state.isRaised
            }
            if isRaised { continuation.resume() }
        }
    }
}
