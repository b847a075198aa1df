import Store
import Synchronization

/// The kept responses whose commit is pending.
///
/// Until its commit, the objects in a response are unknown: other responses that show them are served unchanged, and the disk has
/// an older response in its own place. So a response with objects is hidden until its commit, which updates all others at the
/// same moment. If that takes too long, it is shown before (`ResponseCache.show`).
///
/// Any thread.
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
        case refuted
    }

    struct Entry {
        let ready: ReadyResponse
        /// When its request was sent, on the store's clock.
        let sent: Int64
        /// Whether it contains objects.
        let containsObjects: Bool
        var visibility: Visibility
        /// Whether a later write may have changed objects that it shows.
        var isDoubted = false
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

    /// Waits until a response pending under a digest is committed or shown; returns at once if there is none.
    func change(at digest: Digest128) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isPending = state.withLock { state in
                guard state.entries[digest] != nil else { return false }
                state.waiters[digest, default: []].append(continuation)
                return true
            }
            if !isPending { continuation.resume() }
        }
    }

    /// Adds a response, before any look-up can find it.
    ///
    /// - Parameters:
    ///   - sent: when its request was sent, on the store's clock.
    ///   - containsObjects: whether it contains objects.
    ///   - isHidden: whether it stays hidden until its commit.
    func begin(_ ready: ReadyResponse, sent: Int64, containsObjects: Bool, isHidden: Bool) {
        let digest = ready.residence.digest
        state.withLock { state in
            state.change(at: digest) { entry in
                let isSame = entry.ready.variant == ready.variant && entry.ready.key == ready.key
                if isSame, entry.visibility == .hidden { entry.visibility = .superseded }
            }
            state.entries[digest, default: []]
                .append(
                    Entry(
                        ready: ready,
                        sent: sent,
                        containsObjects: containsObjects,
                        visibility: isHidden ? .hidden : .shown
                    )
                )
        }
    }

    /// Shows a hidden response before its commit, unless it is in doubt.
    ///
    /// - Parameter show: inserts it into memory; not called if the commit has begun to do so.
    func show(_ ready: ReadyResponse, by show: () -> Void) {
        let digest = ready.residence.digest
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            var isShown = false
            state.change(at: digest) { entry in
                guard entry.ready === ready, entry.visibility == .hidden, !entry.isDoubted else { return }
                entry.visibility = .shown
                isShown = true
            }
            guard isShown else { return [] }
            show()
            return state.waiters.removeValue(forKey: digest) ?? []
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Marks an upstream's responses requested before a time as doubtful, because they may be older than a write.
    ///
    /// Only their commits show whether they are. Returns those that had been shown.
    func doubt(of upstream: String, sentUntil time: Int64) -> [ReadyResponse] {
        state.withLock { state in
            var shown: [ReadyResponse] = []
            for digest in Array(state.entries.keys) {
                state.change(at: digest) { entry in
                    guard entry.containsObjects, !entry.isDoubted, entry.sent <= time,
                        entry.ready.upstream.storeKey == upstream
                    else { return }
                    entry.isDoubted = true
                    if entry.visibility == .shown { shown.append(entry.ready) }
                }
            }
            return shown
        }
    }

    /// Has a response dropped by its commit; returns false if the commit is done, so that the caller must drop it.
    func refute(_ ready: ReadyResponse) -> Bool {
        state.withLock { state in
            var isRefuted = false
            state.change(at: ready.residence.digest) { entry in
                guard entry.ready === ready, !entry.isConcluded else { return }
                entry.visibility = .refuted
                isRefuted = true
            }
            return isRefuted
        }
    }

    /// Concludes a response's commit and returns its visibility; from now on `show` and `refute` have no effect on it.
    func conclude(_ ready: ReadyResponse) -> Visibility {
        state.withLock { state in
            var visibility = Visibility.superseded
            state.change(at: ready.residence.digest) { entry in
                guard entry.ready === ready else { return }
                visibility = entry.visibility
                entry.visibility = .shown
                entry.isConcluded = true
            }
            return visibility
        }
    }

    /// Removes a response that has been committed, or will not be; called after memory was changed.
    func end(_ ready: ReadyResponse) {
        let digest = ready.residence.digest
        let waiters = state.withLock { state in
            state.entries[digest]?.removeAll { $0.ready === ready }
            if state.entries[digest]?.isEmpty == true { state.entries[digest] = nil }
            return state.waiters.removeValue(forKey: digest) ?? []
        }
        for waiter in waiters { waiter.resume() }
    }
}

extension PendingCommits.State {
    /// Changes each entry under a digest.
    fileprivate mutating func change(
        at digest: Digest128,
        _ change: (inout PendingCommits.Entry) -> Void
    ) {
        guard var list = entries[digest] else { return }
        for index in list.indices { change(&list[index]) }
        entries[digest] = list
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
