import GRDB
import Mapping

extension WriterSession {
    /// The object with a name, created if needed.
    func record(collection: CollectionID, identity: StoredIdentity) throws -> ObjectRecord {
        if let known = try existingRecord(collection: collection, identity: identity) { return known }
        let record = ObjectRecord(id: numbers.object.increment(), collection: collection, identity: identity)
        cache(record)
        return record
    }

    func existingRecord(collection: CollectionID, identity: StoredIdentity) throws -> ObjectRecord? {
        if let id = recordIDs[RecordKey(collection: collection, identity: identity)] { return records[id] }
        let found = try query(
            """
            SELECT id, collection, identity, changed, state, merged, known, accumulated, deleted, unobserved,
            reused, wrote FROM _objects
            WHERE collection = ? AND identity = ?
            """
        ).first(collection, identity, read: ObjectRecord.init)
        if let found { cache(found) }
        return found
    }

    func record(_ id: ObjectID) throws -> ObjectRecord? {
        if let known = records[id] { return known }
        let found = try query(
            """
            SELECT id, collection, identity, changed, state, merged, known, accumulated, deleted, unobserved,
            reused, wrote FROM _objects
            WHERE id = ?
            """
        ).first(id, read: ObjectRecord.init)
        if let found { cache(found) }
        return found
    }

    private func cache(_ record: ObjectRecord) {
        records[record.id] = record
        recordOrder.append(record)
        recordIDs[RecordKey(collection: record.collection, identity: record.identity)] = record.id
    }

    /// The payload of a version, migrated to the current version of its model.
    func known(_ version: VersionID, of record: ObjectRecord) throws -> [UInt8] {
        let (model, models) = try model(of: record)
        let found = try stored(version)
        return models?.models.migrate(found.payload, of: model, from: found.declared) ?? found.payload
    }

    /// The payload of a version as stored, and the model version at that time.
    private func stored(_ version: VersionID) throws -> (payload: [UInt8], declared: Int) {
        let found = try query("SELECT payload, declared FROM _versions WHERE id = ?")
            .first(version) { (payload: $0.bytes(0), declared: Int($0.integer(1))) }
        guard let found else { throw StoreError.corrupt("version \(version) is missing") }
        return found
    }

    /// An object's model, and the models of its upstream; these are nil if the upstream is not configured.
    func model(of record: ObjectRecord) throws -> (String, UpstreamModels?) {
        let (scope, model) = try names.collection(record.collection, in: database)
        return (model, models[try names.scope(scope, in: database).upstream])
    }

    /// The names of objects; those that cannot be read are left out.
    func names(of records: [ObjectRecord]) -> Set<ObjectName> {
        records.reduce(into: []) { found, record in
            guard let collection = try? names.collection(record.collection, in: database) else { return }
            found.insert(ObjectName(model: collection.model, identity: record.identity.text))
        }
    }

    /// The known state of an object, migrated to the current version of its model.
    func state(of record: ObjectRecord) throws -> ObjectState {
        var state = ObjectState(knowledge: record.knowledge, mark: record.mark)
        (state.merged, state.deletedSince) = (record.merged, record.deletedSince)
        state.gathered = GatheredValues(bytes: record.accumulated)
        guard let base = record.base else { return state }
        let found = try stored(base.version)
        let seen = try observation(base.observation)
        state.base = Contribution(observation: seen, version: base.version.rawValue, payload: found.payload)
        let (model, models) = try model(of: record)
        state.bringUpToDate(from: found.declared, model, models?.models)
        state.base?.observation.end = try end(of: base.observation)
        state.knowledge = state.knowledge.observed(until: clock.restarted)
        return state
    }

    /// When a response was complete; if the last responses before a crash were lost, all count until the start after it.
    func end(of id: ObservationID) throws -> Int64 { max(try observation(id).end, clock.restarted) }

    /// The document that a response was for, and when the response was complete; nil for a write, or if it is not known.
    func word(of id: ObservationID) throws -> LastWord? {
        try observationRecord(id).document.map { LastWord(document: $0, completed: try end(of: id)) }
    }

    func flushObjects() throws {
        for record in recordOrder where record.isModified {
            if try deleteUnusedVersions(of: record) { continue }
            for entry in record.takeSurplus() { try spill(entry) }
            if case .unobserved = record.mark, !record.isPinned, try isNewerThanMark(record) {
                // No document is left that was observed before the mark.
                record.setMark(nil)
            }
            try writeRow(of: record)
            effects.written.append(record)
            let isPinned = record.isPinned
            if !isPinned, record.wasPinned || !record.isStored {
                try query("INSERT OR REPLACE INTO _orphans VALUES (?, ?)").run(record.id, try lastSeen(record))
            } else if isPinned, record.isStored, !record.wasPinned {
                try query("DELETE FROM _orphans WHERE object = ?").run(record.id)
            }
        }
    }

    /// When an object was last observed, in seconds; orphans are evicted in this order.
    private func lastSeen(_ record: ObjectRecord) throws -> Int64 {
        try (record.observations.map { try observation($0).end }.max() ?? 0) / 1_000_000
    }

    private func writeRow(of record: ObjectRecord) throws {
        let (known, accumulated) = (KnowledgeBytes.encode(record.knowledge), record.accumulated)
        let sql: StaticString =
            record.isStored
            ? """
            UPDATE _objects SET changed = ?4, version = ?5, state = ?6, merged = ?7, known = ?8, accumulated = ?9,
            deleted = ?10, unobserved = ?11, wrote = ?12, reused = ?13 WHERE id = ?1
            """
            : "INSERT INTO _objects VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)"
        try query(sql).run(values: [
            record.id, record.collection, record.identity, record.changed, record.base?.version, record.state,
            record.merged.map(SQLValue.text), known.isEmpty ? SQLValue.null : .blob(known),
            accumulated.isEmpty ? SQLValue.null : .text(accumulated), record.deleted, record.unobserved, record.wrote,
            record.mark?.isReused == true ? 1 : nil,
        ])
        try writeMarkSource(of: record)
    }

    /// Creates the observation of a new response, without uses; `document` is the digest of its cache key, nil for a
    /// write.
    func newObservation(
        start: Int64,
        end: Int64,
        kind: Observation.Kind,
        document: Int64? = nil,
        dividedBy: Int64? = nil
    ) -> Observation {
        let id = numbers.observation.increment()
        let observation = Observation(sequence: id.rawValue, start: start, end: end, kind: kind)
        let record = ObservationRecord(observation, document: document, uses: 0, isStored: false)
        record.dividedBy = dividedBy
        observations[id] = record
        return observation
    }

    func observation(_ id: ObservationID) throws -> Observation { try observationRecord(id).observation }

    /// Records the request of an observation without a document; it is written only if something refers to the observation.
    func setSource(_ source: String?, of id: ObservationID) throws { try observationRecord(id).source = source }

    /// Counts a reference to an observation, or its removal.
    func use(_ id: ObservationID, by difference: Int64) throws {
        let record = try observationRecord(id)
        record.uses += difference
        record.isModified = true
    }

    /// Moves an observation to a later time, for a 304.
    func move(_ id: ObservationID, start: Int64, end: Int64) throws {
        let record = try observationRecord(id)
        record.observation.start = max(record.observation.start, start)
        record.observation.end = max(record.observation.end, end)
        record.isModified = true
    }

    private func observationRecord(_ id: ObservationID) throws -> ObservationRecord {
        if let known = observations[id] { return known }
        let found = try query("SELECT start, finish, kind, uses, document FROM _observations WHERE id = ?")
            .first(id) { row in
                let (seen, document) = (row.observation(id, from: 0), row.isNull(4) ? nil : row.integer(4))
                return ObservationRecord(seen, document: document, uses: row.count(3), isStored: true)
            }
        guard let found else { throw StoreError.corrupt("observation \(id) is missing") }
        observations[id] = found
        return found
    }

    func flushObservations() throws {
        for (id, record) in observations.sorted(by: { $0.key < $1.key }) where record.isModified {
            let observation = record.observation
            if record.uses <= 0 {
                if record.isStored { try query("DELETE FROM _observations WHERE id = ?").run(id) }
            } else if record.isStored {
                try query("UPDATE _observations SET start = ?, finish = ?, uses = ? WHERE id = ?")
                    .run(observation.start, observation.end, record.uses, id)
                if let source = record.source {
                    try query("UPDATE _observations SET source = ? WHERE id = ?").run(source, id)
                }
            } else {
                try query(
                    """
                    INSERT INTO _observations (id, start, finish, kind, uses, source, document, divided)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
                    """
                ).run(values: [
                    id, observation.start, observation.end, Int(observation.kind.rawValue), record.uses, record.source,
                    record.document, record.dividedBy,
                ])
            }
        }
    }
}
