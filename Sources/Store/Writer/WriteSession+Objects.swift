import GRDB
import Mapping

/// Objects: found, with what is known of them.
extension WriteSession {
    /// The object of a name, made if there is none.
    func record(collection: Int64, identity: Identity) throws -> ObjectRecord {
        if let known = try existingRecord(collection: collection, identity: identity) { return known }
        numbers.object += 1
        let record = ObjectRecord(id: numbers.object, collection: collection, identity: identity)
        keep(record)
        return record
    }

    /// The object of a name; nil if there is none.
    func existingRecord(collection: Int64, identity: Identity) throws -> ObjectRecord? {
        if let id = recordIDs[RecordKey(collection: collection, identity: identity)] { return records[id] }
        let found = try query(
            "SELECT id, changed, state, deleted, unobserved FROM _objects WHERE collection = ? AND identity = ?"
        ).first(.integer(collection), identity.sql) { row in
            ObjectRecord(
                id: row.integer(0),
                collection: collection,
                identity: identity,
                changed: row.integer(1),
                entries: try ObjectRecord.decode(row.bytes(2)),
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
            "SELECT collection, identity, changed, state, deleted, unobserved FROM _objects WHERE id = ?"
        ).first(.integer(id)) { row in
            ObjectRecord(
                id: id,
                collection: row.integer(0),
                identity: Identity(row, column: 1),
                changed: row.integer(2),
                entries: try ObjectRecord.decode(row.bytes(3)),
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

    /// What is known of an object, with every payload it takes.
    func state(of record: ObjectRecord) throws -> ObjectState {
        ObjectState(
            contributions: try record.contributing.map { entry in
                Contribution(
                    observation: try observation(entry.observation),
                    version: entry.version,
                    payload: try known(entry.version, of: record)
                )
            },
            accumulation: try accumulation(of: record),
            mark: record.mark
        )
    }

    /// What its members with a policy of their own come to, as the model is declared today.
    ///
    /// It was gathered under the version of the newest answer that tells of it.
    private func accumulation(of record: ObjectRecord) throws -> Accumulation {
        let gathered = Accumulation(bytes: try accumulated(of: record))
        guard !gathered.isEmpty, record.accumulated == nil, let newest = record.contributing.first else {
            return gathered
        }
        let (scope, model) = try names.collection(record.collection, in: database)
        guard let models = models[try names.scope(scope, in: database).upstream]?.models,
            models.version(of: model) > 0
        else { return gathered }
        let declared = try query("SELECT declared FROM _versions WHERE id = ?")
            .first(.integer(newest.version)) { Int($0.integer(0)) }
        return models.migrate(gathered, of: model, from: declared ?? 0)
    }

    private func accumulated(of record: ObjectRecord) throws -> [UInt8] {
        if let known = record.accumulated { return known }
        guard record.isStored else { return [] }
        return try query("SELECT accumulated FROM _objects WHERE id = ?").first(.integer(record.id)) { $0.bytes(0) }
            ?? []
    }
}
