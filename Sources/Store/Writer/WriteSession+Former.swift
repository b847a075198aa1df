import GRDB
import Mapping

/// Objects that a relation named and names no more, where the config has these deleted (`former: delete`).
extension WriteSession {
    /// Makes tombstones of what an answer's changes take out of such relations, as of that answer.
    ///
    /// What the answer itself shows, be it elsewhere, is there; and of what an answer that overlapped with this one shows
    /// nobody knows (law 3).
    func deleteFormer(
        _ changes: [(change: MemberChange, model: String)],
        scope: ScopeID,
        besides shown: [Occurrence],
        models: UpstreamModels,
        by source: MarkSource
    ) throws {
        let former = changes.flatMap { change, model in
            models.models.formerObjects(in: change, of: model).map { (name: $0, observation: change.observation) }
        }
        guard !former.isEmpty else { return }
        let shown = Set(shown.map(\.name))
        for (name, observation) in former where !shown.contains(name) {
            let collection = try names.collection(scope: scope, model: name.model, in: database)
            guard let record = try existingRecord(collection: collection, identity: Identity(name.identity)),
                record.base != nil, let lastSeen = try state(of: record).lastSeen,
                observation.lo(isEmbedded: false, lag: models.lag) > lastSeen
            else { continue }
            try apply(.tombstone(observation.effectiveTime), to: record, by: source)
        }
    }
}
