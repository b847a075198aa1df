import HTTPSemantics
import Proxy
import Settings
import Store

extension AdminRoute {
    /// Every endpoint, in the order of the OpenAPI document.
    static let all: [AdminRoute] = monitoring + contents + provenance + [changes] + control + reserved

    private static let monitoring: [AdminRoute] = [
        AdminRoute(
            method: "GET",
            path: "/",
            sentence: "A status page for people.",
            mediaType: "text/html",
            answer: { _, _ in StatusPage.response(status: 200) }
        ),
        AdminRoute(
            method: "GET",
            path: "/healthz",
            sentence: "Whether the process is alive.",
            access: .open,
            answer: { _, _ in .json(["status": "alive"]) }
        ),
        AdminRoute(
            method: "GET",
            path: "/readyz",
            sentence: "Whether requests are answered: 503 with the reason while starting or draining.",
            access: .open,
            answer: { _, context throws(Problem) in
                switch context.readiness {
                case .ready: return .json(["status": "ready"])
                case .notReady(let reason): throw Problem(503, reason, fields: Fields([Field("Retry-After", "1")]))
                }
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/metrics",
            sentence: "What the daemon counts of itself, for Prometheus.",
            access: .open,
            mediaType: "text/plain",
            answer: { _, context throws(Problem) in
                let reading = Metric.Reading(
                    metrics: context.metrics,
                    store: try await asked { () throws(StoreError) in try await context.figures() },
                    process: .read(),
                    mode: context.modes.current,
                    version: context.version
                )
                return .text(Array(PrometheusText.write(Metric.all, reading).utf8), type: PrometheusText.mediaType)
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/openapi.json",
            sentence: "This description of the admin side.",
            answer: { _, context in .json(OpenAPIDocument.describe(AdminRoute.all, version: context.version)) }
        ),
    ]

    private static let contents: [AdminRoute] = [
        AdminRoute(
            method: "GET",
            path: "/count",
            sentence: "How many objects and documents the store holds, and their size.",
            answer: { _, context throws(Problem) in
                .json(.object(try await asked { () throws(StoreError) in try await context.store.count() }.members))
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/objects/{model}",
            sentence: "The objects of a model at their newest known values.",
            query: ObjectView.parameters + Paging.parameters + Ownership.parameters,
            answer: { request, context throws(Problem) in
                let view = try ObjectView(request)
                try view.check(request.captures["model"] ?? "", context.models)
                let page = try await objects(request, view, context)
                if page.rows.isEmpty { try await request.checkNames(in: context) }
                return .json(page.document("objects") { view.document($0) })
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/objects/{model}/{id}",
            sentence:
                "The objects of a model with this identity, or with a key of this value: one per principal and context.",
            query: ObjectView.parameters + Paging.parameters + Ownership.parameters,
            answer: { request, context throws(Problem) in
                let view = try ObjectView(request)
                try view.check(request.captures["model"] ?? "", context.models)
                let page = try await objects(request, view, context)
                if page.rows.isEmpty {
                    let (model, id) = (request.captures["model"] ?? "", request.captures["id"] ?? "")
                    let deleted = try await objects(request, view, context, areDeleted: true)
                    if !deleted.rows.isEmpty {
                        throw .gone(
                            "the \(model) known as \(id) is deleted; `larder why \(model) \(id)` says since when"
                        )
                    }
                    try await request.checkNames(in: context)
                    throw .notFound("no \(model) is known as \(id)")
                }
                return .json(page.document("objects") { view.document($0) })
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/documents",
            sentence: "The cached answers.",
            query: [Parameter(name: "url", sentence: "What path and query, as sent upstream, begin with.")]
                + Paging.parameters + Ownership.parameters,
            answer: { request, context throws(Problem) in
                let paging = try Paging(request)
                let query = DocumentQuery(
                    upstream: request.value("upstream"),
                    principal: request.value("principal"),
                    urlPrefix: request.value("url"),
                    limit: paging.limit,
                    after: paging.after
                )
                let page = try await asked { () throws(StoreError) in try await context.store.documents(query) }
                if page.rows.isEmpty { try await context.checkOwnership(of: request) }
                return .json(page.document("documents") { $0.document })
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/explain",
            sentence: "What is stored for a URL, how fresh it is and why, and what a request would get now.",
            query: ExplainQuestion.parameters,
            schema: Explanation.schema,
            answer: { request, context throws(Problem) in
                .json(try await context.explain(try ExplainQuestion(request)).document)
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/warnings",
            sentence: "What did not fit models, routes or the law, the latest first.",
            query: Paging.parameters,
            answer: { request, context throws(Problem) in
                let paging = try Paging(request)
                let page = try await asked { () throws(StoreError) in
                    try await context.store.warnings(limit: paging.limit, after: paging.after)
                }
                return .json(page.document("warnings") { $0.document })
            }
        ),
    ]

    private static let control: [AdminRoute] = [
        AdminRoute(
            method: "POST",
            path: "/clean",
            sentence:
                "Removes what matches every condition given, for good, and says what it removed; with Accept: text/event-stream, as events: progress, then done or error. It stops when a reader of events leaves.",
            query: CleanRequest.parameters,
            body: CleanRequest.parameters,
            answer: { request, context throws(Problem) in
                try await CleanRequest(request).response(to: request, in: context)
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/mode",
            sentence: "The mode the daemon is in.",
            answer: { _, context in .json(["mode": .string(context.modes.current.rawValue)]) }
        ),
        AdminRoute(
            method: "PUT",
            path: "/mode",
            sentence: "Changes the mode until it is changed again or the daemon restarts.",
            query: [modeParameter],
            body: [modeParameter],
            answer: { request, context throws(Problem) in
                var wanted = request.value("mode")
                for (name, value) in try request.members() {
                    guard name == "mode" else { throw .badRequest("\(name) is no member here: use mode") }
                    guard wanted == nil else { throw .badRequest("mode is given twice") }
                    wanted = value.text
                }
                guard let mode = wanted.flatMap(Mode.init(rawValue:)) else {
                    throw .badRequest("mode must be one of \(Mode.allCases.map(\.rawValue).joined(separator: ", "))")
                }
                context.modes.set(mode)
                return .json(["mode": .string(mode.rawValue)])
            }
        ),
    ]

    private static let modeParameter = Parameter(
        name: "mode",
        sentence: "\(Mode.allCases.map(\.rawValue).joined(separator: " or "))."
    )

    private static let reserved: [AdminRoute] = [
        ("POST", "/save", "Saves the store as a snapshot."), ("POST", "/load", "Loads a snapshot."),
        ("GET", "/outbox", "Writes accepted while the upstream could not be reached."),
        ("POST", "/reload", "Reads the config again."),
    ].map { method, path, sentence in
        AdminRoute(
            method: method,
            path: path,
            sentence: sentence,
            isBuilt: false,
            answer: { _, _ throws(Problem) in throw .notBuilt(path) }
        )
    }

    private static func objects(
        _ request: AdminRequest,
        _ view: ObjectView,
        _ context: any AdminContext,
        areDeleted: Bool = false
    ) async throws(Problem) -> Page<ObjectRow> {
        let paging = try Paging(request)
        var query = ObjectQuery(
            model: request.captures["model"],
            identity: request.captures["id"],
            upstream: request.value("upstream"),
            principal: request.value("principal"),
            limit: paging.limit,
            after: paging.after
        )
        query.areDeleted = areDeleted
        query.view = view.query
        let wanted = query
        return try await asked { () throws(StoreError) in try await context.lookup.objects(wanted) }
    }
}

/// Asks the store and puts its errors into the words of HTTP.
func asked<Value: Sendable>(
    _ question: () async throws(StoreError) -> Value
) async throws(Problem) -> Value {
    do {
        return try await question()
    } catch {
        throw Problem(error)
    }
}
