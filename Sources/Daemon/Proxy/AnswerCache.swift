import Logging
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

    /// The ready answer in memory for a demand, dirty or not; nil where memory knows none.
    func inMemory(_ demand: Demand) -> ReadyAnswer? {
        memory.answers(at: demand.digest)?.first { $0.answers(demand) }
    }

    /// The answer from the store, composed if something newer is known; nil where there is none.
    ///
    /// What is found is kept in memory, except an answer whose objects have changed in a way that cannot be composed.
    func onDisk(_ demand: Demand) async throws(StoreError) -> ReadyAnswer? {
        guard store.mayHave(demand.digest) else { return nil }
        var found: ReadyAnswer?
        for document in try await store.documents(at: demand.key) {
            guard let answer = Answer(document) else {
                log.warning("stored answer is unreadable and was dropped", metadata: ["url": "\(demand.key.url)"])
                await store.remove(document.id)
                continue
            }
            let ready = ReadyAnswer(answer, digest: demand.digest, upstream: demand.upstream, base: demand.base)
            if answer.form != .outdated {
                memory.insert(ready, at: demand.digest)
                memory.showings.register(ready.residence, under: answer.objects, asOf: document.sequence)
            }
            if ready.answers(demand), found.map({ $0.answer.policy.responseTime < answer.policy.responseTime }) ?? true {
                found = ready
            }
        }
        return found
    }

    // MARK: Keeping

    /// Keeps an answer that has arrived whole: in memory now, in the store soon.
    ///
    /// `start` and `end` are on the store's clock: when the request was sent (minus the answer's age), when the answer
    /// had arrived.
    func keep(_ ready: ReadyAnswer, from start: Int64, to end: Int64, reading: Reading) {
        let size = ready.answer.body.count
        guard uncommitted.load(ordering: .relaxed) + size <= Self.uncommittedLimit else {
            log.warning("the store cannot follow: an answer was not kept", metadata: ["url": "\(ready.key.url)"])
            memory.remove(ready.key.digested(ready.residence.digest))
            return
        }
        memory.insert(ready, at: ready.residence.digest)
        uncommitted.add(size, ordering: .relaxed)
        let document = ReceivedDocument(
            key: ready.key,
            variant: ready.answer.selection.encoded,
            status: ready.answer.status,
            head: StoredHead.encode(ready.answer.fields),
            policy: ready.answer.policy.encoded,
            body: ready.answer.body,
            start: start,
            end: end,
            kind: reading.kind,
            rule: reading.rule,
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
            ready.document.store(receipt.document, ordering: .relaxed)
            memory.showings.register(ready.residence, under: receipt.objects, asOf: receipt.sequence)
            if receipt.isDirty { ready.residence.isDirty.store(true, ordering: .relaxed) }
        } catch {
            log.error("an answer could not be stored", metadata: ["error": "\(error)", "url": "\(document.key.url)"])
            // Without its objects in the store it would not follow their changes.
            if document.rule != nil { memory.remove(ready, at: ready.residence.digest) }
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
