import DaemonTestSupport
import Glibc
import Synchronization

@testable import EventLoops
@testable import HTTPSemantics
@testable import HTTPServer

/// A request with its reply.
typealias Exchange = (request: Request, reply: Reply)

extension HTTPConnection {
    /// Takes a request over, to serve it later and from any thread.
    func takeOver(_ head: borrowing RequestHead) -> Exchange {
        var request = head.owned()
        let reply = deferReply(head, &request)
        return (request, reply)
    }
}

/// A server on real sockets for one test, with a handler that shows what it was asked.
final class HTTPTestServer: Sendable {
    let server: Server
    let loops: [EventLoop]
    let address: Address

    /// Starts on a free port of 127.0.0.1 unless another address is given.
    init(
        limits: HTTPLimits = HTTPLimits(),
        workers: Int = 1,
        address: Address = .tcp(host: "127.0.0.1", port: 0),
        inherited: Int32? = nil,
        notice: @escaping @Sendable (HTTPNotice) -> Void = { _ in },
        handler: @escaping @Sendable (borrowing RequestHead, HTTPConnection) -> Void = HTTPTestServer.echo
    ) throws {
        loops = try (0..<workers).map { try EventLoop(name: "test-\($0)") }
        for loop in loops { loop.start() }
        server = Server(loops: loops, limits: limits, notice: notice) { _ in ClosureHandler(handler) }
        if let inherited {
            self.address = try server.listen(inherited: inherited)
        } else {
            self.address = try server.listen(on: address)[0]
        }
    }

    func connect() throws -> HTTPTestClient { try HTTPTestClient(address) }

    /// Sends bytes on a connection of its own and reads to its end.
    func exchange(_ bytes: String) throws -> String {
        let client = try connect()
        client.send(bytes)
        return client.readToEnd()
    }

    func stop() async {
        await server.drain(within: .milliseconds(10))
        for loop in loops { loop.stop() }
        for loop in loops { loop.join() }
    }

    /// Shows method, target, authority and body of what it is asked; `/ready` is answered from ready parts.
    static let echo: @Sendable (borrowing RequestHead, HTTPConnection) -> Void = { request, connection in
        if request.hasBody { return echoBody(connection.takeOver(request)) }
        if request.path.elementsEqual("/ready".utf8) { return respondReady(connection) }
        let authority = request.authority.map { String(decoding: $0, as: UTF8.self) } ?? "-"
        let method = String(decoding: request.methodBytes, as: UTF8.self)
        let target = String(decoding: request.target, as: UTF8.self)
        connection.respond(status: 200, body: Array("\(method) \(target) \(authority)\n".utf8))
    }

    static let readyHead = Array("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n".utf8)

    private static func respondReady(_ connection: HTTPConnection) {
        var variable = SmallBuffer()
        variable.append("Age: 1\r\n\r\n")
        connection.respond(head: readyHead, variable: variable, body: Array("ready".utf8))
    }

    private static func echoBody(_ exchange: Exchange) {
        let (request, reply) = (exchange.request, exchange.reply)
        onLoop {
            do throws(RequestBodyError) {
                let body = try await request.body!.collect(limit: 1 << 30)
                let text = body.count > 4096 ? "\(body.count) bytes" : String(decoding: body, as: UTF8.self)
                reply.respond(status: 200, fields: Fields(), body: Array("\(request.method): \(text)\n".utf8))
            } catch {
                reply.respond(status: 599, fields: Fields(), body: Array("\(error)".utf8))
            }
        }
    }

    /// Runs a task away from the shared pool, whose threads the tests block.
    static func onLoop(_ work: @escaping @Sendable () async -> Void) {
        Task(executorPreference: taskLoop.taskExecutor, operation: work)
    }

    private static let taskLoop: EventLoop = {
        guard let loop = try? EventLoop(name: "test-tasks") else { fatalError("no loop") }
        loop.start()
        return loop
    }()
}

private final class ClosureHandler: HTTPHandler {
    private let handle: @Sendable (borrowing RequestHead, HTTPConnection) -> Void

    init(_ handle: @escaping @Sendable (borrowing RequestHead, HTTPConnection) -> Void) {
        self.handle = handle
    }

    func received(_ request: borrowing RequestHead, on connection: HTTPConnection) {
        handle(request, connection)
    }
}

/// Runs a test's body against a server and stops it whatever happens.
func withServer<Result>(
    limits: HTTPLimits = HTTPLimits(),
    workers: Int = 1,
    address: Address = .tcp(host: "127.0.0.1", port: 0),
    inherited: Int32? = nil,
    notice: @escaping @Sendable (HTTPNotice) -> Void = { _ in },
    handler: @escaping @Sendable (borrowing RequestHead, HTTPConnection) -> Void = HTTPTestServer.echo,
    _ body: (HTTPTestServer) async throws -> Result
) async throws -> Result {
    let server = try HTTPTestServer(
        limits: limits,
        workers: workers,
        address: address,
        inherited: inherited,
        notice: notice,
        handler: handler
    )
    do {
        let result = try await body(server)
        await server.stop()
        return result
    } catch {
        await server.stop()
        throw error
    }
}

extension HTTPTestServer {
    private static let kept = Mutex<[Reply]>([])

    /// Keeps a reply from being dropped until the process ends.
    static func keep(_ reply: Reply) {
        kept.withLock { $0.append(reply) }
    }
}

extension HTTPTestServer {
    /// Does something that blocks on a thread of its own.
    static func onThread(_ work: @escaping @Sendable () -> Void) {
        guard let loop = try? EventLoop(name: "test-blocking") else { fatalError("no loop") }
        loop.enqueue {
            work()
            loop.stop()
        }
        loop.start()
    }
}
