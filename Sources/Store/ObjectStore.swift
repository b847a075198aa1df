import Dispatch
import GRDB
import Mapping
import Synchronization

/// Objects and documents in one SQLite file.
///
/// Any thread may call. Functions that touch the file are `async`: reads run on a reader's queue in a snapshot of their own;
/// writes run on the writer's thread, and return after their commit.
public final class ObjectStore: Sendable {
    private let shared: StoreCore
    /// What the store shares with its writer.
    ///
    /// The store's `deinit` stops the writer. All work is done with the core, so the optimiser could end the store before its
    /// caller's last use of it; access to the core counts as a use.
    var core: StoreCore { withExtendedLifetime(self) { shared } }
    // Decomposes bodies before their transactions, in the order they came.
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

    /// Opens or creates a store, alone: a second opening fails with `.locked`.
    ///
    /// Blocks; takes the same short time whatever the size of the store.
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

    /// Sets the listener that hears of commits; at most one.
    public func setListener(_ listener: any ChangeListener) {
        core.listener = listener
    }

    /// Records this process's admin address, for the error of another process that finds the store locked.
    public func announce(admin: String) {
        core.lock.announce(admin: admin)
    }

    // MARK: Memory

    /// Whether documents may exist under a key; memory only, any thread.
    ///
    /// Never wrongly false.
    public func mayHave(_ digest: Digest128) -> Bool {
        core.presence.mayContain(digest.low)
    }

    /// Whether any of these objects may have changed after a commit sequence; memory only, any thread.
    ///
    /// Never wrongly false. Call it after you register a document that was read where the listener finds it, so that no
    /// change is missed in between.
    public func mayHaveChanged(_ objects: [ObjectID], since sequence: Int64) -> Bool {
        core.recent.mayHaveChanged(objects, since: sequence)
    }

    /// The state of the store at run time, for operators; any thread.
    public var statistics: StoreStatistics { core.statistics }

    // MARK: End

    /// Returns when everything that was queued before is committed, or has failed.
    public func flush() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            // Captures the store itself: it must not end before its jobs have reached the writer.
            ingest.async { [self] in
                core.post(.prompt, { _ in }, done: { _ in continuation.resume() })
            }
        }
    }

    /// Commits everything that was queued before without the batch delay.
    public func hurry() {
        ingest.async { [self] in core.post(.prompt, { _ in }, done: { _ in }) }
    }

    /// Commits what is queued and closes the file; every later call fails with `.closed`.
    ///
    /// - Parameter limit: how long to wait for queued responses. After that they are given up; suspects and the effects of
    ///   writes are committed in any case.
    /// - Returns: how many responses were given up.
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

    /// Returns when the queue is empty, and nothing waits for room in it.
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
            // Only cancelling ends it sooner.
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
    /// Lets the writer run a job behind everything that was queued before, as soon as there is room in the queue.
    ///
    /// `done` runs on the writer's thread, after the commit.
    func enqueue<Value: Sendable>(
        _ urgency: Job.Urgency,
        bytes: Int = 0,
        _ work: @escaping @Sendable (WriterSession) throws -> Value,
        done: @escaping @Sendable (Result<Value, StoreError>) -> Void
    ) {
        core.queueLimit.enter(bytes: 0) { [self] in
            // Captures the store itself: it must not end before its jobs have reached the writer.
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

/// Counting, listing and cleaning.
extension ObjectStore {
    /// How much the store contains.
    public func count() async throws(StoreError) -> StoreCount {
        try await core.read { [hasher] in try Inventory(database: $0, hasher: hasher).count() }
    }

    /// Removes what a filter selects, durably; a dry run only counts it.
    ///
    /// A response that arrives later is not stored if its request was sent before the clean. Everything else is served and
    /// stored meanwhile. The clean stops after a slice if `progress` returns false; what was removed stays removed, and the
    /// rest is consistent.
    public func clean(
        _ filter: CleanFilter,
        dryRun: Bool = false,
        progress: @escaping CleanProgress = { _ in true }
    ) async throws(StoreError) -> CleanResult {
        var filter = filter
        filter.upstream = core.upstream(labelled: filter.upstream)
        var cleaner = Cleaner(core: core, filter: filter, isDryRun: dryRun, progress: progress)
        return try await cleaner.run()
    }

    /// A page of objects, in the order of their ids.
    ///
    /// As in all listings, query and rows give an upstream of today's configuration by its name, any other by its name and
    /// URL.
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

    /// A page of warnings, the latest first.
    public func warnings(limit: Int = 100, after: Int64? = nil) async throws(StoreError) -> Page<StoredWarning> {
        await core.examiner.settled()
        // The examiner has queued its warnings: behind them, all are committed.
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
