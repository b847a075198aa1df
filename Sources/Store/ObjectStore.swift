import Dispatch
import GRDB
import Mapping
import Synchronization

/// Objects and documents in one SQLite file.
///
/// Any thread may call. Whatever touches the file is `async`: reads run on a
/// reader's queue in a snapshot of their own, writes on the writer's thread,
/// and return after the commit that holds them.
public final class ObjectStore: Sendable {
    private let shared: StoreCore
    /// What the store shares with its writer.
    ///
    /// The end of the store finishes the writer. The optimiser, which sees that all work is done with the core, would
    /// have a store end before its caller's last use of it; asking for the core counts as a use.
    var core: StoreCore { withExtendedLifetime(self) { shared } }
    // Bodies are taken apart here, ahead of their transaction and in the order they came.
    let ingest = DispatchQueue(label: "larder.ingest")
    /// What writes tell is taken apart here, so that it need not wait for lists.
    let told = DispatchQueue(label: "larder.told")

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
    /// Blocks; takes the same short time whatever the store holds.
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
                        // In an empty file there is nothing to erase.
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

    /// Says who is to be told of commits; at most one.
    public func setListener(_ listener: any ChangeListener) {
        core.listener = listener
    }

    /// Says to whoever finds the store locked where this process can be asked.
    public func announce(admin: String) {
        core.announce(admin: admin)
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
    /// Never wrongly false. To be asked after a document that was read has been registered where the
    /// listener would find it, so that no change falls in between.
    public func mayHaveChanged(_ objects: [ObjectID], since sequence: Int64) -> Bool {
        core.recent.mayHaveChanged(objects, since: sequence)
    }

    /// What operators want to know of the store at run time; any thread.
    public var statistics: StoreStatistics { core.statistics }

    // MARK: End

    /// Returns when everything handed over before is committed, or has failed.
    public func flush() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            // The store itself: it must not end before what it was given has reached the writer.
            ingest.async { [self] in
                core.post(.prompt, { _ in }, done: { _ in continuation.resume() })
            }
        }
    }

    /// Has everything handed over before committed without waiting for company.
    public func hurry() {
        ingest.async { [self] in core.post(.prompt, { _ in }, done: { _ in }) }
    }

    /// Commits what is waiting and closes the file; everything after fails with `.closed`.
    ///
    /// - Parameter limit: for how long what may be lost is waited for. What has not been taken in by then is given up: answers,
    ///   but neither marks of writes nor what writes have told.
    /// - Returns: how many answers were given up.
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

    /// Returns when nothing waits any more, not even for room in the queue.
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

/// Work that waits its turn.
extension ObjectStore {
    /// Has the writer do something once everything that was handed over before is taken in, as soon as there is room in the
    /// queue; `done` runs on the writer's thread, after the commit.
    func enqueue<Value: Sendable>(
        _ urgency: Job.Urgency,
        bytes: Int = 0,
        _ work: @escaping @Sendable (WriterSession) throws -> Value,
        done: @escaping @Sendable (Result<Value, StoreError>) -> Void
    ) {
        core.queueLimit.enter(bytes: 0) { [self] in
            // The store itself: it must not end before what it was given has reached the writer.
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
