import Mapping
import Store

/// Finds objects by what people call them: by identity, or by the value of one of their model's keys.
///
/// The store has an index of keys. What it does not know, because the object was stored before its model had the key, is
/// looked for in every object of the model, page by page: seconds in a store of a million objects, on the admin side only.
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
                    page.next = row.id
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
