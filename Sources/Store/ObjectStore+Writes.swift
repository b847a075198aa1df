import Dispatch
import Mapping

/// Writes, and what they leave behind (law 10).
extension ObjectStore {
    /// Takes in what a write's answer tells, and makes what it does not tell, or has made worthless, be asked for again;
    /// returns after the commit that holds it.
    ///
    /// Ahead of the answers that were handed over before and are still to be taken in: these are older whenever they come.
    /// Only where one of them may be all that says which object was written to, it waits for them. What is told is forgone
    /// where there is no room for it, and counts as changed without telling then. A pattern costs a look at the URL of every
    /// document of its upstream, by a reader, before all that; the documents it finds are removed in slices, so that others
    /// get their turn.
    ///
    /// - Parameter committed: called on the writer's thread, before anything that was handed over is taken in behind it: what
    ///   has been handed over and not committed by then may show what is known newer.
    @discardableResult
    public func settle(
        _ write: SettledWrite,
        committed: @escaping @Sendable () -> Void = {}
    ) async throws(StoreError) -> WriteSettlement {
        try await remove(matching: write.patterns)
        let prepared = await prepare(write.observation)
        do {
            return try await settle(write, prepared, isObservationSkipped: false, committed)
        } catch {
            guard write.observation != nil else { throw error }
            return try await settle(write, prepared, isObservationSkipped: true, committed)
        }
    }

    private func settle(
        _ write: SettledWrite,
        _ prepared: PreparedBody?,
        isObservationSkipped: Bool,
        _ committed: @escaping @Sendable () -> Void
    ) async throws(StoreError) -> WriteSettlement {
        let waiting = core.queuedResponses
        let bytes = isObservationSkipped ? 0 : write.observation?.body.count ?? 0
        return try await enqueueAhead(bytes: bytes, committed) { session, isAhead in
            if isAhead, try !session.mayGoAhead(write, prepared, ahead: waiting) { return nil }
            let settlement = try session.settle(write, prepared, isObservationSkipped: isObservationSkipped)
            if let observation = write.observation {
                try session.warn(
                    settlement.warnings,
                    about: observation.rule,
                    url: observation.url,
                    at: session.clock.now()
                )
            }
            return settlement
        }
    }

    /// Takes a write's answer apart.
    private func prepare(_ observation: ReceivedObservation?) async -> PreparedBody? {
        guard let observation else { return nil }
        return await withCheckedContinuation { continuation in
            told.async { [core] in
                let prepared = PreparedBody(
                    body: observation.body,
                    rule: observation.rule,
                    surroundings: observation.surroundings,
                    models: core.models[observation.upstream],
                    hasher: core.hasher,
                    isExamined: core.examine(
                        BodyExaminer.Subject(
                            body: observation.body,
                            rule: observation.rule,
                            surroundings: observation.surroundings,
                            url: observation.url
                        ),
                        bytes: observation.body.count,
                        upstream: observation.upstream
                    )
                )
                continuation.resume(returning: prepared)
            }
        }
    }

    /// Has the writer do something ahead of all that waits; where it gives nil, behind what was handed over before.
    private func enqueueAhead<Value: Sendable>(
        bytes: Int = 0,
        _ committed: @escaping @Sendable () -> Void,
        _ work: @escaping @Sendable (WriterSession, _ isAhead: Bool) throws -> Value?
    ) async throws(StoreError) -> Value {
        let core = core
        let early = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Value?, StoreError>, Never>) in
            core.post(.express, bytes: bytes, { try work($0, true) }) { result in
                if case .success(.some) = result { committed() }
                continuation.resume(returning: result)
            }
        }
        if let value = try early.get() { return value }
        let late = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Value?, StoreError>, Never>) in
            enqueue(.prompt, bytes: bytes, { try work($0, false) }) { result in
                if case .success = result { committed() }
                continuation.resume(returning: result)
            }
        }
        guard let value = try late.get() else { preconditionFailure("nothing was to be waited for any more") }
        return value
    }

    /// Removes the documents that were there and whose paths match.
    private func remove(matching patterns: [InvalidationPattern]) async throws(StoreError) {
        guard !patterns.isEmpty else { return }
        let last = try await core.write(.express) { $0.ban(patterns) }
        let found = try await core.read {
            try PatternSearch(database: $0).documents(matching: patterns, until: last)
        }
        var rest = found[...]
        while !rest.isEmpty {
            let slice = Array(rest.prefix(Self.slice))
            rest = rest.dropFirst(slice.count)
            try await core.write(.express) { session in
                for id in slice { try session.remove(id) }
            }
        }
    }

    /// How many documents are removed in one transaction.
    private static let slice = 512

    /// Takes in that a retrieval did not find an object; returns after the commit that holds it.
    ///
    /// Ahead of what was handed over before, and with `committed`, as `settle`.
    public func note(
        _ absence: ObservedAbsence,
        committed: @escaping @Sendable () -> Void = {}
    ) async throws(StoreError) {
        let waiting = core.queuedResponses
        _ = try await enqueueAhead(committed) { session, isAhead -> Bool? in
            if isAhead, try !session.mayGoAhead(absence, ahead: waiting) { return nil }
            try session.note(absence)
            return true
        }
    }
}
