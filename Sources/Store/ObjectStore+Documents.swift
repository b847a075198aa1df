import Dispatch
import Mapping

/// Looks up, freshens and removes documents.
extension ObjectStore {
    /// The maximum number of variants kept per key.
    ///
    /// Beyond that, a new one displaces the oldest. Some servers vary by a field that differs in each request. Their responses
    /// would fill the store.
    public static let variantLimit = 64

    /// The wanted variants under a key, composed if newer values of their objects are known.
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
            // This saves the next reader the comparison. It is not worth waiting for, and failing is harmless.
            core.note { try $0.verify(found.verified, at: found.sequence) }
        }
        return found.documents
    }

    /// The newest 64 documents of a URL without their bodies, for every principal and context.
    public func documents(ofURL url: String, upstream: String) async throws(StoreError) -> [DocumentOfURL] {
        let place = core.hasher.place(upstream: upstream, url: url)
        let models = core.models
        return try await core.read { database in
            try DocumentReader(database, models: models)
                .documents(ofURL: url, upstream: upstream, place: place, limit: ObjectStore.variantLimit)
        }
    }

    /// A document by its id, composed if newer values of its objects are known.
    ///
    /// Nil if it is gone, or if it shows no object of the given model.
    public func document(_ id: DocumentID, showing model: String? = nil) async throws(StoreError) -> StoredDocument? {
        let core = core
        return try await core.read { database in
            if let model {
                let selection = try CleanSelection(CleanFilter(model: model), in: database, now: 0, of: core)
                let pins = try StoredBody.pins(of: id, in: database)
                guard try pins.contains(where: { try selection.selects($0.object) }) else { return nil }
            }
            return try DocumentReader(database, models: core.models).document(id)
        }
    }

    /// The body of a document as received; nil if the document is gone.
    public func received(_ id: DocumentID) async throws(StoreError) -> [UInt8]? {
        try await core.read { database in
            guard try Query(database, "SELECT 1 FROM _documents WHERE id = ?").integer(.id(id)) != nil else {
                return nil
            }
            let stored = try StoredBody(document: id, in: database)
            return try stored.received(payloads: stored.payloads(in: database))
        }
    }

    /// Freshens a document by a 304: updates its fields and its observation time.
    ///
    /// Has no effect if the document shows outdated values. Responses queued earlier, which may replace the document, are
    /// stored first.
    @discardableResult
    public func freshen(
        _ id: DocumentID,
        head: [UInt8],
        policy: [UInt8],
        observedFrom start: Int64,
        observedTo end: Int64
    ) async throws(StoreError) -> FresheningOutcome {
        try await result { done in
            enqueue(.batched, { try $0.freshen(id, head: head, policy: policy, start: start, end: end) }, done: done)
        }
    }

    /// Removes the documents of these URLs for every principal, and settles a suspect in the same commit.
    ///
    /// A later `receive` for one of these URLs stores nothing if its request was sent before.
    public func invalidate(
        _ targets: [InvalidationTarget],
        settle suspect: SuspectID? = nil
    ) async throws(StoreError) {
        try await core.write(suspect == nil ? .prompt : .durable) { session in
            for target in targets { try session.invalidate(target) }
            if let suspect { try session.settle(suspect) }
        }
    }

    /// Removes one document soon, if it still exists.
    ///
    /// The listener is not notified, because it would also drop responses received under the same key since.
    public func remove(_ id: DocumentID) {
        core.post(.batched, { _ = try $0.delete(id) }, done: { _ in })
    }

    /// Removes all variants under a key soon.
    ///
    /// Responses queued earlier are stored first, and so are removed as well.
    public func remove(at key: DocumentKey) {
        enqueue(.batched, { try $0.remove(at: key) }, done: { _ in })
    }

    /// Records the use of documents, for eviction; batched, and lost if it cannot be written.
    public func touchUsed(_ documents: [DocumentID]) {
        let seconds = core.clock.now() / 1_000_000
        core.note { try $0.touch(documents, at: seconds) }
    }
}

/// Queues, decomposes and stores responses.
extension ObjectStore {
    /// Stores a response whole, and returns after its commit; waits for room in the queue.
    public func receive(_ document: ReceivedDocument) async throws(StoreError) -> Receipt {
        try await result { receive(document, done: $0) }
    }

    /// Stores a response whole as soon as there is room in the queue.
    ///
    /// Responses are stored in the order of these calls; only the effects of writes overtake them. `done` runs on the writer's
    /// thread after the response's commit, and before the `done` of any later call.
    ///
    /// - Parameter isAwaited: whether a caller waits for the commit, so that it is not delayed to fill the batch.
    public func receive(
        _ document: ReceivedDocument,
        isAwaited: Bool = false,
        done: @escaping @Sendable (Result<Receipt, StoreError>) -> Void
    ) {
        let arrival = countAsQueued(document)
        core.queueLimit.enter(bytes: document.body.count) { [self] in
            ingest(document, arrival, isAwaited ? .prompt : .batched, done: done)
        }
    }

    /// Counts a response as queued.
    private func countAsQueued(_ document: ReceivedDocument) -> (time: Int64, place: Int64) {
        let place = core.hasher.place(upstream: document.key.upstream, url: document.key.url)
        core.queuedResponses.enter(document, place: place)
        return (core.clock.now(), place)
    }

    private func ingest(
        _ document: ReceivedDocument,
        _ arrival: (time: Int64, place: Int64),
        _ urgency: Job.Urgency = .batched,
        done: @escaping @Sendable (Result<Receipt, StoreError>) -> Void
    ) {
        // Capturing the store keeps it alive until the response has reached the writer.
        ingest.async { [self] in
            let core = core
            let finish: @Sendable (Result<Receipt, StoreError>, _ weight: Int?) -> Void = { result, weight in
                if let weight { core.preparedBodies.leave(bytes: weight) }
                // `close` counts abandoned responses as still queued.
                let isGivenUp = if case .failure(.closed) = result { true } else { false }
                if !isGivenUp { core.queuedResponses.leave(document, place: arrival.place) }
                // This precedes leaving the queue: an empty queue means that every `done` has run.
                done(result)
                core.queueLimit.leave(bytes: document.body.count)
            }
            guard !core.isGivenUp else { return finish(.failure(.closed), nil) }
            let subject = document.rule.map {
                MappedSubject(
                    body: document.body,
                    rule: $0,
                    surroundings: document.surroundings,
                    url: document.key.url
                )
            }
            let prepared = subject.map { core.prepare($0, upstream: document.key.upstream) } ?? PreparedBody()
            let weight = prepared.weight
            // A decomposed object of ten bytes takes a kilobyte. So the next body is decomposed only when there is room.
            let room = DispatchSemaphore(value: 0)
            core.preparedBodies.enter(bytes: weight) { room.signal() }
            room.wait()
            core.post(
                urgency,
                bytes: document.body.count + document.head.count + document.policy.count,
                isDispensable: true,
                { session in
                    let receipt = try session.receive(document, queuedAt: arrival.time, prepared)
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
