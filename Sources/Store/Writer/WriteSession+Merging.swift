import GRDB
import Mapping

/// What is known of objects: merged, reassigned, no longer shown.
extension WriteSession {
    /// Adds what one answer says of an object to what is known of it (law 3).
    func merge(_ new: [Contribution], into record: ObjectRecord, models: UpstreamModels) throws {
        let model = try names.collection(record.collection, in: database).model
        var new = new
        if let mark = record.mark {
            new = new.filter { mark.isOverridden(by: $0.observation, lag: lag) }
            if mark.isTombstone { new.removeAll { models.models.saysDeleted($0.payload, of: model) } }
            // What is older tells nothing of what there is now, nor does what says once more that it is gone.
            guard !new.isEmpty else { return }
            try supersede(mark, of: record)
        }
        let contributing = record.contributing
        guard models.models.isSimple(model) else { return try mergeByRules(new, into: record, of: model, models) }
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
        let isChanged = state.merge(new, model: model, models: models.models, lag: lag)
        try assign(state.contributions.map { ($0.version, $0.observation.sequence) }, to: record)
        record.merged = .some(state.mergedPayload(model: model, models: models.models, lag: lag))
        if isChanged { markChanged(record, wasKnown: !contributing.isEmpty) }
    }

    /// The same where models have checks, policies, deletions or versions: all of it is read.
    private func mergeByRules(
        _ new: [Contribution],
        into record: ObjectRecord,
        of model: String,
        _ models: UpstreamModels
    ) throws {
        var state = try state(of: record)
        let wasKnown = !state.contributions.isEmpty
        let wasDeleted = state.isDeleted(model: model, models: models.models, lag: lag)
        let isChanged = state.merge(new, model: model, models: models.models, lag: lag)
        try assign(state.contributions.map { ($0.version, $0.observation.sequence) }, to: record)
        try settle(record, as: state, of: model, models: models.models)
        // What an object says of its own deletion shows in documents though no member of theirs differs.
        if isChanged || record.isDeleted != wasDeleted { markChanged(record, wasKnown: wasKnown) }
    }

    /// Notes what is known of an object apart from its versions.
    func settle(_ record: ObjectRecord, as state: ObjectState, of model: String, models: Models) throws {
        record.merged = .some(try merged(state, of: model, models: models))
        if !models.isSimple(model) {
            record.accumulated = state.accumulation.bytes
            record.isDeleted = state.isDeleted(model: model, models: models, lag: lag)
        }
        record.isModified = true
    }

    /// The newest members, where the first version does not have them all as they lie in the file.
    private func merged(_ state: ObjectState, of model: String, models: Models) throws -> [UInt8]? {
        if let merged = state.mergedPayload(model: model, models: models, lag: lag) { return merged }
        guard models.version(of: model) > 0, let first = state.contributions.first else { return nil }
        return try payload(of: first.version) == first.payload ? nil : first.payload
    }

    /// Whether an observation of the very same version tells more than the one there is.
    private func supersedes(_ new: Observation, _ old: Observation) -> Bool {
        if new.kind == .list, old.kind != .list, new.start < old.end &+ lag { return false }
        return new.end > old.end
    }

    /// - Parameter wasKnown: whether an answer has shown the object before.
    func markChanged(_ record: ObjectRecord, wasKnown: Bool) {
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
        if let models = models[upstream]?.models, contributions.count > 1 || !models.isSimple(model) {
            var state = try state(of: record)
            // What the answer that went alone had to tell goes with it.
            state.gatherAnew(model: model, models: models)
            try settle(record, as: state, of: model, models: models)
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
}
