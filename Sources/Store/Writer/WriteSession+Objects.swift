import GRDB
import Mapping

/// Objects and their versions: found, merged, pinned, written.
extension WriteSession {
    // MARK: Finding

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

    // MARK: Taking in

    /// What one answer shows, as pins, with the objects merged.
    struct Intake {
        var pins: [Pin] = []
        var objects: [ObjectID] = []
        /// Whether all there is to know of every object shown is what is shown here.
        var isAllThereIs = true
        /// What there is to say of the objects.
        var warnings: [MappingWarning] = []
    }

    /// Takes in the objects of one answer; pinned for a document, or only observed.
    func take(
        _ preparation: Preparation,
        scope: Int64,
        upstream: String,
        observation: Observation,
        origin: Int64,
        pinning: Bool
    ) throws -> Intake {
        guard let decomposed = preparation.decomposed, let models = models[upstream] else { return Intake() }
        var intake = Intake()
        var shown: [ObjectRecord] = []
        var taken: Set<Int64> = []
        // Neighbours are mostly of one model.
        var (model, collection, declared) = ("", Int64(0), 0)
        let mayBeMarked = recentMarks.mayConcern(observation, lag: models.lag)
        for (occurrence, content) in zip(decomposed.occurrences, preparation.contents) {
            if occurrence.name.model != model {
                model = occurrence.name.model
                collection = try names.collection(scope: scope, model: model, in: database)
                declared = models.models.version(of: model)
            }
            let record = try record(collection: collection, identity: Identity(occurrence.name.identity))
            if mayBeMarked, let mark = recentMarks.mark(of: occurrence, upstream: upstream, scope: scope) {
                try apply(mark, to: record)
            }
            let known = numbers.version
            let version = try self.version(of: record, content, of: occurrence, declared: declared)
            if version > known || !occurrence.boundKeys.isEmpty { try note(keysOf: occurrence, for: record) }
            if pinning, let index = record.index(of: version) {
                record.entries[index].uses += 1
                record.isModified = true
            }
            intake.pins.append(Pin(object: record.id, version: version))
            let contribution = Contribution(
                observation: observation,
                version: version,
                payload: occurrence.payload,
                origin: origin
            )
            if record.fresh.isEmpty { shown.append(record) }
            if taken.insert(version).inserted { record.fresh.append(contribution) }
        }
        var former: [(change: MemberChange, model: String)] = []
        for record in shown {
            intake.objects.append(record.id)
            let fresh = record.fresh
            record.fresh = []
            if fresh.count > 1 {
                try warn(of: fresh, showing: record, in: decomposed, models: models.models, &intake)
            }
            var changes: [MemberChange] = []
            try merge(fresh, into: record, models: models, changes: &changes)
            if !changes.isEmpty {
                intake.warnings += try note(changes, of: record, upstream: upstream)
                if models.models.deleteFormer {
                    let model = try names.collection(record.collection, in: database).model
                    former += changes.map { ($0, model) }
                }
            }
        }
        if !former.isEmpty {
            try deleteFormer(former, scope: scope, besides: decomposed.occurrences, models: models)
        }
        intake.isAllThereIs = intake.pins.allSatisfy { records[$0.object]?.isKnownOnly(as: $0.version) == true }
        return intake
    }

    /// The version of an object with a payload, stored if it is new.
    ///
    /// What was stored under an earlier version of the model is another one, though its bytes be the same.
    private func version(
        of record: ObjectRecord,
        _ payload: UInt64,
        of occurrence: Occurrence,
        declared: Int
    ) throws -> Int64 {
        let content = payload ^ UInt64(truncatingIfNeeded: declared) &* 0x9E37_79B9_7F4A_7C15
        if let known = record.index(ofContent: content) { return record.entries[known].version }
        numbers.version += 1
        try query("INSERT INTO _versions (id, payload, declared) VALUES (?, ?, ?)").run(
            .integer(numbers.version),
            .text(occurrence.payload),
            declared == 0 ? .null : .integer(Int64(declared))
        )
        record.entries.append(
            ObjectRecord.Entry(version: numbers.version, content: content, uses: 0, observation: 0)
        )
        record.isModified = true
        return numbers.version
    }

    /// Notes by which keys an object can be found.
    private func note(keysOf occurrence: Occurrence, for record: ObjectRecord) throws {
        for key in occurrence.keys {
            try query("INSERT OR IGNORE INTO _keys VALUES (?, ?, NULL)")
                .run(.integer(record.id), .integer(hasher.lookUp(key.value)))
        }
        for key in occurrence.boundKeys {
            try query("INSERT OR REPLACE INTO _keys VALUES (?, ?, 1)")
                .run(.integer(record.id), .integer(hasher.lookUp(key.value)))
        }
    }

    // MARK: Writing

    func flushObjects() throws {
        for record in recordOrder where record.isModified {
            for entry in record.entries where entry.uses == 0 && entry.observation == 0 {
                try query("DELETE FROM _versions WHERE id = ?").run(.integer(entry.version))
            }
            record.entries.removeAll { $0.uses == 0 && $0.observation == 0 }
            guard !record.entries.isEmpty else {
                try deleteRow(of: record)
                continue
            }
            if case .unobserved = record.mark, !record.isPinned, try isCounting(record) {
                // No document is left that was observed before it.
                record.setMark(nil)
            }
            try writeRow(of: record)
            let isPinned = record.isPinned
            if !isPinned, record.wasPinned || !record.isStored {
                try query("INSERT OR REPLACE INTO _orphans VALUES (?, ?)")
                    .run(.integer(record.id), .integer(try lastSeen(record)))
            } else if isPinned, record.isStored, !record.wasPinned {
                try query("DELETE FROM _orphans WHERE object = ?").run(.integer(record.id))
            }
        }
    }

    /// When an object was last observed, in seconds: what orphans are evicted by.
    private func lastSeen(_ record: ObjectRecord) throws -> Int64 {
        try record.contributing.map { try observation($0.observation).end / 1_000_000 }.max() ?? 0
    }

    private func deleteRow(of record: ObjectRecord) throws {
        guard record.isStored else {
            try query("DELETE FROM _keys WHERE object = ?").run(.integer(record.id))
            return
        }
        hasRemovedObjects = true
        try remember(record)
        try query("DELETE FROM _objects WHERE id = ?").run(.integer(record.id))
        try query("DELETE FROM _orphans WHERE object = ?").run(.integer(record.id))
        try query("DELETE FROM _keys WHERE object = ?").run(.integer(record.id))
    }

    private func writeRow(of record: ObjectRecord) throws {
        let version = record.contributing.first.map { SQLValue.integer($0.version) } ?? .null
        let state = SQLValue.blob(ObjectRecord.encode(record.entries))
        let merged = (record.merged ?? nil).map(SQLValue.text) ?? .null
        if !record.isStored {
            try query(
                "INSERT INTO _objects (id, collection, identity, changed, version, state, merged) VALUES (?, ?, ?, ?, ?, ?, ?)"
            ).run(
                .integer(record.id),
                .integer(record.collection),
                record.identity.sql,
                .integer(record.changed),
                version,
                state,
                merged
            )
        } else if record.merged != nil {
            try query(
                "UPDATE _objects SET changed = ?, version = ?, state = ?, merged = ? WHERE id = ?"
            ).run(.integer(record.changed), version, state, merged, .integer(record.id))
        } else {
            try query("UPDATE _objects SET changed = ?, version = ?, state = ? WHERE id = ?")
                .run(.integer(record.changed), version, state, .integer(record.id))
        }
        try writeRules(of: record)
    }

    /// What only models with rules of their own have.
    private func writeRules(of record: ObjectRecord) throws {
        if let accumulated = record.accumulated, !(accumulated.isEmpty && !record.isStored) {
            try query("UPDATE _objects SET accumulated = ?1 WHERE id = ?2 AND accumulated IS NOT ?1")
                .run(accumulated.isEmpty ? .null : .text(accumulated), .integer(record.id))
        }
        if let isDeleted = record.isDeleted, record.mark?.isTombstone != true, isDeleted || record.isStored {
            try query("UPDATE _objects SET deleted = ?1 WHERE id = ?2 AND deleted IS NOT ?1")
                .run(isDeleted ? .integer(1) : .null, .integer(record.id))
        }
        if record.isMarkModified { try writeMark(of: record) }
    }
}
