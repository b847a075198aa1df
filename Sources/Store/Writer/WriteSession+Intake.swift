import GRDB
import Mapping

/// What one answer shows of objects, taken in.
extension WriteSession {
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
    ///
    /// - Parameter source: the request that was answered.
    func take(
        _ preparation: Preparation,
        from source: MarkSource,
        scope: ScopeID,
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
        var (model, collection, declared) = ("", CollectionID.zero, 0)
        let mayBeMarked = recentMarks.mayConcern(observation, lag: models.lag)
        let areEmbedded = decomposed.areEmbedded(in: observation.kind)
        for (index, occurrence) in decomposed.occurrences.enumerated() {
            // One list may take longer than there is time to close the store.
            if observation.kind != .write, isGivenUp() { throw StoreError.closed }
            if occurrence.name.model != model {
                model = occurrence.name.model
                collection = try names.collection(scope: scope, model: model, in: database)
                declared = models.models.version(of: model)
            }
            let record = try record(collection: collection, identity: Identity(occurrence.name.identity))
            if mayBeMarked, let recent = recentMarks.mark(of: occurrence, upstream: upstream, scope: scope) {
                try apply(recent.mark, to: record, by: recent.source)
            }
            let known = numbers.version
            let version = try self.version(
                of: record,
                preparation.contents[index],
                payload: occurrence.payload,
                declared: declared
            )
            if version > known || !occurrence.boundKeys.isEmpty {
                try note(keysOf: occurrence, for: record, observation.kind)
            }
            if pinning, let index = record.index(of: version) {
                record.entries[index].uses += 1
                record.isModified = true
            }
            intake.pins.append(Pin(object: record.id, version: version))
            let contribution = Contribution(
                observation: observation,
                version: version,
                payload: occurrence.payload,
                origin: origin,
                isEmbedded: areEmbedded[index]
            )
            if record.fresh.isEmpty { shown.append(record) }
            if taken.insert(version).inserted { record.fresh.append(contribution) }
        }
        var former: [(change: MemberChange, model: String)] = []
        for record in shown {
            if observation.kind != .write, isGivenUp() { throw StoreError.closed }
            intake.objects.append(record.id)
            let fresh = record.fresh
            record.fresh = []
            if fresh.count > 1 {
                try warn(of: fresh, showing: record, in: decomposed, models: models.models, &intake)
            }
            let (changes, warnings) = try merge(fresh, into: record, models: models, by: source)
            intake.warnings += warnings
            if !changes.isEmpty, models.models.deleteFormer {
                let model = try names.collection(record.collection, in: database).model
                former += changes.map { ($0, model) }
            }
        }
        if !former.isEmpty {
            try deleteFormer(former, scope: scope, besides: decomposed.occurrences, models: models, by: source)
        }
        intake.isAllThereIs = intake.pins.allSatisfy { records[$0.object]?.isKnownOnly(as: $0.version) == true }
        return intake
    }

    /// The version of an object with a payload, stored if it is new.
    ///
    /// What was stored under an earlier version of the model is another one, though its bytes be the same.
    ///
    /// - Parameter digest: the payload's.
    func version(of record: ObjectRecord, _ digest: UInt64, payload: [UInt8], declared: Int) throws -> Int64 {
        let content = digest ^ UInt64(truncatingIfNeeded: declared) &* 0x9E37_79B9_7F4A_7C15
        if let known = record.index(ofContent: content) { return record.entries[known].version }
        numbers.version += 1
        try query("INSERT INTO _versions (id, payload, declared) VALUES (?, ?, ?)").run(
            .integer(numbers.version),
            .text(payload),
            declared == 0 ? .null : .integer(Int64(declared))
        )
        record.entries.append(
            ObjectRecord.Entry(version: numbers.version, content: content, uses: 0, observation: 0)
        )
        record.isModified = true
        return numbers.version
    }

    /// Notes by which keys an object can be found.
    ///
    /// A read's path names what the answer shows, be it by an alias. A write's path named it before the write: where the
    /// answer shows another value of that key, the object may have been renamed.
    private func note(keysOf occurrence: Occurrence, for record: ObjectRecord, _ kind: Observation.Kind) throws {
        for key in occurrence.keys {
            try query("INSERT OR IGNORE INTO _keys VALUES (?, ?, NULL)")
                .run(.id(record.id), .integer(hasher.lookUp(key.value)))
        }
        for key in occurrence.boundKeys {
            let value = SQLValue.integer(hasher.lookUp(key.value))
            if kind == .write, occurrence.keys.contains(where: { $0.member == key.member }) {
                try query("UPDATE _keys SET bound = NULL WHERE object = ? AND value = ?").run(
                    .id(record.id),
                    value
                )
            } else {
                try query("INSERT OR REPLACE INTO _keys VALUES (?, ?, 1)").run(.id(record.id), value)
            }
        }
    }
}
