import GRDB
import Mapping

/// Members of which two values were seen that cannot be ordered.
extension WriteSession {
    /// From when on a doubt that begins now is to be settled by asking; warns where it returns again and again.
    func asksFrom(
        _ member: String,
        challenger: [UInt8],
        of record: ObjectRecord,
        model: String,
        _ models: UpstreamModels,
        warnings: inout [MappingWarning]
    ) -> Int64 {
        let (time, returns) = doubts.begins(
            DoubtHistory.Member(object: record.id, member: member),
            challenger: hasher.content(challenger),
            at: clock.now(),
            lag: models.lag.lists
        )
        if returns == DoubtHistory.returnLimit, let warning = flipFlop(member, model: model, models.models) {
            warnings.append(warning)
        }
        return time
    }

    private func flipFlop(_ member: String, model: String, _ models: Models) -> MappingWarning? {
        guard let declaration = models.declaration(of: model) else { return nil }
        let path = declaration.keyPath(of: member)
        let local = (declaration.local + [path]).joined(separator: ", ")
        return MappingWarning(
            .flipFlop,
            "Write \"local: [\(local)]\" under the model \(model): responses disagree about \(path) again and again, though nothing was written. Each document then shows its own.",
            model: model,
            property: path
        )
    }

    /// Forgets the warnings whose line the config has now.
    func forgetSettledFlipFlops() throws {
        let kind = SQLValue.string(MappingWarning.Kind.flipFlop.rawValue)
        var subjects: [String] = []
        try query("SELECT subject FROM _warnings WHERE kind = ?").each(kind) { subjects.append($0.string(0)) }
        let settled = Set(
            models.values.flatMap(\.models.declarations).flatMap { model in model.local.map { "\(model.name).\($0)" } }
        )
        for subject in subjects where settled.contains(subject) {
            try query("DELETE FROM _warnings WHERE kind = ? AND subject = ?").run(kind, .string(subject))
        }
    }

    /// Notes what a merge has replaced and settled.
    func note(_ merge: ObjectState.Merge, of record: ObjectRecord, doubtsBefore: [String]) {
        for change in merge.changes {
            let member = DoubtHistory.Member(object: record.id, member: change.member)
            doubts.replaced(hasher.content(change.old), of: member, at: clock.now())
        }
        guard merge.hasDoubtChanged else { return }
        let open = record.knowledge.doubts.map(\.member)
        for member in doubtsBefore where !open.contains(member) {
            doubts.settled(DoubtHistory.Member(object: record.id, member: member), at: clock.now())
        }
    }
}
