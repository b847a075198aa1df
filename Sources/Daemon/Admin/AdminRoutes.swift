import HTTPSemantics
import Mapping
import Proxy
import Settings
import Store

extension AdminRoute {
    /// Every endpoint, in the order of the OpenAPI document.
    static let all: [AdminRoute] =
        dashboard + monitoring + activity + contents + [changes] + control + copies + recordings

    private static let monitoring: [AdminRoute] = [
        AdminRoute(
            method: "GET",
            path: "/healthz",
            sentence: "Whether the process is alive.",
            access: .open,
            schema: StatusResponse.self,
            respond: { _, _ in .json(StatusResponse(status: "alive")) }
        ),
        AdminRoute(
            method: "GET",
            path: "/readyz",
            sentence: "Whether Larder serves requests: 503 with the reason while it starts or stops.",
            access: .open,
            schema: StatusResponse.self,
            respond: { _, context throws(ProblemDocument) in
                switch context.readiness {
                case .ready: return .json(StatusResponse(status: "ready"))
                case .notReady(let reason):
                    throw ProblemDocument(503, reason, fields: Fields([Field("Retry-After", "1")]))
                }
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/metrics",
            sentence: "The daemon's metrics, for Prometheus.",
            access: .open,
            mediaType: "text/plain",
            respond: { _, context throws(ProblemDocument) in
                let reading = Metric.Reading(
                    metrics: context.metrics,
                    store: try await asked { () throws(StoreError) in try await context.figures() },
                    process: .read(),
                    mode: context.modes.current,
                    version: context.version,
                    origins: context.origins
                )
                return .text(Array(PrometheusText.write(Metric.all, reading).utf8), type: PrometheusText.mediaType)
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/openapi.json",
            sentence: "This description of the admin side.",
            respond: { _, context in
                let document = OpenAPIDocument.describe(AdminRoute.all, version: context.version)
                return .text(document.bytes + [0x0A], type: "application/json")
            }
        ),
    ]

    private static let contents: [AdminRoute] = [
        AdminRoute(
            method: "GET",
            path: "/count",
            sentence: "How many objects and documents the store has, and their size.",
            schema: CountResponse.self,
            respond: { _, context throws(ProblemDocument) in
                .json(CountResponse(try await asked { () throws(StoreError) in try await context.store.count() }))
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/objects/{model}",
            sentence:
                "The objects of a model at their newest known values. With search or sort, a page may be short, or even empty, and have a next.",
            query: ListQuestion.objectParameters + ObjectView.parameters + Paging.parameters + Ownership.parameters,
            schema: ObjectsResponse.self,
            respond: { request, context throws(ProblemDocument) in
                let view = try ObjectView(request)
                try view.check(request.captures["model"] ?? "", context.models)
                if let listed = try await ListQuestion.objects(request, view, in: context) { return .json(listed) }
                let page = try await objects(request, view, context)
                if page.rows.isEmpty { try await request.checkNames(in: context) }
                return .json(ObjectsResponse(objects: page.rows.map { .init($0) }, next: page.cursor))
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/objects/{model}/{id}",
            sentence:
                "The objects of a model with this identity, or with a key of this value: one per principal and context.",
            query: ObjectView.parameters + Paging.parameters + Ownership.parameters,
            schema: ObjectsResponse.self,
            respond: { request, context throws(ProblemDocument) in
                let view = try ObjectView(request)
                try view.check(request.captures["model"] ?? "", context.models)
                let page = try await objects(request, view, context)
                if page.rows.isEmpty {
                    let (model, id) = (request.captures["model"] ?? "", request.captures["id"] ?? "")
                    let deleted = try await objects(request, view, context, areDeleted: true)
                    if !deleted.rows.isEmpty {
                        throw ProblemDocument(
                            410,
                            "\(model) \(id) is deleted; `larder why \(model) \(id)` shows since when"
                        )
                    }
                    try await request.checkNames(in: context)
                    throw .notFound("there is no \(model) with the identity or key \(id)")
                }
                return .json(ObjectsResponse(objects: page.rows.map { .init($0) }, next: page.cursor))
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/objects/{model}/{id}/why",
            sentence:
                "Where each member of an object comes from, what it replaced, and which documents show it: one per principal and context.",
            query: WhyQuestion.parameters + Ownership.parameters,
            schema: WhyResponse.self,
            respond: { request, context throws(ProblemDocument) in
                .json(try await WhyQuestion(request).response(in: context))
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/objects/{model}/{id}/documents",
            sentence:
                "The documents that show an object, the newest first. A page may be short, or even empty, and have a next.",
            query: Paging.parameters + Ownership.parameters,
            schema: ShowingDocumentsResponse.self,
            respond: { request, context throws(ProblemDocument) in
                .json(try await ShowingQuestion(request).response(in: context))
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/documents",
            sentence:
                "The stored responses. With search or sort, a page may be short, or even empty, and have a next.",
            query: [
                Parameter(name: "url", sentence: "Only those whose path and query, as sent upstream, begin with this.")
            ] + ListQuestion.documentParameters
                + Paging.parameters + Ownership.parameters,
            schema: DocumentsResponse.self,
            respond: { request, context throws(ProblemDocument) in
                if let listed = try await ListQuestion.documents(request, in: context) { return .json(listed) }
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
                return .json(DocumentsResponse(documents: page.rows.map { .init($0) }, next: page.cursor))
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/documents/{id}",
            sentence: "One stored response as a client would get it: fields, body, and how fresh it is.",
            query: DocumentQuestion.parameters,
            schema: DocumentResponse.self,
            respond: { request, context throws(ProblemDocument) in
                .json(try await DocumentQuestion(request).response(in: context))
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/explain",
            sentence: "What is stored for a URL, how fresh it is and why, and what a request would get now.",
            query: ExplainQuestion.parameters,
            schema: Explanation.self,
            respond: { request, context throws(ProblemDocument) in
                .json(try await context.explain(try ExplainQuestion(request)))
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/warnings",
            sentence: "What did not fit the models and routes, the latest first.",
            query: Paging.parameters,
            schema: WarningsResponse.self,
            respond: { request, context throws(ProblemDocument) in
                let paging = try Paging(request)
                let page = try await asked { () throws(StoreError) in
                    try await context.store.warnings(limit: paging.limit, after: paging.after)
                }
                let declarations = context.models.values.flatMap(\.declarations)
                let rows = page.rows.map { row in
                    WarningsResponse.Warning(row) { model in declarations.first { $0.name == model }?.local ?? [] }
                }
                return .json(WarningsResponse(warnings: rows, next: page.cursor))
            }
        ),
    ]

    private static let control: [AdminRoute] = [
        AdminRoute(
            method: "POST",
            path: "/clean",
            sentence:
                "Removes what matches every condition given, for good, and responds with what it removed; with Accept: text/event-stream, as events: progress, then done or error. It stops when the client of the events disconnects.",
            query: CleanRequest.parameters,
            body: CleanRequest.parameters,
            schema: CleanResponse.self,
            respond: { request, context throws(ProblemDocument) in
                try await CleanRequest(request).response(to: request, in: context)
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/mode",
            sentence: "The mode the daemon is in.",
            schema: ModeResponse.self,
            respond: { _, context in .json(ModeResponse(mode: context.modes.current.rawValue)) }
        ),
        AdminRoute(
            method: "PUT",
            path: "/mode",
            sentence: "Changes the mode until it is changed again or the daemon restarts.",
            query: [modeParameter],
            body: [modeParameter],
            schema: ModeResponse.self,
            respond: { request, context throws(ProblemDocument) in
                var wanted = request.value("mode")
                for (name, value) in try request.members() {
                    guard name == "mode" else { throw .badRequest("\(name) is not a member of this body: use mode") }
                    guard wanted == nil else { throw .badRequest("mode is given twice") }
                    wanted = value.text
                }
                guard let mode = wanted.flatMap(Mode.init(rawValue:)) else {
                    throw .badRequest("mode must be one of \(Mode.allCases.map(\.rawValue).joined(separator: ", "))")
                }
                context.modes.set(mode)
                return .json(ModeResponse(mode: mode.rawValue))
            }
        ),
    ]

    private static let modeParameter = Parameter(
        name: "mode",
        sentence: "\(Mode.allCases.map(\.rawValue).joined(separator: " or "))."
    )

    private static func objects(
        _ request: AdminRequest,
        _ view: ObjectView,
        _ context: any AdminContext,
        areDeleted: Bool = false
    ) async throws(ProblemDocument) -> Page<ObjectRow> {
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

/// Asks the store, and turns its errors into problem documents.
func asked<Value: Sendable>(
    _ question: () async throws(StoreError) -> Value
) async throws(ProblemDocument) -> Value {
    do {
        return try await question()
    } catch {
        throw ProblemDocument(error)
    }
}
