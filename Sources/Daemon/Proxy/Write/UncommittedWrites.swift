import Store
import Synchronization

/// Writes whose response came but which could not be stored, because the disk was full or failed.
///
/// Until such a write is stored, nothing on disk records its changes. So everything known of its upstream from before it counts
/// as changed (law 10): it is fetched again, and served only if the upstream cannot be asked. Any thread.
///
/// `InvalidationLog` cannot say it: what has begun after such a write still reads the former state from disk until the write ends,
/// and the writer's and the readers' threads ask, too.
final class UncommittedWrites: Sendable {
    private struct State {
        /// What each makes outdated, by number.
        var writes: [Int: Invalidation] = [:]
        var lastNumber = 0
    }

    private let state = Mutex(State())
    /// The number of writes, so that look-ups need no lock while there are none.
    private let count = Atomic<Int>(0)
    /// The limit; past it writes are refused, because each is kept in memory.
    static let maximumWrites = 64

    /// Whether no further write may be sent.
    var isFull: Bool { count.load(ordering: .relaxed) >= Self.maximumWrites }

    /// Adds a write, before any response is removed from memory because of it; returns its number.
    func begin(_ invalidation: Invalidation) -> Int {
        state.withLock { state in
            state.lastNumber += 1
            state.writes[state.lastNumber] = invalidation
            count.store(state.writes.count, ordering: .sequentiallyConsistent)
            return state.lastNumber
        }
    }

    func end(_ number: Int) {
        state.withLock { state in
            state.writes[number] = nil
            count.store(state.writes.count, ordering: .sequentiallyConsistent)
        }
    }

    /// Whether one of an upstream's writes may have changed what was known at a time.
    func mayBeNewer(than start: Int64, of upstream: UpstreamKey) -> Bool {
        guard count.load(ordering: .sequentiallyConsistent) > 0 else { return false }
        return state.withLock { $0.writes.values.contains { $0.concerns(upstream) && start <= $0.time } }
    }
}
