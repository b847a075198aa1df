import HTTPSemantics
import HTTPServer
import Proxy
import Settings

/// The admin side's HTTP handler, one for each loop, which only accepts the request; the rest happens in a task.
package final class AdminHandler: HTTPHandler {
    private let service: AdminService
    private let executor: (any TaskExecutor)?
    /// The guards by entrance, each created at its first request, because only then is the bound address known.
    private var guards: [ObjectIdentifier: (entrance: Entrance, guarding: Guard)] = [:]
    /// The configuration whose host names they allow.
    private var configuration: CompiledConfiguration?

    /// - Parameter executor: where responses are made, not on a loop that serves data: a page of a thousand objects takes ms.
    package init(service: AdminService, executor: (any TaskExecutor)? = nil) {
        (self.service, self.executor) = (service, executor)
    }

    func received(_ request: borrowing RequestHead, on connection: HTTPConnection) {
        let entrance = connection.entrance
        // The guard comes first, before anything else of the request is examined.
        let verdict = guarding(entrance).check(Guard.Facts(request, authority: request.authority))
        // A Unix socket's permissions decide who may use it.
        let isTrusted = if case .unix = entrance.address { true } else { false }
        var message = request.owned()
        let reply = connection.deferReply(request, &message)
        Self.begin(message, reply, service, verdict, isTrusted: isTrusted, on: executor)
    }

    // Separate from `received`: the compiler (6.3.1) cannot check a task made where something noncopyable is in scope.
    private static func begin(
        _ request: Request,
        _ reply: Reply,
        _ service: AdminService,
        _ verdict: Guard.Verdict,
        isTrusted: Bool,
        on executor: (any TaskExecutor)?
    ) {
        Task(executorPreference: executor) { await respond(to: request, reply, service, verdict, isTrusted: isTrusted) }
    }

    private func guarding(_ entrance: Entrance) -> Guard {
        let current = service.configuration
        if configuration !== current { (configuration, guards) = (current, [:]) }
        if let known = guards[ObjectIdentifier(entrance)] { return known.guarding }
        let hosts = current.settings.upstreams.flatMap(\.hosts)
        let guarding = Guard(listeners: entrance.guardListeners, hosts: hosts, wantsToken: true)
        // The entrance is retained, so that no other one gets its identity.
        guards[ObjectIdentifier(entrance)] = (entrance, guarding)
        return guarding
    }

    private static func respond(
        to request: Request,
        _ reply: Reply,
        _ service: AdminService,
        _ verdict: Guard.Verdict,
        isTrusted: Bool
    ) async {
        if case .refused(let refusal) = verdict {
            return reply.respond(ProblemDocument(status: refusal.status, detail: refusal.message))
        }
        var response: AdminResponse
        do throws(ProblemDocument) {
            response = await service.respond(try await read(request), isTrusted: isTrusted)
        } catch { response = .problem(error) }
        guard let stream = response.stream else {
            return reply.respond(status: response.status, fields: response.fields, body: response.body)
        }
        guard request.method == "HEAD" else { return stream(reply, response.fields) }
        reply.start(status: response.status, fields: response.fields, framing: .none)
        reply.finish()
    }

    private static func read(_ request: Request) async throws(ProblemDocument) -> AdminRequest {
        let limit = AdminService.maximumBody
        let tooLong = ProblemDocument(413, "the body of a request to the admin side may have at most \(limit) bytes")
        let parts = request.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let query = parts.count == 2 ? String(parts[1]) : nil
        var read = AdminRequest(method: request.method, path: String(parts[0]), query: query, fields: request.fields)
        if let head = read, AdminRoute.takesFile(head) {
            read?.upload = request.body
        } else if let body = request.body {
            if let length = body.declaredLength, length > limit { throw tooLong }
            do throws(RequestBodyError) {
                let bytes = try await body.collect(limit: limit)
                read?.body = bytes
            } catch {
                switch error {
                case .overLimit: throw tooLong
                // The client is gone, or the connection has sent a better message.
                case .disconnected, .refused: throw .badRequest("the body is incomplete")
                }
            }
        }
        guard let read else { throw .badRequest("the target has a broken percent-escape, or is not UTF-8 text") }
        return read
    }
}

extension Entrance {
    /// The addresses that the guard allows here: those that were bound, and those in the config.
    var guardListeners: [Address] {
        guard case .tcp(_, let port) = address, case .tcp(let name, _) = configured else { return [address] }
        return [address, .tcp(host: name, port: port)]
    }
}

/// The admin side without its sockets: turns a request value into a response value.
package struct AdminService: Sendable {
    static let maximumBody = 64 << 10

    private let daemon: DaemonCore

    package init(_ daemon: DaemonCore) { self.daemon = daemon }

    var configuration: CompiledConfiguration { daemon.proxy.configuration.value }

    /// Responds to one request, also to one that fails; any thread.
    ///
    /// `isTrusted`: the connection itself authenticates the client, as a Unix socket does.
    func respond(_ request: AdminRequest, isTrusted: Bool) async -> AdminResponse {
        var response: AdminResponse
        do {
            response = try await dispatch(request, isTrusted: isTrusted)
        } catch { response = .problem(ProblemDocument(error)) }
        for field in Self.always where !response.fields.contains(field.lowercasedName) {
            response.fields.lines.append(field)
        }
        return response
    }

    private func dispatch(_ request: AdminRequest, isTrusted: Bool) async throws -> AdminResponse {
        let match = AdminRoute.match(request, in: AdminRoute.all)
        if case .route(let route, _) = match, route.access == .open {
            // Health, readiness and metrics are for monitors, which have no token; the dashboard's files contain no data.
        } else if !isTrusted {
            // This precedes 404 and 405, so that strangers learn nothing from them.
            try authorize(request)
        }
        switch match {
        case .none: throw ProblemDocument.notFound("there is nothing at this path; GET /openapi.json lists all paths")
        case .otherMethods(let methods):
            let allowed = (methods + ["OPTIONS"]).joined(separator: ", ")
            if request.method == "OPTIONS" {
                return AdminResponse(status: 204, fields: Fields([Field("Allow", allowed)]))
            }
            throw ProblemDocument(
                405,
                "this path does not support \(request.method): use \(methods.joined(separator: " or "))",
                fields: Fields([Field("Allow", allowed)])
            )
        case .route(let route, let captures):
            var request = request
            request.captures = captures
            try checkQuery(of: request, against: route)
            return try await route.respond(request, daemon)
        }
    }

    private func authorize(_ request: AdminRequest) throws {
        let credentials = request.fields.all("authorization")
        if credentials.count == 1, daemon.token.authorizes(credentials[0]) || daemon.logins.authorizes(credentials[0]) {
            return
        }
        let error = credentials.isEmpty ? "" : ", error=\"invalid_token\""
        throw ProblemDocument(
            401,
            credentials.isEmpty
                ? "send Authorization: Bearer with the content of \(AdminToken.fileName), a file beside the store"
                : "this is not the token of this daemon: use the content of \(AdminToken.fileName) beside its store",
            fields: Fields([Field("WWW-Authenticate", AdminToken.challenge + error)])
        )
    }

    /// Refuses unknown and empty parameters: a misspelled condition, or an unset variable, must not mean "everything".
    private func checkQuery(of request: AdminRequest, against route: AdminRoute) throws {
        var seen: Set<String> = []
        for (name, value) in request.query {
            guard let parameter = route.query.first(where: { $0.name == name }) else {
                let known = route.query.map(\.name).joined(separator: ", ")
                throw ProblemDocument.badRequest(
                    "\(name) is not a parameter of \(route.path)"
                        + (known.isEmpty ? ", which takes none" : ": use \(known)")
                )
            }
            guard seen.insert(name).inserted || parameter.isRepeatable else {
                throw ProblemDocument.badRequest("\(name) is given twice")
            }
            guard !value.isEmpty || parameter.kind != .string else {
                throw ProblemDocument.badRequest("\(name) is empty: give it a value, or leave it out")
            }
        }
    }

    /// The fields of every response, which must not be stored, embedded or taken for another type.
    private static let always = [
        Field("Cache-Control", "no-store"), Field("X-Content-Type-Options", "nosniff"),
        Field("Cross-Origin-Resource-Policy", "same-origin"), Field("Referrer-Policy", "no-referrer"),
        Field("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ]
}
