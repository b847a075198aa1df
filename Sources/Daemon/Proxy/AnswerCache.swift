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
    private let log: Logger
    /// Bytes of bodies that are kept in memory only, because their commit is still to come.
    private let uncommitted = Atomic<Int>(0)
    /// Past this, answers are not kept: the store cannot follow.
    private static let uncommittedLimit = 128 << 20

    init(store: Store, memory: MemoryTier<ReadyAnswer>, log: Logger) {
        self.store = store
        self.memory = memory
        self.log = log
    }

    /// The store's clock, in µs.
    var now: Int64 { store.clock.now() }

    // MARK: Looking up

    /// The newest ready answer in memory for a demand, dirty or not; nil where memory knows none.
    func inMemory(_ demand: Demand) -> ReadyAnswer? {
        memory.answers(at: demand.digest)?
            .filter { $0.answers(demand) }
            .max { $0.policy.responseTime < $1.policy.responseTime }
    }

    /// The answer from the store, composed if something newer is known; nil where there is none.
    ///
    /// What is found is kept in memory, except an answer whose objects have changed in a way that cannot be composed.
    func onDisk(_ demand: Demand) async throws(StoreError) -> ReadyAnswer? {
        guard store.mayHave(demand.digest) else { return nil }
        var found: ReadyAnswer?
        for document in try await store.documents(at: demand.key) {
            guard let answer = Answer(document) else {
                log.warning("a stored answer is unreadable and was dropped", metadata: ["url": "\(demand.key.url)"])
                store.remove(document.id)
                continue
            }
            let ready = ReadyAnswer(answer, digest: demand.digest, upstream: demand.upstream, base: demand.base)
            if answer.form != .outdated {
                memory.insert(ready, at: demand.digest)
                register(ready, under: document.objects, asOf: document.sequence)
            }
            guard ready.answers(demand) else { continue }
            if found.map({ $0.policy.responseTime <= ready.policy.responseTime }) ?? true { found = ready }
        }
        return found
    }

    /// Puts an answer among those that are flipped when one of its objects changes.
    private func register(_ ready: ReadyAnswer, under objects: [ObjectID], asOf sequence: Int64) {
        memory.showings.register(ready.residence, under: objects)
        // A commit between the snapshot and the registration has told nobody of us.
        if store.mayHaveChanged(objects, since: sequence) { ready.residence.isDirty.store(true, ordering: .relaxed) }
    }

    // MARK: Keeping

    /// Keeps an answer that has just arrived whole: in memory now, in the store soon.
    ///
    /// - Parameters:
    ///   - sent: when its request was sent, on the store's clock.
    ///   - age: the answer's `Age` in µs: it speaks of a time that much before it was asked for.
    func keep(_ ready: ReadyAnswer, sent: Int64, age: Int64, reading: Reading) {
        let size = ready.answer.body.count
        guard uncommitted.load(ordering: .relaxed) + size <= Self.uncommittedLimit else {
            log.warning("the store cannot follow: an answer was not kept", metadata: ["url": "\(ready.key.url)"])
            memory.remove(ready.residence.digest)
            return
        }
        memory.insert(ready, at: ready.residence.digest)
        uncommitted.add(size, ordering: .relaxed)
        let document = ReceivedDocument(
            key: ready.key,
            variant: ready.answer.selection.bytes,
            status: ready.answer.status,
            head: StoredHead.encode(ready.upstream.storable(ready.answer.fields)),
            policy: ready.answer.policy.bytes,
            body: ready.answer.body,
            start: sent - age,
            end: now,
            sent: sent,
            kind: reading.kind,
            rule: ready.isJSON ? reading.rule : nil,
            bound: reading.bound
        )
        Task { [self] in
            await commit(document, ready)
            uncommitted.subtract(size, ordering: .relaxed)
        }
    }

    private func commit(_ document: ReceivedDocument, _ ready: ReadyAnswer) async {
        do {
            let receipt = try await store.receive(document)
            guard let id = receipt.document else {
                // A cleaning or a write overtook it.
                return memory.remove(ready, at: ready.residence.digest)
            }
            ready.document.store(id, ordering: .relaxed)
            register(ready, under: receipt.objects, asOf: receipt.sequence)
            if receipt.isDirty { ready.residence.isDirty.store(true, ordering: .relaxed) }
        } catch {
            log.error("an answer could not be stored", metadata: ["error": "\(error)", "url": "\(document.key.url)"])
            // Without its objects in the store it would not follow their changes.
            if document.rule != nil { memory.remove(ready, at: ready.residence.digest) }
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

    /// Puts an answer that a 304 has renewed in the place of the one that was asked about.
    func renew(_ stored: ReadyAnswer, with ready: ReadyAnswer, sent: Int64) {
        memory.insert(ready, at: ready.residence.digest)
        memory.showings.register(ready.residence, under: ready.answer.objects)
        // Dirty in the meantime: so is its successor.
        if !stored.isClean { ready.residence.isDirty.store(true, ordering: .relaxed) }
        let document = stored.document.load(ordering: .relaxed)
        guard document != 0 else { return }
        let (head, policy, end) = (
            StoredHead.encode(ready.upstream.storable(ready.answer.fields)), ready.answer.policy.bytes, now
        )
        Task { [self] in
            do {
                let outcome = try await store.refresh(
                    document,
                    head: head,
                    policy: policy,
                    observedFrom: sent,
                    observedTo: end
                )
                if outcome == .dirty { ready.residence.isDirty.store(true, ordering: .relaxed) }
                if outcome == .gone { memory.remove(ready, at: ready.residence.digest) }
            } catch {
                log.error("a renewal could not be stored", metadata: ["error": "\(error)", "url": "\(ready.key.url)"])
            }
        }
    }
}

/// What a route says of a body: how it is taken apart, and how far it may be believed.
struct Reading: Sendable {
    var rule: BodyRule?
    var kind: Observation.Kind
    /// Captures of the path that are bound to keys of the object.
    var bound: [String: String]
}
