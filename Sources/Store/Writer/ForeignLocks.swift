import GRDBSQLite
import Glibc
import Synchronization

/// Watches for other processes that lock the store's files, so that the writer cannot write.
///
/// Whoever may read the files may lock them: SQLite's locks are advisory, and a shared lock on one byte of the WAL's index stops
/// every writer. The writer waits for a lock as long as other programs usually need; after half of that, the watch says who holds
/// it. From then on, until something is committed again, every write fails almost at once: nobody waits for the lock, and
/// responses are passed on as they are when the disk is full. Any thread.
final class ForeignLockWatch: Sendable {
    /// Why nothing can be written.
    enum Cause: Sendable {
        /// Another process holds the lock of writers.
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
    }

    private static let patience: Duration = .seconds(2)
    private static let patienceWhileLocked: Duration = .milliseconds(20)

    private let locks: ForeignLocks
    private let notify: @Sendable (StoreNotice) -> Void
    private let state = Mutex(State())
    private let lockedOut = Atomic<Bool>(false)

    /// Watches an open store.
    init(store path: String, notify: @escaping @Sendable (StoreNotice) -> Void) {
        locks = ForeignLocks(store: path)
        self.notify = notify
    }

    /// Ends the watch, once SQLite has closed the store.
    func close() { locks.close() }

    /// Whether a lock is known that keeps the writer from writing; one relaxed load.
    var isLockedOut: Bool { lockedOut.load(ordering: .relaxed) }

    /// The process that holds the lock, as a phrase; nil if no lock is known.
    var holder: String? { isLockedOut ? state.withLock { $0.known?.holder } : nil }

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
        let (waited, patience) = state.withLock { state -> (Duration, Duration) in
            if isFirst {
                state.waitingSince = .now
                state.patience = isKnown ? Self.patienceWhileLocked : Self.patience
            }
            return (.now - state.waitingSince, state.patience)
        }
        if !isKnown, waited >= Self.patience / 2 { begin(.writing) }
        guard waited < patience else { return false }
        usleep(waited < .milliseconds(20) ? 1_000 : 10_000)
        return true
    }

    /// Notes that a lock keeps the writer from writing.
    func begin(_ cause: Cause) {
        guard !isLockedOut else { return }
        let holder = locks.holder(of: cause.bytes)
        state.withLock { $0.known = (cause, holder) }
        lockedOut.store(true, ordering: .relaxed)
        notify(.lockedOut(by: holder))
    }

    /// Notes that something was committed, so that the lock is gone.
    func end(_ cause: Cause) {
        guard isLockedOut, state.withLock({ $0.known?.cause == cause }) else { return }
        state.withLock { $0.known = nil }
        lockedOut.store(false, ordering: .relaxed)
        notify(.lockGone)
    }
}

/// The locks of other processes on the index of a store's WAL.
struct ForeignLocks: Sendable {
    /// The index; -1 if it cannot be opened.
    private let descriptor: Int32

    /// Opens the index of a store's WAL, to ask for its locks.
    init(store path: String) { descriptor = open(path + "-shm", O_RDONLY | O_CLOEXEC | O_NOFOLLOW) }

    /// Closes the index.
    ///
    /// This releases the locks that SQLite has on it in this process: it must have closed it before.
    func close() { if descriptor >= 0 { Glibc.close(descriptor) } }

    /// Who else has locked some bytes, such as `process 4711 (sqlite3)`.
    func holder(of bytes: ClosedRange<Int64>) -> String {
        var lock = flock()
        (lock.l_type, lock.l_whence) = (Int16(F_WRLCK), Int16(SEEK_SET))
        (lock.l_start, lock.l_len) = (off_t(bytes.lowerBound), off_t(bytes.count))
        // The locks of this process are not in its own way. That of an open file description names no process.
        guard descriptor >= 0, fcntl(descriptor, F_GETLK, &lock) == 0, lock.l_type != F_UNLCK, lock.l_pid > 0 else {
            return "another process"
        }
        return "process \(lock.l_pid)" + (Self.name(of: lock.l_pid).map { " (\($0))" } ?? "")
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
