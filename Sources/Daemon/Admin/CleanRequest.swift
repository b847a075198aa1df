import HTTPSemantics
import HTTPServer
import Proxy
import Settings
import Store
import Synchronization

/// A request to `POST /clean`: what to remove; conditions add up.
struct CleanRequest: Sendable, Equatable {
    /// Everything.
    ///
    /// Without it at least one condition is required, so that a forgotten one does not empty the store.
    var all = false
    var model: String?
    /// The identity of one object, or the value of one of its keys; wants `model`.
    var id: String?
    /// The `path` of a route, as the config has it.
    var route: String?
    var upstream: String?
    /// A principal's label.
    var principal: String?
    /// What was last observed longer ago than this.
    var olderThan: Duration?
    /// Count, remove nothing.
    var isDryRun = false

    /// The fields by the names that programs use, in query and body alike.
    enum Key: String, CaseIterable {
        case all, model, id, route, upstream, principal
        case olderThan = "older_than"
        case isDryRun = "dry_run"
    }

    static let parameters: [AdminRoute.Parameter] = Key.allCases.map { key in
        switch key {
        case .all: .init(name: key.rawValue, kind: .boolean, sentence: "Everything; excludes the other conditions.")
        case .model: .init(name: key.rawValue, sentence: "Objects of this model, and the documents that show them.")
        case .id: .init(name: key.rawValue, sentence: "One object, by its identity or one of its keys; wants a model.")
        case .route: .init(name: key.rawValue, sentence: "Documents of the route whose path the config spells so.")
        case .upstream: .init(name: key.rawValue, sentence: "What came from this upstream.")
        case .principal: .init(name: key.rawValue, sentence: "What belongs to the principal with this label.")
        case .olderThan: .init(name: key.rawValue, sentence: "What was last observed longer ago: 90s, 15m, 12h, 7d.")
        case .isDryRun: .init(name: key.rawValue, kind: .boolean, sentence: "Count only, remove nothing.")
        }
    }
}

extension CleanRequest {
    /// Reads the query's parameters and the members of the body; a condition may be in either.
    init(_ request: AdminRequest) throws(ProblemDocument) {
        let given = request.query.map { (name: $0.name, value: AdminScalar.text($0.value)) } + (try request.members())
        var seen: Set<Key> = []
        for (name, value) in given {
            guard let key = Key(rawValue: name) else {
                // Ignoring a condition would remove more than was asked for.
                let known = Key.allCases.map(\.rawValue).joined(separator: ", ")
                throw .badRequest("\(name) is not a condition of clean: use \(known)")
            }
            guard seen.insert(key).inserted else { throw .badRequest("\(name) is given twice") }
            if value != .null { try take(key, value) }
        }
        try check()
    }

    private mutating func take(_ key: Key, _ value: AdminScalar) throws(ProblemDocument) {
        func text() throws(ProblemDocument) -> String {
            guard let text = value.text else { throw .badRequest("\(key.rawValue) must be a text that is not empty") }
            return text
        }
        func flag() throws(ProblemDocument) -> Bool {
            guard let flag = value.flag else { throw .badRequest("\(key.rawValue) must be true or false") }
            return flag
        }
        switch key {
        case .all: all = try flag()
        case .isDryRun: isDryRun = try flag()
        case .model: model = try text()
        case .id: id = try text()
        case .route: route = try text()
        case .upstream: upstream = try text()
        case .principal: principal = try text()
        case .olderThan:
            let written = try text()
            do throws(Units.Misfit) {
                olderThan = try Units.duration(written)
            } catch {
                throw .badRequest("older_than: \"\(written)\" \(error.reason)")
            }
        }
    }

    private func check() throws(ProblemDocument) {
        let hasCondition = [model, id, route, upstream, principal].contains { $0 != nil } || olderThan != nil
        if all, hasCondition {
            throw .badRequest("all removes everything: leave it out, or leave the other conditions out")
        }
        if !all, !hasCondition {
            let known = Key.allCases.map(\.rawValue).joined(separator: ", ")
            throw .badRequest("say what to remove (\(known)); {\"all\": true} removes everything")
        }
        if id != nil, model == nil { throw .badRequest("an id belongs to a model: name the model, too") }
    }
}

extension CleanRequest {
    /// Removes what was asked for; the response is what was removed, or events while it is being removed.
    func response(to request: AdminRequest, in context: any AdminContext) async throws(ProblemDocument) -> AdminResponse
    {
        let filters = try await filters(in: context)
        guard request.fields.combined("accept")?.lowercased().contains(EventStreamText.mediaType) == true else {
            return .json(try await perform(filters, in: context) { _ in true })
        }
        var response = AdminResponse(fields: Fields([Field("Content-Type", EventStreamText.mediaType)]))
        response.stream = { reply, fields in
            reply.start(status: 200, fields: fields, framing: .chunked)
            let events = CleanEvents(reply)
            Task {
                do throws(ProblemDocument) {
                    events.end(
                        "done",
                        AdminJSON.encode(try await perform(filters, in: context) { events.progress($0) })
                    )
                } catch {
                    events.end("error", error.bytes)
                }
            }
        }
        return response
    }

    /// Removes what was asked for.
    private func perform(
        _ filters: [CleanFilter],
        in context: any AdminContext,
        progress: @escaping CleanProgress
    ) async throws(ProblemDocument) -> CleanResponse {
        var total: CleanResult?
        for filter in filters {
            let before = total?.removed
            let result = try await asked { () throws(StoreError) in
                try await context.clean(filter, dryRun: isDryRun) { count in
                    progress(before.map { $0.adding(count) } ?? count)
                }
            }
            total = total?.adding(result) ?? result
            if result.isStopped { break }
        }
        guard let total else { preconditionFailure("a clean has a filter") }
        return CleanResponse(total, isDryRun: isDryRun)
    }

    /// The store's filters that together make this request.
    private func filters(in context: any AdminContext) async throws(ProblemDocument) -> [CleanFilter] {
        try await checkNames(in: context)
        var filter = CleanFilter(
            model: model,
            identity: id,
            upstream: upstream,
            principal: principal,
            olderThan: olderThan.map(microseconds)
        )
        var filters = [filter]
        if let route {
            let routes = context.routes(spelled: route).filter { upstream == nil || $0.upstream == upstream }
            guard !routes.isEmpty else {
                throw .badRequest("the config has no route \(route)" + (upstream.map { " under \($0)" } ?? ""))
            }
            filters = routes.map { found -> CleanFilter in
                filter.upstream = found.upstream
                filter.url = found.covers
                return filter
            }
        }
        return try await named(filters, in: context)
    }

    /// Fails for names that neither config nor store know: "nothing was removed" would hide the mistake.
    ///
    /// Of a principal only the form is checked, so that a clean can be repeated.
    private func checkNames(in context: any AdminContext) async throws(ProblemDocument) {
        if let upstream, let complaint = try await context.unknownUpstream(upstream) { throw .badRequest(complaint) }
        if let principal, let complaint = PrincipalLabel.complaint(principal) { throw .badRequest(complaint) }
        guard let model, let complaint = context.unknownModel(model) else { return }
        let stored = try await asked { () throws(StoreError) in try await context.store.count().models }
        if stored[model] == nil { throw .badRequest(complaint) }
    }

    /// Replaces the value of a key by the identities of the objects that have it.
    private func named(_ filters: [CleanFilter], in context: any AdminContext) async throws(ProblemDocument)
        -> [CleanFilter]
    {
        guard let id else { return filters }
        let query = ObjectQuery(
            model: model,
            identity: id,
            upstream: upstream,
            principal: principal,
            limit: Paging.maximum
        )
        let found = try await asked { () throws(StoreError) in try await context.lookup.objects(query).rows }
        guard !found.isEmpty, !found.contains(where: { $0.identity == id }) else { return filters }
        // One key may name different objects of two upstreams, or of two principals; their contexts are cleaned together.
        var seen: Set<[String]> = []
        let owners = found.filter { seen.insert([$0.upstream, $0.principal, $0.identity]).inserted }
        return filters.flatMap { filter in
            owners.filter { filter.upstream == nil || $0.upstream == filter.upstream }.map { row in
                var named = filter
                named.identity = row.identity
                named.upstream = row.upstream
                named.principal = row.principal
                return named
            }
        }
    }
}

extension CleanResult {
    /// The two as one; its bytes are gone only if both's are.
    fileprivate func adding(_ other: CleanResult) -> CleanResult {
        var sum = self
        sum.removed = removed.adding(other.removed)
        sum.unshown += other.unshown
        sum.isStopped = sum.isStopped || other.isStopped
        if erasure != .pending { sum.erasure = other.erasure }
        return sum
    }
}

extension StoreCount {
    fileprivate func adding(_ other: StoreCount) -> StoreCount {
        var sum = self
        sum.objects += other.objects
        sum.documents += other.documents
        sum.bytes += other.bytes
        sum.models.merge(other.models, uniquingKeysWith: +)
        return sum
    }
}

private func microseconds(_ duration: Duration) -> Int64 {
    let (seconds, attoseconds) = duration.components
    return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
}

/// The events of one clean: `progress` once a second, with what is removed so far, then `done` or `error`.
///
/// Any thread. The events show a client that a long clean is not a hung daemon. A client that disconnects stops the clean;
/// what is removed by then stays removed.
final class CleanEvents: Sendable {
    private struct State {
        var number: Int64 = 0
        var next = ContinuousClock.now + CleanEvents.pace
        var isLeft = false
    }

    private static let pace: Duration = .seconds(1)

    private let reply: Reply
    private let state = Mutex(State())

    init(_ reply: Reply) {
        self.reply = reply
        reply.onDisconnect { [weak self] in self?.state.withLock { $0.isLeft = true } }
    }

    /// Sends how far the clean is, once a second; false if nobody is there any more.
    func progress(_ count: StoreCount) -> Bool {
        let (isDue, isLeft) = state.withLock { state in
            let isDue = state.next <= .now
            if isDue { state.next = .now + Self.pace }
            return (isDue, state.isLeft)
        }
        if isDue, !isLeft { write("progress", AdminJSON.encode(CountResponse(count))) }
        return !isLeft
    }

    /// Sends how it ended.
    func end(_ name: String, _ data: [UInt8]) {
        write(name, data)
        reply.finish()
    }

    private func write(_ name: String, _ data: [UInt8]) {
        let number = state.withLock { state in
            state.number += 1
            return state.number
        }
        reply.write(EventStreamText.event(name, id: number, data: data.onOneLine))
    }
}
