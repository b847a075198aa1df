import DaemonTestSupport
import Glibc
import TestSupport
import Testing

@testable import EventLoops
@testable import HTTPSemantics
@testable import HTTPServer

@Suite(.scripts) struct HTTPServerTests {
    private let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

    // MARK: Connections

    static let persistence: [(String, String?, Bool)] = [
        ("GET / HTTP/1.1\r\nHost: h\r\n\r\n", nil, true),
        ("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "close", false),
        ("GET / HTTP/1.1\r\nHost: h\r\nConnection: TE, Close\r\n\r\n", "close", false),
        ("GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, x\r\n\r\n", nil, true),
        ("GET / HTTP/1.0\r\n\r\n", "close", false),
        ("GET / HTTP/1.0\r\nHost: h\r\nConnection: Keep-Alive\r\n\r\n", "keep-alive", true),
        ("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", "close", false),
        ("GET /ready HTTP/1.0\r\n\r\n", "close", false),
        ("GET /ready HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "keep-alive", true),
        ("GET /ready HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "close", false),
        ("POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", "keep-alive", true),
        ("POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", "close", false),
    ]

    @Test(arguments: persistence)
    func `the connection lasts as long as the client wants`(
        request: String,
        connection: String?,
        persists: Bool
    ) async throws {
        try await withServer { server in
            let client = try server.connect()
            client.send(request)
            let answer = try client.answer()
            #expect(answer.status == 200)
            #expect(answer.fields["connection"] == connection)
            if persists {
                client.send(get)
                #expect(try client.answer().status == 200)
            } else {
                #expect(client.readToEnd().isEmpty)
            }
        }
    }

    @Test func `a client that half-closes the connection still gets its responses`() async throws {
        try await withServer { server in
            let client = try server.connect()
            client.send(get + get)
            client.endSending()
            #expect(try client.answer().status == 200)
            #expect(try client.answer().status == 200)
            #expect(client.readToEnd().isEmpty)
        }
    }

    // MARK: Listening

    @Test func `several workers share a port and all of them answer`() async throws {
        try await withServer(workers: 3) { server in
            let clients = try (0..<30).map { _ in try server.connect() }
            for client in clients { client.send(get) }
            for client in clients { #expect(try client.answer().status == 200) }
        }
    }

    @Test func `a port in use is refused, also with several workers`() async throws {
        try await withServer(workers: 2) { server in
            let port = server.address.port!
            let loops = try (0..<2).map { _ in try EventLoop(name: "other") }
            let other = Server(loops: loops) { _ in fatalError("never asked") }
            #expect(throws: ListenError.inUse("127.0.0.1:\(port)")) {
                try other.listen(on: .tcp(host: "127.0.0.1", port: port))
            }
        }
    }

    @Test func `localhost is bound on all of its addresses, with one port`() async throws {
        try await withServer(address: .tcp(host: "localhost", port: 0)) { server in
            #expect(server.address.port != 0)
            let client = try server.connect()
            client.send(get)
            #expect(try client.answer().status == 200)
        }
    }

    @Test func `an address that cannot be listened on is refused with the reason`() throws {
        let server = Server(loops: [try EventLoop(name: "none")]) { _ in fatalError("never asked") }
        #expect(throws: ListenError.self) { try server.listen(on: .tcp(host: "no such host", port: 0)) }
        #expect(throws: ListenError.notListening(descriptor: 0)) { try server.listen(inherited: 0) }
        #expect(throws: ListenError.unknownGroup("no-such-group")) {
            try server.listen(on: .unix(path: temporaryPath(), group: "no-such-group"))
        }
        let long = "/tmp/" + String(repeating: "x", count: 200)
        #expect(throws: ListenError.pathTooLong(long)) { try server.listen(on: .unix(path: long)) }
    }

    private func temporaryPath() -> String {
        "/tmp/larder-test-\(getpid())-\(UInt32.random(in: 0 ... .max)).socket"
    }

    @Test func `a Unix socket has its mode, is shared by the workers, and is removed at the end`() async throws {
        let path = temporaryPath()
        try await withServer(workers: 2, address: .unix(path: path, mode: 0o640)) { server in
            var status = stat()
            #expect(stat(path, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o640)
            let clients = try (0..<6).map { _ in try server.connect() }
            for client in clients { client.send(get) }
            for client in clients { #expect(try client.answer().status == 200) }
            #expect(throws: ListenError.inUse("unix:\(path)")) { try server.server.listen(on: .unix(path: path)) }
            #expect(stat(path, &status) == 0)
        }
        #expect(access(path, F_OK) != 0)
    }

    @Test func `a socket file that nobody listens on is replaced, another file is not`() async throws {
        let path = temporaryPath()
        let stale = try ListeningSocket.unix(path: path, mode: 0o600, group: nil)
        stale.close()
        #expect(access(path, F_OK) == 0)
        try await withServer(address: .unix(path: path)) { server in
            let client = try server.connect()
            client.send(get)
            #expect(try client.answer().status == 200)
        }
        close(open(path, O_CREAT | O_WRONLY, 0o600))
        defer { unlink(path) }
        #expect(throws: ListenError.notASocket(path: path)) {
            try ListeningSocket.unix(path: path, mode: 0o600, group: nil)
        }
        #expect(access(path, F_OK) == 0)
    }

    @Test func `a listening socket can be inherited`() async throws {
        let opened = try ListeningSocket.tcp(host: "127.0.0.1", port: 0, count: 1)[0][0]
        try await withServer(workers: 2, inherited: opened.descriptor) { server in
            #expect(server.address == opened.address)
            let clients = try (0..<4).map { _ in try server.connect() }
            for client in clients { client.send(get) }
            for client in clients { #expect(try client.answer().status == 200) }
        }
    }

    @Test func `a connection knows the address that it came in at`() async throws {
        try await withServer(handler: { _, connection in
            connection.respond(status: 200, body: Array("\(connection.entrance.address)".utf8))
        }) { server in
            let client = try server.connect()
            client.send(get)
            #expect(try client.answer().text == "\(server.address)")
        }
    }

    // MARK: The end

    @Test func `draining finishes requests under way with Connection: close, and closes idle connections`() async throws
    {
        let (asked, answer) = (Flag(), Flag())
        let server = try HTTPTestServer(handler: { request, connection in
            let exchange = connection.takeOver(request)
            asked.raise()
            HTTPTestServer.onLoop {
                await answer.wait()
                exchange.reply.respond(status: 200, fields: Fields(), body: Array("done".utf8))
            }
        })
        let (idle, busy) = (try server.connect(), try server.connect())
        busy.send(get)
        await asked.wait()
        let drained = Flag()
        // Not on the shared pool, whose threads this and other tests block.
        HTTPTestServer.onLoop {
            await server.server.drain(within: .seconds(120))
            drained.raise()
        }
        #expect(idle.read() == [])
        // Each worker stops by itself. For ever nobody waits: the port may be another test's by now.
        for _ in 0..<200 where (try? server.connect()) != nil { usleep(10_000) }
        // Those that came too late have to be seen leaving.
        for _ in 0..<6000 where server.server.connectionCount != 1 { usleep(10_000) }
        #expect(server.server.connectionCount == 1)
        answer.raise()
        let last = try busy.answer()
        #expect(last.text == "done")
        #expect(last.fields["connection"] == "close")
        #expect(busy.readToEnd().isEmpty)
        await drained.wait()
        #expect(server.server.connectionCount == 0)
        await server.stop()
    }

    @Test func `draining has a time limit`() async throws {
        let server = try HTTPTestServer(handler: { request, connection in
            HTTPTestServer.keep(connection.takeOver(request).reply)
        })
        let client = try server.connect()
        client.send(get)
        // Until the request is known to be in work.
        while server.server.connectionCount == 0 { await Task.yield() }
        await server.server.drain(within: .milliseconds(50))
        #expect(client.read() ?? [] == [])
        #expect(server.server.connectionCount == 0)
        await server.stop()
    }
}
