import GRDB
import Mapping

/// What is known of objects: merged, reassigned, no longer shown.
extension WriteSession {
    /// Adds what one answer says of an object to what is known of it (law 3).
    ///
    /// - Parameter changes: which members known before have other values now.
    func merge(
        _ new: [Contribution],
        into record: ObjectRecord,
        models: UpstreamModels,
        changes: inout [MemberChange]
    ) throws {
        let model = try names.collection(record.collection, in: database).model
        var new = new
        if let mark = record.mark {
            new = new.filter { mark.isOverridden(by: $0.observation, lag: models.lag) }
            if mark.isTombstone { new.removeAll { models.models.saysDeleted($0.payload, of: model) } }
            // What is older tells nothing of what there is now, nor does what says once more that it is gone.
            guard !new.isEmpty else { return }
            try supersede(mark, of: record, by: new, model: model, models.models)
        }
        let contributing = record.contributing
        guard models.models.isSimple(model) else {
            return try mergeByRules(new, into: record, of: model, models, changes: &changes)
        }
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
            if ObjectState.isNeedless(old, beside: new[0].observation, lag: models.lag) {
                return try assign([(new[0].version, new[0].observation.sequence)], to: record)
            }
            if ObjectState.isNeedless(new[0].observation, beside: old, lag: models.lag) { return }
        }
        var state = try state(of: record)
        let isChanged = state.merge(new, model: model, models: models.models, lag: models.lag, changes: &changes)
        try assign(state.contributions.map { ($0.version, $0.observation.sequence) }, to: record)
        record.merged = .some(state.mergedPayload(model: model, models: models.models, lag: models.lag))
        if isChanged { markChanged(record, wasKnown: !contributing.isEmpty) }
    }

    /// The same where models have checks, policies, deletions or versions: all of it is read.
    private func mergeByRules(
        _ new: [Contribution],
        into record: ObjectRecord,
        of model: String,
        _ models: UpstreamModels,
        changes: inout [MemberChange]
    ) throws {
        var state = try state(of: record)
        let wasKnown = !state.contributions.isEmpty
        let wasDeleted = wasKnown && state.isDeleted(model: model, models: models.models, lag: models.lag)
        let isChanged = state.merge(new, model: model, models: models.models, lag: models.lag, changes: &changes)
        try assign(state.contributions.map { ($0.version, $0.observation.sequence) }, to: record)
        try settle(record, as: state, of: model, models: models)
        let isDeleted = record.isDeleted == true
        if isDeleted != wasDeleted {
            // What decides of it need not be a property that documents share.
            markChanged(record, wasKnown: wasKnown, as: isDeleted ? .deleted : .created)
        } else if isChanged {
            markChanged(record, wasKnown: wasKnown)
        }
    }

    /// Notes what is known of an object apart from its versions.
    func settle(_ record: ObjectRecord, as state: ObjectState, of model: String, models: UpstreamModels) throws {
        record.merged = .some(try merged(state, of: model, models: models))
        if !models.models.isSimple(model) {
            record.accumulated = state.accumulation.bytes
            record.isDeleted = state.isDeleted(model: model, models: models.models, lag: models.lag)
        }
        record.isModified = true
    }

    /// The newest members, where the first version does not have them all as they lie in the file.
    private func merged(_ state: ObjectState, of model: String, models: UpstreamModels) throws -> [UInt8]? {
        if let merged = state.mergedPayload(model: model, models: models.models, lag: models.lag) { return merged }
        guard models.models.version(of: model) > 0, let first = state.contributions.first else { return nil }
        return try payload(of: first.version) == first.payload ? nil : first.payload
    }

    /// Gives the change of an object a number, and tells of it.
    ///
    /// - Parameters:
    ///   - wasKnown: whether an answer has shown the object before.
    ///   - kind: what became of it, if that does not go by `wasKnown`.
    ///   - isNews: whether those who follow all changes are told.
    func markChanged(
        _ record: ObjectRecord,
        wasKnown: Bool,
        as kind: ObjectChange.Kind? = nil,
        isNews: Bool = true
    ) {
        record.changed = nextSequence()
        record.isModified = true
        outcome.isChange = true
        if isNews { journal(kind ?? (wasKnown ? .changed : .created), record.id, at: record.changed) }
        // Nobody in memory shows what nothing was known of. An earlier answer of this very batch may show the rest, even
        // before the file has it.
        if record.isStored || wasKnown { outcome.changed.append(record.id) }
    }

    /// Makes these versions, newest first, the ones that contribute, each with its observation.
    func assign(_ contributions: [(version: Int64, observation: Int64)], to record: ObjectRecord) throws {
        var rest: [ObjectRecord.Entry] = []
        for entry in record.entries {
            if entry.observation != 0 { try use(entry.observation, by: -1) }
            // The first entry of a version is the one that counts its documents.
            if !rest.contains(where: { $0.version == entry.version }) { rest.append(entry) }
        }
        var first: [ObjectRecord.Entry] = []
        for contribution in contributions {
            var entry: ObjectRecord.Entry
            if let index = rest.firstIndex(where: { $0.version == contribution.version }) {
                entry = rest.remove(at: index)
            } else if let again = first.first(where: { $0.version == contribution.version }) {
                entry = again
                entry.uses = 0
            } else {
                continue
            }
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
        if let models = models[upstream], contributions.count > 1 || !models.models.isSimple(model) {
            var state = try state(of: record)
            // What the answer that went alone had to tell goes with it.
            state.gatherAnew(model: model, models: models.models)
            try settle(record, as: state, of: model, models: models)
        }
        markChanged(record, wasKnown: true)
    }

    /// Takes a document's pins off their objects.
    func unpin(_ pins: [Pin]) throws {
        for pin in pins {
            guard let record = try record(pin.object) else { continue }
            if let index = record.index(of: pin.version) {
                record.entries[index].uses = max(record.entries[index].uses - 1, 0)
                record.isModified = true
            } else if record.spilledUses > 0 {
                try unpin(spilled: pin.version, of: record)
            }
        }
    }

    /// Takes one pin off a version that has no entry in its object's state.
    private func unpin(spilled version: Int64, of record: ObjectRecord) throws {
        guard
            let uses = try query("SELECT uses FROM _spilled WHERE version = ?").first(
                .integer(version),
                read: { $0.integer(0) }
            )
        else { return }
        record.spilledUses = max(record.spilledUses - 1, 0)
        record.isModified = true
        guard uses <= 1 else {
            return try query("UPDATE _spilled SET uses = ? WHERE version = ?").run(
                .integer(uses - 1),
                .integer(version)
            )
        }
        try query("DELETE FROM _spilled WHERE version = ?").run(.integer(version))
        try query("DELETE FROM _versions WHERE id = ?").run(.integer(version))
    }
}
