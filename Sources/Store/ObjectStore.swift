import Basics
import Dispatch
import GRDB
import Mapping
import Synchronization

/// Stores objects and documents in one SQLite file; any thread.
///
/// Functions that access the file are `async`: reads run on a reader's queue, each in its own snapshot; writes run on
/// the writer's thread and return after their commit.
public final class ObjectStore: Sendable {
    private let shared: StoreCore
    /// The state shared with the writer.
    ///
    /// The store's `deinit` stops the writer. All work is done with the core, so the optimiser could destroy the store
    /// before its caller's last use of it; access to the core counts as a use.
    var core: StoreCore { withExtendedLifetime(self) { shared } }
    // Decomposes bodies before their transactions, in the order of arrival.
    let ingest = DispatchQueue(label: "larder.ingest")
    /// Decomposes the responses of writes, so that they need not wait for lists.
    let writeResponses = DispatchQueue(label: "larder.writes")

    public var clock: StoreClock { core.clock }
    public var hasher: KeyHasher { core.hasher }

    private init(core: StoreCore) { shared = core }

    deinit { shared.mailbox.finish() }

    /// Opens or creates a store for exclusive use; a second opening fails with `.locked`.
    ///
    /// Blocks, for the same short time whatever the size of the store.
    public static func open(_ configuration: StoreConfiguration) throws(StoreError) -> (ObjectStore, [StoreNotice]) {
        do throws(StoreError) {
            return try opened(configuration)
        } catch .full(let reason), .unwritable(let reason) {
            throw .cannotOpen(path: configuration.path, reason: StoreError.unwritable(reason).description)
        }
    }

    private static func opened(_ configuration: StoreConfiguration) throws(StoreError) -> (ObjectStore, [StoreNotice]) {
        let file = try StoreFile.open(configuration)
        do {
            return try open(file, configuration)
        } catch .corrupt(let reason) {
            return try open(file.replaced(because: reason, configuration), configuration)
        }
    }

    private static func open(_ file: StoreFile, _ configuration: StoreConfiguration) throws(StoreError)
        -> (ObjectStore, [StoreNotice])
    {
        let core = StoreCore(file, configuration)
        var (notices, numbers) = (file.notices, file.numbers)
        var journal = Journal(limit: core.changeLimit)
        var recentMarks = RecentMarks()
        do {
            let views = Views(models: configuration.models)
            let versions = ModelVersions(path: configuration.path, models: configuration.models)
            let (dropped, migrated, models) = try core.reserve.withRoom {
                try core.pool.writeWithoutTransaction { database in
                    let session = WriterSession(database, of: core, numbers: numbers, journal: journal)
                    let ((dropped, migrated), _) = try session.transaction(durable: true) {
                        try session.clock.stored.write(in: database)
                        try session.beginJournal()
                        try session.restorePrincipals()
                        try views.install(in: database, hasher: core.hasher)
                        try session.forgetFollowedFlipFlops()
                        session.recentMarks = try RecentMarks(in: session)
                        // An empty file has nothing to erase.
                        if numbers.observation == .zero { try SecretErasure.record(core.models, in: database) }
                        return (try session.completeSuspectWrites(), try versions.record(in: database))
                    }
                    (numbers, journal, recentMarks) = (session.numbers, session.journal, session.recentMarks)
                    return (dropped, migrated, session.models)
                }
            }
            core.models = models
            notices += migrated
            let erased = try core.pool.read { try SecretErasure.pending(core.models, in: $0) }
            notices += erased.map { .secretsErased(upstream: $0) }
            if dropped > 0 { notices.append(.suspectsDropped(documents: dropped)) }
        } catch {
            throw StoreError(error)
        }
        core.publicNumbers.advance(to: numbers.sequence)
        Writer.start(core, numbers: numbers, journal: journal, recentMarks: recentMarks)
        core.eraseSecrets()
        core.modernise()
        core.loadKeys()
        return (ObjectStore(core: core), notices)
    }

    /// Sets the listener for commits; there is at most one.
    public func setListener(_ listener: any ChangeListener) { core.listener = listener }

    /// Records this process's admin address, for the error of another process that finds the store locked.
    public func announce(admin: String) { core.lock.announce(admin: admin) }

    /// The admin address of the process that has a store open; nil if there is none, or if this user may not know.
    public static func announcedAdmin(ofStore path: String) -> String? { StoreLock.announcedAdmin(ofStore: path) }

    // MARK: Memory

    /// Whether documents may exist under a key; never wrongly false; memory only, any thread.
    public func mayHave(_ digest: Digest128) -> Bool { core.presence.mayContain(digest.low) }

    /// Whether any of these objects may have changed after a commit sequence; never wrongly false; memory only, any
    /// thread.
    ///
    /// Register a document where the listener finds it before this call, so that no change is missed in between.
    public func mayHaveChanged(_ objects: [ObjectID], since sequence: CommitNumber) -> Bool {
        core.recent.mayHaveChanged(objects, since: sequence)
    }

    /// The state of the store at run time, for operators; any thread.
    public var statistics: StoreStatistics { core.statistics }

    // MARK: End

    /// Returns when everything queued earlier is committed or has failed.
    public func flush() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            // Capturing the store keeps it alive until its jobs have reached the writer.
            ingest.async { [self] in core.submit(.flush, .prompt, { _ in }, done: { _ in continuation.resume() }) }
        }
    }

    /// Has everything queued earlier committed without the batch delay, and does not wait for that.
    public func submitFlush() { ingest.async { [self] in core.submit(.flush, .prompt, { _ in }, done: { _ in }) } }

    /// Commits the queue and closes the file; every later call fails with `.closed`.
    ///
    /// - Parameter limit: how long to wait for queued responses. After that they are abandoned; suspects and the
    ///   effects of writes are committed in any case.
    /// - Returns: how many responses were abandoned.
    @discardableResult
    public func close(within limit: Duration? = nil) async -> Int {
        if let limit { await flush(within: limit) } else { await flushAll() }
        guard !core.isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return 0 }
        core.mailbox.finish()
        await core.end.wait()
        return core.queuedResponses.count
    }

    /// Returns when the queue is empty and nothing waits for room in it.
    private func flushAll() async { repeat { await flush() } while core.queuedResponses.count > 0 && !core.isGivenUp }

    private func flush(within limit: Duration) async {
        let end = Signal()
        let flush = Task { [self] in
            await flushAll()
            end.give()
        }
        let timer = Task { [core] in
            // Only cancellation ends the sleep early.
            guard (try? await Task.sleep(for: limit)) != nil else { return }
            core.giveUp()
            end.give()
        }
        await end.wait()
        timer.cancel()
        flush.cancel()
    }

    /// Has the writer run a job after everything queued earlier, when there is room in the queue; it calls `done` after
    /// the commit.
    func submit<Value: Sendable>(
        _ kind: Job.Kind,
        _ urgency: Job.Urgency,
        bytes: Int = 0,
        _ work: @escaping @Sendable (WriterSession) throws -> Value,
        done: @escaping @Sendable (Result<Value, StoreError>) -> Void
    ) {
        core.queueLimit.enter(bytes: 0) { [self] in
            // Capturing the store keeps it alive until its jobs have reached the writer.
            core.ingesting.add(1, ordering: .relaxed)
            ingest.async { [self] in
                let core = core
                core.submit(kind, urgency, bytes: bytes, work) { result in
                    core.queueLimit.leave(bytes: 0)
                    done(result)
                }
                core.ingesting.subtract(1, ordering: .releasing)
            }
        }
    }

    /// Counts the store's contents.
    public func count() async throws(StoreError) -> StoreCount {
        try await core.read { [core] in try Inventory($0, of: core).count() }
    }

    /// A page of objects that are found by identity or key, or of deleted objects, in the order of their ids.
    ///
    /// As in all listings, an upstream in the current configuration is named by its name, any other by its name and
    /// URL.
    public func objects(_ query: ObjectQuery) async throws(StoreError) -> Page<ObjectRow> {
        try await core.read { [core] in try Inventory($0, of: core).objects(query) }
    }

    /// A page of warnings, latest first.
    public func warnings(limit: Int = 100, after: Int64? = nil) async throws(StoreError) -> Page<StoredWarning> {
        await flush()
        await core.examiner.finished()
        // The examiner's warnings are queued by now. When this job is committed, so are they.
        _ = try? await core.commit(.flush, .batched) { _ in true }
        return try await core.read { [core] in try Inventory($0, of: core).warnings(limit: limit, after: after) }
    }

    /// The maximum number of variants kept per key; a new one displaces the oldest.
    ///
    /// Some servers vary by a field that differs in each request. Their responses would fill the store.
    static let storedVariantLimit = 64

    /// The wanted variants under a key, composed if newer values of their objects are known.
    ///
    /// - Parameter dividedBy: digest of the fields of the request that they are read for, as in `ReceivedDocument`.
    public func documents(
        at key: CacheKey,
        for dividedBy: Int64? = nil,
        where isWanted: @escaping @Sendable (_ variant: [UInt8]) -> Bool = { _ in true }
    ) async throws(StoreError) -> [StoredDocument] {
        let digest = core.hasher.digest(key)
        let models = core.models
        let found = try await core.read {
            try DocumentReader($0, models: models, for: dividedBy).documents(at: key, digest: digest, where: isWanted)
        }
        if !found.verified.isEmpty {
            // This saves the next reader the comparison. It is not worth waiting for, and failing is harmless.
            core.submitDispensable { try $0.verify(found.verified, at: found.sequence) }
        }
        return found.documents
    }

    /// The newest 64 documents of a URL without their bodies, for every principal and context.
    public func documents(ofURL url: String, upstream: UpstreamKey) async throws(StoreError) -> [DocumentOfURL] {
        let pathHash = core.hasher.pathHash(upstream: upstream, url: url)
        let models = core.models
        return try await core.read { database in
            try DocumentReader(database, models: models)
                .documents(ofURL: url, upstream: upstream, pathHash: pathHash, limit: ObjectStore.storedVariantLimit)
        }
    }

    /// A document by its id, composed if newer values of its objects are known; nil if gone, or without an object of
    /// the model.
    public func document(_ id: DocumentID, showing model: String? = nil) async throws(StoreError) -> StoredDocument? {
        let core = core
        return try await core.read { database in
            if let model {
                let selection = try CleanSelection(CleanFilter(model: model), in: database, now: 0, of: core)
                let pins = try StoredBody.pins(of: id, in: database)
                guard try pins.contains(where: { try selection.selects($0.object) }) else { return nil }
            }
            return try DocumentReader(database, models: core.models).document(id)
        }
    }

    /// The body of a document as received; nil if the document is gone.
    public func received(_ id: DocumentID) async throws(StoreError) -> [UInt8]? {
        try await core.read { database in
            guard try database.query("SELECT 1 FROM _documents WHERE id = ?").integer(id) != nil else { return nil }
            let stored = try StoredBody(document: id, in: database)
            return try stored.received(payloads: stored.payloads(in: database))
        }
    }

    /// Freshens a document by a 304: updates its fields and its observation time, after the responses queued earlier.
    ///
    /// Has no effect if the document shows outdated values, unless it ends their lifetime.
    ///
    /// - Parameter policyIfDirty: the policy to store, with `head`, if a write has changed the document's objects
    ///   meanwhile; nil if the 304 allows no less use of the document than before.
    @discardableResult
    public func freshen(
        _ id: DocumentID,
        head: [UInt8],
        policy: [UInt8],
        observedFrom start: Int64,
        observedTo end: Int64,
        policyIfDirty: [UInt8]? = nil
    ) async throws(StoreError) -> FresheningOutcome {
        let work: @Sendable (WriterSession) throws -> FresheningOutcome = {
            try $0.freshen(id, head: head, policy: policy, start: start, end: end, policyIfDirty: policyIfDirty)
        }
        return try await result { submit(.freshening, .batched, work, done: $0) }
    }

    /// Replaces the policy of a document soon, if it still exists.
    public func restrict(_ id: DocumentID, policy: [UInt8]) {
        core.submit(.freshening, .batched, { try $0.restrict(id, policy: policy) }, done: { _ in })
    }

    /// Removes the documents of an invalidation's paths, for every principal and with any query.
    ///
    /// A later `receive` for one of these paths stores nothing if its request was sent before the invalidation.
    public func removePaths(of invalidation: Invalidation) async throws(StoreError) {
        try await core.commit(.invalidation, .prompt) { try $0.removePaths(of: invalidation) }
    }

    /// Removes one document soon, without notice: the listener would also drop later responses under its key.
    public func remove(_ id: DocumentID) {
        core.submit(.removal, .batched, { try $0.deleteDocument(id, notifying: false) }, done: { _ in })
    }

    /// Removes all variants under a key soon, after the responses queued earlier; the writer's thread calls `done`.
    public func remove(at key: CacheKey, done: @escaping @Sendable (Result<Void, StoreError>) -> Void = { _ in }) {
        submit(.removal, .batched, { try $0.deleteDocuments(at: key) }, done: done)
    }

    /// Records the use of documents, for eviction; batched, and lost if it cannot be written.
    public func touchUsed(_ documents: [DocumentID]) {
        let seconds = core.clock.now() / 1_000_000
        core.submitDispensable { try $0.touch(documents, at: seconds) }
    }

    /// Stores a response whole, and returns after its commit; waits for room in the queue.
    public func receive(_ document: ReceivedDocument) async throws(StoreError) -> Receipt {
        try await result { receive(document, done: $0) }
    }

    /// Stores a response whole as soon as there is room in the queue.
    ///
    /// Responses are stored in the order of these calls; only the effects of writes go ahead of them. `done` runs on the
    /// writer's thread after the response's commit, and before the `done` of any later call.
    ///
    /// - Parameters:
    ///   - isAwaited: whether a caller waits for the commit, so that it is not delayed to fill the batch.
    ///   - foreseen: called on the writer's thread before the commit, if only storing it is left to do: then nothing comes in between,
    ///     and the response shows all that will be known at the commit. If the commit fails it may be called again.
    public func receive(
        _ document: ReceivedDocument,
        isAwaited: Bool = false,
        foreseen: (@Sendable () -> Void)? = nil,
        done: @escaping @Sendable (Result<Receipt, StoreError>) -> Void
    ) {
        let response = QueuedResponse(document, in: core, foreseen: foreseen, done: done)
        core.queuedResponses.enter(response)
        core.queueLimit.enter(bytes: document.body.count) { [self] in ingest(response, isAwaited ? .prompt : .batched) }
    }

    private func ingest(_ response: QueuedResponse, _ urgency: Job.Urgency) {
        // Capturing the store keeps it alive until the response has reached the writer.
        let work: @Sendable () -> Void = { [self] in
            let core = core
            guard !core.isGivenUp else { return response.end(.failure(.closed), weight: nil, in: core) }
            let coverage = response.document.findCoverage?(response.document.body)
            let (subject, upstream) = (response.document.subject, response.document.key.upstream)
            let prepared = subject.map { core.prepare($0, upstream: upstream) } ?? PreparedBody()
            let weight = subject == nil ? nil : prepared.weight
            // A decomposed object of ten bytes takes a kilobyte. So the next body is decomposed only when there is room.
            if let weight {
                let room = DispatchSemaphore(value: 0)
                core.preparedBodies.enter(bytes: weight) { room.signal() }
                room.wait()
            }
            core.submit(
                .response,
                urgency,
                bytes: response.byteCount,
                isDispensable: true,
                { session in
                    let current = session.current(prepared, of: subject, upstream: upstream)
                    let receipt = try session.receive(response, coverage, current)
                    let (rule, url) = (response.document.rule, response.document.key.url)
                    try session.warn(receipt.warnings, about: rule, url: url, at: session.clock.now())
                    return receipt
                },
                done: {
                    response.end($0, weight: weight, in: core)
                    // Not earlier, because a client may wait for the commit.
                    if let subject { core.examine(subject, prepared, upstream: upstream) }
                }
            )
        }
        // What need not be decomposed, nor waits for others, does not need the queue's thread. Nor does a small body whose client
        // waits: to decompose it takes no longer than a change of threads.
        let isDecomposedHere =
            response.isForeseeable && response.document.body.count <= 4 << 10 && core.preparedBodies.queued == 0
        let isQueued = response.document.rule != nil && !isDecomposedHere || response.document.findCoverage != nil
        guard isQueued || core.ingesting.load(ordering: .acquiring) > 0 else { return work() }
        core.ingesting.add(1, ordering: .relaxed)
        ingest.async { [core] in
            work()
            core.ingesting.subtract(1, ordering: .releasing)
        }
    }
}
