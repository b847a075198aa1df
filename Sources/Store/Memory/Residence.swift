public import Synchronization

/// The flags of a ready answer while it is in the memory tier.
///
/// A class of its own, so that the lists of who shows an object keep these few bytes alive and not the body.
/// Every flag is a relaxed atomic: a reader that is a moment late sees what it would have seen a moment earlier; where
/// order matters (a write's answer), a lock or a hop between threads comes after the flip.
public final class Residence: Sendable {
    /// Where the answer is found.
    public let digest: Digest128
    /// One of the objects that it shows is known at a newer value.
    public let isDirty = Atomic<Bool>(false)
    /// Used since the eviction's hand last passed.
    let isUsed = Atomic<Bool>(false)
    /// Used since the store was last told.
    let isUsedSinceReport = Atomic<Bool>(false)
    /// No longer resident: its places in lists may be forgotten.
    let isRetired = Atomic<Bool>(false)
    /// Whether changes of its objects flip it: not once it has left, or was too large to be taken.
    public var isFlipped: Bool { !isRetired.load(ordering: .relaxed) }
    /// The objects it is registered under; written with the lock of `Showings` held.
    let objects = Mutex<[ObjectID]>([])
    /// Its place in its shard's ring; guarded by the shard's lock.
    let slot = Atomic<Int>(-1)

    /// The flags of an answer that will be found under `digest`.
    public init(digest: Digest128) {
        self.digest = digest
    }

    /// Notes a hit: two relaxed stores, and only where they change something, so that a hot line stays shared.
    @inline(__always)
    public func noteUse() {
        if !isUsed.load(ordering: .relaxed) { isUsed.store(true, ordering: .relaxed) }
        if !isUsedSinceReport.load(ordering: .relaxed) { isUsedSinceReport.store(true, ordering: .relaxed) }
    }
}
