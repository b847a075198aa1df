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
    /// A response without objects is a hit at once. One with objects becomes a hit with its commit, however long that takes: the
    /// commit marks the other documents that show those objects, and checks whether the response has their newest values. A
    /// response that a write has invalidated never comes here. Until the commit, the predecessor is hidden too, because clients have
    /// already seen newer bytes.
    ///
    /// - Parameters:
    ///   - sent: when its request was sent, on the store's clock.
    ///   - age: the response's `Age` in µs: it shows the state at that time before the request.
    ///   - writtenAt: when the first write to its upstream since then completed, in µs of the store's clock; nil without one.
    ///   - isLatest: whether nothing has been kept under the cache key since then.
    ///   - share: how much of it may be on disk. If that is nothing, it is kept in memory, and only if it contains no objects.
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
        isLatest: Bool = true,
        onDisk share: DiskShare,
        isAwaited: Bool = false,
        done: @escaping @Sendable () -> Void = {}
    ) -> Bool {
        let size = ready.response.body.count
        guard uncommitted.load(ordering: .relaxed) + size <= Self.uncommittedLimit else {
            log.warning("the store cannot keep up: a response was not kept", metadata: ["url": "\(ready.key.url)"])
            memory.remove(ready.entry.digest)
            store.remove(at: ready.key)
            return false
        }
        let rule = ready.isJSON && size > 0 ? match?.rule : nil
        let containsObjects = rule != nil
        removeVariantForAllFields(of: ready)
        let mayPrecedeWrite = uncommittedWrites.mayBeNewer(than: sent - age, of: ready.upstream.storeKey)
        // A response requested before a write may be older than the stored one, so its commit decides.
        let isHidden = containsObjects || writtenAt != nil || mayPrecedeWrite
        let head: [UInt8]?
        switch share {
        case .whole(let fields): head = fields
        case .objects where containsObjects: head = nil
        case .objects, .nothing:
            memory.removeVariant(of: ready, at: ready.entry.digest)
            // It has no commit that would decide. A write that completed meanwhile did not cover it, so only a response that was
            // kept meanwhile may be newer.
            let isNewest = !mayPrecedeWrite && (writtenAt == nil || isLatest)
            if !containsObjects, isNewest { memory.insert(ready, at: ready.entry.digest) }
            store.remove(at: ready.key)
            watch.documentChanged(ready.entry.digest)
            return false
        }
        let selection = ready.response.selection
        commits.begin(ready, isHidden: isHidden)
        if isHidden {
            memory.removeVariant(of: ready, at: ready.entry.digest)
        } else {
            memory.insert(ready, at: ready.entry.digest)
        }
        uncommitted.add(size, ordering: .relaxed)
        var document = ReceivedDocument(
            key: ready.key,
            variant: selection.bytes,
            selectedBy: ready.upstream.context.rest(of: selection),
            status: ready.response.status,
            head: head ?? [],
            policy: ready.response.policy.bytes,
            body: ready.response.body,
            start: sent - age,
            end: now,
            sent: sent,
            kind: match?.kind ?? .detail,
            rule: rule,
            surroundings: match?.context(url: ready.key.url, fields: ready.response.fields) ?? .none
        )
        document.isInMemoryOnly = head == nil
        document.upstreamWrittenAt = writtenAt
        document.variantForAllFields = ready.variantForAllFields
        document.dividedBy = ready.otherFields?.division
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
    private func removeVariantForAllFields(of ready: ReadyResponse) {
        guard let wider = ready.variantForAllFields else { return }
        memory.remove(ready.entry.digest) { $0.key == ready.key && $0.response.selection.bytes == wider }
    }

    /// Runs on the writer's thread, so that later commits find the response registered under its objects.
    private func committed(
        _ result: Result<Receipt, StoreError>,
        _ ready: ReadyResponse,
        containsObjects: Bool,
        start: Int64
    ) {
        let digest = ready.entry.digest
        defer { watch.documentChanged(digest) }
        // This precedes `conclude`: code that drops the response after that must know its document.
        if case .success(let receipt) = result {
            if receipt.isDirty { ready.entry.isDirty.store(true, ordering: .relaxed) }
            if let id = receipt.document { ready.committed(as: id, showing: receipt.objects) }
        }
        let visibility = commits.conclude(ready)
        switch result {
        case .success(let receipt):
            // A response with a secret is kept in memory only, and follows its objects like any other.
            guard receipt.document != nil || receipt.isInMemoryOnly else {
                // A clean or a write has outdated it.
                return memory.remove(ready, at: digest)
            }
            guard visibility != .dropped else {
                memory.discard(ready)
                return drop(ready)
            }
            register(ready, under: receipt.objects, asOf: receipt.sequence)
            // It may have been committed, and put into memory, while this one waited for its commit.
            removeVariantForAllFields(of: ready)
            switch visibility {
            case .shown: return
            case .hidden where ready.isClean:
                memory.insert(ready, at: digest)
                // This check comes after the insertion: a write that cannot be stored empties memory once it is noted.
                if uncommittedWrites.mayBeNewer(than: start, of: ready.upstream.storeKey) {
                    memory.remove(ready, at: digest)
                }
            case .hidden, .superseded, .dropped: memory.discard(ready)
            }
        case .failure(.closed):
            // The daemon is stopping, and logs how many commits it gave up.
            memory.remove(ready, at: digest)
        case .failure(let error):
            log.storeFailed("a response could not be stored", error, url: ready.key.url)
            // Without its objects in the store it would not follow their changes.
            if containsObjects { memory.remove(ready, at: digest) }
        }
    }
}

/// The kept responses whose commit is pending.
///
/// Until its commit, the objects in a response are unknown: other responses that show them are served unchanged, and the disk has
/// an older response in its own place. So a response with objects is hidden until its commit, which updates all others at the
/// same moment: requests for it wait. Any thread.
final class PendingCommits: Sendable {
    /// Whether a response can be found before its commit.
    enum Visibility {
        /// It is, or was, in memory, and a hit.
        case shown
        /// No look-up finds it.
        case hidden
        /// A later response of its variant was kept meanwhile, so no look-up may find this one any more.
        case superseded
        /// It is outdated, and its commit must drop it.
        case dropped
    }

    struct Entry {
        let ready: ReadyResponse
        var visibility: Visibility
        /// Whether its commit is done and its visibility final.
        var isConcluded = false
    }

    // Not private: the compiler (6.3.1) cannot lay out structs in a mutex from other files if they are.
    struct State {
        var entries: [Digest128: [Entry]] = [:]
        /// The tasks waiting for a change under a digest.
        var waiters: [Digest128: [CheckedContinuation<Void, Never>]] = [:]
    }

    private let state = Mutex(State())

    /// Whether a response under a digest is pending.
    func contains(_ digest: Digest128) -> Bool { state.withLock { $0.entries[digest] != nil } }

    /// Whether a response other than a document's own is pending under a digest.
    func contains(_ digest: Digest128, besides document: DocumentID) -> Bool {
        state.withLock { $0.entries[digest]?.contains { $0.ready.stored?.document != document } ?? false }
    }

    /// Waits until a response pending under a digest is committed, or `release` is called; returns at once if there is none.
    ///
    /// - Parameter isHeldUp: whether nobody is to wait.
    func change(at digest: Digest128, unless isHeldUp: () -> Bool = { false }) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isPending = state.withLock { state in
                guard state.entries[digest] != nil, !isHeldUp() else { return false }
                state.waiters[digest, default: []].append(continuation)
                return true
            }
            if !isPending { continuation.resume() }
        }
    }

    /// Lets all who wait go on, because the commits are held up.
    func release() {
        let waiters = state.withLock { state in
            defer { state.waiters = [:] }
            return state.waiters.values.flatMap(\.self)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Adds a response, before any look-up can find it.
    func begin(_ ready: ReadyResponse, isHidden: Bool) {
        let digest = ready.entry.digest
        state.withLock { state in
            state.changeAll(at: digest) { entry in
                let isSame = entry.ready.variant == ready.variant && entry.ready.key == ready.key
                if isSame, entry.visibility == .hidden { entry.visibility = .superseded }
            }
            state.entries[digest, default: []].append(Entry(ready: ready, visibility: isHidden ? .hidden : .shown))
        }
    }

    /// Has a response dropped by its commit; returns false if the commit is done, so that the caller must drop it.
    func dropAtCommit(_ ready: ReadyResponse) -> Bool {
        state.withLock { state in
            let isDropped = state.change(ready) { entry in
                if !entry.isConcluded { entry.visibility = .dropped }
                return !entry.isConcluded
            }
            return isDropped ?? false
        }
    }

    /// Concludes a response's commit and returns its visibility; from now on `dropAtCommit` has no effect on it.
    func conclude(_ ready: ReadyResponse) -> Visibility {
        let visibility = state.withLock { state in
            state.change(ready) { entry in
                let visibility = entry.visibility
                entry.visibility = .shown
                entry.isConcluded = true
                return visibility
            }
        }
        return visibility ?? .superseded
    }

    /// Removes a response that has been committed, or will not be; called after memory was changed.
    func end(_ ready: ReadyResponse) {
        let digest = ready.entry.digest
        let waiters = state.withLock { state in
            state.entries[digest]?.removeAll { $0.ready === ready }
            if state.entries[digest]?.isEmpty == true { state.entries[digest] = nil }
            return state.waiters.removeValue(forKey: digest) ?? []
        }
        for waiter in waiters { waiter.resume() }
    }
}

extension PendingCommits.State {
    fileprivate mutating func changeAll(at digest: Digest128, _ change: (inout PendingCommits.Entry) -> Void) {
        guard var list = entries[digest] else { return }
        for index in list.indices { change(&list[index]) }
        entries[digest] = list
    }

    /// Changes a response's entry; nil if it has none.
    fileprivate mutating func change<Result>(
        _ ready: ReadyResponse,
        _ change: (inout PendingCommits.Entry) -> Result
    ) -> Result? {
        let digest = ready.entry.digest
        guard let index = entries[digest]?.firstIndex(where: { $0.ready === ready }) else { return nil }
        return change(&entries[digest, default: []][index])
    }
}

/// A value for each recently changed document, for readers of the store that may still find its former state.
///
/// Bounded, at more changes than can be under way into or out of the store at a time.
struct RecentDocuments<Value> {
    private static var limit: Int { 4096 }
    /// Each value with the position of its latest change in `order`.
    private var known: [DocumentID: (value: Value, place: Int)] = [:]
    /// The documents of the latest changes; one changed several times occurs as often.
    private var order: [DocumentID] = []
    private var next = 0

    /// The latest value for a document, committed or not, if any.
    subscript(id: DocumentID) -> Value? { known[id]?.value }

    mutating func insert(_ value: Value, of id: DocumentID) {
        if order.count < Self.limit {
            order.append(id)
        } else {
            let oldest = order[next]
            if known[oldest]?.place == next { known[oldest] = nil }
            order[next] = id
        }
        known[id] = (value, next)
        next = (next + 1) % Self.limit
    }

    /// Removes the latest value for a document if it satisfies the condition.
    mutating func remove(_ id: DocumentID, where isMeant: (Value) -> Bool) {
        if let value = self[id], isMeant(value) { known[id] = nil }
    }
}
