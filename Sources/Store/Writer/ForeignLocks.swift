import GRDBSQLite
import Glibc
import Synchronization

/// Watches for other processes that lock the store's files, so that the writer cannot write; any thread.
///
/// Whoever may read the files may lock them: SQLite's locks are advisory, and a shared lock on one byte of the WAL's
/// index stops every writer. The writer waits for a lock as long as other programs usually need; requests that wait for
/// the writer go on without it long before that (`isBlocked`). After half of the wait, the watch says who holds the
/// lock. After all of it, and until something is committed again, every write fails almost at once, and responses are
/// passed on as they are when the disk is full. Locks that are held for moments, again and again, are reported once
/// they have taken as long together.
final class ForeignLockWatch: Sendable {
    enum Cause: Sendable {
        case writing
        /// Another process reads an old state, or keeps it locked, so that the WAL cannot be emptied and has reached its bound.
        case reading

        /// The bytes of the WAL's index that say who does it; SQLite's file format names them.
        fileprivate var bytes: ClosedRange<Int64> {
            switch self {
            case .writing: 120...120
            case .reading: 121...127
            }
        }
    }

    private struct State {
        /// When the writer began to wait, and for how long it may.
        var waitingSince = ContinuousClock.now
        var patience = ForeignLockWatch.patience
        /// Who holds the lock, and why it matters; nil if no lock is known.
        var known: (cause: Cause, holder: String)?
        /// Who locks the file for moments, again and again.
        var repeated: String?
        /// How long the writer has waited lately, as of a time; a twentieth of the time in which it does not wait is taken off.
        var waitedLately = Duration.zero
        var countedUntil = ContinuousClock.now
        /// Called once when the writer is blocked.
        var waiters: [Int: @Sendable () -> Void] = [:]
        /// Called each time.
        var observers: [@Sendable () -> Void] = []
        var waiterCount = 0

        /// Counts the time since the last call.
        mutating func count(asWaiting isWaiting: Bool) {
            let passed = ContinuousClock.now - countedUntil
            countedUntil += passed
            waitedLately = isWaiting ? waitedLately + passed : max(.zero, waitedLately - passed / 20)
            if waitedLately == .zero { repeated = nil }
        }
    }

    private static let patience: Duration = .seconds(2)
    private static let patienceOfRequests: Duration = .milliseconds(100)
    private static let patienceWhileLocked: Duration = .milliseconds(20)

    private let locks: ForeignLocks
    private let notify: @Sendable (StoreNotice) -> Void
    private let state = Mutex(State())
    private let lockedOut = Atomic<Bool>(false)
    private let blocked = Atomic<Bool>(false)

    init(store path: String, notify: @escaping @Sendable (StoreNotice) -> Void) {
        locks = ForeignLocks(store: path)
        self.notify = notify
    }

    /// Ends the watch, once SQLite has closed the store.
    func close() { locks.close() }

    /// Whether a lock is known that keeps the writer from writing; one relaxed load.
    var isLockedOut: Bool { lockedOut.load(ordering: .relaxed) }

    /// Whether requests must not wait for the writer, because it waits for another process; relaxed loads.
    var isBlocked: Bool { blocked.load(ordering: .relaxed) || isLockedOut }

    /// The process that holds the lock, as a phrase; nil if no lock is known.
    var holder: String? { isLockedOut ? state.withLock { $0.known?.holder } : nil }

    /// The same; or the process that locks the file for moments, again and again.
    var reportedHolder: String? {
        state.withLock { state in
            state.count(asWaiting: blocked.load(ordering: .relaxed))
            return state.known?.holder ?? state.repeated
        }
    }

    /// Has a function called each time the writer is blocked.
    func observe(_ whenBlocked: @escaping @Sendable () -> Void) { state.withLock { $0.observers.append(whenBlocked) } }

    /// Has a function called once if the writer is blocked, or is already; returns a number to cancel it by.
    func onceBlocked(_ action: @escaping @Sendable () -> Void) -> Int? {
        let number = state.withLock { state -> Int? in
            guard !isBlocked else { return nil }
            state.waiterCount += 1
            state.waiters[state.waiterCount] = action
            return state.waiterCount
        }
        if number == nil { action() }
        return number
    }

    func cancel(_ number: Int) { state.withLock { $0.waiters[number] = nil } }

    private func block() {
        guard !blocked.load(ordering: .relaxed) else { return }
        let actions = state.withLock { state in
            blocked.store(true, ordering: .relaxed)
            defer { state.waiters = [:] }
            return state.observers + state.waiters.values
        }
        for action in actions { action() }
    }

    /// Has a connection wait for locks as long as this watch says; the watch must outlive the connection.
    func install(on connection: OpaquePointer?) {
        sqlite3_busy_handler(
            connection,
            { watch, tries in ForeignLockWatch.from(watch).waits(isFirst: tries == 0) ? 1 : 0 },
            Unmanaged.passUnretained(self).toOpaque()
        )
    }

    private static func from(_ context: UnsafeMutableRawPointer?) -> ForeignLockWatch {
        Unmanaged<ForeignLockWatch>.fromOpaque(context!).takeUnretainedValue()
    }

    /// Waits a moment; returns false once the writer has waited long enough.
    private func waits(isFirst: Bool) -> Bool {
        let isKnown = isLockedOut
        let (waited, waitedLately, patience, isReported) = state.withLock { state in
            if isFirst {
                state.waitingSince = .now
                state.patience = isKnown ? Self.patienceWhileLocked : Self.patience
            }
            state.count(asWaiting: !isFirst)
            let isReported = isKnown || state.repeated != nil
            return (.now - state.waitingSince, state.waitedLately, state.patience, isReported)
        }
        if waited >= Self.patienceOfRequests { block() }
        if !isKnown, waited >= Self.patience / 2 {
            begin(.writing)
        } else if !isReported, waitedLately >= Self.patience / 2 {
            let holder = locks.holder(of: Cause.writing.bytes) ?? ForeignLocks.unknownHolder
            state.withLock { $0.repeated = holder }
            notify(.lockedAgainAndAgain(by: holder))
        }
        guard waited < patience else { return false }
        usleep(waited < .milliseconds(20) ? 1_000 : 10_000)
        return true
    }

    /// Notes that a lock keeps the writer from writing.
    func begin(_ cause: Cause) {
        guard !isLockedOut else { return }
        let holder = locks.holder(of: cause.bytes) ?? ForeignLocks.unknownHolder
        state.withLock { $0.known = (cause, holder) }
        lockedOut.store(true, ordering: .relaxed)
        notify(.lockedOut(by: holder))
    }

    /// Notes that something was committed, so that the lock is gone.
    func end(_ cause: Cause) {
        if cause == .writing, blocked.load(ordering: .relaxed) { blocked.store(false, ordering: .relaxed) }
        guard isLockedOut, state.withLock({ $0.known?.cause == cause }) else { return }
        state.withLock { $0.known = nil }
        lockedOut.store(false, ordering: .relaxed)
        notify(.lockGone)
    }
}

/// The locks of other processes on the index of a store's WAL.
struct ForeignLocks: Sendable {
    private let descriptor: Int32

    /// Opens the index of a store's WAL, to ask for its locks.
    init(store path: String) { descriptor = open(path + "-shm", O_RDONLY | O_CLOEXEC | O_NOFOLLOW) }

    /// Closes the index, once SQLite has: this releases its locks in this process.
    func close() { if descriptor >= 0 { Glibc.close(descriptor) } }

    static let unknownHolder = "another process"

    /// Who else has locked some bytes, such as `process 4711 (sqlite3)`; nil if nobody has.
    func holder(of bytes: ClosedRange<Int64>) -> String? {
        var lock = flock()
        (lock.l_type, lock.l_whence) = (Int16(F_WRLCK), Int16(SEEK_SET))
        (lock.l_start, lock.l_len) = (off_t(bytes.lowerBound), off_t(bytes.count))
        // The locks of this process are not in its own way. That of an open file description names no process.
        guard descriptor >= 0, fcntl(descriptor, F_GETLK, &lock) == 0, lock.l_type != F_UNLCK else { return nil }
        guard lock.l_pid > 0 else { return Self.unknownHolder }
        return "process \(lock.l_pid)" + (Self.name(of: lock.l_pid).map { " (\($0))" } ?? "")
    }

    /// Waits for a moment while others hold locks without which SQLite cannot open the store; returns who still does.
    ///
    /// Call it before SQLite has opened the store in this process. SQLite itself would wait for ten seconds, and not
    /// say for whom.
    static func holderBeforeOpening(_ path: String) -> String? {
        let locks = ForeignLocks(store: path)
        defer { locks.close() }
        let end = ContinuousClock.now + .seconds(2)
        // The locks of a writer, of a checkpoint and of a recovery.
        while let holder = locks.holder(of: 120...122) {
            guard ContinuousClock.now < end else { return holder }
            usleep(10_000)
        }
        return nil
    }

    /// The name of a process; nil if this one may not see it.
    private static func name(of process: Int32) -> String? {
        let file = open("/proc/\(process)/comm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { Glibc.close(file) }
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = read(file, &buffer, buffer.count)
        // A process chooses its own name.
        let name = buffer.prefix(max(count, 0)).filter { (0x20..<0x7f).contains($0) }
        return name.isEmpty ? nil : String(decoding: name, as: UTF8.self)
    }
}

extension ObjectStore {
    /// Whether requests must not wait for commits, because the writer waits for another process.
    public var isBlocked: Bool { core.foreignLocks.isBlocked }

    /// Has a function called, on the writer's thread, each time commits are blocked by another process.
    public func observe(whenBlocked: @escaping @Sendable () -> Void) { core.foreignLocks.observe(whenBlocked) }

    /// Like `flush`, but does not wait for another process; returns whether everything queued earlier is committed or has failed.
    public func flushUnlessBlocked() async -> Bool {
        do {
            try await unlessBlocked { [self] () async throws(StoreError) in await flush() }
            return true
        } catch { return false }
    }

    /// Does something for which the writer is needed; fails as soon as another process keeps the writer waiting, and
    /// goes on nevertheless.
    func unlessBlocked<Value: Sendable>(_ work: @escaping @Sendable () async throws(StoreError) -> Value)
        async throws(StoreError) -> Value
    {
        let core = core
        return try await result { done in
            let first = FirstResult(done)
            let number = core.foreignLocks.onceBlocked {
                first.give(.failure(.lockedOut("\(ForeignLocks.unknownHolder) keeps it locked")))
            }
            Task {
                do throws(StoreError) {
                    first.give(.success(try await work()))
                } catch {
                    first.give(.failure(error))
                }
                if let number { core.foreignLocks.cancel(number) }
            }
        }
    }
}

/// Passes on the first of several results.
private final class FirstResult<Value: Sendable>: Sendable {
    private let done: @Sendable (Result<Value, StoreError>) -> Void
    private let isGiven = Atomic<Bool>(false)

    init(_ done: @escaping @Sendable (Result<Value, StoreError>) -> Void) { self.done = done }

    func give(_ result: Result<Value, StoreError>) { if !isGiven.exchange(true, ordering: .relaxed) { done(result) } }
}
