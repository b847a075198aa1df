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

/// Which ready answers show which object, so that a change flips them.
///
/// Registration and notice are in either order: whoever registers an answer that was read or committed a moment ago asks
/// `Store.mayHaveChanged` afterwards, since the store remembers a change before it tells of it. An answer that leaves the
/// tier takes its registrations along, so that what is here is bounded as the tier is.
public final class Showings: Sendable {
    /// The answers that show one object; mostly there is one.
    fileprivate struct List {
        var first: Residence?
        var others: [Residence] = []
        /// How many of the others are no longer resident.
        var retired = 0

        var isEmpty: Bool { first == nil && others.isEmpty }
    }

    /// About what a registration takes: a place in the table, which is never full, and one in the answer's own list.
    private static var registrationSize: Int { 64 }

    private let lists = Mutex<[ObjectID: List]>([:])
    private let registrations = Atomic<Int>(0)

    init() {}

    /// Registers an answer under the objects that it shows, unless it has left the tier already.
    func register(_ residence: Residence, under objects: [ObjectID]) {
        guard !objects.isEmpty else { return }
        lists.withLock { lists in
            // Set before `forget` takes this lock: whoever comes second here knows of the other.
            guard !residence.isRetired.load(ordering: .relaxed) else { return }
            for object in objects { lists[object, default: List()].append(residence) }
            residence.objects.withLock { $0 += objects }
            registrations.add(objects.count, ordering: .relaxed)
        }
    }

    /// What a resident answer is registered under.
    public func objects(of residence: Residence) -> [ObjectID] { residence.objects.withLock(\.self) }

    /// How many registrations there are, those of flipped answers that are still resident included.
    public var registrationCount: Int { registrations.load(ordering: .relaxed) }

    /// What the registrations occupy, in bytes.
    var byteCount: Int { registrationCount * Self.registrationSize }

    /// Takes back the registrations of an answer that has been retired.
    func forget(_ residence: Residence) {
        lists.withLock { lists in
            let objects = residence.objects.withLock { objects in
                defer { objects = [] }
                return objects
            }
            for object in objects {
                lists[object]?.remove(residence)
                if lists[object]?.isEmpty == true { lists[object] = nil }
            }
            registrations.subtract(objects.count, ordering: .relaxed)
        }
    }

    /// Flips every answer that shows one of these objects.
    ///
    /// A flipped list is dropped: its answers will be composed anew and registered again. It is taken out first, so that
    /// nobody who registers or leaves waits for a long one.
    func objectsChanged(_ objects: [ObjectID]) {
        for object in objects {
            guard let list = lists.withLock({ $0.removeValue(forKey: object) }) else { continue }
            list.first?.isDirty.store(true, ordering: .relaxed)
            for residence in list.others { residence.isDirty.store(true, ordering: .relaxed) }
        }
    }
}

extension Showings.List {
    mutating func append(_ residence: Residence) {
        if isEmpty { first = residence } else { others.append(residence) }
    }

    /// Removes a retired answer, now or, in a long list, together with others.
    mutating func remove(_ residence: Residence) {
        if first === residence {
            first = nil
            return
        }
        retired += 1
        guard retired * 2 > others.count else { return }
        others.removeAll { $0.isRetired.load(ordering: .relaxed) }
        retired = 0
    }
}
