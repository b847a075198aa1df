package import Store
package import Synchronization

/// The entry of a ready response in the memory tier: its digest, its flags and its position.
///
/// It is a separate class, so that lists by object keep only these few bytes alive and not the body.
///
/// Every flag is a relaxed atomic: a reader that is a moment late sees the state of a moment earlier. Where order matters (a
/// write's response), a lock or a hop between threads follows.
package final class MemoryEntry: Sendable {
    package let digest: Digest128
    /// Whether a newer value of an object that it shows is known.
    package let isDirty = Atomic<Bool>(false)
    /// Whether it was used since the eviction's hand last passed.
    let isUsed = Atomic<Bool>(false)
    /// Whether it was used since the store last recorded its use.
    let isUsedSinceReport = Atomic<Bool>(false)
    /// Whether it is no longer resident, so that its registrations may be removed.
    let isRetired = Atomic<Bool>(false)
    /// Whether changes of its objects make it dirty; false once it has left, or if it was too large to be inserted.
    package var followsChanges: Bool { !isRetired.load(ordering: .relaxed) }
    /// The objects it is registered under; written with the lock of `ResponsesByObject` held.
    let objects = Mutex<[ObjectID]>([])
    /// Its position in its shard's ring; guarded by the shard's lock.
    let slot = Atomic<Int>(-1)

    /// Creates the entry of a response that will be found under `digest`.
    package init(digest: Digest128) { self.digest = digest }

    /// Records a hit: two relaxed stores, and only if they change something, so that a hot cache line stays shared.
    @inline(__always)
    package func recordUse() {
        if !isUsed.load(ordering: .relaxed) { isUsed.store(true, ordering: .relaxed) }
        if !isUsedSinceReport.load(ordering: .relaxed) { isUsedSinceReport.store(true, ordering: .relaxed) }
    }

    /// Whether it was used since the last call.
    func takeUse() -> Bool { isUsedSinceReport.exchange(false, ordering: .relaxed) }
}
