import GRDB
import Mapping

/// Looks up objects and their known state.
extension WriterSession {
    /// The object with a name, created if needed.
    func record(collection: CollectionID, identity: Identity) throws -> ObjectRecord {
        if let known = try existingRecord(collection: collection, identity: identity) { return known }
        let record = ObjectRecord(id: numbers.object.increment(), collection: collection, identity: identity)
        keep(record)
        return record
    }

    /// The object with a name, if there is one.
    func existingRecord(collection: CollectionID, identity: Identity) throws -> ObjectRecord? {
        if let id = recordIDs[RecordKey(collection: collection, identity: identity)] { return records[id] }
        let found = try query(
            """
            SELECT id, collection, identity, changed, state, deleted, unobserved, known, merged IS NOT NULL FROM _objects
            WHERE collection = ? AND identity = ?
            """
        ).first(.id(collection), identity.sql, read: ObjectRecord.init)
        if let found { keep(found) }
        return found
    }

    /// The object with an id; nil if it is gone.
    func record(_ id: ObjectID) throws -> ObjectRecord? {
        if let known = records[id] { return known }
        let found = try query(
            """
            SELECT id, collection, identity, changed, state, deleted, unobserved, known, merged IS NOT NULL FROM _objects
            WHERE id = ?
            """
        ).first(.id(id), read: ObjectRecord.init)
        if let found { keep(found) }
        return found
    }

    private func keep(_ record: ObjectRecord) {
        records[record.id] = record
        recordOrder.append(record)
        recordIDs[RecordKey(collection: record.collection, identity: record.identity)] = record.id
    }

    /// The payload of a version, migrated to the current version of its model.
    func known(_ version: Int64, of record: ObjectRecord) throws -> [UInt8] {
        let (model, models) = try model(of: record)
        let found = try stored(version)
        return models?.models.migrate(found.payload, of: model, from: found.declared) ?? found.payload
    }

    /// The payload of a version as stored, and the model version at that time.
    private func stored(_ version: Int64) throws -> (payload: [UInt8], declared: Int) {
        let found = try query("SELECT payload, declared FROM _versions WHERE id = ?")
            .first(.integer(version)) { (payload: $0.bytes(0), declared: Int($0.integer(1))) }
        guard let found else { throw StoreError.corrupt("version \(version) is missing") }
        return found
    }

    /// An object's model, and the models of its upstream; these are nil if the upstream is not configured.
    func model(of record: ObjectRecord) throws -> (String, UpstreamModels?) {
        let (scope, model) = try names.collection(record.collection, in: database)
        return (model, models[try names.scope(scope, in: database).upstream])
    }

    /// The known state of an object, migrated to the current version of its model.
    func state(of record: ObjectRecord) throws -> ObjectState {
        var state = ObjectState(knowledge: record.knowledge, mark: record.mark)
        var accumulated = record.accumulated ?? []
        if let merged = record.merged { state.merged = merged }
        if let since = record.deletedSince { state.deletedSince = since }
        if record.isStored, record.merged == nil || record.accumulated == nil || record.deletedSince == nil {
            let found = try query("SELECT merged, accumulated, deleted FROM _objects WHERE id = ?")
                .first(.id(record.id)) { (merged: $0.isNull(0) ? nil : $0.bytes(0), $0.bytes(1), $0.integer(2)) }
            if record.merged == nil { state.merged = found?.merged }
            if record.accumulated == nil { accumulated = found?.1 ?? [] }
            if record.deletedSince == nil, let time = found?.2, time < 0 { state.deletedSince = -time }
        }
        state.gathered = GatheredValues(bytes: accumulated)
        guard let base = record.base else { return state }
        let found = try stored(base.version)
        state.base = Contribution(
            observation: try observation(base.observation),
            version: base.version,
            payload: found.payload
        )
        let (model, models) = try model(of: record)
        state.bringUpToDate(from: found.declared, model, models?.models)
        return state
    }
}

/// Writes the rows of objects at the end of a batch.
extension WriterSession {
    func flushObjects() throws {
        for record in recordOrder where record.isModified {
            for entry in record.entries where entry.uses == 0 && entry.observation == 0 {
                // An object that stays is not removed, however many of its versions go.
                if let bytes = deletedBytes, record.isEmpty {
                    deletedBytes = bytes + (try query(StoreCount.bytesOfVersion).integer(.integer(entry.version)) ?? 0)
                }
                try query("DELETE FROM _versions WHERE id = ?").run(.integer(entry.version))
            }
            record.entries.removeAll { $0.uses == 0 && $0.observation == 0 }
            guard !record.isEmpty else {
                try deleteRow(of: record)
                continue
            }
            for entry in record.takeSurplus() {
                try query("INSERT INTO _spilled VALUES (?, ?)").run(.integer(entry.version), .integer(entry.uses))
            }
            if case .unobserved = record.mark, !record.isPinned, try isCounting(record) {
                // No document is left that was observed before the mark.
                record.setMark(nil)
            }
            try writeRow(of: record)
            let isPinned = record.isPinned
            if !isPinned, record.wasPinned || !record.isStored {
                try query("INSERT OR REPLACE INTO _orphans VALUES (?, ?)")
                    .run(.id(record.id), .integer(try lastSeen(record)))
            } else if isPinned, record.isStored, !record.wasPinned {
                try query("DELETE FROM _orphans WHERE object = ?").run(.id(record.id))
            }
        }
    }

    /// When an object was last observed, in seconds; orphans are evicted in this order.
    private func lastSeen(_ record: ObjectRecord) throws -> Int64 {
        guard let base = record.base else { return 0 }
        let seen = try ([base.observation] + record.knowledge.sources).map { try observation($0).end }.max() ?? 0
        return seen / 1_000_000
    }

    private func deleteRow(of record: ObjectRecord) throws {
        guard record.isStored else {
            try query("DELETE FROM _keys WHERE object = ?").run(.id(record.id))
            return
        }
        hasRemovedObjects = true
        try remember(record)
        if record.mark != nil || record.isMarkModified { try deleteMarkSource(of: record) }
        try query("DELETE FROM _objects WHERE id = ?").run(.id(record.id))
        try query("DELETE FROM _orphans WHERE object = ?").run(.id(record.id))
        try query("DELETE FROM _keys WHERE object = ?").run(.id(record.id))
    }

    private func writeRow(of record: ObjectRecord) throws {
        let version = record.base.map { SQLValue.integer($0.version) } ?? .null
        let state = SQLValue.blob(record.state)
        let merged = (record.merged ?? nil).map(SQLValue.text) ?? .null
        let bytes = KnowledgeBytes.encode(record.knowledge)
        let known = bytes.isEmpty ? SQLValue.null : .blob(bytes)
        if !record.isStored {
            try query(
                "INSERT INTO _objects (id, collection, identity, changed, version, state, merged, known) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
            ).run(
                .id(record.id),
                .id(record.collection),
                record.identity.sql,
                .integer(record.changed),
                version,
                state,
                merged,
                known
            )
        } else if record.merged != nil {
            try query(
                "UPDATE _objects SET changed = ?, version = ?, state = ?, merged = ? WHERE id = ?"
            ).run(.integer(record.changed), version, state, merged, .id(record.id))
        } else {
            try query("UPDATE _objects SET changed = ?, version = ?, state = ? WHERE id = ?")
                .run(.integer(record.changed), version, state, .id(record.id))
        }
        if record.isStored, record.isKnowledgeModified {
            try query("UPDATE _objects SET known = ? WHERE id = ?").run(known, .id(record.id))
        }
        try writeRules(of: record)
    }

    /// Writes the columns that only models with rules of their own need.
    private func writeRules(of record: ObjectRecord) throws {
        if let accumulated = record.accumulated, !(accumulated.isEmpty && !record.isStored) {
            try query("UPDATE _objects SET accumulated = ?1 WHERE id = ?2 AND accumulated IS NOT ?1")
                .run(accumulated.isEmpty ? .null : .text(accumulated), .id(record.id))
        }
        if let since = record.deletedSince, record.mark?.isTombstone != true, since != nil || record.isStored {
            try query("UPDATE _objects SET deleted = ?1 WHERE id = ?2 AND deleted IS NOT ?1")
                .run(since.map { .integer(-max($0, 1)) } ?? .null, .id(record.id))
        }
        if record.isMarkModified { try writeMark(of: record) }
    }
}

/// Removes objects that no document shows any more.
extension WriterSession {
    /// Removes orphans up to a time in seconds; returns how many.
    func removeOrphans(until time: Int64, limit: Int) throws -> Int {
        let found = try query("SELECT object FROM _orphans WHERE since <= ? LIMIT ?")
            .all(.integer(time), .integer(Int64(limit))) { $0.id(0, as: ObjectID.self) }
        guard !found.isEmpty else { return 0 }
        for id in found { try forget(id) }
        // Mapped views may show objects that no document shows.
        _ = nextSequence()
        outcome.changed += found
        return found.count
    }

    /// Removes all that is known of an object; versions that documents pin stay.
    func forget(_ id: ObjectID) throws {
        guard let record = try record(id) else {
            try query("DELETE FROM _orphans WHERE object = ?").run(.id(id))
            return
        }
        try forgetKnown(record)
        record.accumulated = []
        record.deletedSince = .some(nil)
        record.setMark(nil)
    }
}

/// Maintains observations: one row for each response, as long as something refers to it.
extension WriterSession {
    /// Creates the observation of a new response, without uses.
    func newObservation(start: Int64, end: Int64, kind: Observation.Kind) -> Observation {
        numbers.observation += 1
        let observation = Observation(sequence: numbers.observation, start: start, end: end, kind: kind)
        observations[numbers.observation] = ObservationRecord(observation, uses: 0, isStored: false)
        return observation
    }

    func observation(_ id: Int64) throws -> Observation { try observationRecord(id).observation }

    /// Records the request of an observation without a document; it is written only if something refers to the observation.
    func note(source: String?, of id: Int64) throws {
        try observationRecord(id).source = source
    }

    /// Counts a reference to an observation, or its removal.
    func use(_ id: Int64, by difference: Int64) throws {
        let record = try observationRecord(id)
        record.uses += difference
        record.isModified = true
    }

    /// Moves an observation to a later time, for a 304.
    func move(_ id: Int64, start: Int64, end: Int64) throws {
        let record = try observationRecord(id)
        record.observation.start = max(record.observation.start, start)
        record.observation.end = max(record.observation.end, end)
        record.isModified = true
    }

    private func observationRecord(_ id: Int64) throws -> ObservationRecord {
        if let known = observations[id] { return known }
        let found = try query("SELECT start, finish, kind, uses FROM _observations WHERE id = ?")
            .first(.integer(id)) { row in
                ObservationRecord(row.observation(id, from: 0), uses: row.integer(3), isStored: true)
            }
        guard let found else { throw StoreError.corrupt("observation \(id) is missing") }
        observations[id] = found
        return found
    }

    func flushObservations() throws {
        for (id, record) in observations.sorted(by: { $0.key < $1.key }) where record.isModified {
            let observation = record.observation
            if record.uses <= 0 {
                if record.isStored {
                    try query("DELETE FROM _observations WHERE id = ?").run(.integer(id))
                }
            } else if record.isStored {
                try query("UPDATE _observations SET start = ?, finish = ?, uses = ? WHERE id = ?")
                    .run(.integer(observation.start), .integer(observation.end), .integer(record.uses), .integer(id))
                if let source = record.source {
                    try query("UPDATE _observations SET source = ? WHERE id = ?").run(.string(source), .integer(id))
                }
            } else {
                try query(
                    "INSERT INTO _observations (id, start, finish, kind, uses, source) VALUES (?, ?, ?, ?, ?, ?)"
                ).run(
                    .integer(id),
                    .integer(observation.start),
                    .integer(observation.end),
                    .integer(Int64(observation.kind.rawValue)),
                    .integer(record.uses),
                    SQLValue(record.source)
                )
            }
        }
    }
}
