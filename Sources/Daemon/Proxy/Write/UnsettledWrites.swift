import Synchronization

/// Writes whose responses have come, and which could not be stored: the disk was full, or failed.
///
/// Until one is stored after all, nothing on disk says what it has changed. So whatever is known of its upstream from before
/// it counts as changed in unknown ways (law 10): it is asked for again, and served only where nobody can be asked.
///
/// Any thread.
final class UnsettledWrites: Sendable {
    /// By number, the upstream and when the write was over, on the store's clock.
    private let writes = Mutex<[Int: (upstream: String, time: Int64)]>([:])
    /// How many there are, so that who looks up need not ask for the lock where there is none.
    private let count = Atomic<Int>(0)
    /// How many there may be; past it writes are refused, for each is kept.
    static let limit = 64

    /// Whether there are so many that no further write may be sent.
    var isFull: Bool { count.load(ordering: .relaxed) >= Self.limit }

    /// Notes a write; before anything is taken out of memory for its sake.
    func begin(_ number: Int, upstream: String, time: Int64) {
        writes.withLock { writes in
            writes[number] = (upstream, time)
            count.store(writes.count, ordering: .sequentiallyConsistent)
        }
    }

    /// A write has been stored.
    func end(_ number: Int) {
        writes.withLock { writes in
            writes[number] = nil
            count.store(writes.count, ordering: .sequentiallyConsistent)
        }
    }

    /// Whether one of an upstream's writes may have changed what was known of it as of a time.
    func mayBeNewer(than start: Int64, of upstream: String) -> Bool {
        guard count.load(ordering: .sequentiallyConsistent) > 0 else { return false }
        return writes.withLock { $0.values.contains { $0.upstream == upstream && start <= $0.time } }
    }
}
