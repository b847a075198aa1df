import GRDB

/// Reckons what a clean would remove, within one read snapshot.
struct CleanPreview {
    let database: Database
    let selection: CleanSelection

    init(
        _ filter: CleanFilter,
        in database: Database,
        now: Int64,
        models: [String: UpstreamModels],
        lag: Int64
    ) throws {
        self.database = database
        selection = try CleanSelection(filter, in: database, now: now, models: models, lag: lag)
    }

    /// The count; its bytes are those of bodies and versions, without what the file needs around them.
    func count() throws -> StoreCount {
        var count = StoreCount(objects: 0, documents: 0, bytes: 0, models: [:])
        var unpinned: [ObjectID: [Int64: Int64]] = [:]
        for id in try selection.documents(after: 0, limit: .max) {
            count.documents += 1
            count.bytes += try bytes(of: id)
            for pin in try StoredBody.pins(of: id, in: database) {
                unpinned[pin.object, default: [:]][pin.version, default: 0] += 1
            }
        }
        for id in try selection.orphans(after: 0, limit: .max) { unpinned[id, default: [:]] = [:] }
        for (id, versions) in unpinned { try add(id, unpinned: versions, to: &count) }
        return count
    }

    private func bytes(of document: DocumentID) throws -> Int64 {
        try Query(
            database,
            """
            SELECT length(d.head) + length(d.policy) + length(b.pins) + ifnull(length(b.skeleton), 0)
                + ifnull(length(b.body), 0)
            FROM _documents d JOIN _bodies b ON b.document = d.id WHERE d.id = ?
            """
        ).first(.integer(document)) { $0.integer(0) } ?? 0
    }

    private func add(_ object: ObjectID, unpinned: [Int64: Int64], to count: inout StoreCount) throws {
        let found = try Query(
            database,
            """
            SELECT o.state, m.text FROM _objects o JOIN _collections c ON c.id = o.collection
            JOIN _names m ON m.id = c.model WHERE o.id = ?
            """
        ).first(.integer(object)) { (entries: try ObjectRecord.decode($0.bytes(0)), model: $0.string(1)) }
        guard let found else { return }
        guard found.entries.allSatisfy({ $0.uses <= unpinned[$0.version] ?? 0 }) else { return }
        count.objects += 1
        count.models[found.model, default: 0] += 1
        for entry in found.entries {
            count.bytes +=
                try Query(database, "SELECT length(CAST(payload AS BLOB)) FROM _versions WHERE id = ?")
                .first(.integer(entry.version)) { $0.integer(0) } ?? 0
        }
    }
}
