import CachePolicy
import HTTPSemantics
import HTTPServer
package import Proxy

/// The admin side's HTTP handler.
///
/// There is one for each loop. The loop only accepts the request; everything else happens in a task.
package final class AdminHandler: HTTPHandler {
    private let service: AdminService
    private let hosts: [String]
    private let cors: CORS
    private let executor: (any TaskExecutor)?
    /// The guards by entrance, each created at its first request, because only then is the bound address known.
    private var doors: [ObjectIdentifier: (entrance: Entrance, door: Guard)] = [:]

    /// - Parameters:
    ///   - hosts: further host names of the admin side.
    ///   - cors: the pages of other origins that may use it; none by default.
    ///   - executor: where responses are made; the shared pool by default. Not a loop that serves data: a page of a thousand
    ///     objects takes milliseconds.
    package init(service: AdminService, hosts: [String] = [], cors: CORS = CORS(), executor: (any TaskExecutor)? = nil)
    {
        self.service = service
        self.hosts = hosts
        self.cors = cors
        self.executor = executor
    }

    func received(_ request: borrowing RequestHead, on connection: HTTPConnection) {
        let entrance = connection.entrance
        // The guard comes first, before anything else of the request is examined.
        let door = door(of: entrance)
        let verdict = door.check(Guard.Facts(request, authority: request.authority))
        // A Unix socket's permissions decide who may use it.
        let isTrusted = if case .unix = entrance.address { true } else { false }
        let exchange = connection.deferReply(request)
        Self.begin(exchange, service: service, cors: door.cors, verdict, isTrusted: isTrusted, on: executor)
    }

    // Separate from `received`: the compiler (6.3.1) cannot check a task made where something noncopyable is in scope.
    private static func begin(
        _ exchange: Exchange,
        service: AdminService,
        cors: CORS,
        _ verdict: Guard.Verdict,
        isTrusted: Bool,
        on executor: (any TaskExecutor)?
    ) {
        Task(executorPreference: executor) {
            await respond(to: exchange, service: service, cors: cors, verdict, isTrusted: isTrusted)
        }
    }

    private func door(of entrance: Entrance) -> Guard {
        if let known = doors[ObjectIdentifier(entrance)] { return known.door }
        let door = Guard(listeners: entrance.guardListeners, hosts: hosts, cors: cors, wantsToken: true)
        // The entrance is retained, so that no other one gets its identity.
        doors[ObjectIdentifier(entrance)] = (entrance, door)
        return door
    }

    private static func respond(
        to exchange: Exchange,
        service: AdminService,
        cors: CORS,
        _ verdict: Guard.Verdict,
        isTrusted: Bool
    ) async {
        let request = exchange.request
        var crossOrigin = Fields()
        switch verdict {
        case .allowed: break
        case .allowedOrigin(let origin): crossOrigin = cors.fields(for: origin)
        case .preflight(let origin):
            let fields = cors.preflightFields(for: origin, request: request.fields)
            return exchange.reply.respond(status: 204, fields: fields)
        case .refused(let refusal):
            return exchange.reply.respond(ProblemDocument(status: refusal.status, detail: refusal.message))
        }
        var response: AdminResponse
        do throws(ProblemDocument) {
            response = await service.respond(try await read(request), isTrusted: isTrusted)
        } catch {
            response = .problem(error)
        }
        response.fields.lines += crossOrigin.lines
        if !crossOrigin.lines.isEmpty { response.fields.vary(by: ["Origin"]) }
        if let stream = response.stream {
            guard request.method == "HEAD" else { return stream(exchange.reply, response.fields) }
            exchange.reply.start(status: response.status, fields: response.fields, framing: .none)
            return exchange.reply.finish()
        }
        exchange.reply.respond(status: response.status, fields: response.fields, body: response.body)
    }

    /// The request with its body.
    private static func read(_ request: Request) async throws(ProblemDocument) -> AdminRequest {
        let limit = AdminService.maximumBody
        let tooLong = ProblemDocument(413, "the body of a request to the admin side may have at most \(limit) bytes")
        var bytes: [UInt8] = []
        let parts = request.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let takesFile = AdminRoute.all.contains {
            $0.takesFile && $0.method == request.method && $0.path == parts[0]
        }
        if !takesFile, let body = request.body {
            if let length = body.declaredLength, length > limit { throw tooLong }
            do throws(RequestBodyError) {
                bytes = try await body.collect(limit: limit)
            } catch {
                switch error {
                case .overLimit: throw tooLong
                // The client is gone, or the connection has sent a better message.
                case .disconnected, .refused: throw .badRequest("the body is incomplete")
                }
            }
        }
        var read = AdminRequest(
            method: request.method,
            path: String(parts[0]),
            query: parts.count == 2 ? String(parts[1]) : nil,
            fields: request.fields,
            body: bytes
        )
        if takesFile { read?.upload = request.body }
        guard let read else { throw .badRequest("the target has a broken percent-escape, or is not UTF-8 text") }
        return read
    }
}

extension Entrance {
    /// The addresses that the guard allows here: those that were bound, and those in the config.
    var guardListeners: [Guard.Listener] {
        switch (address, configured) {
        case (.unix, _): [.unix]
        case (.tcp(let host, let port), .tcp(let name, _)):
            [.tcp(host: host, port: port), .tcp(host: name, port: port)]
        case (.tcp(let host, let port), _): [.tcp(host: host, port: port)]
        }
    }
}
