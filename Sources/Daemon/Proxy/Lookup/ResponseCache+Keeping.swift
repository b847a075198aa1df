import CachePolicy
import Logging
import Mapping
import Settings
import Store
import Synchronization

/// What has just arrived: kept in memory and, behind that, in the store.
extension ResponseCache {
    /// Keeps a response that has just arrived whole: in memory and, soon, in the store.
    ///
    /// One that contains objects is a hit once its commit has marked the other documents that show them, and has shown whether it has
    /// the newest values itself; or after `show`. One that contains none is a hit at once. What a write invalidated never comes here.
    /// Until the commit, its predecessor is hidden too: clients have already seen newer bytes.
    ///
    /// - Parameters:
    ///   - sent: when its request was sent, on the store's clock.
    ///   - age: the response's `Age` in µs: it shows the state of a time that much before it was asked for.
    ///   - match: what the routes say of its body.
    ///   - writtenAt: when the first write to its upstream since completed, in µs of the store's clock; nil without one.
    ///   - isSecret: whether nothing of it may reach the disk: it is kept in memory, and only where it contains no objects.
    ///   - isAwaited: whether somebody waits for the commit, which then waits for no company.
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
        guard !isSecret else {
            memory.removeVariant(of: ready, at: ready.residence.digest)
            if !containsObjects { memory.insert(ready, at: ready.residence.digest) }
            store.remove(at: ready.key)
            return false
        }
        // What was asked for before a write may be older than what the store has in its place by now: its commit decides.
        let isHidden =
            containsObjects || writtenAt != nil || unsettled.mayBeNewer(than: sent - age, of: ready.upstream.storeKey)
        commits.begin(ready, sent: sent, containsObjects: containsObjects, isHidden: isHidden)
        if isHidden {
            memory.removeVariant(of: ready, at: ready.residence.digest)
        } else {
            memory.insert(ready, at: ready.residence.digest)
        }
        uncommitted.add(size, ordering: .relaxed)
        var document = ReceivedDocument(
            key: ready.key,
            variant: ready.response.selection.bytes,
            selectedBy: ready.upstream.context.rest(of: ready.response.selection),
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
        // Handed over at once: writes that settle from now on find it among those that are still to be committed.
        store.receive(document, isAwaited: isAwaited && containsObjects) { [self] result in
            committed(result, ready, containsObjects: containsObjects, start: sent - age)
            commits.end(ready)
            uncommitted.subtract(size, ordering: .relaxed)
            if containsObjects { done() }
        }
        return containsObjects
    }

    /// Has a response found whose commit takes long.
    func show(_ ready: ReadyResponse) {
        commits.show(ready) { memory.insert(ready, at: ready.residence.digest) }
    }

    /// On the writer's thread, so that what is committed later finds it among those to be flipped.
    private func committed(
        _ result: Result<Receipt, StoreError>,
        _ ready: ReadyResponse,
        containsObjects: Bool,
        start: Int64
    ) {
        let digest = ready.residence.digest
        defer { watch.documentChanged(digest) }
        // Before it is concluded: who drops it from then on has to know which document it is.
        if case .success(let receipt) = result {
            if receipt.isDirty { ready.residence.isDirty.store(true, ordering: .relaxed) }
            if let id = receipt.document { ready.committed(as: id, showing: receipt.objects) }
        }
        let visibility = commits.conclude(ready)
        switch result {
        case .success(let receipt):
            // A response that shows a secret lives in memory alone, and follows its objects like any other.
            guard receipt.document != nil || receipt.isSecret else {
                // A cleaning or a write outdated it.
                return memory.remove(ready, at: digest)
            }
            guard visibility != .refuted else {
                memory.discard(ready)
                return drop(ready)
            }
            register(ready, under: receipt.objects, asOf: receipt.sequence)
            switch visibility {
            case .shown: return
            case .hidden where ready.isClean:
                memory.insert(ready, at: digest)
                // After it was put there: a write that cannot be stored empties memory once it is noted.
                if unsettled.mayBeNewer(than: start, of: ready.upstream.storeKey) { memory.remove(ready, at: digest) }
            case .hidden, .superseded, .refuted: memory.discard(ready)
            }
        case .failure(.closed):
            // Given up at the end of the daemon, which says how many there were.
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

/// What writes change, ahead of the responses that are still to be committed.
extension ResponseCache {
    /// Commits what a write changes; returns once it holds everywhere.
    @discardableResult
    func settle(_ write: SettledWrite) async throws(StoreError) -> WriteSettlement {
        try await store.settle(write) { [self] in doubtUnread(of: write.upstream, sentUntil: write.time) }
    }

    /// Commits that an object was not found; returns once that holds everywhere.
    func note(_ absence: ObservedAbsence) async throws(StoreError) {
        // Lists that lag behind it may have been asked for later.
        try await store.note(absence) { [self] in doubtUnread(of: absence.key.upstream, sentUntil: .max) }
    }

    /// Leaves no hit of what was kept and is still to be committed: nobody knows whether it shows what is known newer now.
    ///
    /// On the writer's thread, so that each is either committed and marked, or found here. Its commit shows whether it
    /// does; whoever wants it waits for that.
    func doubtUnread(of upstream: String, sentUntil time: Int64) {
        for ready in commits.doubt(of: upstream, sentUntil: time) {
            // Both: it may be on its way into memory just now.
            ready.residence.isDirty.store(true, ordering: .relaxed)
            memory.remove(ready, at: ready.residence.digest)
        }
    }
}
