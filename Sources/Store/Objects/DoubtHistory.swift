import GRDB
import Mapping

/// Which members were in doubt lately, and what their values replaced: from when on a new doubt is to be settled by asking.
///
/// In memory, and bounded: what is forgotten is asked for at once.
struct DoubtHistory {
    /// A doubt that returns so often is the upstream's own.
    static let returnLimit = 3
    private static let capacity = 4096

    /// One member of one object.
    struct Member: Hashable {
        var object: ObjectID
        var member: String
    }

    private struct Record {
        /// Digest of the value that was replaced last, and when.
        var replaced: (value: UInt64, time: Int64)?
        /// When a doubt was settled last.
        var settled: Int64?
        var returns = 0
    }

    private var records: [Member: Record] = [:]

    /// Notes that a value, given by its digest, gave way to another one.
    mutating func replaced(_ value: UInt64, of member: Member, at time: Int64) {
        change(member) { $0.replaced = (value, time) }
    }

    /// Notes that a doubt is settled.
    mutating func settled(_ member: Member, at time: Int64) {
        change(member) { $0.settled = time }
    }

    /// From when on documents that show a member are to be asked for again, which has just come into doubt, and how often
    /// such a doubt has returned.
    ///
    /// At once, but for two: a value that was replaced within `lag` most likely comes from a list that lags, and a doubt
    /// that returns within `lag` from an upstream that disagrees with itself; it waits twice as long each time.
    mutating func begins(
        _ member: Member,
        challenger: UInt64,
        at time: Int64,
        lag: Int64
    ) -> (asksFrom: Int64, returns: Int) {
        var asksFrom = time
        var returns = 0
        change(member) { record in
            if let settled = record.settled, time - settled < lag {
                record.returns += 1
                asksFrom = time + lag << min(record.returns - 1, 10)
            } else {
                record.returns = 0
                if let (value, replaced) = record.replaced, value == challenger, time - replaced < lag {
                    asksFrom = replaced + lag
                }
            }
            returns = record.returns
        }
        return (asksFrom, returns)
    }

    private mutating func change(_ member: Member, _ body: (inout Record) -> Void) {
        if records.count >= Self.capacity, records[member] == nil { records = [:] }
        body(&records[member, default: Record()])
    }
}

/// Members of which two values were seen that cannot be ordered.
extension WriterSession {
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
