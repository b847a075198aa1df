import Dispatch
import GRDB
import Mapping
import Synchronization

/// Stores objects and documents in one SQLite file.
///
/// Any thread may call. Functions that access the file are `async`: reads run on a reader's queue, each in its own snapshot;
/// writes run on the writer's thread and return after their commit.
public final class ObjectStore: Sendable {
    private let shared: StoreCore
    /// The state shared with the writer.
    ///
    /// The store's `deinit` stops the writer. All work is done with the core, so the optimiser could destroy the store before
    /// its caller's last use of it; access to the core counts as a use.
    var core: StoreCore { withExtendedLifetime(self) { shared } }
    // Decomposes bodies before their transactions, in the order of arrival.
    let ingest = DispatchQueue(label: "larder.ingest")
    /// Decomposes the responses of writes, so that they need not wait for lists.
    let writeResponses = DispatchQueue(label: "larder.writes")

    /// The store's own clock.
    public var clock: StoreClock { core.clock }
    /// Digests keys under this store's secret.
    public var hasher: KeyHasher { core.hasher }

    private init(core: StoreCore) {
        shared = core
    }

    deinit {
        shared.mailbox.finish()
    }

    /// Opens or creates a store for exclusive use.
    ///
    /// A second opening fails with `.locked`. Blocks. It takes the same short time whatever the size of the store.
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

    private static func open(
        _ file: StoreFile,
        _ configuration: StoreConfiguration
    ) throws(StoreError) -> (ObjectStore, [StoreNotice]) {
        let core = StoreCore(file, configuration)
        var notices = file.notices
        var numbers = file.numbers
        var journal = Journal(limit: core.changeLimit)
        do {
            let views = Views(models: configuration.models)
            let versions = ModelVersions(path: configuration.path, models: configuration.models)
            let (settled, migrated, models) = try core.reserve.used {
                try core.pool.writeWithoutTransaction { database in
                    let session = WriterSession(database, of: core, numbers: numbers, journal: journal)
                    let ((settled, migrated), _) = try session.transaction(durable: true) {
                        try session.clock.stored.write(in: database)
                        try session.beginJournal()
                        try session.restorePrincipals()
                        try views.install(in: database, hasher: core.hasher)
                        try session.forgetSettledFlipFlops()
                        // An empty file has nothing to erase.
                        if numbers.observation == 0 { try SecretErasure.record(core.models, in: database) }
                        return (try session.settleAllSuspects(), try versions.record(in: database))
                    }
                    numbers = session.numbers
                    journal = session.journal
                    return (settled, migrated, session.models)
                }
            }
            core.models = models
            notices += migrated
            let erased = try core.pool.read { try SecretErasure.pending(core.models, in: $0) }
            notices += erased.map { .secretsErased(upstream: $0) }
            if settled > 0 { notices.append(.suspectsSettled(documents: settled)) }
        } catch {
            throw StoreError(error)
        }
        core.publicNumbers.advance(to: numbers.sequence)
        Writer.start(core, numbers: numbers, journal: journal)
        core.eraseSecrets()
        core.modernise(after: .zero)
        KeyLoader.start(core)
        return (ObjectStore(core: core), notices)
    }

    /// Sets the listener for commits; there is at most one.
    public func setListener(_ listener: any ChangeListener) {
        core.listener = listener
    }

    /// Records this process's admin address, for the error of another process that finds the store locked.
    public func announce(admin: String) {
        core.lock.announce(admin: admin)
    }

    // MARK: Memory

    /// Whether documents may exist under a key.
    ///
    /// Memory only, any thread. Never wrongly false.
    public func mayHave(_ digest: Digest128) -> Bool {
        core.presence.mayContain(digest.low)
    }

    /// Whether any of these objects may have changed after a commit sequence.
    ///
    /// Memory only, any thread. Never wrongly false. Register a document where the listener finds it before this call, so that
    /// no change is missed in between.
    public func mayHaveChanged(_ objects: [ObjectID], since sequence: Int64) -> Bool {
        core.recent.mayHaveChanged(objects, since: sequence)
    }

    /// The state of the store at run time, for operators; any thread.
    public var statistics: StoreStatistics { core.statistics }

    // MARK: End

    /// Returns when everything queued earlier is committed or has failed.
    public func flush() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            // Capturing the store keeps it alive until its jobs have reached the writer.
            ingest.async { [self] in
                core.post(.prompt, { _ in }, done: { _ in continuation.resume() })
            }
        }
    }

    /// Commits everything queued earlier without the batch delay.
    public func hurry() {
        ingest.async { [self] in core.post(.prompt, { _ in }, done: { _ in }) }
    }

    /// Commits the queue and closes the file.
    ///
    /// Every later call fails with `.closed`.
    ///
    /// - Parameter limit: how long to wait for queued responses. After that they are abandoned; suspects and the effects of
    ///   writes are committed in any case.
    /// - Returns: how many responses were abandoned.
    @discardableResult
    public func close(within limit: Duration? = nil) async -> Int {
        if let limit {
            await flush(within: limit)
        } else {
            await flushAll()
        }
        guard !core.isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return 0 }
        core.mailbox.finish()
        await core.end.wait()
        return core.queuedResponses.count
    }

    /// Returns when the queue is empty and nothing waits for room in it.
    private func flushAll() async {
        repeat { await flush() } while core.queuedResponses.count > 0 && !core.isGivenUp
    }

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
}

extension ObjectStore {
    /// Has the writer run a job after everything queued earlier, as soon as there is room in the queue.
    ///
    /// `done` runs on the writer's thread, after the commit.
    func enqueue<Value: Sendable>(
        _ urgency: Job.Urgency,
        bytes: Int = 0,
        _ work: @escaping @Sendable (WriterSession) throws -> Value,
        done: @escaping @Sendable (Result<Value, StoreError>) -> Void
    ) {
        core.queueLimit.enter(bytes: 0) { [self] in
            // Capturing the store keeps it alive until its jobs have reached the writer.
            ingest.async { [self] in
                let core = core
                core.post(urgency, bytes: bytes, work) { result in
                    core.queueLimit.leave(bytes: 0)
                    done(result)
                }
            }
        }
    }
}

/// Counts and lists.
extension ObjectStore {
    /// Counts the store's contents.
    public func count() async throws(StoreError) -> StoreCount {
        try await core.read { [hasher] in try Inventory(database: $0, hasher: hasher).count() }
    }

    /// A page of objects, in the order of their ids.
    ///
    /// As in all listings, an upstream in the current configuration is named by its name, any other by its name and URL.
    public func objects(_ query: ObjectQuery) async throws(StoreError) -> Page<ObjectRow> {
        let models = core.models
        var query = query
        query.upstream = core.upstream(labelled: query.upstream)
        var page = try await core.read { [core, query] in
            try Inventory(database: $0, hasher: core.keyHasher).objects(query, models: models)
        }
        for index in page.rows.indices { page.rows[index].upstream = core.label(ofUpstream: page.rows[index].upstream) }
        return page
    }

    /// A page of documents, in the order of their ids.
    public func documents(_ query: DocumentQuery) async throws(StoreError) -> Page<DocumentRow> {
        var query = query
        query.upstream = core.upstream(labelled: query.upstream)
        var page = try await core.read { [hasher, query] in
            try Inventory(database: $0, hasher: hasher).documents(query)
        }
        for index in page.rows.indices { page.rows[index].upstream = core.label(ofUpstream: page.rows[index].upstream) }
        return page
    }

    /// A page of warnings, latest first.
    public func warnings(limit: Int = 100, after: Int64? = nil) async throws(StoreError) -> Page<StoredWarning> {
        await core.examiner.settled()
        // The examiner's warnings are queued by now. When this job is committed, so are they.
        _ = try? await core.write(.batched) { _ in true }
        return try await core.read { [hasher] in
            try Inventory(database: $0, hasher: hasher).warnings(limit: limit, after: after)
        }
    }

    /// Counts warnings; batched.
    public func warn(_ warnings: [StoredWarning]) {
        let now = core.clock.now()
        core.note { try $0.warn(warnings, at: now) }
    }
}
