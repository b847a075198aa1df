import Dispatch
import Mapping

/// Documents: looked up, received, renewed, invalidated.
extension ObjectStore {
    /// How many variants of one key are kept on disk; past it a new one displaces the oldest.
    ///
    /// Some servers vary by what differs each time, and their answers would fill the store with what nobody asks for.
    public static let variantLimit = 64

    /// The variants under a key that are wanted, composed where their objects are known newer.
    public func documents(
        at key: DocumentKey,
        where isWanted: @escaping @Sendable (_ variant: [UInt8]) -> Bool = { _ in true }
    ) async throws(StoreError) -> [StoredDocument] {
        let digest = core.hasher.digest(key)
        let models = core.models
        let found = try await core.read { database in
            try DocumentReader(database, models: models).documents(at: key, digest: digest, where: isWanted)
        }
        if !found.verified.isEmpty {
            // Spares the next reader the look; not worth waiting for, nor an error.
            core.note { try $0.verify(found.verified, at: found.sequence) }
        }
        return found.documents
    }

    /// The documents of a URL without their bodies, every principal's and in every context, the newest 64.
    public func documents(ofURL url: String, upstream: String) async throws(StoreError) -> [DocumentOfURL] {
        let place = core.hasher.place(upstream: upstream, url: url)
        let models = core.models
        return try await core.read { database in
            try DocumentReader(database, models: models)
                .documents(ofURL: url, upstream: upstream, place: place, limit: ObjectStore.variantLimit)
        }
    }

    /// The body of a document as it was received; nil when the document is gone.
    public func received(_ id: DocumentID) async throws(StoreError) -> [UInt8]? {
        try await core.read { database in
            let exists = try Query(database, "SELECT 1 FROM _documents WHERE id = ?").first(.id(id)) { _ in true }
            guard exists == true else { return nil }
            let stored = try StoredBody(document: id, in: database)
            return try stored.received(payloads: stored.payloads(in: database))
        }
    }

    /// Renews a document by a 304: its fields and its one observation time.
    ///
    /// Counts only while the document shows the newest of everything. In its turn: what was handed over before, and takes the
    /// document's place, is stored first.
    @discardableResult
    public func refresh(
        _ id: DocumentID,
        head: [UInt8],
        policy: [UInt8],
        observedFrom start: Int64,
        observedTo end: Int64
    ) async throws(StoreError) -> RefreshOutcome {
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<RefreshOutcome, StoreError>, Never>) in
            enqueue(
                .batched,
                { try $0.refresh(id, head: head, policy: policy, start: start, end: end) },
                done: { continuation.resume(returning: $0) }
            )
        }
        return try result.get()
    }

    /// Removes the documents of these URLs, every principal's, and settles a suspect in the same commit.
    ///
    /// A `receive` for one of these URLs whose request was sent before stores nothing.
    public func invalidate(
        _ targets: [InvalidationTarget],
        settle suspect: SuspectID? = nil
    ) async throws(StoreError) {
        try await core.write(suspect == nil ? .prompt : .durable) { session in
            for target in targets { try session.invalidate(target) }
            if let suspect { try session.settle(suspect) }
        }
    }

    /// Removes one document; soon, and without a word: not if it is gone already, and not to the listener, who would forget
    /// with it what has been received under the same key since.
    public func remove(_ id: DocumentID) {
        core.post(.batched, { _ = try $0.delete(id) }, done: { _ in })
    }

    /// Removes what is stored under a key, all its variants; soon, and without a word if there is nothing.
    ///
    /// In its turn: what was handed over before is stored first, so that it is removed as well.
    public func remove(at key: DocumentKey) {
        enqueue(.batched, { try $0.remove(at: key) }, done: { _ in })
    }

    /// Says that documents were used, for eviction; batched, and lost when it cannot be written.
    public func touchUsed(_ documents: [DocumentID]) {
        let seconds = core.clock.now() / 1_000_000
        core.note { try $0.touch(documents, at: seconds) }
    }
}

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
        core.queueLimit.enter(bytes: document.body.count) { [self] in
            ingest(document, handover, isAwaited ? .prompt : .batched, done: done)
        }
    }

    /// Counts an answer among those that are to be taken in.
    private func handedOver(_ document: ReceivedDocument) -> (time: Int64, place: Int64) {
        let place = core.hasher.place(upstream: document.key.upstream, url: document.key.url)
        core.queuedResponses.enter(document, place: place)
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
                core.preparedBodies.leave(weight)
                // What is given up is counted as what still waits.
                if case .failure(.closed) = result {} else { core.queuedResponses.leave(document, place: handover.place) }
                // Whoever sees the queue empty finds everybody told.
                done(result)
                core.queueLimit.leave(bytes: document.body.count)
            }
            guard !core.isGivenUp else { return finish(.failure(.closed), 0) }
            let prepared = PreparedBody(
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
            let weight = prepared.weight
            core.preparedBodies.enter(weight)
            core.post(
                urgency,
                bytes: document.body.count + document.head.count + document.policy.count,
                isDispensable: true,
                { session in
                    let receipt = try session.receive(document, handedOverAt: handover.time, prepared)
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
