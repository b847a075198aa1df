import Basics
import Dispatch
import GRDB
import Mapping
import Synchronization

/// The state shared by `ObjectStore` and `Writer`: the file, and state in memory.
final class StoreCore: Sendable {
    let pool: DatabasePool
    let clock: StoreClock
    let hasher: KeyHasher
    let secret: HashSecret
    private let damage = Mutex<String?>(nil)
    let copying = Mutex<CopyProgress?>(nil)
    let isLoading = Atomic(false)
    /// Bounds the memory of decomposed bodies until their commit.
    let preparedBodies: QueueLimit
    let changeLimit: Int64
    let notify: @Sendable (StoreNotice) -> Void
    let presence = KeyPresence()
    let recent: RecentChanges
    let publicNumbers: PublicNumbers
    let queueLimit: QueueLimit
    let queuedResponses = QueuedResponses()
    let examiner = BodyExaminer()
    let mailbox = Mailbox<Job>()
    /// How many jobs are in the queue ahead of the mailbox, in which bodies are decomposed.
    let ingesting = Atomic(0)
    let isClosed = Atomic(false)
    private let closing = Atomic(false)
    /// Whether the store is being closed and its time limit has passed; dispensable jobs are then dropped.
    var isGivenUp: Bool { closing.load(ordering: .relaxed) }
    private let dispensable = Atomic(0)
    /// How many migrations of stored objects have begun.
    private let migrations = Atomic(0)
    private let readings = DispatchGroup()
    let end = Signal()
    /// Searches through the whole store run one slice at a time, so that they never occupy all readers.
    private let scans = DispatchQueue(label: "larder.scan", qos: .utility)
    let lock: StoreLock
    let foreignLocks: ForeignLockWatch
    private let shared: Mutex<Shared>

    private struct Shared {
        var configuration: StoreConfiguration
        var budget: FileBudget
        var models: [UpstreamKey: UpstreamModels]
        var keyHasher: KeyHasher
        var listener: (any ChangeListener)?
        var onChanges: (@Sendable () -> Void)?
        var sharing: ValueSharing?
        var statistics = StoreStatistics()
    }

    init(_ file: StoreFile, _ configuration: StoreConfiguration) {
        pool = file.pool
        lock = file.lock
        clock = StoreClock(source: configuration.time, stored: file.time)
        secret = file.secret
        hasher = KeyHasher(secret: file.secret)
        preparedBodies = QueueLimit(count: .max, bytes: configuration.queueBytes)
        notify = configuration.notify
        foreignLocks = ForeignLockWatch(store: file.budget.path, notify: configuration.notify)
        changeLimit = file.budget.changes(wanted: configuration.changes)
        publicNumbers = file.publicNumbers
        recent = RecentChanges(since: file.numbers.sequence)
        queueLimit = QueueLimit(count: configuration.queueLimit, bytes: configuration.queueBytes)
        let (models, keys) = (configuration.compiledModels, KeyHasher(secret: file.keySecret))
        shared = Mutex(Shared(configuration: configuration, budget: file.budget, models: models, keyHasher: keys))
    }

    /// The current configuration, of which some parts are replaced while the store is open (`ObjectStore.replaceConfiguration`).
    var configuration: StoreConfiguration {
        get { shared.withLock(\.configuration) }
        set { shared.withLock { $0.configuration = newValue } }
    }

    /// A part of the configuration, without a copy of the rest; every commit asks for some.
    func setting<Value: Sendable>(_ read: (StoreConfiguration) -> Value) -> Value {
        shared.withLock { read($0.configuration) }
    }

    var budget: FileBudget {
        get { shared.withLock(\.budget) }
        set { shared.withLock { $0.budget = newValue } }
    }

    var reserve: DiskReserve { DiskReserve(budget: budget, file: lock.file) }
    /// In microseconds.
    var batchDelay: Int64 { Int64(setting(\.batchDelay) / .microseconds(1)) }

    var configuredModels: [UpstreamKey: Models] { models.filter(\.value.isConfigured).mapValues(\.models) }

    var models: [UpstreamKey: UpstreamModels] {
        get { shared.withLock(\.models) }
        set { shared.withLock { $0.models = newValue } }
    }

    /// Digests the keys of objects; they have a secret of their own if they came with a copy of another store.
    var keyHasher: KeyHasher {
        get { shared.withLock(\.keyHasher) }
        set { shared.withLock { $0.keyHasher = newValue } }
    }

    var listener: (any ChangeListener)? {
        get { shared.withLock(\.listener) }
        set { shared.withLock { $0.listener = newValue } }
    }

    var onChanges: (@Sendable () -> Void)? {
        get { shared.withLock(\.onChanges) }
        set { shared.withLock { $0.onChanges = newValue } }
    }

    var sharing: ValueSharing? {
        get { shared.withLock(\.sharing) }
        set { shared.withLock { $0.sharing = newValue } }
    }

    func updateStatistics(_ update: (inout StoreStatistics) -> Void) { shared.withLock { update(&$0.statistics) } }

    var statistics: StoreStatistics {
        var statistics = shared.withLock(\.statistics)
        statistics.queued = queueLimit.queued
        statistics.queuedJobs = mailbox.count
        statistics.lockHolder = foreignLocks.reportedHolder
        return statistics
    }

    /// Marks in memory what the commit about to happen changes; writer's thread only.
    ///
    /// No reader may find a snapshot newer than what memory is marked for: one client would get a new value from disk,
    /// and then the old one from memory. Between the mark and the commit, a document is read from disk without having
    /// changed there.
    func announce(_ effects: WriterSession.BatchEffects, of session: WriterSession) {
        let changed = Array(Set(effects.changed))
        recent.announce(changed, at: session.numbers.sequence)
        if !changed.isEmpty { listener?.objectsWillChange(changed) }
        if !effects.shown.isEmpty, let sharing { for values in effects.shown { sharing.show(values) } }
        setting(\.commitStep)?(.marked)
    }

    /// Publishes a commit to the state in memory and to the listener; writer's thread only.
    func publish(_ effects: WriterSession.BatchEffects, of session: WriterSession) {
        setting(\.commitStep)?(.committed)
        recent.confirm(at: session.numbers.sequence)
        publicNumbers.advance(to: session.numbers.sequence)
        if effects.isJournaled { onChanges?() }
        session.forgetAbsent(effects.vanished)
        guard let listener else { return }
        if !effects.changed.isEmpty { listener.objectsChanged(Array(Set(effects.changed))) }
        if !effects.removed.isEmpty { listener.documentsRemoved(Array(Set(effects.removed))) }
        if listener.awaitsObjects { listener.objectsWritten(session.names(of: effects.written)) }
    }

    // MARK: Replacing the contents

    /// Writes this store's secret, numbers and times into a file that is to replace its contents, and goes on from
    /// these numbers.
    func writeMeta(in database: Database, sequence: CommitNumber, object: ObjectID) throws {
        try Meta.set(secret, in: database)
        try Meta.sequence.set(sequence.rawValue, in: database)
        try Meta.object.set(object.rawValue, in: database)
        try Meta.clock.set(clock.now(), in: database)
        try Meta.closed.set(0, in: database)
        // What is no longer known must not come back with an older response of another machine.
        try Meta.sharedSince.set(clock.now(), in: database)
        try clock.stored.write(in: database)
        try publicNumbers.write(in: database)
    }

    /// Discards what memory has of the former contents; writer's thread only, before anything else is written.
    func forgetContents(at sequence: CommitNumber) {
        recent.forgetAll(at: sequence)
        listener?.storeEmptied()
        listener?.principalsForgotten()
        onChanges?()
    }

    // MARK: Access to the file

    /// Has the writer run a job, and returns after its commit.
    func commit<Value: Sendable>(
        _ kind: Job.Kind,
        _ urgency: Job.Urgency,
        alone: Bool = false,
        _ work: @escaping @Sendable (WriterSession) throws -> Value
    ) async throws(StoreError) -> Value { try await result { submit(kind, urgency, alone: alone, work, done: $0) } }

    /// Has the writer run a job; `done` runs on its thread, after the commit.
    func submit<Value: Sendable>(
        _ kind: Job.Kind,
        _ urgency: Job.Urgency,
        alone: Bool = false,
        bytes: Int = 0,
        isDispensable: Bool = false,
        _ work: @escaping @Sendable (WriterSession) throws -> Value,
        done: @escaping @Sendable (Result<Value, StoreError>) -> Void
    ) {
        let job = Job(
            kind: kind,
            urgency: urgency,
            isAlone: alone,
            bytes: bytes,
            isDispensable: isDispensable,
            work: { session in
                let value = try work(session)
                return { done(.success(value)) }
            },
            failed: { done(.failure($0)) }
        )
        // Express jobs may run first: observations are ordered by the times of their responses, and marks and invalidations
        // apply to responses before and after them (`Bans`).
        if !mailbox.submit(job, urgent: urgency != .batched, express: urgency.isExpress) { done(.failure(.closed)) }
    }

    /// Has the writer record something dispensable; it is dropped if the writer is behind, or cannot write it.
    func submitDispensable(_ work: @escaping @Sendable (WriterSession) throws -> Void) {
        guard dispensable.load(ordering: .relaxed) < 1024 else { return }
        dispensable.add(1, ordering: .relaxed)
        submit(.note, .batched, work, done: { _ in self.dispensable.subtract(1, ordering: .relaxed) })
    }

    /// Migrates objects stored under an earlier version of their model, slice by slice after all other jobs.
    ///
    /// This is for readers by SQL: the store itself migrates such an object whenever it reads it. A migration that is
    /// under way ends, because models may have changed since it began.
    func modernise() {
        guard models.values.contains(where: { $0.models.haveVersions }) else { return }
        modernise(after: .zero, as: migrations.add(1, ordering: .relaxed).newValue)
    }

    private func modernise(after object: ObjectID, as number: Int) {
        submit(.migration, .batched) { [self] session -> ObjectID? in
            guard migrations.load(ordering: .relaxed) == number else { return nil }
            return try session.modernise(after: object, limit: 256)
        } done: { [self] result in
            if case .success(let last?) = result { modernise(after: last, as: number) }
        }
    }

    /// Keeps the file open until `endReading`; false if it is already being closed.
    ///
    /// GRDB closes its pool's connections even while one is in use.
    func beginReading() -> Bool {
        readings.enter()
        guard isClosed.load(ordering: .sequentiallyConsistent) else { return true }
        readings.leave()
        return false
    }

    func endReading() { readings.leave() }

    /// Stops new reads, and returns once the last reader is done; blocks.
    func endAllReading() {
        isClosed.store(true, ordering: .sequentiallyConsistent)
        readings.wait()
    }

    func read<Value: Sendable>(_ work: @escaping @Sendable (Database) throws -> Value) async throws(StoreError) -> Value
    {
        guard beginReading() else { throw .closed }
        defer { endReading() }
        do {
            return try await pool.read(work)
        } catch {
            throw recorded(StoreError(error))
        }
    }

    /// Counts an error that shows damage in the file, and reports the first one to the operator.
    func recorded(_ error: StoreError) -> StoreError {
        guard case .corrupt(let reason) = error else { return error }
        updateStatistics { $0.damaged += 1 }
        let isFirst = damage.withLock { known in
            defer { known = known ?? reason }
            return known == nil
        }
        if isFirst { notify(.damaged(reason: reason)) }
        return error
    }

    var foundDamage: String? { damage.withLock { $0 } }

    func mended(_ reason: String) {
        damage.withLock { $0 = nil }
        notify(.damagedFileEmptied(reason: reason))
    }

    /// Reads a slice of a search in one snapshot, after the slices of other searches.
    func scan<Value: Sendable>(_ work: @escaping @Sendable (Database, SliceBounds) throws -> Value)
        async throws(StoreError) -> Value
    {
        guard beginReading() else { throw .closed }
        defer { endReading() }
        return try await result { done in
            scans.async { [self] in
                // No slice may hold its snapshot for longer.
                let result = Result { try pool.read { try work($0, SliceBounds(deadline: .now + .milliseconds(30))) } }
                done(result.mapError { recorded(StoreError($0)) })
            }
        }
    }

    /// Advances a search by a slice of at most `count` rows.
    func advance<Search: Sendable, Value: Sendable>(
        _ search: inout Search,
        count: Int = SliceBounds.usualCount,
        _ work: @escaping @Sendable (inout Search, Database, SliceBounds) throws -> Value
    ) async throws(StoreError) -> Value {
        let begun = search
        let (next, value) = try await scan { database, bounds in
            var (search, bounds) = (begun, bounds)
            bounds.count = count
            let value = try work(&search, database, bounds)
            return (search, value)
        }
        search = next
        return value
    }

    func giveUp() { closing.store(true, ordering: .relaxed) }
}

struct SliceBounds: Sendable {
    static let usualCount = 256

    var count = usualCount
    /// The limit on the bytes of bodies: a removal has to fit into the WAL.
    var bytes: Int64 = .max
    var deadline: ContinuousClock.Instant

    /// Whether the slice ends after a row; the clock is read every 64 rows.
    func areReached(found: Int, bytes: Int64 = 0, examined: Int) -> Bool {
        found >= count || bytes >= self.bytes || examined % 64 == 0 && ContinuousClock.now >= deadline
    }
}

/// Waits for a result that is passed to a callback.
func result<Value: Sendable>(
    of start: (_ done: @escaping @Sendable (Result<Value, StoreError>) -> Void) -> Void
) async throws(StoreError) -> Value {
    let result = await withCheckedContinuation {
        (continuation: CheckedContinuation<Result<Value, StoreError>, Never>) in
        start { continuation.resume(returning: $0) }
    }
    return try result.get()
}
