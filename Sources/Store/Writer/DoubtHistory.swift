import Basics
import Mapping

/// The members recently in doubt and the values recently replaced, which determine when to fetch because of a new
/// doubt.
///
/// It is in memory, and bounded: a doubt without history is resolved at once.
struct DoubtHistory {
    /// How often a doubt must return before the upstream counts as contradicting itself.
    static let returnLimit = 3

    struct Member: Hashable {
        var object: ObjectID
        var member: String
    }

    private struct Record {
        /// Digest of the last replaced value, and when it was replaced.
        var replaced: (value: UInt64, time: Int64)?
        var resolved: Int64?
        var returns = 0
    }

    private var records = BoundedTable<Member, Record>(limit: 4_096)

    /// Records that a value, given by its digest, was replaced.
    mutating func replaced(_ value: UInt64, of member: Member, at time: Int64) {
        change(member) { $0.replaced = (value, time) }
    }

    mutating func resolved(_ member: Member, at time: Int64) { change(member) { $0.resolved = time } }

    /// When to fetch documents that show a member which has just come into doubt, and how often this doubt has
    /// returned.
    ///
    /// They are fetched at once, with two exceptions. A value that was replaced within `lag` most likely comes from a
    /// list that lags. A doubt that returns within `lag` most likely comes from an upstream that contradicts itself:
    /// the wait doubles each time.
    mutating func begins(_ member: Member, challenger: UInt64, at time: Int64, lag: Int64)
        -> (asksFrom: Int64, returns: Int)
    {
        var (asksFrom, returns) = (time, 0)
        change(member) { record in
            if let resolved = record.resolved, time - resolved < lag {
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
        var record = records[member] ?? Record()
        body(&record)
        records[member] = record
    }
}

extension WriterSession {
    /// When to fetch because of a doubt that begins now; warns if the doubt keeps returning.
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
            challenger: hasher.contentHash(challenger),
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
            "Responses disagree about \(path) again and again, although nothing was written. With \"local: [\(local)]\" under the model \(model), each document shows its own value.",
            model: model,
            property: path
        )
    }

    /// Removes the warnings whose advice the configuration now follows.
    func forgetFollowedFlipFlops() throws {
        let kind = MappingWarning.Kind.flipFlop.rawValue
        let subjects = try query("SELECT subject FROM _warnings WHERE kind = ?").all(kind) { $0.string(0) }
        let declarations = models.values.flatMap(\.models.declarations)
        let followed = Set(declarations.flatMap { model in model.local.map { "\(model.name).\($0)" } })
        for subject in subjects where followed.contains(subject) {
            try query("DELETE FROM _warnings WHERE kind = ? AND subject = ?").run(kind, subject)
        }
    }

    /// Records the values that a merge replaced, and the doubts that it resolved.
    func recordHistory(of merge: ObjectState.Merge, in record: ObjectRecord, doubtsBefore: [String]) {
        for change in merge.changes {
            let member = DoubtHistory.Member(object: record.id, member: change.member)
            doubts.replaced(hasher.contentHash(change.old), of: member, at: clock.now())
        }
        guard merge.hasDoubtChanged else { return }
        let open = record.knowledge.doubts.map(\.member)
        for member in doubtsBefore where !open.contains(member) {
            doubts.resolved(DoubtHistory.Member(object: record.id, member: member), at: clock.now())
        }
    }
}
