import GRDB
import Mapping

/// Objects: found, with what is known of them.
extension WriteSession {
    /// The object of a name, made if there is none.
    func record(collection: CollectionID, identity: Identity) throws -> ObjectRecord {
        if let known = try existingRecord(collection: collection, identity: identity) { return known }
        let record = ObjectRecord(id: numbers.object.increment(), collection: collection, identity: identity)
        keep(record)
        return record
    }

    /// The object of a name; nil if there is none.
    func existingRecord(collection: CollectionID, identity: Identity) throws -> ObjectRecord? {
        if let id = recordIDs[RecordKey(collection: collection, identity: identity)] { return records[id] }
        let found = try query(
            "SELECT id, changed, state, deleted, unobserved, known, merged IS NOT NULL FROM _objects WHERE collection = ? AND identity = ?"
        ).first(.id(collection), identity.sql) { row in
            ObjectRecord(
                id: row.id(0),
                collection: collection,
                identity: identity,
                changed: row.integer(1),
                entries: try ObjectRecord.decode(row.bytes(2)),
                knowledge: try KnowledgeBytes.decode(row.bytes(5)),
                isMerged: row.integer(6) == 1,
                mark: ObjectMark(deleted: row.integer(3), unobserved: row.integer(4)),
                isStored: true
            )
        }
        if let found { keep(found) }
        return found
    }

    /// The object of an id; nil if it is gone.
    func record(_ id: ObjectID) throws -> ObjectRecord? {
        if let known = records[id] { return known }
        let found = try query(
            "SELECT collection, identity, changed, state, deleted, unobserved, known, merged IS NOT NULL FROM _objects WHERE id = ?"
        ).first(.id(id)) { row in
            ObjectRecord(
                id: id,
                collection: row.id(0),
                identity: Identity(row, column: 1),
                changed: row.integer(2),
                entries: try ObjectRecord.decode(row.bytes(3)),
                knowledge: try KnowledgeBytes.decode(row.bytes(6)),
                isMerged: row.integer(7) == 1,
                mark: ObjectMark(deleted: row.integer(4), unobserved: row.integer(5)),
                isStored: true
            )
        }
        if let found { keep(found) }
        return found
    }

    private func keep(_ record: ObjectRecord) {
        records[record.id] = record
        recordOrder.append(record)
        recordIDs[RecordKey(collection: record.collection, identity: record.identity)] = record.id
    }

    func payload(of version: Int64) throws -> [UInt8] {
        let payload = try query("SELECT payload FROM _versions WHERE id = ?")
            .first(.integer(version)) { $0.bytes(0) }
        guard let payload else { throw StoreError.corrupt("version \(version) is missing") }
        return payload
    }

    /// The payload of a version as its model is declared today.
    func known(_ version: Int64, of record: ObjectRecord) throws -> [UInt8] {
        let (scope, model) = try names.collection(record.collection, in: database)
        let upstream = try names.scope(scope, in: database).upstream
        guard let models = models[upstream]?.models, models.version(of: model) > 0 else {
            return try payload(of: version)
        }
        let found = try query("SELECT payload, declared FROM _versions WHERE id = ?")
            .first(.integer(version)) { (payload: $0.bytes(0), declared: Int($0.integer(1))) }
        guard let found else { throw StoreError.corrupt("version \(version) is missing") }
        return models.migrate(found.payload, of: model, from: found.declared)
    }

    /// What is known of an object, as its model is declared today.
    func state(of record: ObjectRecord) throws -> ObjectState {
        var state = ObjectState(knowledge: record.knowledge, mark: record.mark)
        var accumulated = record.accumulated ?? []
        if let merged = record.merged { state.merged = merged }
        if let since = record.deletedSince { state.deletedSince = since }
        if record.isStored, record.merged == nil || record.accumulated == nil || record.deletedSince == nil {
            let found = try query("SELECT merged, accumulated, deleted FROM _objects WHERE id = ?").first(
                .id(record.id)
            ) {
                (merged: $0.isNull(0) ? nil : $0.bytes(0), accumulated: $0.bytes(1), deleted: $0.integer(2))
            }
            if record.merged == nil { state.merged = found?.merged }
            if record.deletedSince == nil, let time = found?.deleted, time < 0 { state.deletedSince = -time }
            if record.accumulated == nil { accumulated = found?.accumulated ?? [] }
        }
        state.accumulation = Accumulation(bytes: accumulated)
        guard let base = record.base else { return state }
        let found = try query("SELECT payload, declared FROM _versions WHERE id = ?")
            .first(.integer(base.version)) { (payload: $0.bytes(0), declared: Int($0.integer(1))) }
        guard let found else { throw StoreError.corrupt("version \(base.version) is missing") }
        state.base = Contribution(
            observation: try observation(base.observation),
            version: base.version,
            payload: found.payload
        )
        let (scope, model) = try names.collection(record.collection, in: database)
        let upstream = try names.scope(scope, in: database).upstream
        state.bringUpToDate(from: found.declared, model, models[upstream]?.models)
        return state
    }
}
