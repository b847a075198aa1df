import Mapping
package import Store
import Synchronization

/// A response that the memory tier can hold; it is immutable except for its flags.
package protocol MemoryResident: AnyObject, Sendable {
    var key: CacheKey { get }
    /// The selection by `Vary`, and whatever else distinguishes responses of one key; equal bytes replace each other.
    var variant: [UInt8] { get }
    var byteCount: Int { get }
    /// The precedence among responses of one key that match a request; the highest is found first.
    var precedence: Int64 { get }
    var entry: MemoryEntry { get }
    /// Its document in the store; `.zero` until its commit.
    var documentID: DocumentID { get }
    /// Whether it takes the place of an earlier response of its key, in memory and on disk.
    func replaces(_ other: Self) -> Bool
}

extension MemoryResident {
    /// By default the newest comes first.
    var precedence: Int64 { 0 }
    var documentID: DocumentID { .zero }
    /// By default it replaces those of its variant.
    func replaces(_ other: Self) -> Bool { isOfVariant(of: other) }

    func isOfVariant(of other: Self) -> Bool { variant == other.variant && key == other.key }
    var isDirty: Bool { entry.isDirty }
}

/// Keeps ready responses in memory, by the digest of their key, up to a bound in bytes.
///
/// All threads share it. A look-up holds one shard's lock during a dictionary access; everything else happens at the rate of
/// misses. What a shard knows of the responses under one digest is its `Residence`, which decides what each event means.
///
/// Eviction is second chance: a hit sets a flag; the hand passes a flagged response once and clears its flag.
package final class MemoryTier<Response: MemoryResident>: Sendable {
    struct Shard {
        var residences: [Digest128: Residence<Response>] = [:]
        /// Every resident response once, in the order of the hand; nil for one that has left.
        var ring: [Response?] = []
        var hand = 0
        var vacancies = 0
        /// The number of the last event that counts.
        var number = 0
        /// The digests of the latest of these, by their numbers.
        var recent: [Digest128] = []
        /// Those who wait for the end of an arrival.
        var waiters: [Digest128: [@Sendable () -> Void]] = [:]
        init() {}
    }

    /// What is to be done after an event, without the lock.
    struct Outcome: Sendable {
        var actions: [Residence<Response>.Action] = []
        var woken: [@Sendable () -> Void] = []
        /// Whether nothing resides under the digest any more.
        var isVacant = false
        /// Whether a response has become resident.
        var hasEntered: Bool { actions.contains { if case .enter = $0 { true } else { false } } }
    }

    static var shardCount: Int { 16 }

    private static var usedLimit: Int { 4_096 }

    /// How many variants of one document are held; beyond that, the oldest go.
    static var residentVariantLimit: Int { 16 }

    private let bound: Atomic<Int>
    let shards: [ShardBox]
    private let occupied = Atomic<Int>(0)
    private let count = Atomic<Int>(0)
    private let evictions = Atomic<Int>(0)
    private let nextVictim = Atomic<Int>(0)
    private let paths = Mutex(ResidentPaths())
    /// Documents used since the last report whose responses are not resident; at most `usedLimit`.
    private let usedElsewhere = Mutex<Set<DocumentID>>([])
    /// The index of responses by object; it is notified before every commit.
    let responsesByObject = ResponsesByObject()

    /// A class around the lock, because an array cannot contain noncopyable elements.
    final class ShardBox: Sendable {
        let lock = Mutex(Shard())
        init() {}
    }

    /// The bound, in bytes; if it is set lower, responses are evicted at once.
    package var capacity: Int {
        get { bound.load(ordering: .relaxed) }
        set {
            bound.store(newValue, ordering: .relaxed)
            makeRoom()
        }
    }

    /// The most bytes of a response that is admitted: a larger one would displace too many others.
    var largest: Int { capacity / 8 }

    /// Creates a tier that holds up to `capacity` bytes.
    package init(capacity: Int) {
        bound = Atomic(capacity)
        shards = (0..<Self.shardCount).map { _ in ShardBox() }
    }

    /// The responses under a digest; the caller compares their keys.
    func responses(at digest: Digest128) -> [Response]? {
        shard(digest).lock.withLock { shard in
            guard let residents = shard.residences[digest]?.residents, !residents.isEmpty else { return nil }
            return residents
        }
    }

    /// Has the responses under a digest process an event.
    ///
    /// - Parameter event: makes the event, with the lock held: what it depends on is true when the event happens.
    /// - Returns: the documents to remove from disk.
    @discardableResult
    func handle(at digest: Digest128, of key: CacheKey, _ event: () -> Residence<Response>.Event)
        -> [DocumentID]
    {
        // Both happen under one lock: otherwise an invalidation could miss a response not yet listed under its path.
        let outcome = paths.withLock { paths in
            let outcome = shard(digest).lock.withLock { $0.handle(event(), at: digest, largest: largest) }
            if outcome.hasEntered { paths.insert(digest, of: key) }
            return outcome
        }
        return perform(outcome, at: digest)
    }

    /// What a reader of the disk must know of a document that it has found under a digest; nil if it is as on disk.
    func change(of document: DocumentID, at digest: Digest128) -> DocumentChange? {
        shard(digest).lock.withLock { $0.residences[digest]?.change(of: document) }
    }

    /// Whether a response is resident under a digest, or on its way to disk.
    func knows(_ digest: Digest128) -> Bool {
        shard(digest).lock.withLock { shard in
            shard.residences[digest].map { !$0.residents.isEmpty || $0.isArriving } ?? false
        }
    }

    /// Whether a response is on its way to disk under a digest.
    func isArriving(at digest: Digest128) -> Bool {
        shard(digest).lock.withLock { $0.residences[digest]?.isArriving ?? false }
    }

    /// Returns when the commit of a response that is on its way is over, or by `endWaiting`; at once if there is none.
    ///
    /// - Parameter isBlocked: whether commits are blocked, so that the call returns at once.
    func arrivalEnds(at digest: Digest128, unless isBlocked: () -> Bool = { false }) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let waits = shard(digest).lock.withLock { shard in
                guard shard.residences[digest]?.isArriving ?? false, !isBlocked() else { return false }
                shard.waiters[digest, default: []].append { continuation.resume() }
                return true
            }
            if !waits { continuation.resume() }
        }
    }

    /// Lets all who wait for a commit go on, because commits are blocked.
    func endWaiting() {
        for box in shards {
            let waiters = box.lock.withLock { shard in
                defer { shard.waiters = [:] }
                return shard.waiters.values.flatMap(\.self)
            }
            for waiter in waiters { waiter() }
        }
    }

    /// A number for what begins now and whose result depends on the responses under a digest.
    func number(at digest: Digest128) -> Int { shard(digest).lock.withLock { $0.number } }

    /// The number of the last event after which readers of the disk may find another response under a digest; 0 if unknown.
    func alteration(at digest: Digest128) -> Int {
        shard(digest).lock.withLock { $0.residences[digest]?.transit.altered ?? 0 }
    }

    func hasChanged(at digest: Digest128, since number: Int) -> Bool {
        shard(digest).lock.withLock { shard in
            (shard.residences[digest] ?? Residence()).hasChanged(since: number, shard.forgotten)
        }
    }

    /// Whether nothing has arrived under a digest, or was removed, after a number.
    func isLatest(at digest: Digest128, since number: Int) -> Bool {
        shard(digest).lock.withLock { shard in
            (shard.residences[digest] ?? Residence()).isLatest(number, shard.forgotten)
        }
    }

    /// Admits a response, replaces the one with its variant, and makes room for it.
    ///
    /// A response larger than `largest` is not admitted.
    func admit(_ response: Response, at digest: Digest128) {
        handle(at: digest, of: response.key) { .made(response) }
    }

    /// Registers a response under the objects that it shows, so that it becomes dirty when one of them changes.
    ///
    /// Call it before or after `admit`. Once the response has left, no later change marks it.
    ///
    /// - Parameter haveChanged: whether one has changed already; called when later changes mark the response.
    func register(_ response: Response, under objects: [ObjectID], haveChanged: () -> Bool = { false }) {
        responsesByObject.register(response.entry, under: objects, haveChanged: haveChanged)
        makeRoom()
    }

    /// Removes the responses under a digest, which are gone from disk, or will be.
    func remove(_ digest: Digest128) { process(.removed { _ in true }, at: digest) }

    /// Removes one response, if it is still resident.
    func remove(_ response: Response, at digest: Digest128) { process(.left { $0 === response }, at: digest) }

    /// Removes the responses that an invalidation covers, for every query, principal, context and variant.
    ///
    /// For patterns it reads each path once. No look-up waits for it.
    package func remove(_ invalidation: Invalidation, _ label: @escaping PrincipalLabels = { _ in nil }) {
        guard let upstream = invalidation.upstream, !invalidation.isOfEverything else {
            return removeAll { invalidation.covers($0.key, label) }
        }
        let digests = paths.withLock { known in
            let places =
                invalidation.patterns.isEmpty
                ? invalidation.paths.map { $0.beforeQuery }
                : known.paths(of: upstream).filter { invalidation.covers($0, of: upstream, shown: []) }
            return places.flatMap { known.digests(upstream: upstream, path: $0) }
        }
        for digest in digests { process(.left { invalidation.covers($0.key, label) }, at: digest) }
    }

    /// Removes every response that the closure accepts, by default all; it walks the whole tier.
    func removeAll(where isRemoved: @escaping @Sendable (Response) -> Bool = { _ in true }) {
        for box in shards {
            let digests = box.lock.withLock { shard in
                shard.residences.compactMap { $1.residents.contains(where: isRemoved) ? $0 : nil }
            }
            for digest in digests { process(.left(isRemoved), at: digest) }
        }
    }

    /// The documents whose responses were used since the last call, those that have left included; the store records their use for
    /// its own eviction.
    func takeUsed() -> [DocumentID] {
        var used = usedElsewhere.withLock { used in
            defer { used = [] }
            return Array(used)
        }
        for box in shards {
            used += box.lock.withLock { shard in
                shard.ring.compactMap { $0.flatMap { $0.entry.takeUse() ? $0.documentID : nil } }
            }
        }
        return used.filter { $0 != .zero }
    }

    /// Records the use of a response, which need not be resident.
    func recordUse(of response: Response) {
        response.entry.recordUse()
        if !response.entry.followsChanges { keepUse(of: response) }
    }

    /// Keeps for `takeUsed` that a response was used that is not resident.
    private func keepUse(of response: Response) {
        guard response.entry.takeUse() else { return }
        usedElsewhere.withLock { if $0.count < Self.usedLimit { $0.insert(response.documentID) } }
    }

    /// The number of responses, their size, and the number of evictions so far.
    package var statistics: (responses: Int, bytes: Int, evictions: Int) {
        (
            count.load(ordering: .relaxed), occupied.load(ordering: .relaxed) + responsesByObject.byteCount,
            evictions.load(ordering: .relaxed)
        )
    }

    // MARK: -
    func shard(_ digest: Digest128) -> ShardBox {
        shards[Int(truncatingIfNeeded: digest.low &>> 32) & (Self.shardCount - 1)]
    }

    private func process(_ event: Residence<Response>.Event, at digest: Digest128) {
        _ = perform(shard(digest).lock.withLock { $0.handle(event, at: digest, largest: largest) }, at: digest)
    }

    /// Performs the actions; returns the documents to remove from disk.
    private func perform(_ outcome: Outcome, at digest: Digest128) -> [DocumentID] {
        var documents: [DocumentID] = []
        var gone: [Response] = []
        var isFuller = false
        for action in outcome.actions {
            switch action {
            case .enter(let response):
                occupied.add(response.byteCount, ordering: .relaxed)
                count.add(1, ordering: .relaxed)
                isFuller = true
            case .leave(let response):
                left(response)
                gone.append(response)
            case .discard(let response): discard(response)
            case .markDirty(let response): response.entry.markDirty()
            case .remove(let document): documents.append(document)
            case .wake: break
            }
        }
        if outcome.isVacant, !gone.isEmpty {
            paths.withLock { paths in
                guard responses(at: digest) == nil else { return }
                for response in gone { paths.remove(digest, of: response.key) }
            }
        }
        if isFuller { makeRoom() }
        for resume in outcome.woken { resume() }
        return documents
    }

    /// Updates the counters for a response that is no longer resident.
    private func left(_ response: Response) {
        discard(response)
        occupied.subtract(response.byteCount, ordering: .relaxed)
        count.subtract(1, ordering: .relaxed)
    }

    /// Removes the registrations of a response that is not resident and will not be.
    private func discard(_ response: Response) {
        response.entry.retire()
        responsesByObject.forget(response.entry)
        keepUse(of: response)
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
            remove(victim, at: digest)
            return true
        }
        return false
    }
}

/// The digests of the resident responses by their paths, whatever their queries: an invalidation names a path.
private struct ResidentPaths {
    private struct Path: Hashable {
        let upstream: UpstreamKey
        let path: Substring
    }

    private var digests: [Path: Set<Digest128>] = [:]

    func digests(upstream: UpstreamKey, path: Substring) -> Set<Digest128> {
        digests[Path(upstream: upstream, path: path)] ?? []
    }

    func paths(of upstream: UpstreamKey) -> [Substring] { digests.keys.filter { $0.upstream == upstream }.map(\.path) }

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
    package func objectsWillChange(_ objects: [ObjectID]) { responsesByObject.objectsWillChange(objects) }

    /// Removes the ready responses of removed documents; called on the writer's thread.
    package func documentsRemoved(_ digests: [Digest128]) { for digest in digests { remove(digest) } }

    /// Removes everything; called on the writer's thread.
    package func storeEmptied() { removeAll() }
}

/// Manages the responses of one shard, and the ring of its clock hand.
extension MemoryTier.Shard {
    /// How many events a shard remembers: more than can be under way into or out of the store at a time.
    private static var memory: Int { 512 }

    /// The number of the last event that is no longer remembered.
    var forgotten: Int { number - Self.memory }

    /// Has the residence of a digest process an event.
    ///
    /// - Parameter largest: the size up to which a response may enter.
    mutating func handle(_ event: Residence<Response>.Event, at digest: Digest128, largest: Int)
        -> MemoryTier<Response>.Outcome
    {
        if event.isNumbered { remember(digest) }
        var outcome = MemoryTier<Response>.Outcome()
        var residence = residences[digest] ?? Residence()
        for action in residence.handle(event, number: number, forgotten: forgotten) {
            outcome.actions.append(action)
            switch action {
            case .enter(let response):
                guard response.byteCount <= largest else {
                    _ = residence.handle(.left { $0 === response }, number: number)
                    outcome.actions[outcome.actions.count - 1] = .discard(response)
                    continue
                }
                response.entry.slot.store(ring.count, ordering: .relaxed)
                ring.append(response)
            case .leave(let response): vacate(response)
            case .wake: outcome.woken += waiters.removeValue(forKey: digest) ?? []
            case .markDirty, .discard, .remove: break
            }
        }
        // The list is bounded because look-ups walk it.
        if residence.residents.count > MemoryTier.residentVariantLimit,
            let oldest = residence.residents.min(by: { slot($0) < slot($1) })
        {
            outcome.actions += residence.handle(.left { $0 === oldest }, number: number)
            vacate(oldest)
        }
        outcome.isVacant = residence.residents.isEmpty
        residences[digest] = residence.isEmpty ? nil : residence
        return outcome
    }

    /// Numbers an event under a digest, and forgets the oldest one.
    private mutating func remember(_ digest: Digest128) {
        number += 1
        guard recent.count >= Self.memory else { return recent.append(digest) }
        let place = (number - 1) % Self.memory
        let old = recent[place]
        recent[place] = digest
        guard var residence = residences[old] else { return }
        residence.forget(upTo: forgotten)
        residences[old] = residence.isEmpty ? nil : residence
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
