import Basics
import GRDB
import Mapping

/// Merges observations into the known state of objects.
extension WriterSession {
    /// Merges what one response shows of an object (law 3); returns the changes of members that were known, and
    /// warnings.
    func merge(_ new: [Contribution], into record: ObjectRecord, models: UpstreamModels, by source: MarkSource) throws
        -> (changes: [MemberChange], warnings: [MappingWarning])
    {
        let model = try names.collection(record.collection, in: database).model
        var new = new
        let write = new.first { $0.observation.kind == .write && !$0.isEmbedded }
        let wroteBefore = record.wrote ?? .min
        if let write { record.setWrite(at: write.observation.end) }
        // What was only unknown for a while is not created anew.
        var change: ObjectChange.Kind?
        if let mark = record.mark {
            let isSuperseded: Bool
            if mark.isTombstone {
                new = new.filter { $0.lo(lag: models.lag) > mark.time }
                new.removeAll { models.models.saysDeleted($0.payload, of: model) }
                // Older contributions and repeated deletions are ignored.
                guard !new.isEmpty else {
                    // A write in progress at the time of the deletion may have happened after it.
                    if let write, write.observation.end > mark.time {
                        try apply(.unobserved(write.observation.end), to: record, by: source)
                    }
                    return ([], [])
                }
                isSuperseded = true
            } else {
                // Whatever is known is older. If the two could not be ordered, the table would decide.
                let newest = max(mark.time, try record.base == nil ? .min : state(of: record).lastSeen ?? .min)
                isSuperseded = new.allSatisfy { $0.lo(lag: models.lag) > newest }
            }
            if isSuperseded {
                if !mark.isTombstone, !mark.isReused, record.base != nil { change = .changed }
                try supersede(mark, of: record, by: new, model: model, models)
            }
        }
        if try isMergedUnparsed(new, into: record, as: change, model: model, models) { return ([], []) }
        var state = try state(of: record)
        let wasKnown = state.base != nil
        let doubtsBefore = record.knowledge.doubts.map(\.member)
        var warnings: [MappingWarning] = []
        var failure: (any Error)?
        let history = ObjectHistory(wrote: wroteBefore, restarted: clock.restarted) { [self] source in
            do { return try word(of: ObservationID(rawValue: source)) } catch { failure = error }
            return nil
        }
        let merge = state.merge(new, model: model, models: models.models, lag: models.lag, history: history) {
            asksFrom($0, challenger: $1, of: record, model: model, models, warnings: &warnings)
        }
        if let failure { throw failure }
        try apply(state, to: record, of: model, models: models)
        recordHistory(of: merge, in: record, doubtsBefore: doubtsBefore)
        if merge.hasDeletionChanged {
            // The member that shows the deletion may not be a shared property.
            markChanged(record, wasKnown: wasKnown, as: state.deletedSince == nil ? .created : .deleted)
        } else if merge.isChanged {
            markChanged(record, wasKnown: wasKnown, as: change)
        } else if merge.hasDoubtChanged {
            markChanged(record, wasKnown: true, isJournaled: false)
        }
        if let time = merge.unordered { try apply(.unobserved(time), to: record, by: source) }
        return (merge.changes, warnings)
    }

    /// Handles the two most frequent cases without parsing JSON: a new object, and an unchanged one.
    private func isMergedUnparsed(
        _ new: [Contribution],
        into record: ObjectRecord,
        as change: ObjectChange.Kind?,
        model: String,
        _ models: UpstreamModels
    )
        throws -> Bool
    {
        guard new.count == 1, models.models.isSimple(model) else { return false }
        let seen = new[0]
        // It gives an object neither its first values nor its shape.
        if seen.observation.kind == .delivery { return false }
        guard let base = record.base else {
            if record.entries.count == 1 {
                record.entries[0].observation = seen.observation.id
                try use(seen.observation.id, by: 1)
                record.isModified = true
            } else {
                try rebase(record, on: seen.versionID, seen.observation.id)
            }
            try setKnowledge(.whole(isEmbedded: seen.isEmbedded), of: record)
            record.merged = nil
            markChanged(record, wasKnown: false, as: change)
            return true
        }
        guard base.version == seen.versionID, record.merged == nil, case .whole(let wasEmbedded) = record.knowledge
        else { return false }
        // What is given takes no response's place.
        if seen.observation.kind == .seed { return record.mark == nil }
        let old = try observation(base.observation)
        let (lo, known) = (seen.lo(lag: models.lag), old.lo(isEmbedded: wasEmbedded, lag: models.lag))
        let end = try end(of: base.observation)
        if lo <= known, seen.observation.end <= end { return true }
        // The later one becomes the last word, too.
        guard lo >= known, seen.observation.end >= end else { return false }
        if base.observation != seen.observation.id { try rebase(record, on: seen.versionID, seen.observation.id) }
        if wasEmbedded != seen.isEmbedded { try setKnowledge(.whole(isEmbedded: seen.isEmbedded), of: record) }
        return true
    }

    func apply(_ state: ObjectState, to record: ObjectRecord, of model: String, models: UpstreamModels) throws {
        var state = state
        let newest = state.newestPayload(model: model, models: models.models)
        if let base = state.base {
            let version = try upToDate(base, of: record, model: model, models.models)
            state.base?.version = version.rawValue
            try rebase(record, on: version, base.observation.id)
        }
        try setKnowledge(state.knowledge, of: record)
        record.merged = newest == state.base?.payload ? nil : newest
        if !models.models.isSimple(model) {
            record.accumulated = state.gathered.bytes
            record.deletedSince = state.deletedSince
        }
        record.isModified = true
    }

    /// The version of a base under the current declaration of its model: a new one if it was stored under an earlier
    /// one.
    private func upToDate(_ base: Contribution, of record: ObjectRecord, model: String, _ models: Models) throws
        -> VersionID
    {
        let declared = models.version(of: model)
        guard declared > 0 else { return base.versionID }
        let found = try query("SELECT declared FROM _versions WHERE id = ?").integer(base.version)
        guard found ?? 0 < declared else { return base.versionID }
        return try version(of: record, hasher.contentHash(base.payload), payload: base.payload, declared: declared)
            .version
    }

    /// Numbers the change of an object, and publishes it with the commit; the kind follows from `wasKnown` if it is not
    /// given.
    func markChanged(
        _ record: ObjectRecord,
        wasKnown: Bool,
        as kind: ObjectChange.Kind? = nil,
        isJournaled: Bool = true
    ) {
        record.changed = nextSequence()
        record.isModified = true
        effects.isChange = true
        if isJournaled { journal(kind ?? (wasKnown ? .changed : .created), record.id, at: record.changed) }
        // No response in memory shows an object that was unknown. But an earlier response of this batch may show one that is
        // not stored yet.
        if record.isStored || wasKnown { effects.changed.append(record.id) }
    }

    /// Makes a version the base of the settled values.
    func rebase(_ record: ObjectRecord, on version: VersionID, _ observation: ObservationID) throws {
        try use(observation, by: 1)
        try releaseBase(of: record)
        guard let index = record.index(of: version) else { throw StoreError.corrupt("version \(version) is missing") }
        var entry = record.entries.remove(at: index)
        entry.observation = observation
        record.entries.insert(entry, at: 0)
        record.isModified = true
    }

    /// Sets when the values were observed, and counts the uses of the observations.
    func setKnowledge(_ knowledge: Knowledge, of record: ObjectRecord) throws {
        guard knowledge != record.knowledge else { return }
        for source in knowledge.sources.subtracting(record.knowledge.sources) {
            try use(ObservationID(rawValue: source), by: 1)
        }
        for source in record.knowledge.sources.subtracting(knowledge.sources) {
            try use(ObservationID(rawValue: source), by: -1)
        }
        record.setKnowledge(knowledge)
    }
}
