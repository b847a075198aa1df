import HTTPSemantics

/// The admin side without its sockets: turns a request value into a response value.
package struct AdminService: Sendable {
    /// The maximum size of a body in bytes.
    static let maximumBody = 64 << 10

    private let daemon: DaemonCore

    package init(_ daemon: DaemonCore) { self.daemon = daemon }

    /// Responds to one request; any thread.
    ///
    /// Every error becomes a response. `isTrusted` means that the connection itself authenticates the client, as a Unix socket
    /// does.
    func respond(_ request: AdminRequest, isTrusted: Bool) async -> AdminResponse {
        var response: AdminResponse
        do {
            response = try await dispatch(request, isTrusted: isTrusted)
        } catch {
            response = .problem(ProblemDocument(error))
        }
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
        case .none:
            throw ProblemDocument.notFound("there is nothing at this path; GET /openapi.json lists all paths")
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
        if credentials.count == 1,
            daemon.token.authorizes(credentials[0]) || daemon.logins.authorizes(credentials[0])
        {
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
        Field("Cache-Control", "no-store"),
        Field("X-Content-Type-Options", "nosniff"),
        Field("Cross-Origin-Resource-Policy", "same-origin"),
        Field("Referrer-Policy", "no-referrer"),
        Field("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ]
}
