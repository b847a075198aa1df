import Mapping
public import Synchronization

/// An answer that the memory tier can hold: immutable but for its flags.
public protocol MemoryResident: AnyObject, Sendable {
    /// The document that it answers.
    var key: DocumentKey { get }
    /// The selection by `Vary` and whatever else tells apart answers of one key; equal bytes replace one another.
    var variant: [UInt8] { get }
    /// What it occupies, in bytes.
    var byteCount: Int { get }
    /// Where several answers of one key suit a request, the one with the highest is found first.
    var precedence: Int64 { get }
    /// The flags that the tier reads and writes.
    var residence: Residence { get }
}

extension MemoryResident {
    /// Without a word on it, the newest comes first.
    public var precedence: Int64 { 0 }
}

/// The memory tier: ready answers, found by their key's digest, bounded in bytes.
///
/// Shared by all threads. A look-up holds one shard's lock for the time of a dictionary access; everything else happens
/// at the rate of misses. The answers of one digest are few (variants), so they are a list, the preferred ones first.
///
/// Eviction is second chance: a hit sets a flag, the hand passes over a flagged answer once and clears its flag.
public final class MemoryTier<Response: MemoryResident>: Sendable {
    // What the look-up needs is open to its users: generic code that is not compiled for their type works out metadata at
    // each call, a fifth of the time of a hit.
    @usableFromInline
    struct Shard {
        @usableFromInline var answers: [Digest128: [Response]] = [:]
        /// Every resident answer once, in the order in which the hand meets them; nil where one has left.
        @usableFromInline var ring: [Response?] = []
        @usableFromInline var hand = 0
        @usableFromInline var vacancies = 0

        @usableFromInline
        init() {}
    }

    @usableFromInline static var shardCount: Int { 16 }

    /// How many variants of one document are held; the oldest go.
    public static var variantLimit: Int { 16 }

    /// The bound, in bytes.
    public let capacity: Int
    @usableFromInline let shards: [ShardBox]
    private let occupied = Atomic<Int>(0)
    private let count = Atomic<Int>(0)
    private let evictions = Atomic<Int>(0)
    private let nextVictim = Atomic<Int>(0)
    private let targets = Mutex<[Target: Set<Digest128>]>([:])
    /// Who shows which object; told of every commit.
    public let showings = Showings()

    /// A class around the lock, since an array holds no noncopyable elements.
    @usableFromInline
    final class ShardBox: Sendable {
        @usableFromInline let lock = Mutex(Shard())

        @usableFromInline
        init() {}
    }

    /// Where writes point: a path, whatever its query.
    private struct Target: Hashable {
        let upstream: String
        let path: Substring

        init(upstream: String, url: String) {
            self.upstream = upstream
            path = url.beforeQuery
        }
    }

    /// A tier that holds up to `capacity` bytes.
    public init(capacity: Int) {
        self.capacity = capacity
        shards = (0..<Self.shardCount).map { _ in ShardBox() }
    }

    /// The answers under a digest, whoever they are for: the caller compares the key.
    @inlinable
    public func answers(at digest: Digest128) -> [Response]? {
        shard(digest).lock.withLock { $0.answers[digest] }
    }

    /// Puts an answer in the place of the one with its variant, and makes room for it.
    ///
    /// An answer that is larger than an eighth of the tier is not taken: it would empty the tier for one document.
    ///
    /// - Parameter mayGo: whether it may take the place of that one, which is asked with the shard's lock held; where not, it
    ///   is discarded.
    public func insert(
        _ answer: Response,
        at digest: Digest128,
        insteadOf mayGo: @Sendable (Response) -> Bool = { _ in true }
    ) {
        guard answer.byteCount <= capacity / 8 else {
            removeAnswers(at: digest) { $0.variant == answer.variant && $0.key == answer.key && mayGo($0) }
            return discard(answer)
        }
        let target = Target(upstream: answer.key.upstream, url: answer.key.url)
        // Under one lock: an answer not yet listed under its path would escape an invalidation.
        let gone = targets.withLock { targets in
            targets[target, default: []].insert(digest)
            return shard(digest).lock.withLock { $0.put(answer, at: digest, insteadOf: mayGo) }
        }
        guard let gone else { return discard(answer) }
        for answer in gone { left(answer) }
        occupied.add(answer.byteCount, ordering: .relaxed)
        count.add(1, ordering: .relaxed)
        makeRoom()
    }

    /// Registers an answer under the objects that it shows, so that it is flipped when one of them changes.
    ///
    /// Before or after it is inserted; without effect once it has left. One that will never be inserted is discarded.
    public func register(_ answer: Response, under objects: [ObjectID]) {
        showings.register(answer.residence, under: objects)
        makeRoom()
    }

    /// Removes everything under a digest.
    public func remove(_ digest: Digest128) {
        removeAnswers(at: digest) { _ in true }
    }

    /// Removes one answer, if it is still the one that is held.
    public func remove(_ answer: Response, at digest: Digest128) {
        removeAnswers(at: digest) { $0 === answer }
    }

    /// Removes what is held of an answer's variant.
    public func removeVariant(of answer: Response, at digest: Digest128) {
        removeAnswers(at: digest) { $0.variant == answer.variant && $0.key == answer.key }
    }

    /// Removes the answers of a path, for every query, principal, context and variant.
    public func remove(upstream: String, path: String) {
        let target = Target(upstream: upstream, url: path)
        for digest in targets.withLock({ $0[target] }) ?? [] {
            removeAnswers(at: digest) { Target(upstream: $0.key.upstream, url: $0.key.url) == target }
        }
    }

    /// Removes the answers of all paths of an upstream that are meant, for every query, principal, context and variant.
    ///
    /// Looks at each path once, and keeps no look-up waiting for it.
    public func remove(upstream: String, where isMeant: (_ path: Substring) -> Bool) {
        let meant = targets.withLock { targets in
            targets.keys.filter { $0.upstream == upstream && isMeant($0.path) }
        }
        for target in meant { remove(upstream: upstream, path: String(target.path)) }
    }

    /// Removes every answer of which `isRemoved` says so, by default all; walks the whole tier.
    public func removeAll(where isRemoved: (Response) -> Bool = { _ in true }) {
        for box in shards {
            let gone = box.lock.withLock { shard -> [(Digest128, Response)] in
                shard.answers.flatMap { digest, list in list.filter(isRemoved).map { (digest, $0) } }
            }
            for (digest, answer) in gone { remove(answer, at: digest) }
        }
    }

    /// The answers used since this was last asked; clears nothing else.
    ///
    /// For the store's own account of use.
    public func takeUsed() -> [Response] {
        shards.flatMap { box in
            box.lock.withLock { shard in
                shard.ring.compactMap { answer in
                    guard let answer, answer.residence.isUsedSinceReport.exchange(false, ordering: .relaxed) else {
                        return nil
                    }
                    return answer
                }
            }
        }
    }

    /// What the tier holds now.
    public var statistics: (answers: Int, bytes: Int, evictions: Int) {
        (
            count.load(ordering: .relaxed), occupied.load(ordering: .relaxed) + showings.byteCount,
            evictions.load(ordering: .relaxed)
        )
    }

    // MARK: -

    @inlinable
    func shard(_ digest: Digest128) -> ShardBox {
        shards[Int(truncatingIfNeeded: digest.low &>> 32) & (Self.shardCount - 1)]
    }

    private func removeAnswers(at digest: Digest128, where isRemoved: (Response) -> Bool) {
        let gone = shard(digest).lock.withLock { shard -> [Response] in
            guard let list = shard.answers[digest] else { return [] }
            let gone = list.filter(isRemoved)
            guard !gone.isEmpty else { return [] }
            let kept = list.filter { answer in !gone.contains { $0 === answer } }
            shard.answers[digest] = kept.isEmpty ? nil : kept
            for answer in gone { shard.vacate(answer) }
            return gone
        }
        guard !gone.isEmpty else { return }
        for answer in gone { left(answer) }
        forgetTargets(of: gone, at: digest)
    }

    /// The accounts of an answer that is no longer resident.
    private func left(_ answer: Response) {
        discard(answer)
        occupied.subtract(answer.byteCount, ordering: .relaxed)
        count.subtract(1, ordering: .relaxed)
    }

    private func forgetTargets(of gone: [Response], at digest: Digest128) {
        targets.withLock { targets in
            guard answers(at: digest) == nil else { return }
            for answer in gone {
                let target = Target(upstream: answer.key.upstream, url: answer.key.url)
                targets[target]?.remove(digest)
                if targets[target]?.isEmpty == true { targets[target] = nil }
            }
        }
    }

    /// Takes back the registrations of an answer that is not resident and will not be.
    public func discard(_ answer: Response) {
        answer.residence.isRetired.store(true, ordering: .relaxed)
        showings.forget(answer.residence)
    }

    private func makeRoom() {
        while occupied.load(ordering: .relaxed) + showings.byteCount > capacity, evictOne() {}
    }

    /// Evicts one answer; false when there is none.
    private func evictOne() -> Bool {
        let start = nextVictim.add(1, ordering: .relaxed).newValue
        // Twice round: the first may find nothing but second chances.
        for offset in 0..<(2 * Self.shardCount) {
            let box = shards[(start &+ offset) & (Self.shardCount - 1)]
            let victim = box.lock.withLock { $0.victim() }
            guard let victim else { continue }
            evictions.add(1, ordering: .relaxed)
            let digest = victim.residence.digest
            removeAnswers(at: digest) { $0 === victim }
            return true
        }
        return false
    }
}

extension MemoryTier: ChangeListener {
    /// Flips the ready answers that show one of these objects; called on the writer's thread.
    public func objectsChanged(_ objects: [ObjectID]) {
        showings.objectsChanged(objects)
    }

    /// Removes the ready answers of documents that are gone; called on the writer's thread.
    public func documentsRemoved(_ digests: [Digest128]) {
        for digest in digests { remove(digest) }
    }

    /// Removes everything; called on the writer's thread.
    public func storeEmptied() {
        removeAll()
    }
}

/// The answers of one shard, and the ring that its hand goes round.
extension MemoryTier.Shard {
    /// Puts an answer in the place of the one with its variant; returns what had to go for it, nil where that one stays.
    mutating func put(
        _ answer: Response,
        at digest: Digest128,
        insteadOf mayGo: @Sendable (Response) -> Bool
    ) -> [Response]? {
        var list = answers[digest] ?? []
        var gone: [Response] = []
        if let index = list.firstIndex(where: { $0.variant == answer.variant && $0.key == answer.key }) {
            guard mayGo(list[index]) else { return nil }
            gone.append(list.remove(at: index))
        } else if list.count >= MemoryTier.variantLimit,
            let oldest = list.indices.min(by: { slot(list[$0]) < slot(list[$1]) })
        {
            // Look-ups walk the list.
            gone.append(list.remove(at: oldest))
        }
        list.insert(answer, at: list.firstIndex { $0.precedence <= answer.precedence } ?? list.endIndex)
        answers[digest] = list
        for answer in gone { vacate(answer) }
        answer.residence.slot.store(ring.count, ordering: .relaxed)
        ring.append(answer)
        return gone
    }

    /// Places in the ring are given in the order of arrival.
    private func slot(_ answer: Response) -> Int { answer.residence.slot.load(ordering: .relaxed) }

    mutating func vacate(_ answer: Response) {
        let slot = self.slot(answer)
        guard ring.indices.contains(slot), ring[slot] === answer else { return }
        ring[slot] = nil
        vacancies += 1
        if vacancies > 64, vacancies * 2 > ring.count { compact() }
    }

    /// The next answer that had its second chance, in one turn of the hand; it stays where it is.
    mutating func victim() -> Response? {
        for _ in 0..<ring.count {
            if hand >= ring.count { hand = 0 }
            defer { hand += 1 }
            guard let answer = ring[hand] else { continue }
            if answer.residence.isUsed.exchange(false, ordering: .relaxed) { continue }
            return answer
        }
        return nil
    }

    private mutating func compact() {
        var kept: [Response?] = []
        kept.reserveCapacity(ring.count - vacancies)
        var newHand = 0
        for (index, answer) in ring.enumerated() {
            if index == hand { newHand = kept.count }
            guard let answer else { continue }
            answer.residence.slot.store(kept.count, ordering: .relaxed)
            kept.append(answer)
        }
        ring = kept
        hand = newHand
        vacancies = 0
    }
}
