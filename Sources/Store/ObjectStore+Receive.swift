import Dispatch
import Mapping

/// Answers: handed over, taken apart, committed.
extension ObjectStore {
    /// Stores an answer whole, and returns after the commit that holds it; waits for room in the queue.
    public func receive(_ document: ReceivedDocument) async throws(StoreError) -> Receipt {
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Receipt, StoreError>, Never>) in
            receive(document) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    /// Stores an answer whole as soon as there is room in the queue.
    ///
    /// What is handed over later is taken in later, but for what writes have done. `done` runs on the writer's thread after
    /// the commit that holds the answer, and before those who handed something over later hear of theirs.
    ///
    /// - Parameter isAwaited: whether somebody waits for the commit, which then waits for no company.
    public func receive(
        _ document: ReceivedDocument,
        isAwaited: Bool = false,
        done: @escaping @Sendable (Result<Receipt, StoreError>) -> Void
    ) {
        let handover = handedOver(document)
        core.admission.enter(bytes: document.body.count) { [self] in
            ingest(document, handover, isAwaited ? .prompt : .batched, done: done)
        }
    }

    /// Counts an answer among those that are to be taken in.
    private func handedOver(_ document: ReceivedDocument) -> (time: Int64, place: Int64) {
        let place = core.hasher.place(upstream: document.key.upstream, url: document.key.url)
        core.waiting.enter(document, place: place)
        return (core.clock.now(), place)
    }

    private func ingest(
        _ document: ReceivedDocument,
        _ handover: (time: Int64, place: Int64),
        _ urgency: Job.Urgency = .batched,
        done: @escaping @Sendable (Result<Receipt, StoreError>) -> Void
    ) {
        // The store itself: it must not end before what it was given has reached the writer.
        ingest.async { [self] in
            let core = core
            let finish: @Sendable (Result<Receipt, StoreError>, _ weight: Int) -> Void = { result, weight in
                core.preparations.leave(weight)
                // What is given up is counted as what still waits.
                if case .failure(.closed) = result {} else { core.waiting.leave(document, place: handover.place) }
                // Whoever sees the queue empty finds everybody told.
                done(result)
                core.admission.leave(bytes: document.body.count)
            }
            guard !core.isGivenUp else { return finish(.failure(.closed), 0) }
            let preparation = Preparation(
                body: document.body,
                rule: document.rule,
                surroundings: document.surroundings,
                models: core.models[document.key.upstream],
                hasher: core.hasher,
                isExamined: document.rule != nil
                    && core.examine(
                        document.rule.map {
                            BodyExaminer.Subject(
                                body: document.body,
                                rule: $0,
                                surroundings: document.surroundings,
                                url: document.key.url
                            )
                        },
                        bytes: document.body.count,
                        upstream: document.key.upstream
                    )
            )
            let weight = preparation.weight
            core.preparations.enter(weight)
            core.post(
                urgency,
                bytes: document.body.count + document.head.count + document.policy.count,
                isDispensable: true,
                { session in
                    let receipt = try session.receive(document, handedOverAt: handover.time, preparation)
                    try session.warn(
                        receipt.warnings,
                        about: document.rule,
                        url: document.key.url,
                        at: session.clock.now()
                    )
                    return receipt
                },
                done: { finish($0, weight) }
            )
        }
    }
}
