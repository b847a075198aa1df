import HTTPSemantics
import HTTPServer
import Mapping
import Store

/// A request to `/changes`.
struct ChangeRequest: Sendable {
    /// Where to begin.
    enum Start: Sendable, Equatable {
        /// What happens from now on.
        case now
        /// All that is kept.
        case oldest
        /// After the change with this number, the last one that the client has seen; nil: it gave no valid number.
        case after(Int64?)
    }

    /// How the changes are sent.
    enum Form: Sendable, Equatable {
        /// As server-sent events, for as long as the client listens.
        case events
        /// As one JSON document with so many changes at most.
        case page(Int)
    }

    var start: Start
    var form: Form
    var filter: ChangeFilter
    /// Whether each object's members are wanted.
    var wantsValues = false

    static let parameters: [AdminRoute.Parameter] =
        [
            AdminRoute.Parameter(
                name: "since",
                kind: .integer,
                sentence: "Begin after this number; 0: with the oldest kept. `Last-Event-ID` overrides it."
            ),
            AdminRoute.Parameter(
                name: "values",
                kind: .boolean,
                sentence: "`true`: with each object's newest known members at the time of sending."
            ),
            AdminRoute.Parameter(
                name: "limit",
                kind: .integer,
                sentence: "With `Accept: application/json`: changes of a page, 1 to 1000; 100 by default."
            ),
        ] + ChangeFilter.parameters

    init(_ request: AdminRequest, _ context: any AdminContext) async throws(ProblemDocument) {
        filter = try await ChangeFilter(request, context)
        form = try Self.form(request)
        start = try Self.start(request)
        switch request.values("values").first {
        case nil, "false", "0": break
        case "true", "1", "": wantsValues = true
        case let other?: throw .badRequest("values is true or false; it was \"\(other)\"")
        }
    }

    private static func start(_ request: AdminRequest) throws(ProblemDocument) -> Start {
        var start = Start.now
        if let text = request.values("since").first {
            guard let number = Int64(text), number >= 0, text.utf8.allSatisfy({ $0 &- 0x30 < 10 }) else {
                throw .badRequest("since must be the number of a change, or 0 for the oldest kept; it was \"\(text)\"")
            }
            start = number == 0 ? .oldest : .after(number)
        }
        // A browser that reconnects requests the same URL, with the last number it saw in the field. It cannot correct
        // the field, so a value that is not a number counts as an unknown number.
        if let last = request.fields.combined("last-event-id"), !last.isEmpty {
            start = last == "0" ? .oldest : .after(Int64(last))
        }
        return start
    }

    /// Events, unless JSON is what the client wants.
    private static func form(_ request: AdminRequest) throws(ProblemDocument) -> Form {
        let ranges = Set(
            (request.fields.combined("accept") ?? "*/*").split(separator: ",").map { range in
                range.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
            }
        )
        let limit = request.values("limit").first
        if ranges.contains(EventStreamText.mediaType) || !ranges.contains("application/json") {
            guard !ranges.isDisjoint(with: [EventStreamText.mediaType, "text/*", "*/*"]) else {
                throw ProblemDocument(
                    406,
                    "changes come as \(EventStreamText.mediaType), or as a page of application/json"
                )
            }
            guard limit == nil else {
                throw .badRequest("limit goes with Accept: application/json; events have no end")
            }
            return .events
        }
        guard let limit else { return .page(100) }
        guard let number = Int(limit), (1...1000).contains(number) else {
            throw .badRequest("limit must be a number from 1 to 1000")
        }
        return .page(number)
    }
}

/// Which changes a client wants; conditions of different names add up, those of one name are alternatives.
struct ChangeFilter: Sendable, Equatable {
    /// Names of models, concrete ones of clusters and bases alike; empty: all.
    var models: Set<String> = []
    /// Identities; empty: all.
    var ids: Set<String> = []
    /// Names of upstreams; empty: all.
    var upstreams: Set<String> = []
    /// Labels of principals; empty: all.
    var principals: Set<String> = []

    var isEverything: Bool { models.isEmpty && ids.isEmpty && upstreams.isEmpty && principals.isEmpty }

    func accepts(_ change: ObjectChange) -> Bool {
        (models.isEmpty || change.models.contains { models.contains($0) })
            && (ids.isEmpty || ids.contains(change.identity))
            && (upstreams.isEmpty || upstreams.contains(change.upstream))
            && (principals.isEmpty || principals.contains(change.principal))
    }
}

extension ChangeFilter {
    static let parameters = [
        AdminRoute.Parameter(
            name: "model",
            sentence:
                "Only objects of this model: for a cluster's base all of its objects, for a concrete model those known to be of it.",
            isRepeatable: true
        ),
        AdminRoute.Parameter(
            name: "id",
            sentence: "Only objects with this identity, as `/objects` shows it.",
            isRepeatable: true
        ),
        AdminRoute.Parameter(name: "upstream", sentence: "Only objects of this upstream.", isRepeatable: true),
        AdminRoute.Parameter(
            name: "principal",
            sentence: "Only objects of the principal with this label, such as `anonymous`.",
            isRepeatable: true
        ),
    ]

    /// Reads the conditions; one that can never be met is refused, as the silence would hide the mistake.
    ///
    /// A principal may be named before its first request.
    init(_ request: AdminRequest, _ context: any AdminContext) async throws(ProblemDocument) {
        for name in request.values("model") {
            if let complaint = context.unknownModel(name) { throw .badRequest(complaint) }
            models.insert(name)
        }
        for name in request.values("upstream") {
            if let complaint = try await context.unknownUpstream(name) { throw .badRequest(complaint) }
            upstreams.insert(name)
        }
        for label in request.values("principal") {
            if let complaint = PrincipalLabel.complaint(label) { throw .badRequest(complaint) }
            principals.insert(label)
        }
        for id in request.values("id") {
            guard !id.isEmpty else { throw .badRequest("id is empty: give an object's identity") }
            ids.insert(id)
        }
    }
}

extension AdminRoute {
    /// Changes of objects, as a stream of events or page by page.
    static let changes = AdminRoute(
        method: "GET",
        path: "/changes",
        sentence:
            "Changes of objects as server-sent events, from now on or from a number on; with Accept: application/json, a page of them.",
        query: ChangeRequest.parameters,
        mediaType: EventStreamText.mediaType,
        schema: ChangesResponse.self,
        respond: { request, context throws(ProblemDocument) in
            let wanted = try await ChangeRequest(request, context)
            let isKept = try await asked { () throws(StoreError) in
                try await context.store.changes(after: context.store.sequence, limit: 1) != nil
            }
            guard isKept else { throw .notFound("no changes are kept: the config says `store: { changes: 0 }`") }
            switch wanted.form {
            case .page(let limit): return .json(try await page(wanted, limit: limit, context.store))
            case .events:
                guard let streams = context.changeStreams else {
                    throw ProblemDocument(503, "no stream can be opened here")
                }
                var response = AdminResponse(fields: Fields([Field("Content-Type", EventStreamText.mediaType)]))
                response.stream = { reply, fields in streams.open(wanted, reply, fields: fields) }
                return response
            }
        }
    )

    /// Reads this often at most for one page, when what is read is not what is wanted.
    private static let readsPerPage = 16

    private static func page(_ wanted: ChangeRequest, limit: Int, _ store: ObjectStore) async throws(ProblemDocument)
        -> ChangesResponse
    {
        var resets: [ChangeReset] = []
        let start: Int64
        switch wanted.start {
        case .now: start = store.sequence
        case .oldest: start = 0
        case .after(let number):
            let known = number.flatMap { store.sequence(fromPublic: $0) }
            start = known ?? store.sequence
            if known == nil { resets.append(.unknown(upTo: store.publicSequence(start))) }
        }
        var (position, rows, isLast): (Int64, [ChangeResponse], Bool) = (start, [], false)
        for _ in 0..<readsPerPage where rows.count < limit && !isLast {
            let (after, count) = (position, limit - rows.count)
            let page = try await asked { () throws(StoreError) in
                try await store.changes(after: after, limit: count, values: wanted.wantsValues)
            }
            guard let page else { throw .notFound("no changes are kept") }
            if after < page.floor, wanted.start != .oldest {
                resets.append(.evicted(after: store.publicSequence(after), upTo: store.publicSequence(page.floor)))
            }
            if page.erased > 0 {
                let (after, end) = (store.publicSequence(max(after, page.floor)), store.publicSequence(page.end))
                resets.append(.cleaned(page.erased, after: after, upTo: end))
            }
            rows += page.changes.filter { wanted.filter.accepts($0) }.map {
                ChangeResponse($0, number: store.publicSequence($0.sequence), withValues: wanted.wantsValues)
            }
            (position, isLast) = (page.end, page.isLast)
        }
        return ChangesResponse(
            changes: rows,
            resets: resets.isEmpty ? nil : resets,
            next: String(store.publicSequence(position)),
            more: !isLast
        )
    }
}
