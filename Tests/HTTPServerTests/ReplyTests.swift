import Glibc
import Synchronization
import TestSupport
import DaemonTestSupport
import Testing

@testable import EventLoops
@testable import HTTPSemantics
@testable import HTTPServer

@Suite(.scripts) struct ReplyTests {
    /// Serves what `answer` does with each exchange, on a thread that is not the worker's.
    private func serving<Result>(
        _ answer: @escaping @Sendable (Exchange) async -> Void,
        to client: (HTTPTestServer) async throws -> Result
    ) async throws -> Result {
        try await withServer(
            handler: { request, connection in
                let exchange = connection.takeOver(request)
                HTTPTestServer.onLoop { await answer(exchange) }
            },
            client
        )
    }

    /// Sends a request, and leaves once it is being served.
    private func leave(_ server: HTTPTestServer, _ asked: Flag, _ gone: Flag) async throws {
        do {
            let client = try server.connect()
            client.send(get)
            await asked.wait()
        }
        await gone.wait()
    }

    private let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

    @Test func `a chunked response contains every chunk and its trailers`() async throws {
        try await serving { exchange in
            exchange.reply.start(status: 203, fields: Fields([Field("X", "y")]), framing: .chunked)
            exchange.reply.write(Array("hello ".utf8))
            exchange.reply.write([])
            exchange.reply.write(Array("world".utf8))
            exchange.reply.finish(trailers: Fields([Field("T", "u")]))
        } to: { server in
            let client = try server.connect()
            for _ in 0..<3 {
                client.send(get)
                let answer = try client.answer()
                #expect(answer.status == 203)
                #expect(answer.text == "hello world")
                #expect(answer.fields["x"] == "y")
                #expect(answer.fields["trailer T: u"] != nil)
                #expect(answer.fields["transfer-encoding"] == "chunked")
            }
        }
    }

    @Test func `to an HTTP 1_0 client a response of unknown length ends with the connection`() async throws {
        try await serving { exchange in
            exchange.reply.informational(status: 103, fields: Fields())
            exchange.reply.start(status: 200, fields: Fields(), framing: .chunked)
            exchange.reply.write(Array("hello".utf8))
            exchange.reply.finish()
        } to: { server in
            let text = try server.exchange("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            #expect(text.hasPrefix("HTTP/1.1 200 OK\r\nDate: "))
            #expect(text.hasSuffix("\r\nConnection: close\r\n\r\nhello"))
            #expect(!text.lowercased().contains("transfer-encoding"))
        }
    }

    @Test(arguments: [200, 204, 205, 304], [BodyFraming.length(5), .chunked])
    func `no body is sent where none is allowed, nor its framing, and the next response is found`(
        status: Int,
        framing: BodyFraming
    ) async throws {
        try await serving { exchange in
            exchange.reply.start(status: status, fields: Fields(), framing: framing)
            exchange.reply.write(Array("hello".utf8))
            exchange.reply.finish()
        } to: { server in
            let client = try server.connect()
            let length: [Int: String] = framing == .chunked ? [205: "0"] : [200: "5", 205: "0"]
            client.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n")
            let answer = try client.answer(toHead: true)
            #expect(answer.fields["content-length"] == length[status])
            #expect(answer.fields["transfer-encoding"] == nil)
            client.send(get)
            let full = try client.answer()
            #expect(full.body.count == (status == 200 ? 5 : 0))
            #expect(full.fields["content-length"] == length[status])
            #expect(full.fields["transfer-encoding"] == (status == 200 && framing == .chunked ? "chunked" : nil))
            client.send(get)
            #expect(try client.answer().status == status)
        }
    }

    @Test func `a pipelined request waits for the deferred response before it`() async throws {
        try await serving { exchange in
            if exchange.request.target == "/0" { try? await Task.sleep(for: .milliseconds(30)) }
            exchange.reply.respond(status: 200, fields: Fields(), body: Array(exchange.request.target.utf8))
        } to: { server in
            let client = try server.connect()
            client.send((0..<100).map { "GET /\($0) HTTP/1.1\r\nHost: h\r\n\r\n" }.joined())
            for number in 0..<100 { #expect(try client.answer().text == "/\(number)") }
        }
    }

    @Test func `a reply's connection fields are not sent, and line ends in values become spaces`() async throws {
        try await serving { exchange in
            let fields = Fields([
                Field("Connection", "x"), Field("Transfer-Encoding", "chunked"), Field("Content-Length", "9"),
                Field("A", "b\r\nSet-Cookie: c\0"), Field("bad name", "x"), Field("Date", "then"),
            ])
            exchange.reply.respond(status: 200, fields: fields, body: Array("hello".utf8))
        } to: { server in
            let client = try server.connect()
            client.send(get)
            let answer = try client.answer()
            #expect(answer.fields == ["a": "b  Set-Cookie: c ", "date": "then", "content-length": "5"])
        }
    }

    @Test func `a reply that is dropped answers 500 and is reported`() async throws {
        let notices = Monitor<[HTTPNotice]>([])
        try await withServer(
            notice: { notice in notices.withLock { $0.append(notice) } },
            handler: { request, connection in _ = connection.takeOver(request) }
        ) { server in
            let client = try server.connect()
            client.send(get + get)
            #expect(try client.answer().status == 500)
            #expect(try client.answer().status == 500)
            #expect(notices.withLock { $0.count } == 2)
        }
    }

    @Test func `a request that the handler forgets gets 500`() async throws {
        try await withServer(handler: { _, _ in }) { server in
            let client = try server.connect()
            client.send(get)
            #expect(try client.answer().status == 500)
        }
    }

    // MARK: Held back

    @Test func `a response that is held back has the fields with which it is released`() async throws {
        try await serving { exchange in
            let (reply, isWhole, held) = (exchange.reply, Flag(), Monitor<BufferedResponse?>(nil))
            reply.buffer(upTo: 100) { response in
                held.withLock { $0 = response }
                isWhole.raise()
            }
            reply.start(status: 200, fields: Fields([Field("X", "y")]), framing: .length(5))
            reply.onDrain(below: 1) {}
            reply.write(Array("hel".utf8))
            #expect(!isWhole.isRaised)
            reply.write(Array("lo".utf8))
            reply.finish()
            await isWhole.wait()
            held.current?.release { $0.append("Z", "1") }
            // Once is enough.
            held.current?.release { $0.append("Z", "2") }
        } to: { server in
            let client = try server.connect()
            client.send(get + get)
            for _ in 0..<2 {
                let answer = try client.answer()
                #expect(answer.status == 200 && answer.text == "hello")
                #expect(answer.fields["x"] == "y" && answer.fields["z"] == "1")
            }
        }
    }

    @Test(arguments: [true, false])
    func `a response that is too long to be held back, or breaks off, is sent as it is`(isLong: Bool) async throws {
        let isWhole = Flag()
        try await serving { exchange in
            exchange.reply.buffer(upTo: 4) { _ in isWhole.raise() }
            exchange.reply.start(status: 200, fields: Fields(), framing: .length(5))
            exchange.reply.write(Array((isLong ? "hello" : "hel").utf8))
            if isLong { exchange.reply.finish() } else { exchange.reply.abort() }
        } to: { server in
            let client = try server.connect()
            client.send(get)
            if isLong {
                let answer = try client.answer()
                #expect(answer.text == "hello")
            } else {
                #expect(throws: HTTPTestClient.Failed.self) { try client.answer() }
            }
        }
        #expect(!isWhole.isRaised)
    }

    @Test func `a client may leave while its response is held back`() async throws {
        let (asked, gone) = (Flag(), Flag())
        try await serving { exchange in
            exchange.reply.buffer(upTo: 100) { response in response.release { _ in } }
            exchange.reply.start(status: 200, fields: Fields(), framing: .length(1))
            exchange.reply.write([1])
            exchange.reply.onDisconnect { gone.raise() }
            asked.raise()
            await gone.wait()
            exchange.reply.finish()
            #expect(exchange.reply.backlog == 0)
        } to: { server in
            try await leave(server, asked, gone)
        }
    }

    enum Truncation: CaseIterable { case abort, drop, finishEarly }

    @Test(arguments: Truncation.allCases, [BodyFraming.length(100), .chunked])
    func `a response that cannot be completed looks cut short`(how: Truncation, framing: BodyFraming) async throws {
        if how == .finishEarly, framing == .chunked { return }
        try await serving { exchange in
            exchange.reply.start(status: 200, fields: Fields(), framing: framing)
            exchange.reply.write(Array("hello".utf8))
            switch how {
            case .abort: exchange.reply.abort()
            case .finishEarly: exchange.reply.finish()
            case .drop: break
            }
        } to: { server in
            let client = try server.connect()
            client.send(get)
            #expect(throws: HTTPTestClient.Failed.self) { try client.answer() }
        }
    }

    @Test func `more bytes than were promised are not sent`() async throws {
        try await serving { exchange in
            exchange.reply.start(status: 200, fields: Fields(), framing: .length(5))
            exchange.reply.write(Array("hello HTTP/1.1 200 OK".utf8))
            exchange.reply.finish()
        } to: { server in
            let client = try server.connect()
            client.send(get + get)
            #expect(try client.answer().text == "hello")
            #expect(try client.answer().text == "hello")
        }
    }

    @Test func `a client that leaves is noticed while its response is being made`() async throws {
        let (asked, gone) = (Flag(), Flag())
        try await serving { exchange in
            exchange.reply.onDisconnect { gone.raise() }
            asked.raise()
            await gone.wait()
            // All without effect.
            exchange.reply.start(status: 200, fields: Fields(), framing: .chunked)
            exchange.reply.write([1, 2, 3])
            #expect(exchange.reply.backlog == 0)
            exchange.reply.finish()
        } to: { server in
            try await leave(server, asked, gone)
        }
    }

    @Test func `a callback that is set after the client has left is called at once`() async throws {
        let (gone, told, drained) = (Flag(), Flag(), Flag())
        try await serving { exchange in
            exchange.reply.onDisconnect { gone.raise() }
            await gone.wait()
            exchange.reply.onDisconnect { told.raise() }
            exchange.reply.onDrain(below: 1) { drained.raise() }
        } to: { server in
            do {
                let client = try server.connect()
                client.send(get)
                client.endSending()
                #expect(client.readToEnd().isEmpty)
            }
            await told.wait()
            await drained.wait()
        }
    }

    @Test func `a writer can wait for the backlog to go down`() async throws {
        let count = 40
        try await serving { exchange in
            exchange.reply.start(status: 200, fields: Fields(), framing: .chunked)
            for number in 0..<count {
                exchange.reply.write([UInt8](repeating: UInt8(number), count: 1 << 20))
                await withCheckedContinuation { continuation in
                    exchange.reply.onDrain(below: 1 << 20) { continuation.resume() }
                }
                #expect(exchange.reply.backlog < 1 << 20)
            }
            exchange.reply.finish()
        } to: { server in
            let client = try server.connect()
            client.send(get)
            let answer = try client.answer()
            #expect(answer.body.count == count << 20)
            #expect(answer.body.last == UInt8(count - 1))
        }
    }

    @Test func `data flushed on the worker's thread is sent before the worker does anything else`() async throws {
        try await withServer(
            handler: { request, connection in
                let reply = connection.takeOver(request).reply
                connection.host.worker.loop.enqueue {
                    reply.start(status: 200, fields: Fields(), framing: .length(5))
                    reply.write(Array("hello".utf8))
                    #expect(reply.backlog == 5)
                    reply.flush()
                    #expect(reply.backlog == 0)
                    reply.finish()
                    reply.flush()
                }
            }
        ) { server in
            let client = try server.connect()
            for _ in 0..<3 {
                client.send(get)
                #expect(try client.answer().text == "hello")
            }
        }
    }

    @Test func `a large ready body is sent as a whole to a slow reader`() async throws {
        let body = (0..<30_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        try await withServer(handler: { request, connection in
            var variable = SmallBuffer()
            variable.append("\r\n")
            let head = Array("HTTP/1.1 200 OK\r\nContent-Length: 30000000\r\n".utf8)
            connection.respond(head: head, variable: variable, body: body)
        }) { server in
            let client = try server.connect()
            client.send(get + get)
            for _ in 0..<2 { #expect(try client.answer().body.elementsEqual(body)) }
        }
    }

    @Test func `to HEAD a ready response is sent without its body`() async throws {
        try await withServer { server in
            let client = try server.connect()
            client.send("HEAD /ready HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try client.answer(toHead: true).fields["content-length"] == "5")
            client.send("GET /ready HTTP/1.1\r\nHost: h\r\n\r\n")
            #expect(try client.answer().text == "ready")
        }
    }
}
