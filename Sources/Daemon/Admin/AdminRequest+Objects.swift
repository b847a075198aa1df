import Mapping
import Settings
import Store

extension AdminRequest {
    /// How its path names an object.
    var objectName: String { "\(captures["model"] ?? "") \(captures["id"] ?? "")" }

    /// Fails for a model in its path, or an upstream or a principal in its query, that nobody knows.
    func checkNames(in context: any AdminContext) async throws(Problem) {
        if let complaint = context.unknownModel(captures["model"] ?? "") { throw .notFound(complaint) }
        try await context.checkOwnership(of: self)
    }

    /// The objects that its path names, of every principal and context that is not ruled out, those that are deleted
    /// included; never none.
    func namedObjects(limit: Int, in context: any AdminContext) async throws(Problem) -> [ObjectRow] {
        let query = ObjectQuery(
            model: captures["model"],
            identity: captures["id"],
            upstream: value("upstream"),
            principal: value("principal"),
            limit: limit
        )
        var rows = try await asked { () throws(StoreError) in try await context.lookup.objects(query).rows }
        // One principal's may be deleted and another's not. Where an identity is known it is looked for, and no key.
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
        throw .notFound("no \(model) is known as \(id)" + (try await hint(for: query, in: context)))
    }

    /// What may have been meant by an identity that is none: the same one elsewhere, or one that is spelled alike.
    private func hint(for query: ObjectQuery, in context: any AdminContext) async throws(Problem) -> String {
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
