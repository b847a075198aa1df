import HTTPSemantics
import HTTPServer
import Proxy
import Settings
import Store
import Synchronization

/// A request to `POST /clean`: what to remove; all conditions must hold.
struct CleanRequest: Sendable, Equatable {
    /// Everything; else a condition is required, so that a forgotten one does not empty the store.
    var all = false
    var model: String?
    /// The identity of one object, or the value of one of its keys; requires `model`.
    var id: String?
    var route: String?
    /// Path and query of documents, as in listings, or a URL of Larder's or the upstream's (`StoredURL`).
    var url: String?
    var upstream: String?
    var principal: String?
    /// Removes only what was last observed longer ago than this, in microseconds.
    var olderThan: Int64?
    var isDryRun = false
    /// Has the other machines of the fleet do the same.
    var isForFleet = false

    /// The conditions by the names that programs use, in query and body alike.
    static let parameters = AdminRoute.Parameter.documented([
        "Everything; excludes the other conditions.": .init("all", .boolean),
        "Objects of this model, and the documents that show them.": .init("model"),
        "One object, by its identity or one of its keys; needs a model.": .init("id"),
        "Documents of the route whose path the config spells so.": .init("route"),
        "Documents with this path and query, as /documents shows it, or with this URL; with `*` at its end, all that begin with it.":
            .init("url"), "What came from this upstream.": .init("upstream"),
        "What belongs to the principal with this label.": .init("principal"),
        "What was last observed longer ago: 90s, 15m, 12h, 7d.": .init("older_than"),
        "Count only, remove nothing.": .init("dry_run", .boolean),
        "Also on the other machines of the fleet.": .init("fleet", .boolean),
    ])

    private static let texts: [String: any WritableKeyPath<CleanRequest, String?> & Sendable] = [
        "model": \.model, "id": \.id, "route": \.route, "url": \.url, "upstream": \.upstream, "principal": \.principal,
    ]
}

extension CleanRequest {
    init(_ request: AdminRequest) throws {
        let given = request.query.map { (name: $0.name, value: AdminScalar.text($0.value)) } + (try request.members())
        let known = Self.parameters.map(\.name)
        var seen: Set<String> = []
        for (name, value) in given {
            guard known.contains(name) else {
                // Ignoring a condition would remove more than was wanted.
                let list = known.joined(separator: ", ")
                throw ProblemDocument.badRequest("\(name) is not a condition of clean: use \(list)")
            }
            guard seen.insert(name).inserted else { throw ProblemDocument.badRequest("\(name) is given twice") }
            if value != .null { try take(name, value) }
        }
        try check()
    }

    private mutating func take(_ name: String, _ value: AdminScalar) throws {
        func text() throws -> String {
            if let text = value.text { return text }
            throw ProblemDocument.badRequest("\(name) must be a text that is not empty")
        }
        func flag() throws -> Bool {
            if let flag = value.flag { return flag }
            throw ProblemDocument.badRequest("\(name) must be true or false")
        }
        switch name {
        case "all": all = try flag()
        case "dry_run": isDryRun = try flag()
        case "fleet": isForFleet = try flag()
        case "older_than": olderThan = try AdminRequest.microseconds(try text(), of: name)
        default:
            guard let path = Self.texts[name] else { preconditionFailure("no place for the condition \(name)") }
            self[keyPath: path] = try text()
        }
    }

    private func check() throws {
        let hasCondition = [model, id, route, url, upstream, principal].contains { $0 != nil } || olderThan != nil
        if all, hasCondition {
            throw ProblemDocument.badRequest("all removes everything: leave it out, or leave the other conditions out")
        }
        if !all, !hasCondition {
            let known = Self.parameters.map(\.name).joined(separator: ", ")
            throw ProblemDocument.badRequest("say what to remove (\(known)); {\"all\": true} removes everything")
        }
        if route != nil, url != nil { throw ProblemDocument.badRequest("a url has one route: leave the route out") }
        if id != nil, model == nil { throw ProblemDocument.badRequest("an id belongs to a model: name the model, too") }
    }
}

extension AdminRoute {
    static let clean: [AdminRoute] = documented([
        "Removes what matches every condition given, for good, and responds with what it removed; with Accept: text/event-stream, as events: progress, then done or error. It stops when the client of the events disconnects.":
            AdminRoute(
                "POST /clean",
                query: CleanRequest.parameters,
                body: CleanRequest.parameters,
                schema: CleanResponse.self
            ) { request, daemon in try await CleanRequest(request).response(to: request, in: daemon) }
    ])
}

extension CleanRequest {
    func response(to request: AdminRequest, in daemon: DaemonCore) async throws -> AdminResponse {
        let read = try url.map { try StoredURL($0, of: upstream, in: daemon) }
        let filters = try await filters(read, in: daemon)
        if isForFleet, !daemon.proxy.isInFleet {
            throw ProblemDocument.badRequest(
                "this Larder belongs to no fleet: leave fleet out, or write fleet: in the config"
            )
        }
        guard request.acceptsEvents else { return .json(try await perform(filters, read, in: daemon) { _ in true }) }
        return .events { reply, fields in
            reply.start(status: 200, fields: fields, framing: .chunked)
            let events = CleanEvents(reply)
            Task {
                do {
                    events.end(
                        "done",
                        AdminJSON.encode(try await perform(filters, read, in: daemon) { events.progress($0) })
                    )
                } catch { events.end("error", ProblemDocument(error).bytes) }
            }
        }
    }

    private func perform(
        _ filters: [CleanFilter],
        _ read: StoredURL?,
        in daemon: DaemonCore,
        progress: @escaping CleanProgress
    ) async throws -> CleanResponse {
        var total: CleanResult?
        for filter in filters {
            let before = total?.removed
            let result = try await daemon.proxy.clean(filter, dryRun: isDryRun) { count in
                guard var sum = before else { return progress(count) }
                sum += count
                return progress(sum)
            }
            total = total?.adding(result) ?? result
            if result.isStopped { break }
        }
        guard let total else { preconditionFailure("a clean has a filter") }
        if total.removed.documents == 0 { try read?.checkIsServed() }
        var response = CleanResponse(total, isDryRun: isDryRun)
        if isForFleet, !isDryRun { response.fleet = await announce(filters, read, in: daemon) }
        response.url = read?.shown
        return response
    }

    /// Has the other machines of the fleet do the same; returns the names of the upstreams that they share.
    private func announce(_ filters: [CleanFilter], _ read: StoredURL?, in daemon: DaemonCore) async -> [String] {
        var names: [String] = []
        for filter in filters {
            var clean = SharedClean()
            (clean.model, clean.identity, clean.principal) = (model, filter.identity, filter.principal)
            clean.url = read.map { $0.url + ($0.isBeginning ? "*" : "") }
            (clean.route, clean.olderThan) = (route, olderThan)
            names += await daemon.proxy.announce(clean, of: filter.upstream)
        }
        return Array(Set(names)).sorted()
    }

    private func filters(_ read: StoredURL?, in daemon: DaemonCore) async throws -> [CleanFilter] {
        try await checkNames(in: daemon)
        let key = { daemon.store.upstreamKey(labelled: $0) }
        var filter = CleanFilter(
            model: model,
            identity: id,
            upstream: key(upstream),
            principal: principal,
            olderThan: olderThan
        )
        if let read { (filter.upstream, filter.url) = (key(read.upstream), read.covers) }
        guard let route else { return try await named([filter], in: daemon) }
        let filters = try daemon.routes(spelled: route, of: upstream).map { found -> CleanFilter in
            (filter.upstream, filter.url) = (key(found.upstream), found.covers)
            return filter
        }
        return try await named(filters, in: daemon)
    }

    /// Fails for names that neither config nor store know: "nothing was removed" would hide the mistake.
    ///
    /// Only the form of a principal is checked, so that a clean can be repeated.
    private func checkNames(in daemon: DaemonCore) async throws {
        if let upstream { try await daemon.checkUpstream(upstream) }
        if let principal { try PrincipalLabel.check(principal) }
        guard let model, let complaint = daemon.complaint(aboutModel: model) else { return }
        if try await daemon.store.count().models[model] == nil { throw ProblemDocument.badRequest(complaint) }
    }

    /// Replaces the value of a key by the identities of the objects that have it.
    private func named(_ filters: [CleanFilter], in daemon: DaemonCore) async throws -> [CleanFilter] {
        guard let id else { return filters }
        let query = ObjectQuery(
            model: model,
            identity: id,
            upstream: upstream,
            principal: principal,
            limit: Paging.maximum
        )
        let found = try await daemon.objects(named: query).rows
        guard !found.isEmpty, !found.contains(where: { $0.identity == id }) else { return filters }
        // One key may name different objects of two upstreams or principals; their contexts are cleaned together.
        var seen: Set<[String]> = []
        let owners = found.filter { seen.insert([$0.upstream, $0.principal, $0.identity]).inserted }
        return filters.flatMap { filter in
            owners.filter { filter.upstream == nil || $0.upstreamKey == filter.upstream }.map { row in
                var named = filter
                (named.identity, named.upstream, named.principal) = (row.identity, row.upstreamKey, row.principal)
                return named
            }
        }
    }
}

extension CleanResult {
    /// The sum of both results; its bytes count as erased only if both's do.
    fileprivate func adding(_ other: CleanResult) -> CleanResult {
        var sum = self
        sum.removed += other.removed
        sum.unshown += other.unshown
        sum.isStopped = sum.isStopped || other.isStopped
        if erasure != .pending { sum.erasure = other.erasure }
        return sum
    }
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

    /// Sends the progress of the clean, once a second; returns false if the client is gone.
    func progress(_ count: StoreCount) -> Bool {
        let (isDue, isLeft) = state.withLock { state in
            let isDue = state.next <= .now
            if isDue { state.next = .now + Self.pace }
            return (isDue, state.isLeft)
        }
        if isDue, !isLeft { write("progress", AdminJSON.encode(count)) }
        return !isLeft
    }

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
