import HTTPSemantics
import HTTPServer
import Mapping
import Proxy
import Settings
import Store

struct ChangeRequest: Sendable {
    enum Start: Sendable, Equatable {
        case now
        case oldest
        /// Changes after this number, the last that the client has seen; nil if it gave no valid number.
        case after(Int64?)

        /// The commit sequence after which the changes begin, and what a client is sent whose number is not known.
        func position(in store: ObjectStore) -> (CommitNumber, ChangeReset?) {
            let now = store.sequence
            switch self {
            case .now: return (now, nil)
            case .oldest: return (.zero, nil)
            case .after(let number):
                if let known = number.flatMap({ store.sequence(fromPublic: $0) }) { return (known, nil) }
                return (now, .unknown(upTo: store.publicSequence(now)))
            }
        }
    }

    enum Form: Sendable, Equatable {
        /// Server-sent events, until the client leaves.
        case events
        /// One JSON document with at most this many changes.
        case page(Int)
    }

    var start: Start
    var form: Form
    var filter: ChangeFilter
    var wantsValues = false

    static let parameters: [AdminRoute.Parameter] =
        AdminRoute.Parameter.documented([
            "Begin after this number; 0: with the oldest kept. `Last-Event-ID` overrides it.": .init("since", .integer),
            "`true`: with each object's newest known members at the time of sending.": .init("values", .boolean),
            "With `Accept: application/json`: changes of a page, 1 to 1000; 100 by default.": .init("limit", .integer),
        ]) + ChangeFilter.parameters

    init(_ request: AdminRequest, _ daemon: DaemonCore) async throws {
        filter = try await ChangeFilter(request, daemon)
        form = try Self.form(request)
        start = try Self.start(request)
        switch request.values("values").first {
        case nil, "false", "0": break
        case "true", "1", "": wantsValues = true
        case let other?: throw ProblemDocument.badRequest("values is true or false; it was \"\(other)\"")
        }
    }

    private static func start(_ request: AdminRequest) throws -> Start {
        var start = Start.now
        if let text = request.values("since").first {
            guard let number = Int64(text), number >= 0, text.utf8.allSatisfy({ $0 &- 0x30 < 10 }) else {
                throw ProblemDocument.badRequest(
                    "since must be the number of a change, or 0 for the oldest kept; it was \"\(text)\""
                )
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

    private static func form(_ request: AdminRequest) throws -> Form {
        let ranges = Set(
            (request.fields.combined("accept") ?? "*/*").split(separator: ",").map { range in
                range.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
            }
        )
        let limit = request.values("limit").first
        if ranges.contains(EventStreamText.mediaType) || !ranges.contains("application/json") {
            guard !ranges.isDisjoint(with: [EventStreamText.mediaType, "text/*", "*/*"]) else {
                let types = "\(EventStreamText.mediaType), or as a page of application/json"
                throw ProblemDocument(406, "changes come as \(types)")
            }
            guard limit == nil else {
                throw ProblemDocument.badRequest("limit goes with Accept: application/json; events have no end")
            }
            return .events
        }
        guard let limit else { return .page(100) }
        guard let number = Int(limit), (1...1000).contains(number) else {
            throw ProblemDocument.badRequest("limit must be a number from 1 to 1000")
        }
        return .page(number)
    }
}

/// The changes that a client wants: all names must fit, one of the values of each; an empty set fits all.
struct ChangeFilter: Sendable, Equatable {
    /// Both concrete ones of clusters and bases.
    var models: Set<String> = []
    var ids: Set<String> = []
    var upstreams: Set<String> = []
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
    static let parameters: [AdminRoute.Parameter] = AdminRoute.Parameter.documented([
        "Only objects of this model: for a cluster's base all of its objects, for a concrete model those known to be of it.":
            .init("model", isRepeatable: true),
        "Only objects with this identity, as `/objects` shows it.": .init("id", isRepeatable: true),
        "Only objects of this upstream.": .init("upstream", isRepeatable: true),
        "Only objects of the principal with this label, such as `anonymous`.": .init("principal", isRepeatable: true),
    ])

    /// Reads the conditions; refuses one that can never hold, because silence would hide the mistake.
    ///
    /// A principal may be named before its first request.
    init(_ request: AdminRequest, _ daemon: DaemonCore) async throws {
        models = Set(request.values("model"))
        upstreams = Set(request.values("upstream"))
        principals = Set(request.values("principal"))
        ids = Set(request.values("id"))
        for name in request.values("model") {
            if let complaint = daemon.complaint(aboutModel: name) { throw ProblemDocument.badRequest(complaint) }
        }
        for name in request.values("upstream") { try await daemon.checkUpstream(name) }
        for label in request.values("principal") { try PrincipalLabel.check(label) }
        if ids.contains("") { throw ProblemDocument.badRequest("id is empty: give an object's identity") }
    }
}

extension AdminRoute {
    static let following = documented([
        "Changes of objects as server-sent events, from now on or from a number on; with Accept: application/json, a page of them.":
            AdminRoute(
                "GET /changes",
                query: ChangeRequest.parameters,
                mediaType: EventStreamText.mediaType,
                schema: ChangesResponse.self
            ) { request, daemon in
                let wanted = try await ChangeRequest(request, daemon)
                guard try await daemon.store.changes(after: daemon.store.sequence, limit: 1) != nil else {
                    throw ProblemDocument.notFound("no changes are kept: the config says `store: { changes: 0 }`")
                }
                switch wanted.form {
                case .page(let limit): return .json(try await page(wanted, limit: limit, daemon.store))
                case .events:
                    return .events { reply, fields in daemon.changeStreams.open(wanted, reply, fields: fields) }
                }
            }
    ])

    private static let readsPerPage = 16

    private static func page(_ wanted: ChangeRequest, limit: Int, _ store: ObjectStore) async throws -> ChangesResponse
    {
        let (start, reset) = wanted.start.position(in: store)
        var resets = reset.map { [$0] } ?? []
        var (position, rows, isLast): (CommitNumber, [ChangeResponse], Bool) = (start, [], false)
        for _ in 0..<readsPerPage where rows.count < limit && !isLast {
            let (after, count) = (position, limit - rows.count)
            let page = try await store.changes(after: after, limit: count, values: wanted.wantsValues)
            guard let page else { throw ProblemDocument.notFound("no changes are kept") }
            if after < page.floor, wanted.start != .oldest {
                resets.append(.evicted(after: after, upTo: page.floor, in: store))
            }
            if page.erased > 0 {
                let reset = ChangeReset.cleaned(
                    page.erased,
                    after: max(after, page.floor),
                    upTo: page.end,
                    isSelection: !wanted.filter.isEverything,
                    in: store
                )
                resets.append(reset)
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

/// `GET /changes` as a page.
package struct ChangesResponse: AdminBody {
    static let sentences = [
        "changes": "The oldest first.", "resets": "What is missing between them, if anything is.",
        "next": "What to give as `since` to go on.", "more": "Whether there are more changes now.",
    ]
    package var changes: [ChangeResponse]
    package var resets: [ChangeReset]?
    package var next: String
    package var more: Bool
}

/// One change of an object; also the data of an event.
package struct ChangeResponse: AdminBody {
    static let sentences = ownerSentences.merging([
        "sequence": "The change's number.", "kind": "`created`, `changed`, `deleted` or `unknown`.",
        "model": "The model's name.", "id": "The identity, as in `/objects`.",
        "time": "When it was committed (RFC 3339).",
        "object": "With `values`: its newest known members; null if none are known.",
    ]) { $1 }
    package var sequence: Int64
    package var kind: String
    package var upstream: String
    package var principal: String
    package var context: String
    package var model: String
    package var id: String
    package var time: String
    package var object: RawJSON?

    init(_ change: ObjectChange, number: Int64, withValues: Bool) {
        (sequence, kind, time) = (number, change.kind.name, StoreTime.text(change.time))
        (upstream, principal, context) = (change.upstream, change.principal, change.context)
        (model, id) = (change.model, change.identity)
        if withValues { object = RawJSON(change.json?.onOneLine ?? Array("null".utf8)) }
    }

    var event: [UInt8] { EventStreamText.event(kind, id: sequence, data: AdminJSON.encode(self)) }
}

/// Why changes are missing, sent in their place: the client must read its objects again, and can continue from there.
package struct ChangeReset: AdminBody, Equatable {
    static let sentences = [
        "reason":
            "`unknown`: the number is not one of this store's; `evicted`: the changes are no longer kept; `cleaned`: a clean removed their objects.",
        "message": "The same as a sentence.", "after": "The number after which changes are missing, if it is known.",
        "upTo": "The number after which nothing is missing any more.",
    ]

    package static let eventName = "reset"

    let reason: String
    package let message: String
    var after: Int64?
    let upTo: Int64

    /// The number belongs to another store, to the future, or to a commit lost in a power failure.
    static func unknown(upTo: Int64) -> ChangeReset {
        let message = "the given number is not one of this store's; changes before \(upTo) are not sent"
        return ChangeReset(reason: "unknown", message: message, upTo: upTo)
    }

    /// The changes are older than those kept.
    static func evicted(after: CommitNumber, upTo end: CommitNumber, in store: ObjectStore) -> ChangeReset {
        let (after, end) = (store.publicSequence(after), store.publicSequence(end))
        let message = "the changes after \(after) up to \(end) are no longer kept"
        return ChangeReset(reason: "evicted", message: message, after: after, upTo: end)
    }

    /// A clean has removed the objects, and their names with them: nobody knows whether a selection has them.
    static func cleaned(
        _ count: Int,
        after: CommitNumber,
        upTo end: CommitNumber,
        isSelection: Bool,
        in store: ObjectStore
    ) -> Self {
        let (after, end) = (store.publicSequence(after), store.publicSequence(end))
        let changes = count == 1 ? "1 change is missing" : "\(count) changes are missing"
        let message =
            "\(changes) between \(after) and \(end), because a clean has removed their objects"
            + (isSelection ? "; they may be of other objects than those selected" : "")
        return ChangeReset(reason: "cleaned", message: message, after: after, upTo: end)
    }

    var event: [UInt8] { EventStreamText.event(Self.eventName, id: upTo, data: AdminJSON.encode(self)) }
}
