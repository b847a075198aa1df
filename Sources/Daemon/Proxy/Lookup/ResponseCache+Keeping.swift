import CachePolicy
import Logging
import Mapping
import Settings
import Store
import Synchronization

/// Keeping new responses: in memory and, behind that, in the store.
extension ResponseCache {
    /// Keeps a response that has arrived whole: in memory and, soon, in the store.
    ///
    /// A response without objects is a hit at once. One with objects becomes a hit with its commit, or with `show`: the commit
    /// marks the other documents that show those objects, and checks whether the response has their newest values. A response
    /// that a write has invalidated never comes here. Until the commit, the predecessor is hidden too, because clients have
    /// already seen newer bytes.
    ///
    /// - Parameters:
    ///   - sent: when its request was sent, on the store's clock.
    ///   - age: the response's `Age` in µs: it shows the state at that time before the request.
    ///   - match: the routes' rule for its body.
    ///   - writtenAt: when the first write to its upstream since then completed, in µs of the store's clock; nil without one.
    ///   - isSecret: whether nothing of it may reach the disk; it is then kept in memory, and only if it contains no objects.
    ///   - isAwaited: whether a client waits for the commit, which is then not delayed to form a batch.
    ///   - done: called once, on the writer's thread, when it is committed, or never will be.
    /// - Returns: whether it contains objects; if not, `done` is not called.
    @discardableResult
    func keep(
        _ ready: ReadyResponse,
        sent: Int64,
        age: Int64,
        match: CompiledUpstream.BodyMatch?,
        writtenAt: Int64?,
        isSecret: Bool = false,
        isAwaited: Bool = false,
        done: @escaping @Sendable () -> Void = {}
    ) -> Bool {
        let size = ready.response.body.count
        guard uncommitted.load(ordering: .relaxed) + size <= Self.uncommittedLimit else {
            log.warning("the store cannot keep up: a response was not kept", metadata: ["url": "\(ready.key.url)"])
            memory.remove(ready.residence.digest)
            store.remove(at: ready.key)
            return false
        }
        let rule = ready.isJSON && size > 0 ? match?.rule : nil
        let containsObjects = rule != nil
        removeWiderVariant(of: ready)
        guard !isSecret else {
            memory.removeVariant(of: ready, at: ready.residence.digest)
            if !containsObjects { memory.insert(ready, at: ready.residence.digest) }
            store.remove(at: ready.key)
            return false
        }
        // A response requested before a write may be older than the stored one, so its commit decides.
        let isHidden =
            containsObjects || writtenAt != nil
            || uncommittedWrites.mayBeNewer(than: sent - age, of: ready.upstream.storeKey)
        let selection = ready.response.selection
        commits.begin(ready, sent: sent, containsObjects: containsObjects, isHidden: isHidden)
        if isHidden {
            memory.removeVariant(of: ready, at: ready.residence.digest)
        } else {
            memory.insert(ready, at: ready.residence.digest)
        }
        uncommitted.add(size, ordering: .relaxed)
        var document = ReceivedDocument(
            key: ready.key,
            variant: selection.bytes,
            selectedBy: ready.upstream.context.rest(of: selection),
            status: ready.response.status,
            head: StoredHead.encode(ready.upstream.storable(ready.response.fields)),
            policy: ready.response.policy.bytes,
            body: ready.response.body,
            start: sent - age,
            end: now,
            sent: sent,
            kind: match?.kind ?? .detail,
            rule: rule,
            surroundings: match?.context(url: ready.key.url, fields: ready.response.fields) ?? .none
        )
        document.upstreamWrittenAt = writtenAt
        document.widerVariant = ready.widerVariant
        // Handed over at once, so that writes that complete from now on find it among the pending commits.
        store.receive(document, isAwaited: isAwaited && containsObjects) { [self] result in
            committed(result, ready, containsObjects: containsObjects, start: sent - age)
            commits.end(ready)
            uncommitted.subtract(size, ordering: .relaxed)
            if containsObjects { done() }
        }
        return containsObjects
    }

    /// Removes from memory the older response that requests for this one selected until now, whatever their other fields.
    private func removeWiderVariant(of ready: ReadyResponse) {
        guard let wider = ready.widerVariant else { return }
        memory.remove(ready.residence.digest) { $0.key == ready.key && $0.response.selection.bytes == wider }
    }

    /// Makes a response a hit before its slow commit.
    func show(_ ready: ReadyResponse) {
        commits.show(ready) { memory.insert(ready, at: ready.residence.digest) }
    }

    /// Runs on the writer's thread, so that later commits find the response registered under its objects.
    private func committed(
        _ result: Result<Receipt, StoreError>,
        _ ready: ReadyResponse,
        containsObjects: Bool,
        start: Int64
    ) {
        let digest = ready.residence.digest
        defer { watch.documentChanged(digest) }
        // This precedes `conclude`: code that drops the response after that must know its document.
        if case .success(let receipt) = result {
            if receipt.isDirty { ready.residence.isDirty.store(true, ordering: .relaxed) }
            if let id = receipt.document { ready.committed(as: id, showing: receipt.objects) }
        }
        let visibility = commits.conclude(ready)
        switch result {
        case .success(let receipt):
            // A response that shows a secret is kept in memory only, and follows its objects like any other.
            guard receipt.document != nil || receipt.isSecret else {
                // A cleaning or a write has outdated it.
                return memory.remove(ready, at: digest)
            }
            guard visibility != .refuted else {
                memory.discard(ready)
                return drop(ready)
            }
            register(ready, under: receipt.objects, asOf: receipt.sequence)
            // It may have been committed, and put into memory, while this one waited for its commit.
            removeWiderVariant(of: ready)
            switch visibility {
            case .shown: return
            case .hidden where ready.isClean:
                memory.insert(ready, at: digest)
                // This check comes after the insertion: a write that cannot be stored empties memory once it is noted.
                if uncommittedWrites.mayBeNewer(than: start, of: ready.upstream.storeKey) {
                    memory.remove(ready, at: digest)
                }
            case .hidden, .superseded, .refuted: memory.discard(ready)
            }
        case .failure(.closed):
            // The daemon is stopping, and logs how many commits it gave up.
            memory.remove(ready, at: digest)
        case .failure(let error):
            log.log(
                level: error.logLevel,
                "a response could not be stored",
                metadata: ["error": "\(error)", "url": "\(ready.key.url)"]
            )
            // Without its objects in the store it would not follow their changes.
            if containsObjects { memory.remove(ready, at: digest) }
        }
    }
}

/// Completing writes ahead of the responses that are yet to be committed.
extension ResponseCache {
    /// Commits the effects of a write; returns once they hold everywhere.
    @discardableResult
    func complete(_ write: CompletedWrite) async throws(StoreError) -> WriteCompletion {
        try await store.complete(write) { [self] in doubtUnread(of: write.upstream, sentUntil: write.time) }
    }

    /// Commits the absence of an object; returns once that holds everywhere.
    func note(_ absence: ObservedAbsence) async throws(StoreError) {
        // Lists may lag behind the absence, even those requested later.
        try await store.note(absence) { [self] in doubtUnread(of: absence.key.upstream, sentUntil: .max) }
    }

    /// Hides the pending responses that may show values older than a write.
    ///
    /// It runs on the writer's thread, so that each response is either committed and marked, or found here. Only its commit shows
    /// whether it is outdated; requests for it wait for that.
    func doubtUnread(of upstream: String, sentUntil time: Int64) {
        for ready in commits.doubt(of: upstream, sentUntil: time) {
            // It needs both, because the response may be on its way into memory just now.
            ready.residence.isDirty.store(true, ordering: .relaxed)
            memory.remove(ready, at: ready.residence.digest)
        }
    }
}
