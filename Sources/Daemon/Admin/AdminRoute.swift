import HTTPSemantics
import HTTPServer
import Proxy
import Settings

/// One endpoint of the admin side; dispatch and the OpenAPI document are driven by the table of them.
struct AdminRoute: Documented, Sendable {
    enum Access: Sendable {
        /// Open to anyone who can connect: it reveals nothing about the data.
        case open
        /// Over TCP only with the token; on a Unix socket its permissions decide.
        case guarded
    }

    /// A query parameter or a member of the body.
    struct Parameter: Documented, Sendable {
        enum Kind: String, Sendable { case string, integer, boolean }

        let name: String
        let kind: Kind
        var sentence = ""
        let isRequired: Bool
        let isRepeatable: Bool

        init(_ name: String, _ kind: Kind = .string, isRequired: Bool = false, isRepeatable: Bool = false) {
            (self.name, self.kind, self.isRequired, self.isRepeatable) = (name, kind, isRequired, isRepeatable)
        }
    }

    /// Makes the response; a thrown error becomes a problem document (`ProblemDocument.init(_: any Error)`).
    typealias Responder = @Sendable (AdminRequest, DaemonCore) async throws -> AdminResponse

    let method: String
    /// `/objects/{model}`: literal components, and captures in braces.
    let path: String
    var sentence = ""
    let access: Access
    /// The query parameters; others are refused.
    let query: [Parameter]
    /// The members of a JSON body; empty if it takes none.
    let body: [Parameter]
    let takesFile: Bool
    let mediaType: String
    let schema: (any AdminBody.Type)?
    let respond: Responder

    /// - Parameter endpoint: method and path, such as `GET /objects/{model}`.
    init(
        _ endpoint: String,
        access: Access = .guarded,
        query: [Parameter] = [],
        body: [Parameter] = [],
        takesFile: Bool = false,
        mediaType: String = "application/json",
        schema: (any AdminBody.Type)? = nil,
        respond: @escaping Responder
    ) {
        let parts = endpoint.split(separator: " ").map(String.init)
        (method, path, self.access, self.query, self.body) = (parts[0], parts[1], access, query, body)
        (self.takesFile, self.mediaType, self.schema, self.respond) = (takesFile, mediaType, schema, respond)
    }

    /// A route that responds with one JSON document, whose type is its schema.
    static func json<Body: AdminBody>(
        _ endpoint: String,
        access: Access = .guarded,
        query: [Parameter] = [],
        body: [Parameter] = [],
        status: Int = 200,
        respond: @escaping @Sendable (AdminRequest, DaemonCore) async throws -> Body
    ) -> AdminRoute {
        AdminRoute(endpoint, access: access, query: query, body: body, schema: Body.self) { request, daemon in
            .json(try await respond(request, daemon), status: status)
        }
    }

    enum Match: Sendable {
        case route(AdminRoute, captures: [String: String])
        /// The path exists, but only for these methods.
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

    /// Whether the route of a request takes a file as its body.
    static func takesFile(_ request: AdminRequest) -> Bool {
        if case .route(let route, _) = match(request, in: all) { route.takesFile } else { false }
    }

    var components: [Substring] { path.split(separator: "/") }
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

struct AdminResponse: Sendable {
    var status = 200
    var fields = Fields()
    var body: [UInt8] = []
    /// Starts the response with these fields, streams its body, and ends it; nil if `body` is everything.
    var stream: (@Sendable (Reply, Fields) -> Void)?

    /// JSON, followed by a line feed for terminals.
    static func json(_ body: some Encodable, status: Int = 200) -> AdminResponse {
        text(AdminJSON.encode(body) + [0x0A], type: "application/json", status: status)
    }

    static func text(_ body: [UInt8], type: String, status: Int = 200) -> AdminResponse {
        AdminResponse(status: status, fields: Fields([Field("Content-Type", type)]), body: body)
    }

    static func events(_ stream: @escaping @Sendable (Reply, Fields) -> Void) -> AdminResponse {
        AdminResponse(fields: Fields([Field("Content-Type", EventStreamText.mediaType)]), stream: stream)
    }

    static func problem(_ problem: ProblemDocument) -> AdminResponse {
        var response = text(problem.bytes, type: ProblemDocument.mediaType, status: problem.status)
        response.fields.lines += problem.fields.lines
        return response
    }
}

extension AdminRoute {
    /// Every endpoint, in the order of the OpenAPI document.
    static let all: [AdminRoute] =
        dashboard + monitoring + status + activity + contents + seeding + queries + following + clean + mode + reload
        + copies + recordings
}
