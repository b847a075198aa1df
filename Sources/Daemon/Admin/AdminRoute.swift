import HTTPSemantics

/// One endpoint of the admin side: its path, what it does, who may use it, and what a program must know to use it.
///
/// The table of them drives dispatch and the OpenAPI document.
struct AdminRoute: Sendable {
    enum Access: Sendable {
        /// Open to whoever reaches the address: it reveals nothing of the data.
        case open
        /// Over TCP only with the token; on a Unix socket its permissions decide.
        case guarded
    }

    /// A query parameter or a member of the body.
    struct Parameter: Sendable {
        enum Kind: String, Sendable {
            case string, integer, boolean
        }

        let name: String
        var kind = Kind.string
        let sentence: String
        var isRequired = false
        /// Whether it may be given several times.
        var isRepeatable = false
    }

    let method: String
    /// `/objects/{model}`: literal components, and captures in braces.
    let path: String
    let sentence: String
    var access = Access.guarded
    /// The parameters of the query; others are refused.
    var query: [Parameter] = []
    /// The members of a JSON body; empty when none is read.
    var body: [Parameter] = []
    /// Whether the body is a file of any size.
    var takesFile = false
    /// Of a successful response.
    var mediaType = "application/json"
    /// The type of its body, where that is JSON.
    var schema: (any AdminBody.Type)?
    let respond: @Sendable (AdminRequest, any AdminContext) async throws(ProblemDocument) -> AdminResponse
}

extension AdminRoute {
    /// How a path matches a table of routes.
    enum Match: Sendable {
        case route(AdminRoute, captures: [String: String])
        /// The path exists, for these methods.
        case otherMethods([String])
        case none
    }

    /// Finds the route for a request; `HEAD` is served by the route for `GET`.
    static func match(_ request: AdminRequest, in routes: [AdminRoute]) -> Match {
        var methods: [String] = []
        for route in routes {
            guard let captures = route.captures(of: request.components) else { continue }
            if route.method == request.method || (route.method == "GET" && request.method == "HEAD") {
                return .route(route, captures: captures)
            }
            methods += route.method == "GET" ? ["GET", "HEAD"] : [route.method]
        }
        return methods.isEmpty ? .none : .otherMethods(methods)
    }

    /// The pattern's components.
    var components: [Substring] { path.split(separator: "/") }

    /// The names in braces, in order.
    var captureNames: [String] { components.compactMap(Self.captureName) }

    private func captures(of components: [String]) -> [String: String]? {
        let pattern = self.components
        guard pattern.count == components.count else { return nil }
        var captures: [String: String] = [:]
        for (wanted, given) in zip(pattern, components) {
            if let name = Self.captureName(wanted) {
                guard !given.isEmpty else { return nil }
                captures[name] = given
            } else if wanted != given {
                return nil
            }
        }
        return captures
    }

    private static func captureName(_ component: Substring) -> String? {
        component.hasPrefix("{") && component.hasSuffix("}") ? String(component.dropFirst().dropLast()) : nil
    }
}
