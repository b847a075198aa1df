import CachePolicy
import Logging
import Mapping
import Settings
import Store
import Synchronization

/// Admitting new responses to memory, and submitting them to the store.
extension ResponseCache {
    /// Admits a response that has arrived whole to memory, and submits it to the store.
    ///
    /// A response without objects is a hit at once. One with objects becomes a hit with its commit, however long that takes: the
    /// commit marks the other documents that show those objects, and checks whether the response has their newest values. A
    /// response that a write has invalidated never comes here. Until the commit, the predecessor is hidden too, because clients have
    /// already seen newer bytes.
    ///
    /// - Parameters:
    ///   - sent: when its request was sent, on the store's clock.
    ///   - age: the response's `Age` in µs: it shows the state at that time before the request.
    ///   - writtenAt: when the first write to its upstream since then completed, in µs of the store's clock; nil without one.
    ///   - number: the number in memory at that time.
    ///   - share: how much of it may be on disk. If that is nothing, it is kept in memory, and only if it contains no objects.
    ///   - isAwaited: whether a client waits for the commit, which is then not delayed to form a batch.
    ///   - findCoverage: as in `ReceivedDocument`, like `resembled`.
    ///   - shared: the same as another machine has shared it; nil if it has just arrived here.
    ///   - needsCommit: whether only its commit decides that it may be served.
    ///   - foreseen: called when it contains objects and will be a hit with the commit that follows at once; on the writer's thread.
    ///   - stored: called with the names of its objects when it is stored and shows all that is known; on the writer's thread.
    ///   - done: called once, on the writer's thread, when it is committed, or never will be; with whether its objects are known
    ///     now.
    /// - Returns: whether it contains objects; if not, `done` is not called.
    @discardableResult
    func admit(
        _ ready: ReadyResponse,
        sent: Int64,
        age: Int64,
        match: CompiledUpstream.BodyMatch?,
        writtenAt: Int64?,
        since number: Int? = nil,
        onDisk share: DiskShare,
        isAwaited: Bool = false,
        findCoverage: (@Sendable ([UInt8]) -> TagCoverage?)? = nil,
        resembled: DocumentID? = nil,
        shared: SharedDocument? = nil,
        needsCommit: Bool = false,
        foreseen: (@Sendable () -> Void)? = nil,
        stored: (@Sendable ([ObjectName]) -> Void)? = nil,
        done: @escaping @Sendable (_ isKnown: Bool) -> Void = { _ in }
    ) -> Bool {
        let size = ready.response.body.count
        guard uncommittedBytes.load(ordering: .relaxed) + size <= Self.uncommittedByteLimit else {
            let url: Logger.Metadata = ["url": "\(ready.key.url)"]
            repeated.log(.warning, "the store cannot keep up: a response was not kept", about: [:], url)
            memory.remove(ready.entry.digest)
            store.remove(at: ready.key)
            return false
        }
        let rule = ready.isJSON && size > 0 ? match?.rule : nil
        let containsObjects = rule != nil
        let head: [UInt8]?
        let isForDisk: Bool
        switch share {
        case .whole(let fields): (head, isForDisk) = (fields, true)
        case .objects: (head, isForDisk) = (nil, containsObjects)
        case .nothing: (head, isForDisk) = (nil, false)
        }
        let digest = ready.entry.digest
        // From here on, writes that complete find it among the arrivals.
        let isLatest = number.map { memory.isLatest(at: digest, since: $0) } ?? true
        handle(ready) { [uncommittedWrites] in
            // A response requested before a write may be older than the stored one, so its commit decides. Without a commit, only
            // one that has arrived meanwhile may be newer: the write did not cover this one.
            let isHidden =
                containsObjects || needsCommit || writtenAt != nil && (isForDisk || !isLatest)
                || uncommittedWrites.mayBeNewer(than: sent - age, of: ready.upstream.storeKey)
            return .arrived(ready, !isHidden ? .shown : isForDisk ? .hidden : .superseded)
        }
        guard isForDisk else {
            store.remove(at: ready.key) { [self] result in
                let isRemoved = if case .success = result { true } else { false }
                handle(ready) { .committed(ready, isRemoved ? .stored(isClean: true) : .failed(isLost: false)) }
                watch.documentChanged(digest)
            }
            watch.documentChanged(digest)
            return false
        }
        let selection = ready.response.selection
        uncommittedBytes.add(size, ordering: .relaxed)
        var document = ReceivedDocument(
            key: ready.key,
            variant: selection.bytes,
            selectedBy: ready.upstream.context.rest(of: selection),
            status: ready.response.status,
            head: head ?? [],
            policy: ready.response.policy.bytes,
            body: ready.response.body,
            start: sent - age,
            end: shared?.completed ?? now,
            sent: sent,
            kind: match?.kind ?? .detail,
            rule: rule,
            mappingContext: match?.context(url: ready.key.url, fields: ready.response.fields) ?? .none
        )
        document.isInMemoryOnly = head == nil
        document.upstreamWrittenAt = writtenAt
        document.variantForAllFields = ready.variantForAllFields
        (document.findCoverage, document.resembled) = (findCoverage, resembled)
        document.dividedBy = ready.otherFields?.division
        (document.isShared, document.fetch, document.namesObjects) = (shared != nil, shared?.fetch, stored != nil)
        let isForeseen = foreseen.map { foreseen -> @Sendable () -> Void in
            { [self] in
                if !uncommittedWrites.mayBeNewer(than: sent - age, of: ready.upstream.storeKey) { foreseen() }
            }
        }
        store.receive(
            document,
            isAwaited: isAwaited && (containsObjects || needsCommit),
            foreseen: containsObjects ? isForeseen : nil
        ) { [self] result in
            if let stored, case .success(let receipt) = result, receipt.document != nil, !receipt.isDirty {
                stored(receipt.names)
            }
            committed(result, ready, containsObjects: containsObjects, start: sent - age)
            uncommittedBytes.subtract(size, ordering: .relaxed)
            if containsObjects { done((try? result.get())?.isObserved ?? false) }
        }
        return containsObjects
    }

    /// Whether a response that may be stored will be kept, on disk or in memory, as far as that is known.
    ///
    /// Memory keeps it without the disk if it is not too large, but not if it contains objects: it would not follow their changes.
    ///
    /// - Parameter length: the length of its body; nil if that is not known yet.
    func keeps(_ length: Int?, withObjects containsObjects: Bool) -> Bool {
        if containsObjects, store.isBlocked { return false }
        return hasRoom(for: length) || !containsObjects && (length ?? 0) <= memory.largest
    }

    /// Runs on the writer's thread, so that later commits find the response registered under its objects.
    private func committed(
        _ result: Result<Receipt, StoreError>,
        _ ready: ReadyResponse,
        containsObjects: Bool,
        start: Int64
    ) {
        defer { watch.documentChanged(ready.entry.digest) }
        noteRoom(for: ready.response.body.count, result)
        switch result {
        case .success(let receipt):
            // A clean or a write has outdated it, if there is no document. A response with a secret is kept in memory only.
            guard receipt.document != nil || receipt.isInMemoryOnly else {
                return handle(ready) { .committed(ready, .refused) }
            }
            register(ready, under: receipt.objects, asOf: receipt.sequence, isDirty: receipt.isDirty)
            if let id = receipt.document { ready.committed(as: id, showing: receipt.objects) }
            handle(ready) { [uncommittedWrites] in
                let mayBeOlder = uncommittedWrites.mayBeNewer(than: start, of: ready.upstream.storeKey)
                return .committed(ready, .stored(isClean: ready.isClean && !mayBeOlder))
            }
        case .failure(.closed):
            // The daemon is stopping, and logs how many commits it gave up.
            handle(ready) { .committed(ready, .failed(isLost: true)) }
        case .failure(let error):
            log.storeFailed("a response could not be stored", error, url: ready.key.url)
            // Without its objects in the store it would not follow their changes.
            handle(ready) { .committed(ready, .failed(isLost: containsObjects)) }
        }
    }

    /// Has the responses under a response's key process an event, and the disk follow.
    func handle(_ ready: ReadyResponse, _ event: () -> Residence<ReadyResponse>.Event) {
        for document in memory.handle(at: ready.entry.digest, of: ready.key, event) { store.remove(document) }
    }
}
