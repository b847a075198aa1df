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
            inTurn(
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
        inTurn(.batched, { try $0.remove(at: key) }, done: { _ in })
    }

    /// Says that documents were used, for eviction; batched, and lost when it cannot be written.
    public func touchUsed(_ documents: [DocumentID]) {
        let seconds = core.clock.now() / 1_000_000
        core.note { try $0.touch(documents, at: seconds) }
    }
}
