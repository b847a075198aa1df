import HTTPSemantics
import HTTPServer
import Store

extension AdminRoute {
    /// What became of objects, as a stream of events or page by page.
    static let changes = AdminRoute(
        method: "GET",
        path: "/changes",
        sentence:
            "Changes of objects as server-sent events, from now on or from where the client was; with Accept: application/json, a page of them.",
        query: ChangeRequest.parameters,
        mediaType: EventStreamText.mediaType,
        answer: { request, context throws(Problem) in
            let wanted = try await ChangeRequest(request, context)
            let isKept = try await asked { () throws(StoreError) in
                try await context.store.changes(after: context.store.sequence, limit: 1) != nil
            }
            guard isKept else { throw .notFound("no changes are kept: the config says `store: { changes: 0 }`") }
            switch wanted.form {
            case .page(let limit): return .json(try await page(wanted, limit: limit, context.store))
            case .events:
                guard let streams = context.changeStreams else { throw Problem(503, "no stream can be opened here") }
                var response = AdminResponse(fields: Fields([Field("Content-Type", EventStreamText.mediaType)]))
                response.stream = { reply, fields in streams.open(wanted, reply, fields: fields) }
                return response
            }
        }
    )

    /// Reads this often at most for one page, when what is read is not what is wanted.
    private static let readsPerPage = 16

    private static func page(_ wanted: ChangeRequest, limit: Int, _ store: ObjectStore) async throws(Problem)
        -> JSONText
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
        var (position, rows, isLast): (Int64, [JSONText], Bool) = (start, [], false)
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
                $0.document(store.publicSequence($0.sequence), withValues: wanted.wantsValues)
            }
            (position, isLast) = (page.end, page.isLast)
        }
        var members: [(name: String, value: JSONText)] = [("changes", .array(rows))]
        if !resets.isEmpty { members.append(("resets", .array(resets.map(\.document)))) }
        // A text: cursors are to be handed back, not reckoned with.
        members += [("next", .string(String(store.publicSequence(position)))), ("more", .bool(!isLast))]
        return .object(members)
    }
}
