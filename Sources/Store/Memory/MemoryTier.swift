import Mapping
public import Synchronization

/// A response that the memory tier can hold; it is immutable except for its flags.
public protocol MemoryResident: AnyObject, Sendable {
    /// Its cache key.
    var key: CacheKey { get }
    /// The selection by `Vary`, and whatever else distinguishes responses of one key; equal bytes replace each other.
    var variant: [UInt8] { get }
    /// Its size in bytes.
    var byteCount: Int { get }
    /// The precedence among responses of one key that match a request; the highest is found first.
    var precedence: Int64 { get }
    /// Its entry, which the tier reads and writes.
    var entry: MemoryEntry { get }
    /// Its document in the store; `.zero` until its commit.
    var documentID: DocumentID { get }
    /// Whether it takes the place of an earlier response of its key, in memory and on disk.
    func replaces(_ other: Self) -> Bool
}

extension MemoryResident {
    /// By default the newest comes first.
    public var precedence: Int64 { 0 }
    /// By default it is not stored.
    public var documentID: DocumentID { .zero }
    /// By default it replaces those of its variant.
    public func replaces(_ other: Self) -> Bool { isOfVariant(of: other) }

    func isOfVariant(of other: Self) -> Bool { variant == other.variant && key == other.key }
    var isDirty: Bool { entry.isDirty.load(ordering: .relaxed) }
}

/// Keeps ready responses in memory, by the digest of their key, up to a bound in bytes.
///
/// All threads share it. A look-up holds one shard's lock during a dictionary access; everything else happens at the rate of
/// misses. A digest has few responses (variants), so they are in a list, ordered by precedence.
///
/// Eviction is second chance: a hit sets a flag; the hand passes a flagged response once and clears its flag.
public final class MemoryTier<Response: MemoryResident>: Sendable {
    // The look-up is inlinable: unspecialised generic code computes metadata at each call, which takes a fifth of the time of a
    // hit.
    @usableFromInline
    struct Shard {
        @usableFromInline var responses: [Digest128: [Response]] = [:]
        /// Every resident response once, in the order of the hand; nil for one that has left.
        @usableFromInline var ring: [Response?] = []
        @usableFromInline var hand = 0
        @usableFromInline var vacancies = 0

        @usableFromInline
        init() {}
    }

    @usableFromInline static var shardCount: Int { 16 }

    /// How many variants of one document are held; beyond that, the oldest go.
    public static var variantLimit: Int { 16 }

    /// The bound, in bytes.
    public let capacity: Int
    @usableFromInline let shards: [ShardBox]
    private let occupied = Atomic<Int>(0)
    private let count = Atomic<Int>(0)
    private let evictions = Atomic<Int>(0)
    private let nextVictim = Atomic<Int>(0)
    private let paths = Mutex(ResidentPaths())
    /// The index of responses by object; it is notified before every commit.
    public let responsesByObject = ResponsesByObject()

    /// A class around the lock, because an array cannot contain noncopyable elements.
    @usableFromInline
    final class ShardBox: Sendable {
        @usableFromInline let lock = Mutex(Shard())

        @usableFromInline
        init() {}
    }

    /// Creates a tier that holds up to `capacity` bytes.
    public init(capacity: Int) {
        self.capacity = capacity
        shards = (0..<Self.shardCount).map { _ in ShardBox() }
    }

    /// The responses under a digest; the caller compares their keys.
    @inlinable
    public func responses(at digest: Digest128) -> [Response]? {
        shard(digest).lock.withLock { $0.responses[digest] }
    }

    /// Inserts a response, replaces the one with its variant, and makes room for it.
    ///
    /// A response larger than an eighth of the tier is not inserted: it would displace too many others.
    ///
    /// - Parameter mayGo: whether the one with its variant may be replaced; called with the shard's lock held. If not, the new
    ///   response is discarded.
    public func insert(
        _ response: Response,
        at digest: Digest128,
        insteadOf mayGo: @Sendable (Response) -> Bool = { _ in true }
    ) {
        guard response.byteCount <= capacity / 8 else {
            removeResponses(at: digest) { $0.variant == response.variant && $0.key == response.key && mayGo($0) }
            return discard(response)
        }
        // Both happen under one lock: otherwise an invalidation could miss a response not yet listed under its path.
        let gone = paths.withLock { paths in
            paths.insert(digest, of: response.key)
            return shard(digest).lock.withLock { $0.put(response, at: digest, insteadOf: mayGo) }
        }
        guard let gone else { return discard(response) }
        for response in gone { left(response) }
        occupied.add(response.byteCount, ordering: .relaxed)
        count.add(1, ordering: .relaxed)
        makeRoom()
    }

    /// Registers a response under the objects that it shows, so that it becomes dirty when one of them changes.
    ///
    /// Call it before or after `insert`. It has no effect once the response has left. Discard a response that will never be
    /// inserted.
    public func register(_ response: Response, under objects: [ObjectID]) {
        responsesByObject.register(response.entry, under: objects)
        makeRoom()
    }

    /// Removes the responses under a digest that the closure accepts, by default all.
    public func remove(_ digest: Digest128, where isRemoved: (Response) -> Bool = { _ in true }) {
        removeResponses(at: digest, where: isRemoved)
    }

    /// Removes one response, if it is still resident.
    public func remove(_ response: Response, at digest: Digest128) { removeResponses(at: digest) { $0 === response } }

    /// Removes the resident response with the same key and variant.
    public func removeVariant(of response: Response, at digest: Digest128) {
        removeResponses(at: digest) { $0.variant == response.variant && $0.key == response.key }
    }

    /// Removes the responses of a path, for every query, principal, context and variant.
    public func remove(upstream: String, path: String) {
        let path = path.beforeQuery
        for digest in paths.withLock({ $0.digests(upstream: upstream, path: path) }) {
            removeResponses(at: digest) { $0.key.upstream == upstream && $0.key.url.beforeQuery == path }
        }
    }

    /// Removes the responses of all paths of an upstream that the closure accepts, for every query, principal, context and
    /// variant.
    ///
    /// It reads each path once. No look-up waits for it.
    public func remove(upstream: String, where isRemoved: (_ path: Substring) -> Bool) {
        let removed = paths.withLock { $0.paths(of: upstream).filter(isRemoved) }
        for path in removed { remove(upstream: upstream, path: String(path)) }
    }

    /// Removes every response that the closure accepts, by default all; it walks the whole tier.
    public func removeAll(where isRemoved: (Response) -> Bool = { _ in true }) {
        for box in shards {
            let gone = box.lock.withLock { shard -> [(Digest128, Response)] in
                shard.responses.flatMap { digest, list in list.filter(isRemoved).map { (digest, $0) } }
            }
            for (digest, response) in gone { remove(response, at: digest) }
        }
    }

    /// The responses used since the last call; the store records their use for its own eviction.
    public func takeUsed() -> [Response] {
        shards.flatMap { box in
            box.lock.withLock { shard in
                shard.ring.compactMap { response in
                    guard let response, response.entry.isUsedSinceReport.exchange(false, ordering: .relaxed) else {
                        return nil
                    }
                    return response
                }
            }
        }
    }

    /// The number of responses, their size, and the number of evictions so far.
    public var statistics: (responses: Int, bytes: Int, evictions: Int) {
        (
            count.load(ordering: .relaxed), occupied.load(ordering: .relaxed) + responsesByObject.byteCount,
            evictions.load(ordering: .relaxed)
        )
    }

    // MARK: -

    @inlinable
    func shard(_ digest: Digest128) -> ShardBox {
        shards[Int(truncatingIfNeeded: digest.low &>> 32) & (Self.shardCount - 1)]
    }

    private func removeResponses(at digest: Digest128, where isRemoved: (Response) -> Bool) {
        let gone = shard(digest).lock.withLock { shard -> [Response] in
            guard let list = shard.responses[digest] else { return [] }
            let gone = list.filter(isRemoved)
            guard !gone.isEmpty else { return [] }
            let kept = list.filter { response in !gone.contains { $0 === response } }
            shard.responses[digest] = kept.isEmpty ? nil : kept
            for response in gone { shard.vacate(response) }
            return gone
        }
        guard !gone.isEmpty else { return }
        for response in gone { left(response) }
        paths.withLock { paths in
            guard responses(at: digest) == nil else { return }
            for response in gone { paths.remove(digest, of: response.key) }
        }
    }

    /// Updates the counters for a response that is no longer resident.
    private func left(_ response: Response) {
        discard(response)
        occupied.subtract(response.byteCount, ordering: .relaxed)
        count.subtract(1, ordering: .relaxed)
    }

    /// Removes the registrations of a response that is not resident and will not be.
    public func discard(_ response: Response) {
        response.entry.isRetired.store(true, ordering: .relaxed)
        responsesByObject.forget(response.entry)
    }

    private func makeRoom() {
        while occupied.load(ordering: .relaxed) + responsesByObject.byteCount > capacity, evictOne() {}
    }

    /// Evicts one response; returns false if there is none.
    private func evictOne() -> Bool {
        let start = nextVictim.add(1, ordering: .relaxed).newValue
        // Two rounds: the first may only clear flags.
        for offset in 0..<(2 * Self.shardCount) {
            let box = shards[(start &+ offset) & (Self.shardCount - 1)]
            let victim = box.lock.withLock { $0.victim() }
            guard let victim else { continue }
            evictions.add(1, ordering: .relaxed)
            let digest = victim.entry.digest
            removeResponses(at: digest) { $0 === victim }
            return true
        }
        return false
    }
}

/// The digests of the resident responses by their paths, whatever their queries: an invalidation names a path.
///
/// Not generic like the tier: unspecialised, each insertion would take several microseconds more.
private struct ResidentPaths {
    private struct Path: Hashable {
        let upstream: String
        let path: Substring
    }

    private var digests: [Path: Set<Digest128>] = [:]

    func digests(upstream: String, path: Substring) -> Set<Digest128> {
        digests[Path(upstream: upstream, path: path)] ?? []
    }

    func paths(of upstream: String) -> [Substring] { digests.keys.filter { $0.upstream == upstream }.map(\.path) }

    mutating func insert(_ digest: Digest128, of key: CacheKey) {
        digests[Path(upstream: key.upstream, path: key.url.beforeQuery), default: []].insert(digest)
    }

    mutating func remove(_ digest: Digest128, of key: CacheKey) {
        let path = Path(upstream: key.upstream, path: key.url.beforeQuery)
        digests[path]?.remove(digest)
        if digests[path]?.isEmpty == true { digests[path] = nil }
    }
}

extension MemoryTier: ChangeListener {
    /// Marks the ready responses that show one of these objects as dirty, before anybody can read the change from disk.
    public func objectsWillChange(_ objects: [ObjectID]) { responsesByObject.objectsWillChange(objects) }

    /// Does nothing: the responses were marked before the commit.
    public func objectsChanged(_ objects: [ObjectID]) {}

    /// Removes the ready responses of removed documents; called on the writer's thread.
    public func documentsRemoved(_ digests: [Digest128]) { for digest in digests { remove(digest) } }

    /// Removes everything; called on the writer's thread.
    public func storeEmptied() { removeAll() }
}

/// Manages the responses of one shard, and the ring of its clock hand.
extension MemoryTier.Shard {
    /// Inserts a response in place of the one with its variant; returns the displaced responses, or nil if the old one stays.
    mutating func put(_ response: Response, at digest: Digest128, insteadOf mayGo: @Sendable (Response) -> Bool)
        -> [Response]?
    {
        var list = responses[digest] ?? []
        var gone: [Response] = []
        if let index = list.firstIndex(where: { $0.variant == response.variant && $0.key == response.key }) {
            guard mayGo(list[index]) else { return nil }
            gone.append(list.remove(at: index))
        } else if list.count >= MemoryTier.variantLimit,
            let oldest = list.indices.min(by: { slot(list[$0]) < slot(list[$1]) })
        {
            // The list is bounded because look-ups walk it.
            gone.append(list.remove(at: oldest))
        }
        list.insert(response, at: list.firstIndex { $0.precedence <= response.precedence } ?? list.endIndex)
        responses[digest] = list
        for response in gone { vacate(response) }
        response.entry.slot.store(ring.count, ordering: .relaxed)
        ring.append(response)
        return gone
    }

    /// The slot of a response; slots are assigned in the order of arrival.
    private func slot(_ response: Response) -> Int { response.entry.slot.load(ordering: .relaxed) }

    mutating func vacate(_ response: Response) {
        let slot = self.slot(response)
        guard ring.indices.contains(slot), ring[slot] === response else { return }
        ring[slot] = nil
        vacancies += 1
        if vacancies > 64, vacancies * 2 > ring.count { compact() }
    }

    /// The next response without a flag, within one turn of the hand; it is not removed.
    mutating func victim() -> Response? {
        for _ in 0..<ring.count {
            if hand >= ring.count { hand = 0 }
            defer { hand += 1 }
            guard let response = ring[hand] else { continue }
            if response.entry.isUsed.exchange(false, ordering: .relaxed) { continue }
            return response
        }
        return nil
    }

    private mutating func compact() {
        var kept: [Response?] = []
        kept.reserveCapacity(ring.count - vacancies)
        var newHand = 0
        for (index, response) in ring.enumerated() {
            if index == hand { newHand = kept.count }
            guard let response else { continue }
            response.entry.slot.store(kept.count, ordering: .relaxed)
            kept.append(response)
        }
        ring = kept
        hand = newHand
        vacancies = 0
    }
}

/// The entry of a ready response in the memory tier: its digest, its flags and its position.
///
/// It is a separate class, so that lists by object keep only these few bytes alive and not the body.
///
/// Every flag is a relaxed atomic: a reader that is a moment late sees the state of a moment earlier. Where order matters (a
/// write's response), a lock or a hop between threads follows.
public final class MemoryEntry: Sendable {
    /// The digest under which the response is found.
    public let digest: Digest128
    /// Whether a newer value of an object that it shows is known.
    public let isDirty = Atomic<Bool>(false)
    /// Whether it was used since the eviction's hand last passed.
    let isUsed = Atomic<Bool>(false)
    /// Whether it was used since the store last recorded its use.
    let isUsedSinceReport = Atomic<Bool>(false)
    /// Whether it is no longer resident, so that its registrations may be removed.
    let isRetired = Atomic<Bool>(false)
    /// Whether changes of its objects make it dirty; false once it has left, or if it was too large to be inserted.
    public var followsChanges: Bool { !isRetired.load(ordering: .relaxed) }
    /// The objects it is registered under; written with the lock of `ResponsesByObject` held.
    let objects = Mutex<[ObjectID]>([])
    /// Its position in its shard's ring; guarded by the shard's lock.
    let slot = Atomic<Int>(-1)

    /// Creates the entry of a response that will be found under `digest`.
    public init(digest: Digest128) { self.digest = digest }

    /// Records a hit: two relaxed stores, and only if they change something, so that a hot cache line stays shared.
    @inline(__always)
    public func noteUse() {
        if !isUsed.load(ordering: .relaxed) { isUsed.store(true, ordering: .relaxed) }
        if !isUsedSinceReport.load(ordering: .relaxed) { isUsedSinceReport.store(true, ordering: .relaxed) }
    }
}

/// An index of ready responses by the objects that they show, so that a change makes them dirty.
///
/// Registration and change may come in either order. The store records a change before it notifies this index. So call
/// `ObjectStore.mayHaveChanged` after registering a response that was read or committed a moment ago. The registrations of a
/// response are removed when it leaves the tier, so that the index is bounded like the tier.
public final class ResponsesByObject: Sendable {
    /// The responses that show one object; mostly just one.
    fileprivate struct List {
        var first: MemoryEntry?
        var others: [MemoryEntry] = []
        /// How many of the others are no longer resident.
        var retired = 0

        var isEmpty: Bool { first == nil && others.isEmpty }
    }

    /// The approximate size of a registration: a slot in the table, which is never full, and one in the response's own list.
    private static var registrationSize: Int { 64 }

    private let lists = Mutex<[ObjectID: List]>([:])
    private let registrations = Atomic<Int>(0)

    init() {}

    /// Registers a response under the objects that it shows, unless it has already left the tier.
    func register(_ entry: MemoryEntry, under objects: [ObjectID]) {
        guard !objects.isEmpty else { return }
        lists.withLock { lists in
            // The flag is set before `forget` takes this lock. So either this code sees the flag, or `forget` sees the
            // registration.
            guard !entry.isRetired.load(ordering: .relaxed) else { return }
            for object in objects { lists[object, default: List()].append(entry) }
            entry.objects.withLock { $0 += objects }
            registrations.add(objects.count, ordering: .relaxed)
        }
    }

    /// The objects under which a resident response is registered.
    public func objects(of entry: MemoryEntry) -> [ObjectID] { entry.objects.withLock(\.self) }

    /// The number of registrations, including those of dirty responses that are still resident.
    public var registrationCount: Int { registrations.load(ordering: .relaxed) }

    /// The size of the registrations in bytes.
    var byteCount: Int { registrationCount * Self.registrationSize }

    /// Removes the registrations of a retired response.
    func forget(_ entry: MemoryEntry) {
        lists.withLock { lists in
            let objects = entry.objects.withLock { objects in
                defer { objects = [] }
                return objects
            }
            for object in objects {
                // By its index: the writer does this for each object of each response that it displaces.
                guard let index = lists.index(forKey: object) else { continue }
                lists.values[index].remove(entry)
                if lists.values[index].isEmpty { lists.remove(at: index) }
            }
            registrations.subtract(objects.count, ordering: .relaxed)
        }
    }

    /// Marks every response that shows one of these objects as dirty.
    ///
    /// The object's list is dropped: its responses will be composed and registered again. It is removed first, so that no
    /// registration or removal waits for a long list.
    func objectsWillChange(_ objects: [ObjectID]) {
        for object in objects {
            guard let list = lists.withLock({ $0.removeValue(forKey: object) }) else { continue }
            list.first?.isDirty.store(true, ordering: .relaxed)
            for entry in list.others { entry.isDirty.store(true, ordering: .relaxed) }
        }
    }
}

extension ResponsesByObject.List {
    mutating func append(_ entry: MemoryEntry) {
        if isEmpty { first = entry } else { others.append(entry) }
    }

    /// Removes a retired response: at once or, in a long list, together with others.
    mutating func remove(_ entry: MemoryEntry) {
        if first === entry {
            first = nil
            return
        }
        retired += 1
        guard retired * 2 > others.count else { return }
        others.removeAll { $0.isRetired.load(ordering: .relaxed) }
        retired = 0
    }
}
