package import HTTPSemantics
package import Mapping
package import Proxy
package import Recording
import Settings
package import Store

/// What the admin side needs of the daemon around it.
package protocol AdminContext: Sendable {
    var store: ObjectStore { get }
    var modes: ModeSwitch { get }
    var metrics: Metrics { get }
    /// Larder's version, such as `0.2.0`.
    var version: String { get }
    var readiness: Readiness { get }
    /// The models that the config declares, by upstream.
    var models: [String: Models] { get }
    /// The open streams of changes; nil where there is no loop for them.
    var changeStreams: ChangeStreams? { get }
    /// The last requests.
    var requests: RequestLog { get }
    /// The open streams of requests; nil where there is no loop for them.
    var requestStreams: RequestStreams? { get }
    /// The upstreams of the config, in its order.
    var origins: [UpstreamOrigin] { get }
    /// What the daemon answers from; nil where it replays nothing.
    var replayer: Replayer? { get }
    /// The recordings that are begun and ended while it runs; nil where it is for one recording.
    var recordings: Recordings? { get }

    /// Copies the store and takes copies over; nil where there is none to copy.
    var copies: StoreCopies? { get }

    /// The dashboards that are logged in.
    var logins: DashboardLogins { get }
    /// What has gone through lately.
    var traffic: TrafficHistory { get }
    /// The URL of the dashboard; nil where the admin side has no address that a browser can open.
    var dashboardURL: String? { get }

    /// Figures of the store and the memory tier; read at each scrape.
    func figures() async throws(StoreError) -> StoreFigures

    /// The routes with this path in the config, of every upstream that has one.
    func routes(spelled path: String) -> [RouteFilter]

    /// Removes what a filter matches from the store and from memory, and keeps fetches that have begun from bringing it back.
    ///
    /// A dry run only counts.
    func clean(
        _ filter: CleanFilter,
        dryRun: Bool,
        progress: @escaping CleanProgress
    ) async throws(StoreError) -> CleanResult

    /// A stored document in one view; nil when it is gone.
    func inspect(_ document: DocumentID, in view: View) async throws(StoreError) -> ShownDocument?

    /// What is stored for a URL, and what a request for it would get; changes nothing.
    func explain(_ question: ExplainQuestion) async throws(ProblemDocument) -> Explanation
}

extension AdminContext {
    package var replayer: Replayer? { nil }
    package var recordings: Recordings? { nil }
    package var copies: StoreCopies? { nil }

    /// How each upstream does now.
    var upstreamStates: [UpstreamsResponse.Upstream] {
        let now = Int64(ProcessFigures.wallClock() * 1_000_000)
        let known = Dictionary(metrics.allUpstreams.map { ($0.name, $0.metrics.health) }) { first, _ in first }
        return origins.map {
            UpstreamsResponse.Upstream(name: $0.name, origin: $0.url, known[$0.name] ?? UpstreamHealth(), at: now)
        }
    }
}

/// An upstream of the config, for people and monitors.
package struct UpstreamOrigin: Sendable {
    package let name: String
    package let url: String
    /// The paths of its routes, in the order of the config.
    let routes: [String]

    package init(name: String, url: String, routes: [String]) {
        (self.name, self.url, self.routes) = (name, url, routes)
    }
}

/// Whether the daemon can answer requests.
package enum Readiness: Sendable, Equatable {
    case ready
    /// Not yet, or no longer; the reason is a sentence for people.
    case notReady(String)
}

/// One route as a condition on documents.
package struct RouteFilter: Sendable {
    /// The upstream that the route belongs to.
    package let upstream: String
    /// Whether the route covers this path and query, in the form in which the store has them.
    let covers: @Sendable (String) -> Bool

    package init(upstream: String, covers: @escaping @Sendable (String) -> Bool) {
        self.upstream = upstream
        self.covers = covers
    }
}

/// The names that a request may use, and the complaint about one that does not exist.
extension AdminContext {
    /// The names of all models that the config declares, sorted.
    var modelNames: [String] {
        Set(models.values.flatMap { $0.declarations.map(\.name) }).sorted()
    }

    /// The complaint about a model that the config does not declare; nil if it does.
    func unknownModel(_ name: String) -> String? {
        let known = modelNames
        if known.contains(name) { return nil }
        let list = known.isEmpty ? "the config declares none" : "the config declares \(known.joined(separator: ", "))"
        return Self.complaint("no model is named", name, known, list)
    }

    /// The complaint about an upstream that neither config nor store has; nil if one of them does.
    func unknownUpstream(_ name: String) async throws(ProblemDocument) -> String? {
        if models[name] != nil { return nil }
        let stored = try await asked { () throws(StoreError) in try await store.ownerNames().upstreams }
        if stored.contains(name) { return nil }
        let known = models.keys.sorted()
        let old = stored.filter { models[$0] == nil }
        let list =
            "the config has \(known.joined(separator: ", "))"
            + (old.isEmpty ? "" : ", and the store has data of \(old.joined(separator: ", "))")
        return Self.complaint("no upstream is named", name, known + old, list)
    }

    /// The complaint about a principal of which the store has nothing; nil if it has something.
    func unknownPrincipal(_ label: String) async throws(ProblemDocument) -> String? {
        if let complaint = PrincipalLabel.complaint(label) { return complaint }
        if try await asked({ () throws(StoreError) in try await store.hasPrincipal(label) }) { return nil }
        let names = try await asked { () throws(StoreError) in try await store.ownerNames() }
        let more = names.areAllPrincipals ? "" : " and others"
        return "no principal has the label \(label): the store knows \(names.principals.joined(separator: ", "))\(more)"
    }

    /// Fails for an unknown upstream or principal in a request's query: an empty list would hide that the name is wrong.
    func checkOwnership(of request: AdminRequest) async throws(ProblemDocument) {
        try await checkOwnership(upstream: request.value("upstream"), principal: request.value("principal"))
    }

    func checkOwnership(upstream: String?, principal: String?) async throws(ProblemDocument) {
        if let upstream, let complaint = try await unknownUpstream(upstream) { throw .badRequest(complaint) }
        if let principal, let complaint = try await unknownPrincipal(principal) { throw .badRequest(complaint) }
    }

    private static func complaint(_ what: String, _ name: String, _ known: [String], _ list: String) -> String {
        let meant = Suggestion.nearest(to: name, among: known).map { "; did you mean \($0)?" } ?? ""
        return "\(what) \"\(name)\": \(list)\(meant)"
    }
}

/// Names of principals, which reveal nothing about the credential.
enum PrincipalLabel {
    /// What is wrong with a text that cannot be a label; nil if it can be one.
    static func complaint(_ text: String) -> String? {
        if text == "anonymous" { return nil }
        let isLabel =
            text.hasPrefix("p-") && text.utf8.count == 10
            && text.utf8.dropFirst(2).allSatisfy { $0 &- 0x30 < 10 || $0 &- 0x61 < 6 }
        return isLabel
            ? nil : "\"\(text)\" is not a principal's label: labels are anonymous, or p- and eight hexadecimal digits"
    }
}

/// Finds objects by what people call them: by identity, or by the value of one of their model's keys.
///
/// The store has an index of keys. It misses objects that were stored before their model had the key; these are found by
/// reading every object of the model, page by page. That takes seconds in a store of a million objects.
struct ObjectLookup: Sendable {
    private static let pageSize = 1000

    let store: ObjectStore
    /// By upstream.
    let models: [String: Models]

    /// The objects whose identity is `query.identity`; when there are none, those with a key of that value.
    func objects(_ query: ObjectQuery) async throws(StoreError) -> Page<ObjectRow> {
        var page = try await store.objects(query)
        guard page.rows.isEmpty, let value = query.identity, let model = query.model, hasKeys(model) else {
            return page
        }
        var query = query
        let limit = query.limit
        query.identity = nil
        query.key = value
        page = try await store.objects(query)
        guard page.rows.isEmpty else { return page }
        query.key = nil
        query.limit = Self.pageSize
        var found: [ObjectRow] = []
        while true {
            page = try await store.objects(query)
            for row in page.rows where keys(of: row).contains(value) {
                found.append(row)
                if found.count == limit {
                    page.next = row.id.rawValue
                    break
                }
            }
            query.after = page.next
            if page.next == nil || found.count == limit {
                page.rows = found
                return page
            }
        }
    }

    private func hasKeys(_ model: String) -> Bool {
        models.values.contains { $0.declarations.contains { $0.name == model && !$0.keys.isEmpty } }
    }

    /// The values of an object's keys, read from its newest known members.
    private func keys(of row: ObjectRow) -> [String] {
        models[row.upstream].map { $0.keys(in: row.json, of: row.model).map(\.value) } ?? []
    }
}

extension AdminContext {
    var lookup: ObjectLookup { ObjectLookup(store: store, models: models) }
}

extension AdminRequest {
    /// How its path names an object.
    var objectName: String { "\(captures["model"] ?? "") \(captures["id"] ?? "")" }

    /// Fails for an unknown model in its path, or an unknown upstream or principal in its query.
    func checkNames(in context: any AdminContext) async throws(ProblemDocument) {
        if let complaint = context.unknownModel(captures["model"] ?? "") { throw .notFound(complaint) }
        try await context.checkOwnership(of: self)
    }

    /// The objects that its path names, of every principal and context that the query allows, deleted ones included; fails
    /// if there is none.
    func namedObjects(limit: Int, in context: any AdminContext) async throws(ProblemDocument) -> [ObjectRow] {
        let query = ObjectQuery(
            model: captures["model"],
            identity: captures["id"],
            upstream: value("upstream"),
            principal: value("principal"),
            limit: limit
        )
        var rows = try await asked { () throws(StoreError) in try await context.lookup.objects(query).rows }
        // One principal's may be deleted and another's not. Where the identity is known, search by it and not by a key.
        var deleted = query
        deleted.areDeleted = true
        if let identity = rows.first?.identity { deleted.identity = identity }
        let (wanted, isKnown) = (deleted, !rows.isEmpty)
        if rows.count < limit {
            let gone = try await asked { () throws(StoreError) in
                isKnown ? try await context.store.objects(wanted) : try await context.lookup.objects(wanted)
            }
            rows += gone.rows.prefix(limit - rows.count)
        }
        guard rows.isEmpty else { return rows }
        try await checkNames(in: context)
        let (model, id) = (captures["model"] ?? "", captures["id"] ?? "")
        throw .notFound(
            "there is no \(model) with the identity or key \(id)" + (try await hint(for: query, in: context))
        )
    }

    /// What may have been meant by an unknown identity: the same one elsewhere, or one spelled alike.
    private func hint(for query: ObjectQuery, in context: any AdminContext) async throws(ProblemDocument) -> String {
        var wider = query
        wider.model = nil
        (wider.upstream, wider.principal) = (nil, nil)
        wider.limit = 1
        let elsewhere = try await asked { () throws(StoreError) in try await context.store.objects(wider).rows.first }
        if let elsewhere {
            let (upstream, principal) = (elsewhere.upstream, elsewhere.principal)
            return elsewhere.model == query.model
                ? "; \(upstream) has one for \(principal)" : "; a \(elsewhere.model) of \(upstream) is"
        }
        var all = query
        all.identity = nil
        all.limit = Paging.maximum
        let rows = try await asked { () throws(StoreError) in try await context.store.objects(all).rows }
        let names = rows.flatMap { row in
            [row.identity] + (context.models[row.upstream]?.keys(in: row.json, of: row.model).map(\.value) ?? [])
        }
        return Suggestion.nearest(to: query.identity ?? "", among: names).map { ": did you mean \($0)?" } ?? ""
    }
}
