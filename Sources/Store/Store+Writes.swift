import Dispatch
import Mapping

/// Writes, and what they leave behind (law 10).
extension Store {
    /// Takes in what a write's answer tells, and makes what it does not tell, or has made worthless, be asked for again;
    /// returns after the commit that holds it.
    ///
    /// What was handed over before is taken in first, so that whoever is to be told of a change is known by then. A pattern
    /// costs a look at the URL of every document of its upstream, by a reader, before that; the documents it finds are
    /// removed in slices, so that others get their turn. What is told is forgone where there is no room for it.
    @discardableResult
    public func settle(_ write: SettledWrite) async throws(StoreError) -> WriteSettlement {
        try await remove(matching: write.patterns)
        do {
            return try await take(in: write)
        } catch {
            guard write.observation != nil else { throw error }
            var write = write
            write.observation = nil
            return try await take(in: write)
        }
    }

    private func take(in write: SettledWrite) async throws(StoreError) -> WriteSettlement {
        // Nothing of objects to be told: it may overtake what waits.
        if write.observation == nil, core.models[write.upstream]?.models.declarations.isEmpty ?? true {
            return try await core.write(.durable) { try $0.settle(write, nil) }
        }
        let size = write.observation?.body.count ?? 0
        await core.admission.waitToEnter(bytes: size)
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<WriteSettlement, StoreError>, Never>) in
            ingest.async { [self] in
                let core = core
                let preparation = write.observation.map { observation in
                    Preparation(
                        body: observation.body,
                        rule: observation.rule,
                        surroundings: observation.surroundings,
                        models: core.models[observation.upstream],
                        hasher: core.hasher
                    )
                }
                core.post(
                    .prompt,
                    bytes: size,
                    { session in
                        let settlement = try session.settle(write, preparation)
                        if let preparation, let observation = write.observation {
                            try session.warn(
                                preparation.warnings,
                                about: observation.rule,
                                url: observation.url,
                                at: session.clock.now()
                            )
                        }
                        return settlement
                    },
                    done: { result in
                        core.admission.leave(bytes: size)
                        continuation.resume(returning: result)
                    }
                )
            }
        }
        return try result.get()
    }

    /// Removes the documents that were there and whose paths match.
    private func remove(matching patterns: [InvalidationPattern]) async throws(StoreError) {
        guard !patterns.isEmpty else { return }
        let last = try await core.write(.prompt) { $0.bar(patterns) }
        let found = try await core.read {
            try PatternSearch(database: $0).documents(matching: patterns, until: last)
        }
        var rest = found[...]
        while !rest.isEmpty {
            let slice = Array(rest.prefix(Self.slice))
            rest = rest.dropFirst(slice.count)
            try await core.write(.prompt) { session in
                for id in slice { try session.remove(id) }
            }
        }
    }

    /// How many documents are removed in one transaction.
    private static let slice = 512

    /// Takes in that a retrieval did not find an object; returns after the commit that holds it.
    public func note(_ absence: ObservedAbsence) async throws(StoreError) {
        await core.admission.waitToEnter(bytes: 0)
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Void, StoreError>, Never>) in
            ingest.async { [self] in
                let core = core
                core.post(.prompt, { try $0.note(absence) }) { result in
                    core.admission.leave(bytes: 0)
                    continuation.resume(returning: result)
                }
            }
        }
        try result.get()
    }
}
