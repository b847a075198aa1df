import GRDB
import Mapping

/// Documents renewed by a 304.
extension WriteSession {
    /// Renews a document by a 304, if it shows the newest of everything.
    func refresh(
        _ id: DocumentID,
        head: [UInt8],
        policy: [UInt8],
        start: Int64,
        end: Int64
    ) throws -> RefreshOutcome {
        let found = try query("SELECT scope, observation, verified, url FROM _documents WHERE id = ?")
            .first(.id(id)) {
                (
                    scope: $0.id(0, as: ScopeID.self), observation: $0.integer(1), verified: $0.integer(2),
                    url: $0.string(3)
                )
            }
        guard let found else { return .gone }
        let scope = try names.scope(found.scope, in: database)
        let stored = try StoredBody(document: id, in: database)
        let known = try observation(found.observation)
        if try isDirty(stored, known, scope: found.scope, upstream: scope.upstream, since: found.verified) {
            return .dirty
        }
        _ = nextSequence()
        try renew(found.observation, start: start, end: end)
        if let models = models[scope.upstream] {
            try confirm(
                stored,
                observation: try observation(found.observation),
                models: models,
                by: MarkSource(method: "GET", path: String(found.url.beforeQuery))
            )
        }
        try query("UPDATE _documents SET head = ?, policy = ?, verified = ? WHERE id = ?")
            .run(.blob(head), .blob(policy), .integer(numbers.sequence), .id(id))
        return .renewed
    }

    /// Sees the versions of a clean document again, at its renewed observation.
    private func confirm(
        _ stored: StoredBody,
        observation: Observation,
        models: UpstreamModels,
        by source: MarkSource
    ) throws {
        // Costs a look at all payloads, which most documents need not have.
        var areEmbedded: [Bool]?
        var seen: [ObjectID: [(version: Int64, pin: Int)]] = [:]
        var taken: Set<Int64> = []
        for (index, pin) in stored.pins.enumerated() where taken.insert(pin.version).inserted {
            seen[pin.object, default: []].append((pin.version, index))
        }
        for (id, versions) in seen {
            guard let record = try record(id) else { continue }
            // The renewed row says it already.
            if let base = record.base, base.observation == observation.sequence, versions.count == 1,
                base.version == versions[0].version, case .whole = record.knowledge
            {
                continue
            }
            let embedded = try areEmbedded ?? stored.areEmbedded(in: observation.kind, database)
            areEmbedded = embedded
            let contributions = try versions.map { version, pin in
                Contribution(
                    observation: observation,
                    version: version,
                    payload: try known(version, of: record),
                    isEmbedded: embedded[pin]
                )
            }
            _ = try merge(contributions, into: record, models: models, by: source)
        }
    }

    private func isDirty(
        _ stored: StoredBody,
        _ observation: Observation,
        scope: ScopeID,
        upstream: String,
        since verified: Int64
    ) throws -> Bool {
        // What the batch has changed so far is in memory only.
        if !records.isEmpty { try flush() }
        let suspects = try StoredBody.suspects(among: Set(stored.pins.map(\.object)), since: verified, in: database)
        guard !suspects.isEmpty else { return false }
        guard let skeleton = stored.skeleton, let models = models[upstream] else { return true }
        var doubts: Set<Int64> = []
        let composition = try models.composer.compose(
            skeleton: skeleton,
            pins: try stored.payloads(in: database),
            keyed: stored.keyed,
            observation: observation,
            mayHaveChanged: { pin, _ in suspects.contains(stored.pins[pin].object) },
            doubts: &doubts,
            state: { try state(of: $0, scope: scope) }
        )
        return composition != .unchanged || !doubts.isEmpty
    }
}
