import Store
import Synchronization

/// The entry of a ready response in the memory tier: its digest, its flags and its position.
///
/// It is a separate class, so that lists by object keep only these few bytes alive and not the body.
///
/// Every flag is a relaxed atomic: a reader that is a moment late sees the state of a moment earlier. Where order matters (a
/// write's response), a lock or a hop between threads follows.
package final class MemoryEntry: Sendable {
    let digest: Digest128
    private let dirty = Atomic<Bool>(false)
    private let retired = Atomic<Bool>(false)
    /// Whether it was used since the eviction's hand last passed.
    let isUsed = Atomic<Bool>(false)
    /// Whether it was used since the store last recorded its use.
    let isUsedSinceReport = Atomic<Bool>(false)
    /// The objects it is registered under; written with the lock of `ResponsesByObject` held.
    let objects = Mutex<[ObjectID]>([])
    /// Its position in its shard's ring; guarded by the shard's lock.
    let slot = Atomic<Int>(-1)

    /// The entry of a response that will be found under `digest`.
    init(digest: Digest128) { self.digest = digest }

    /// Whether a newer value than one that it shows is known.
    @inline(__always)
    var isDirty: Bool { dirty.load(ordering: .relaxed) }

    /// A newer value has become known: an object has changed, or the disk has refused the 304 that it was made by.
    func markDirty() { dirty.store(true, ordering: .relaxed) }

    /// Whether changes of its objects make it dirty; false once it has left, or if it was too large to be inserted.
    var followsChanges: Bool { !retired.load(ordering: .relaxed) }

    /// It has left memory, or will never be there: its registrations may be removed.
    func retire() { retired.store(true, ordering: .relaxed) }

    /// Records a hit: two relaxed stores, and only if they change something, so that a hot cache line stays shared.
    @inline(__always)
    func recordUse() {
        if !isUsed.load(ordering: .relaxed) { isUsed.store(true, ordering: .relaxed) }
        if !isUsedSinceReport.load(ordering: .relaxed) { isUsedSinceReport.store(true, ordering: .relaxed) }
    }

    /// Whether it was used since the last call.
    func takeUse() -> Bool { isUsedSinceReport.exchange(false, ordering: .relaxed) }
}
