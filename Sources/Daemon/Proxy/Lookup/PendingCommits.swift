import Store
import Synchronization

/// Answers that were kept and are still to be committed: the one place that knows of them.
///
/// Until its commit the objects in a response are not known: other responses that show them are served as they were,
/// and what the disk has in its own place is older. So a response that contains objects is hidden until its commit, which puts
/// all others right at the same moment. Where that takes too long, it is shown before (`ResponseCache.show`).
///
/// Any thread.
final class PendingCommits: Sendable {
    /// What may be done with a response until its commit.
    enum Visibility {
        /// It is, or was, in memory, and a hit.
        case shown
        /// It is found nowhere.
        case hidden
        /// A later one of its variant was kept meanwhile: this one is not to be found any more.
        case superseded
        /// It is no longer what there is: its commit is to drop it.
        case refuted
    }

    struct Entry {
        let ready: ReadyResponse
        /// When its request was sent, on the store's clock.
        let sent: Int64
        /// Whether it contains objects.
        let containsObjects: Bool
        var visibility: Visibility
        /// Whether a write has changed since what it may show older.
        var isDoubted = false
        /// Whether its commit is done, and with its visibility.
        var isConcluded = false
    }

    // Not private: the compiler (6.3.1) cannot lay out structs in a mutex from other files if they are.
    struct State {
        var entries: [Digest128: [Entry]] = [:]
        /// Who waits for something to become of what is pending under a digest.
        var waiters: [Digest128: [CheckedContinuation<Void, Never>]] = [:]
    }

    private let state = Mutex(State())

    /// Whether a response under a digest is still to be committed.
    func contains(_ digest: Digest128) -> Bool { state.withLock { $0.entries[digest] != nil } }

    /// Whether another response than that of a document is still to be committed under a digest.
    func contains(_ digest: Digest128, besides document: DocumentID) -> Bool {
        state.withLock { $0.entries[digest]?.contains { $0.ready.stored?.document != document } ?? false }
    }

    /// Returns when one of the responses pending under a digest has been committed or shown; at once where there is none.
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

    /// Notes a response, before anybody can know it.
    ///
    /// - Parameters:
    ///   - sent: when its request was sent, on the store's clock.
    ///   - containsObjects: whether it contains objects.
    ///   - isHidden: whether it is found nowhere until its commit.
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

    /// Has a hidden response found from now on, although its commit is still to come, unless it is in doubt.
    ///
    /// - Parameter show: puts it where it is found; not called where the commit has begun to do so.
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

    /// Doubts those of an upstream that were asked for until a time and may show what is known newer since.
    ///
    /// Only their commits show whether they do. Gives those of them that had been shown.
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

    /// Has a response dropped by its commit; false where that is done already, and somebody else has to.
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

    /// What has become of a response whose commit is done; nobody else shows it from now on, or has it dropped.
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

    /// Notes that a response has been committed, or will not be; after memory was changed.
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

/// What there is to know of the documents that were changed last, while readers of the store may still find them as they were.
///
/// Bounded: more changes than can be on their way into the store, or out of it, at a time.
struct RecentDocuments<Value> {
    private static var limit: Int { 4096 }
    /// With the place of its last change in the order.
    private var known: [DocumentID: (value: Value, place: Int)] = [:]
    /// The documents of the last changes; what was changed several times is there as often.
    private var order: [DocumentID] = []
    private var next = 0

    /// What was last noted of a document, whether it is committed or not; nil where nothing is known.
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

    /// Forgets what was last noted of a document, if that is what is meant.
    mutating func remove(_ id: DocumentID, where isMeant: (Value) -> Bool) {
        if let value = self[id], isMeant(value) { known[id] = nil }
    }
}
