import Logging
import Mapping
import Store
import Synchronization

/// What Larder knows, as answers: the memory tier in front of the store.
///
/// Any thread. What is kept is a hit at once; taking it apart into objects and committing it happens behind it, on the
/// store's side, in bounded amounts.
final class AnswerCache: Sendable {
    let store: Store
    let memory: MemoryTier<ReadyAnswer>
    /// Tells those who follow a document of what is kept, renewed or dropped.
    let watch: LiveWatch
    private let log: Logger
    /// Documents that were dropped, of which a reader of the store may still find some.
    private let dropped = Mutex(DroppedDocuments())
    /// Answers whose commit is still to come: what the disk has in their place is older.
    let commits = PendingCommits()
    /// Bytes of bodies that are kept in memory only, because their commit is still to come.
    private let uncommitted = Atomic<Int>(0)
    /// Past this, answers are not kept: the store cannot follow.
    private static let uncommittedLimit = 128 << 20

    init(store: Store, memory: MemoryTier<ReadyAnswer>, watch: LiveWatch, log: Logger) {
        self.store = store
        self.memory = memory
        self.watch = watch
        self.log = log
    }

    /// The store's clock, in µs.
    var now: Int64 { store.clock.now() }

    // MARK: Looking up

    /// The preferred ready answer in memory for a demand, dirty or not; nil where memory knows none.
    ///
    /// - Parameter now: in seconds since 1970.
    func inMemory(_ demand: Demand, now: Int64) -> ReadyAnswer? {
        memory.answers(at: demand.digest)?
            .filter { $0.answers(demand) }
            .max { $1.isPreferred(to: $0, for: demand.directives, now: now) }
    }

    /// Keeps in memory what was read from disk, and gives the preferred one that answers the demand; nil where none does.
    ///
    /// What cannot be composed, though something newer is known, is not kept.
    func admit(_ documents: [StoredDocument], for demand: Demand, now: Int64) -> ReadyAnswer? {
        var found: ReadyAnswer?
        for document in documents {
            guard !isDropped(document.id) else { continue }
            guard let answer = Answer(document) else {
                log.warning("a stored answer is unreadable and was dropped", metadata: ["url": "\(demand.key.url)"])
                store.remove(document.id)
                continue
            }
            var ready = ReadyAnswer(answer, digest: demand.digest, upstream: demand.upstream, base: demand.base)
            if let newer = kept(insteadOf: ready) {
                ready = newer
            } else if answer.form != .outdated, !commits.contains(demand.digest) {
                register(ready, under: document.objects, asOf: document.sequence)
                memory.insert(ready, at: demand.digest)
            }
            guard ready.answers(demand) else { continue }
            if found.map({ !$0.isPreferred(to: ready, for: demand.directives, now: now) }) ?? true { found = ready }
        }
        return found
    }

    /// What memory was given in the place of an answer while that was read: it is no older than what the disk had.
    private func kept(insteadOf ready: ReadyAnswer) -> ReadyAnswer? {
        memory.answers(at: ready.residence.digest)?
            .first { $0.variant == ready.variant && $0.key == ready.key && $0.isClean }
    }

    /// Puts an answer among those that are flipped when one of its objects changes.
    private func register(_ ready: ReadyAnswer, under objects: [ObjectID], asOf sequence: Int64) {
        ready.asOf.store(sequence, ordering: .relaxed)
        memory.register(ready, under: objects)
        // A commit between the snapshot and the registration has told nobody of us.
        if store.mayHaveChanged(objects, since: sequence) { ready.residence.isDirty.store(true, ordering: .relaxed) }
    }

    /// Whether nothing newer is known than an answer shows that was looked up a while ago, and may have left memory since:
    /// then nobody has flipped it.
    func isStillClean(_ ready: ReadyAnswer) -> Bool {
        guard ready.isClean else { return false }
        guard !ready.residence.isFlipped, let (_, objects) = ready.stored else { return true }
        return !store.mayHaveChanged(objects, since: ready.asOf.load(ordering: .relaxed))
    }

    // MARK: Keeping

    /// Keeps an answer that has just arrived whole: in memory and, soon, in the store.
    ///
    /// One that tells of objects is a hit once its commit has flipped what shows them, and has told whether itself it shows
    /// the newest; or after `show`. One that tells of none is a hit at once. What a write invalidated never comes here. Until
    /// the commit the answer that it takes the place of is found nowhere: it is older than what has been passed on.
    ///
    /// - Parameters:
    ///   - sent: when its request was sent, on the store's clock.
    ///   - age: the answer's `Age` in µs: it speaks of a time that much before it was asked for.
    ///   - isAwaited: whether somebody waits for the commit, which then waits for no company.
    ///   - done: called once, on the writer's thread, when what it tells holds everywhere, or never will.
    /// - Returns: whether it tells of objects; if not, `done` is not called.
    @discardableResult
    func keep(
        _ ready: ReadyAnswer,
        sent: Int64,
        age: Int64,
        reading: Reading,
        overtakenAt: Int64?,
        isAwaited: Bool = false,
        done: @escaping @Sendable () -> Void = {}
    ) -> Bool {
        let size = ready.answer.body.count
        guard uncommitted.load(ordering: .relaxed) + size <= Self.uncommittedLimit else {
            log.warning("the store cannot follow: an answer was not kept", metadata: ["url": "\(ready.key.url)"])
            memory.remove(ready.residence.digest)
            store.remove(at: ready.key)
            return false
        }
        let rule = ready.isJSON && size > 0 ? reading.rule : nil
        let tells = rule != nil
        commits.begin(ready, isHidden: tells)
        if tells {
            memory.removeVariant(of: ready, at: ready.residence.digest)
        } else {
            memory.insert(ready, at: ready.residence.digest)
        }
        uncommitted.add(size, ordering: .relaxed)
        var document = ReceivedDocument(
            key: ready.key,
            variant: ready.answer.selection.bytes,
            selectedBy: ready.upstream.context.rest(of: ready.answer.selection),
            status: ready.answer.status,
            head: StoredHead.encode(ready.upstream.storable(ready.answer.fields)),
            policy: ready.answer.policy.bytes,
            body: ready.answer.body,
            start: sent - age,
            end: now,
            sent: sent,
            kind: reading.kind,
            rule: rule,
            surroundings: reading.surroundings(url: ready.key.url, fields: ready.answer.fields),
            route: reading.route
        )
        document.overtakenAt = overtakenAt
        // Handed over at once, so that the store takes it in before any write that is answered from now on.
        store.receive(document, isAwaited: isAwaited && tells) { [self] result in
            committed(result, ready, tells: tells)
            commits.end(ready)
            uncommitted.subtract(size, ordering: .relaxed)
            if tells { done() }
        }
        return tells
    }

    /// Has an answer found whose commit takes long.
    func show(_ ready: ReadyAnswer) {
        commits.show(ready) { memory.insert(ready, at: ready.residence.digest) }
    }

    /// On the writer's thread, so that a write committed later finds it among those to be flipped.
    private func committed(_ result: Result<Receipt, StoreError>, _ ready: ReadyAnswer, tells: Bool) {
        let digest = ready.residence.digest
        defer { watch.documentChanged(digest) }
        let visibility = commits.conclude(ready)
        switch result {
        case .success(let receipt):
            // An answer that shows a secret lives in memory alone, and follows its objects like any other.
            guard receipt.document != nil || receipt.isSecret else {
                // A cleaning or a write overtook it.
                return memory.remove(ready, at: digest)
            }
            if let id = receipt.document { ready.committed(as: id, showing: receipt.objects) }
            register(ready, under: receipt.objects, asOf: receipt.sequence)
            if receipt.isDirty { ready.residence.isDirty.store(true, ordering: .relaxed) }
            switch visibility {
            case .shown: return
            case .hidden where ready.isClean: memory.insert(ready, at: digest)
            case .hidden, .superseded: memory.discard(ready)
            }
        case .failure(let error):
            log.error("an answer could not be stored", metadata: ["error": "\(error)", "url": "\(ready.key.url)"])
            // Without its objects in the store it would not follow their changes.
            if tells { memory.remove(ready, at: digest) }
        }
    }

    /// Returns when everything that was kept so far has been committed, or has failed to be.
    func settle() async {
        while uncommitted.load(ordering: .relaxed) > 0 { await store.flush() }
        reportUse()
        await store.flush()
    }

    /// Tells the store which documents were used, so that it keeps those.
    func reportUse() {
        let used = memory.takeUsed().map { $0.document.load(ordering: .relaxed) }.filter { $0 != 0 }
        if !used.isEmpty { store.touchUsed(used) }
    }

    /// Whether a document was dropped, which a reader of the store may still find.
    func isDropped(_ document: DocumentID) -> Bool { dropped.withLock { $0.contains(document) } }

    /// Forgets an answer that is good for nothing any more, in memory and on disk.
    func drop(_ ready: ReadyAnswer) {
        let digest = ready.residence.digest
        memory.remove(ready, at: digest)
        defer { watch.documentChanged(digest) }
        guard let (document, _) = ready.stored else { return }
        // By name: what is kept in its place from now on lies under the same digest.
        for answer in memory.answers(at: digest) ?? [] where answer.stored?.document == document {
            memory.remove(answer, at: digest)
        }
        dropped.withLock { $0.insert(document) }
        store.remove(document)
    }

    /// Puts an answer that a 304 has renewed in the place of the one that was asked about.
    ///
    /// - Parameter sent: when the request that the 304 answers was sent, on the store's clock.
    func renew(_ stored: ReadyAnswer, with ready: ReadyAnswer, sent: Int64) {
        let document = ready.document.load(ordering: .relaxed)
        // Until the commit of what it renews, nobody knows whose changes it would have to follow.
        guard document != 0 else { return }
        ready.asOf.store(stored.asOf.load(ordering: .relaxed), ordering: .relaxed)
        memory.register(ready, under: ready.answer.objects)
        // Dirty in the meantime: so is its successor.
        if !isStillClean(stored) { ready.residence.isDirty.store(true, ordering: .relaxed) }
        memory.insert(ready, at: ready.residence.digest)
        // A 304 out of a cache between us and the upstream is as old as that says.
        let age = max(0, ready.answer.policy.ageValue) * 1_000_000
        let (head, policy, end) = (
            StoredHead.encode(ready.upstream.storable(ready.answer.fields)), ready.answer.policy.bytes,
            now - age
        )
        Task { [self] in
            do {
                let outcome = try await store.refresh(
                    document,
                    head: head,
                    policy: policy,
                    observedFrom: sent - age,
                    observedTo: end
                )
                if outcome == .dirty { ready.residence.isDirty.store(true, ordering: .relaxed) }
                if outcome == .gone { memory.remove(ready, at: ready.residence.digest) }
                watch.documentChanged(ready.residence.digest)
            } catch {
                log.error("a renewal could not be stored", metadata: ["error": "\(error)", "url": "\(ready.key.url)"])
            }
        }
    }
}

/// The documents dropped last; more than can be on their way out of the store at a time.
private struct DroppedDocuments {
    private static let limit = 4096
    private var known: Set<DocumentID> = []
    private var order: [DocumentID] = []
    private var next = 0

    func contains(_ id: DocumentID) -> Bool { known.contains(id) }

    mutating func insert(_ id: DocumentID) {
        guard known.insert(id).inserted else { return }
        guard order.count == Self.limit else { return order.append(id) }
        known.remove(order[next])
        order[next] = id
        next = (next + 1) % Self.limit
    }
}

/// What a route says of a body: how it is taken apart, and how far it may be believed.
struct Reading: Sendable {
    var rule: BodyRule?
    var kind: Observation.Kind
    /// Captures of the path that are bound to keys of the object.
    var bound: [String: String]
    /// All captures of the path.
    var captures: [String: String] = [:]
    /// The route's path pattern.
    var route = ""

    /// What surrounds a body that is read so.
    func surroundings(url: String, fields: Fields) -> MappingContext {
        guard rule != nil else { return .none }
        var values: [String: String] = [:]
        for line in fields.lines {
            let name = String(decoding: line.name, as: UTF8.self).lowercased()
            // Of several lines the first counts; no field that an identity is made of comes twice.
            if values[name] == nil { values[name] = String(decoding: line.value, as: UTF8.self) }
        }
        return MappingContext(url: url, captures: captures, bound: bound, fields: values)
    }
}
