import HTTPSemantics

/// The admin side without its sockets: from a request as values to an answer as values.
package struct AdminService: Sendable {
    /// The longest body that is read, in bytes.
    static let maximumBody = 64 << 10

    package let context: any AdminContext
    package let token: AdminToken
    var routes = AdminRoute.all

    /// Answers one request, from any thread; never fails, for every error is an answer.
    ///
    /// `isTrusted` says that the way the request came proves who asks, as a Unix socket does.
    func answer(_ request: AdminRequest, isTrusted: Bool) async -> AdminResponse {
        var response: AdminResponse
        do throws(Problem) {
            response = try await dispatch(request, isTrusted: isTrusted)
        } catch {
            if error.status == 401, request.wantsPage {
                response = StatusPage.response(status: 401)
                response.fields.lines += error.fields.lines
            } else {
                response = .problem(error)
            }
        }
        for field in Self.always where !response.fields.contains(named: field.lowercasedName) {
            response.fields.lines.append(field)
        }
        return response
    }

    private func dispatch(_ request: AdminRequest, isTrusted: Bool) async throws(Problem) -> AdminResponse {
        let match = AdminRoute.match(request, in: routes)
        if case .route(let route, _) = match, route.access == .open {
            // Health, readiness and metrics are for monitors, which carry no token.
        } else if !isTrusted {
            // Before 404 and 405, so that strangers learn nothing by asking around.
            try authorize(request)
        }
        switch match {
        case .none:
            throw .notFound("there is nothing at this path: GET /openapi.json lists what there is")
        case .otherMethods(let methods):
            let allowed = (methods + ["OPTIONS"]).joined(separator: ", ")
            if request.method == "OPTIONS" {
                return AdminResponse(status: 204, fields: Fields([Field("Allow", allowed)]))
            }
            throw Problem(
                405,
                "\(request.method) is not for this path: use \(methods.joined(separator: " or "))",
                fields: Fields([Field("Allow", allowed)])
            )
        case .route(let route, let captures):
            var request = request
            request.captures = captures
            try checkQuery(of: request, against: route)
            return try await route.answer(request, context)
        }
    }

    private func authorize(_ request: AdminRequest) throws(Problem) {
        let credentials = request.fields.all("authorization")
        if credentials.count == 1, token.authorizes(credentials[0]) { return }
        let error = credentials.isEmpty ? "" : ", error=\"invalid_token\""
        throw Problem(
            401,
            credentials.isEmpty
                ? "send Authorization: Bearer with the content of \(AdminToken.fileName), which lies beside the store"
                : "this is not the token in \(AdminToken.fileName) beside the store",
            fields: Fields([Field("WWW-Authenticate", "Bearer realm=\"larder\"" + error)])
        )
    }

    /// Refuses parameters that the route does not know, and those that say nothing: a misspelled condition, or an unset
    /// variable, must not mean "everything".
    private func checkQuery(of request: AdminRequest, against route: AdminRoute) throws(Problem) {
        var seen: Set<String> = []
        for (name, value) in request.query {
            guard let parameter = route.query.first(where: { $0.name == name }) else {
                let known = route.query.map(\.name).joined(separator: ", ")
                throw .badRequest(
                    "\(name) is no parameter of \(route.path)"
                        + (known.isEmpty ? ", which takes none" : ": use \(known)")
                )
            }
            guard seen.insert(name).inserted || parameter.isRepeatable else {
                throw .badRequest("\(name) is given twice")
            }
            guard !value.isEmpty || parameter.kind != .string else {
                throw .badRequest("\(name) is empty: give it a value, or leave it out")
            }
        }
    }

    /// What every answer carries: none of it is to be kept, embedded or taken for something else.
    private static let always = [
        Field("Cache-Control", "no-store"),
        Field("X-Content-Type-Options", "nosniff"),
        Field("Cross-Origin-Resource-Policy", "same-origin"),
        Field("Referrer-Policy", "no-referrer"),
        Field("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ]
}

extension AdminService {
    package init(context: any AdminContext, token: AdminToken) {
        self.init(context: context, token: token, routes: AdminRoute.all)
    }
}
