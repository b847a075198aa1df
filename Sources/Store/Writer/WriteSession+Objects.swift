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
            "SELECT id, changed, state FROM _objects WHERE collection = ? AND identity = ?"
        ).first(.integer(collection), identity.sql) { row in
            ObjectRecord(
                id: row.integer(0),
                collection: collection,
                identity: identity,
                changed: row.integer(1),
                entries: try ObjectRecord.decode(row.bytes(2)),
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
            "SELECT collection, identity, changed, state FROM _objects WHERE id = ?"
        ).first(.integer(id)) { row in
            ObjectRecord(
                id: id,
                collection: row.integer(0),
                identity: Identity(row, column: 1),
                changed: row.integer(2),
                entries: try ObjectRecord.decode(row.bytes(3)),
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

    /// What is known of an object, with every payload it takes.
    func state(of record: ObjectRecord) throws -> ObjectState {
        ObjectState(
            contributions: try record.contributing.map { entry in
                Contribution(
                    observation: try observation(entry.observation),
                    version: entry.version,
                    payload: try payload(of: entry.version)
                )
            }
        )
    }

    // MARK: Taking in

    /// What one answer shows, as pins, with the objects merged.
    struct Intake {
        var pins: [Pin] = []
        var objects: [ObjectID] = []
        /// Whether all there is to know of every object shown is what is shown here.
        var isAllThereIs = true
    }

    /// Takes in the objects of one answer; pinned for a document, or only observed.
    func take(
        _ preparation: Preparation,
        scope: Int64,
        upstream: String,
        observation: Observation,
        pinning: Bool
    ) throws -> Intake {
        guard let decomposed = preparation.decomposed, let models = models[upstream] else { return Intake() }
        var intake = Intake()
        var shown: [ObjectRecord] = []
        // Neighbours are mostly of one model.
        var (model, collection) = ("", Int64(0))
        for (occurrence, content) in zip(decomposed.occurrences, preparation.contents) {
            if occurrence.name.model != model {
                model = occurrence.name.model
                collection = try names.collection(scope: scope, model: model, in: database)
            }
            let record = try record(collection: collection, identity: Identity(occurrence.name.identity))
            let version = try self.version(of: record, content: content, payload: occurrence.payload)
            if pinning, let index = record.index(of: version) {
                record.entries[index].uses += 1
                record.isModified = true
            }
            intake.pins.append(Pin(object: record.id, version: version))
            let contribution = Contribution(observation: observation, version: version, payload: occurrence.payload)
            if record.fresh.isEmpty {
                shown.append(record)
                record.fresh.append(contribution)
            } else if !record.fresh.contains(where: { $0.version == version }) {
                record.fresh.append(contribution)
            }
        }
        for record in shown {
            intake.objects.append(record.id)
            let fresh = record.fresh
            record.fresh = []
            try merge(fresh, into: record, models: models)
        }
        intake.isAllThereIs = intake.pins.allSatisfy { records[$0.object]?.isKnownOnly(as: $0.version) == true }
        return intake
    }

    /// The version of an object with a payload, stored if it is new.
    private func version(of record: ObjectRecord, content: UInt64, payload: [UInt8]) throws -> Int64 {
        if let known = record.entries.first(where: { $0.content == content }) { return known.version }
        numbers.version += 1
        try query("INSERT INTO _versions (id, payload) VALUES (?, ?)")
            .run(.integer(numbers.version), .text(payload))
        record.entries.append(
            ObjectRecord.Entry(version: numbers.version, content: content, uses: 0, observation: 0)
        )
        record.isModified = true
        return numbers.version
    }

    /// Adds what one answer says of an object to what is known of it (law 3).
    func merge(_ new: [Contribution], into record: ObjectRecord, models: UpstreamModels) throws {
        let contributing = record.contributing
        if new.count == 1, contributing.isEmpty {
            if record.entries.count == 1 {
                record.entries[0].observation = new[0].observation.sequence
                try use(new[0].observation.sequence, by: 1)
            } else {
                try assign([(new[0].version, new[0].observation.sequence)], to: record)
            }
            record.merged = .some(nil)
            markChanged(record, wasKnown: false)
            return
        }
        if new.count == 1, contributing.count == 1, contributing[0].version == new[0].version {
            // Seen again as it was: only the time can be newer.
            let old = try observation(contributing[0].observation)
            if supersedes(new[0].observation, old) {
                try assign([(new[0].version, new[0].observation.sequence)], to: record)
            }
            return
        }
        var state = try state(of: record)
        let model = try names.collection(record.collection, in: database).model
        let isChanged = state.merge(new, model: model, models: models.models, lag: lag)
        try assign(state.contributions.map { ($0.version, $0.observation.sequence) }, to: record)
        record.merged = .some(state.mergedPayload(model: model, models: models.models, lag: lag))
        if isChanged { markChanged(record, wasKnown: !contributing.isEmpty) }
    }

    /// Whether an observation of the very same version tells more than the one there is.
    private func supersedes(_ new: Observation, _ old: Observation) -> Bool {
        if new.kind == .list, old.kind != .list, new.start < old.end &+ lag { return false }
        return new.end > old.end
    }

    /// - Parameter wasKnown: whether an answer has shown the object before.
    private func markChanged(_ record: ObjectRecord, wasKnown: Bool) {
        record.changed = numbers.sequence
        record.isModified = true
        outcome.isChange = true
        // Nobody in memory shows what nothing was known of. An earlier answer of this very batch may show the rest, even
        // before the file has it.
        if record.isStored || wasKnown { outcome.changed.append(record.id) }
    }

    /// Makes these versions, newest first, the ones that contribute, each with its observation.
    func assign(_ contributions: [(version: Int64, observation: Int64)], to record: ObjectRecord) throws {
        var rest = record.entries
        for entry in rest where entry.observation != 0 { try use(entry.observation, by: -1) }
        var first: [ObjectRecord.Entry] = []
        for contribution in contributions {
            guard let index = rest.firstIndex(where: { $0.version == contribution.version }) else { continue }
            var entry = rest.remove(at: index)
            entry.observation = contribution.observation
            try use(entry.observation, by: 1)
            first.append(entry)
        }
        for index in rest.indices { rest[index].observation = 0 }
        record.entries = first + rest
        record.isModified = true
    }

    /// Changes which versions contribute otherwise than by an answer; the documents that show it are dirty then.
    func reassign(_ contributions: [(version: Int64, observation: Int64)], to record: ObjectRecord) throws {
        try assign(contributions, to: record)
        let (scope, model) = try names.collection(record.collection, in: database)
        let upstream = try names.scope(scope, in: database).upstream
        record.merged = .some(nil)
        if contributions.count > 1, let models = models[upstream]?.models {
            record.merged = .some(try state(of: record).mergedPayload(model: model, models: models, lag: lag))
        }
        _ = nextSequence()
        markChanged(record, wasKnown: true)
    }

    /// Takes a document's pins off their objects.
    func unpin(_ pins: [Pin]) throws {
        for pin in pins {
            guard let record = try record(pin.object), let index = record.index(of: pin.version) else { continue }
            record.entries[index].uses = max(record.entries[index].uses - 1, 0)
            record.isModified = true
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
        guard record.isStored else { return }
        try query("DELETE FROM _objects WHERE id = ?").run(.integer(record.id))
        try query("DELETE FROM _orphans WHERE object = ?").run(.integer(record.id))
    }

    private func writeRow(of record: ObjectRecord) throws {
        let version = record.contributing.first.map { SQLValue.integer($0.version) } ?? .null
        let state = SQLValue.blob(ObjectRecord.encode(record.entries))
        let merged = (record.merged ?? nil).map(SQLValue.text) ?? .null
        if !record.isStored {
            try query("INSERT INTO _objects VALUES (?, ?, ?, ?, ?, ?, ?)").run(
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
    }
}
