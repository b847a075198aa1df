import DaemonTestSupport
import TestSupport
import Testing

@testable import EventLoops
@testable import HTTPSemantics
@testable import HTTPServer

/// Addresses and limits that change while the server serves.
@Suite(.scripts) struct HTTPServerChangeTests {
    private let get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

    @Test(arguments: [1, 3])
    func `an address that is not listened on any more ends its connections once they are idle`(
        workers: Int
    ) async throws {
        let held = Monitor<[Reply]>([])
        let late = Monitor(false)
        let handler: @Sendable (borrowing RequestHead, HTTPConnection) -> Void = { request, connection in
            late.withLock { $0 = $0 || request.path.elementsEqual("/late".utf8) }
            if request.path.elementsEqual("/held".utf8) {
                let (_, reply) = connection.takeOver(request)
                held.withLock { $0.append(reply) }
            } else {
                HTTPTestServer.echo(request, connection)
            }
        }
        try await withServer(workers: workers, handler: handler) { server in
            let other = try server.server.listen(on: .tcp(host: "localhost", port: 0))
            let (idle, busy, kept) = (try server.connect(), try server.connect(), try HTTPTestClient(other[0]))
            for client in [idle, kept] {
                client.send(get)
                #expect(try client.answer().status == 200)
            }
            busy.send("GET /held HTTP/1.1\r\nHost: h\r\n\r\n")
            held.wait { !$0.isEmpty }
            server.server.stopListening(on: .tcp(host: "127.0.0.1", port: 0))
            #expect(idle.readToEnd().isEmpty)
            held.current[0].respond(status: 200, fields: Fields(), body: [])
            let answer = try busy.answer()
            #expect(answer.status == 200 && answer.fields["connection"] == "close")
            #expect(busy.readToEnd().isEmpty)
            // Another program may listen on the free port by now, so a connection can succeed.
            if let client = try? server.connect() {
                client.send("GET /late HTTP/1.1\r\nHost: h\r\n\r\n")
                _ = try? client.answer()
            }
            #expect(!late.current)
            kept.send(get)
            #expect(try kept.answer().status == 200)
        }
    }

    @Test func `bound addresses accept nothing before they are started, and are free again when they are discarded`()
        async throws
    {
        try await withServer { server in
            let folder = TemporaryFolder()
            let bound = try server.server.bind(.unix(path: folder.file("http.sock")))
            let client = try HTTPTestClient(bound.addresses[0])
            client.send(get)
            server.server.start(bound)
            #expect(try client.answer().status == 200)
            let other = try server.server.bind(.tcp(host: "127.0.0.1", port: 0))
            server.server.discard(other)
            let again = try server.server.bind(other.addresses[0])
            server.server.discard(again)
        }
    }

    @Test(arguments: [1, 3])
    func `an address that includes another one of the same port can be added beside it`(workers: Int) async throws {
        try await withServer(workers: workers) { server in
            guard case .tcp(_, let port) = server.address else {
                Issue.record("the server listens on no port")
                return
            }
            let all = Address.tcp(host: "0.0.0.0", port: port)
            #expect(throws: ListenError.inUse("\(all)")) { try server.server.bind(all) }
            server.server.start(try server.server.bind(all, besideOwn: true))
            server.server.stopListening(on: .tcp(host: "127.0.0.1", port: 0))
            #expect(
                await eventually {
                    guard let client = try? server.connect() else { return false }
                    client.send(get)
                    return (try? client.answer().status) == 200
                }
            )
        }
    }

    @Test func `limits can be changed, also for connections that are open`() async throws {
        try await withServer { server in
            let client = try server.connect()
            client.send(get)
            #expect(try client.answer().status == 200)
            var limits = HTTPLimits()
            limits.maxTarget = 300
            server.server.setLimits(limits)
            let long = "GET /\(String(repeating: "x", count: 400)) HTTP/1.1\r\nHost: h\r\n\r\n"
            let status = { () throws -> Int in
                let client = try server.connect()
                client.send(long)
                return try client.answer().status
            }
            #expect(await eventually { (try? status()) == 414 })
            client.send(long)
            #expect(try client.answer().status == 414)
        }
    }
}
