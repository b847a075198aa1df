import Glibc
import GRDB
import GRDBSQLite

/// Keeps the file and the WAL within their bound: evicts, checkpoints, returns free pages.
struct FileKeeper {
    let core: StoreCore
    // Whether anything was written to the WAL since it was last emptied.
    var isWALUsed = true
    // The newest principal when principals without data were last removed.
    private var sweptPrincipal = PrincipalID.nobody

    init(core: StoreCore) { self.core = core }

    /// How long the writer may sleep before the next check, in microseconds.
    var checkInterval: Int64 { isWALUsed || core.foreignLocks.isBlocked ? 1_000_000 : 3_600_000_000 }

    /// Runs after a batch: evicts if the file is too large, and keeps the WAL short.
    ///
    /// What the batch has stored, after the document `last`, stays, however small the file is: clients were promised
    /// it.
    mutating func committed(_ session: WriterSession, after last: DocumentID) {
        isWALUsed = true
        sweep(session)
        if session.journal.isOverfull {
            // If there is no room for it, the next batch tries again.
            _ = try? session.transaction { try session.dropChanges(downTo: session.journal.limit) }
        }
        // Both files together are no smaller than what is used, and cheaper to ask; a file that was moved has no size.
        let (file, wal) = (core.budget.fileBytes, core.budget.walBytes)
        if file == 0 || file + wal > high(session),
            let used = try? FileBudget.used(in: session.database), used > high(session)
        {
            evict(session, down: low(session), until: last)
        }
        shortenWAL(session)
        checkDisk(session)
    }

    /// Removes principals without data after every `unusedPrincipals` new ones.
    private mutating func sweep(_ session: WriterSession) {
        let newest = session.numbers.principal
        let interval = core.setting(\.unusedPrincipals)
        guard newest.rawValue - sweptPrincipal.rawValue >= interval else { return }
        // The latest may have requests under way.
        let last = PrincipalID(rawValue: newest.rawValue - interval / 4)
        // If there is no room for it, the next batch tries again.
        guard (try? session.transaction({ try session.forgetUnused(keepingPrincipalsAfter: last) })) != nil else {
            return
        }
        sweptPrincipal = newest
        core.listener?.principalsForgotten()
    }

    /// Runs before a batch that adds about this many bytes; returns nil if there is room for it, otherwise the error.
    mutating func makeRoom(_ session: WriterSession, for bytes: Int) -> StoreError? {
        // The batch must be small enough to be checkpointed.
        if Int64(bytes) > core.budget.reserve / 4, session.disk.trouble == nil {
            if core.reserve.replenish(for: Int64(bytes) * 2) != nil { checkDisk(session) }
        }
        guard !isWithinBound else { return nil }
        // While a lock is known to keep the WAL from being emptied, nobody waits for it.
        let timeout = core.foreignLocks.isLockedOut ? 0 : 250
        if timeout > 0, session.disk.trouble == nil {
            evict(session, down: low(session))
            returnPages(session)
        }
        let outcome = emptyWAL(session, timeout: timeout)
        guard !isWithinBound else { return nil }
        switch outcome {
        // SQLite itself keeps the database within its bound.
        case .emptied: return nil
        case .isInUse:
            core.foreignLocks.begin(.reading)
            let holder = core.foreignLocks.holder ?? ForeignLocks.unknownHolder
            return .lockedOut("\(holder) reads an old state of it, and its WAL is full")
        case .failed(let error):
            failed(session, error)
            return reported(error, session)
        }
    }

    /// Whether the files are within their bound, so that no reader of an old state keeps anything from being stored.
    private var isWithinBound: Bool {
        guard core.budget.isWithinBound else { return false }
        core.foreignLocks.end(.reading)
        return true
    }

    /// Runs when there is nothing to do: empties the WAL.
    mutating func idle(_ session: WriterSession) {
        if core.foreignLocks.isBlocked {
            _ = isWithinBound
            // Only a write shows whether another process still locks the file.
            if (try? session.transaction {}) != nil { core.foreignLocks.end(.writing) }
        }
        if emptyWAL(session, timeout: 0) == .emptied { isWALUsed = session.disk.trouble != nil }
        checkDisk(session)
    }

    mutating func close(_ session: WriterSession) {
        // If this fails, only the mark of an orderly shutdown is missing, and the next opening checks the file.
        _ = try? session.transaction { try Meta.closed.set(1, in: session.database) }
        _ = emptyWAL(session, timeout: 100, erasing: true)
    }

    /// Removes the least recently used documents, up to the document `last`, until at most this many bytes are used.
    func evict(_ session: WriterSession, down target: Int64, until last: DocumentID = DocumentID(rawValue: .max)) {
        while let used = try? FileBudget.used(in: session.database), used > target {
            guard (try? evictSome(session, until: last)) == true || (try? halveJournal(session)) == true else { return }
            shortenWAL(session)
        }
        if core.budget.fileBytes > core.budget.database { returnPages(session) }
    }

    /// Removes one slice, small enough for the WAL; returns false if there is nothing left to evict.
    private func evictSome(_ session: WriterSession, until last: DocumentID) throws -> Bool {
        var documents: [DocumentID] = []
        var time: Int64 = .max
        var bytes = 0
        try session.database.query(
            "SELECT u.document, u.at, d.length FROM _used u JOIN _documents d ON d.id = u.document "
                + "WHERE u.document <= ? ORDER BY u.at LIMIT 64"
        ).eachWhile(last) { row in
            documents.append(row.id(0))
            time = row.integer(1)
            bytes += Int(row.count(2))
            return bytes < core.budget.batch
        }
        let (orphans, effects) = try session.transaction {
            for document in documents { try session.deleteDocument(document) }
            // Flushing comes first: then objects that only these documents showed are orphans.
            try session.flush()
            return try session.evictOrphans(until: time, limit: 1024)
        }
        core.publish(effects, of: session)
        core.updateStatistics { $0.evicted += Int64(documents.count) }
        return orphans > 0 || !documents.isEmpty
    }

    /// Drops half of the journal, when nothing else is left to evict; returns false if there is no journal either.
    private func halveJournal(_ session: WriterSession) throws -> Bool {
        let half = session.journal.count / 2
        return try session.transaction {
            // The changes of one commit go together.
            if try session.dropChanges(downTo: half) { return true }
            return try session.dropChanges(downTo: 0)
        }.0
    }

    func shortenWAL(_ session: WriterSession) {
        guard core.budget.walBytes > core.budget.wal else { return }
        _ = emptyWAL(session, timeout: 100)
    }

    enum Emptying: Equatable {
        case emptied
        /// A reader or another checkpoint still needs it.
        case isInUse
        case failed(StoreError)
    }

    /// Checkpoints the WAL, so that it restarts.
    ///
    /// It also truncates the WAL, except on a full disk, where the WAL keeps its blocks unless its bytes must be
    /// erased.
    func emptyWAL(_ session: WriterSession, timeout milliseconds: Int, erasing: Bool = false) -> Emptying {
        let database = session.database
        defer { core.foreignLocks.install(on: database.sqliteConnection) }
        do {
            try database.execute(sql: "PRAGMA busy_timeout = \(milliseconds)")
            let isCut = erasing || session.disk.trouble == nil
            defer { if isCut { _ = core.reserve.replenish() } }
            let pragma = "PRAGMA wal_checkpoint(\(isCut ? "TRUNCATE" : "RESTART"))"
            return try database.query(pragma).first { $0.integer(0) == 0 } ?? false ? .emptied : .isInUse
        } catch {
            let error = StoreError(error)
            return error.isLocked ? .isInUse : .failed(error)
        }
    }

    func returnPages(_ session: WriterSession) {
        // It works in slices, because each is a transaction that must fit into the WAL.
        while (try? returnSomePages(session)) == true {}
    }

    /// Returns some free pages; the result is true while there are more.
    func returnSomePages(_ session: WriterSession) throws -> Bool {
        func free() throws -> Int64 { try session.database.query("PRAGMA freelist_count").integer() ?? 0 }
        let before = try free()
        guard before > 0 else { return false }
        try session.database.query("PRAGMA incremental_vacuum(512)").run()
        shortenWAL(session)
        let after = try free()
        return after > 0 && after < before
    }
}

/// The state of the disk, as far as the writer knows it.
struct DiskState {
    /// Why nothing can be written; nil if the disk accepts writes.
    var trouble: String?
    /// The size that the database keeps meanwhile.
    var cap: Int64?
    var isFileMoved = false
    var nextCheck = ContinuousClock.now
}

/// Keeps the store at its size while the disk accepts no writes, for whatever reason.
///
/// So a checkpoint is always possible: all pages of the database are allocated. New data replaces the least recently used, and
/// the WAL keeps its blocks. A notice reports when this begins and when it ends.
extension FileKeeper {
    /// Makes room after a batch of about this many bytes, which did not fit on the disk or within the bound.
    mutating func failed(_ session: WriterSession, _ error: StoreError, adding bytes: Int = 0) {
        switch error {
        case .unwritable(let message):
            // SQLite's message only says that it failed.
            let code = session.database.sqliteConnection.map { sqlite3_system_errno($0) } ?? 0
            let isBeyondLimit = code == EFBIG || code == 0 && core.budget.isAtLimit
            let reason = isBeyondLimit ? FileBudget.beyondLimit : code == 0 ? message : StoreError.reason(code)
            reportTrouble(reason, session)
        case .full:
            // This may be the store's own bound, which is normal.
            if !core.reserve.hasMargin(for: Int64(bytes)), !isAtBound(session) {
                reportTrouble(StoreError.reason(ENOSPC), session)
            }
        default: return
        }
        evict(session, down: low(session))
    }

    /// The error for the callers: `.unwritable` or `.lockedOut` if the cause is logged already, else the error itself.
    func reported(_ error: StoreError, _ session: WriterSession) -> StoreError {
        if error.isLocked, let holder = core.foreignLocks.holder { return .lockedOut("\(holder) keeps it locked") }
        guard error.isOfDisk, let trouble = session.disk.trouble else { return error }
        return .unwritable(trouble)
    }

    /// Reallocates the reserve, and checks whether the disk has become full or has room again.
    mutating func checkDisk(_ session: WriterSession) {
        guard session.disk.trouble == nil else { return checkForRoom(session) }
        if let code = core.reserve.replenish() { reportTrouble(StoreError.reason(code), session) }
        guard isTimeToCheck(session) else { return }
        let isMoved = !core.lock.isInPlace
        if isMoved, !session.disk.isFileMoved { core.notify(.fileMoved(path: core.budget.path)) }
        session.disk.isFileMoved = isMoved
    }

    private static let pause: Duration = .seconds(1)

    /// Whether the last check was a second ago; this is then the last one.
    private func isTimeToCheck(_ session: WriterSession) -> Bool {
        guard session.disk.nextCheck <= .now else { return false }
        session.disk.nextCheck = .now + Self.pause
        return true
    }

    private mutating func checkForRoom(_ session: WriterSession) {
        guard isTimeToCheck(session), core.reserve.replenish() == nil, core.reserve.hasMargin() else { return }
        // A limit of the process or a failing disk shows only in a write.
        guard (try? session.transaction {}) != nil else { return }
        try? core.budget.configure(session.database)
        try? core.budget.limit(session.database)
        (session.disk.trouble, session.disk.cap) = (nil, nil)
        core.notify(.writesWork)
    }

    private mutating func reportTrouble(_ reason: String, _ session: WriterSession) {
        guard session.disk.trouble == nil else { return }
        session.disk.trouble = reason
        session.disk.nextCheck = .now + Self.pause
        isWALUsed = true
        core.notify(.writesFail(reason: reason))
        _ = emptyWAL(session, timeout: 100)
        if let size = try? core.budget.freeze(session.database) { session.disk.cap = size }
    }

    private func isAtBound(_ session: WriterSession) -> Bool {
        guard let used = try? FileBudget.used(in: session.database) else { return false }
        // Less is left than a usual batch may take.
        return core.budget.database - used < 8 * Int64(core.budget.batch)
    }

    /// The number of bytes in use above which documents are evicted.
    func high(_ session: WriterSession) -> Int64 { (session.disk.cap ?? core.budget.database) / 100 * 92 }
    /// The number of bytes in use down to which documents are evicted.
    func low(_ session: WriterSession) -> Int64 { (session.disk.cap ?? core.budget.database) / 100 * 85 }
}

/// Divides the bound on the store's bytes between the database file and its WAL.
struct FileBudget: Sendable {
    let path: String
    /// The bound on both together, in bytes.
    var maximum: Int64
    let pageSize: Int64
    /// The bound on each file that this process may write (`LimitFSIZE`), as of the start.
    var fileLimit: Int64 = .max

    var wal: Int64 { min(maximum / 4, 16 << 20) }
    /// The bound on the database file, which SQLite itself enforces.
    var database: Int64 { min(max(maximum - wal, 64 * pageSize), fileLimit) }
    /// How many bytes are preallocated after the end of each of the two files (`DiskReserve`); the WAL keeps as much
    /// when it restarts.
    var reserve: Int64 { wal / 2 }
    /// How many bytes one batch may add before it is committed.
    var batch: Int { Int(min(wal / 4, 1 << 20)) }

    /// How many changes the journal may keep, of the number wanted; it must not displace the objects themselves.
    func changes(wanted: Int64) -> Int64 {
        // A change takes about two bytes, and some sixty if its object is gone but its name is kept.
        min(wanted, max(database / 16 / 64, 1))
    }

    var fileBytes: Int64 { Self.extent(of: path).bytes }
    var walBytes: Int64 { Self.extent(of: path + "-wal").bytes }

    /// The limit of this process on the size of a file that it writes.
    static var limitOfProcess: Int64 {
        var limit = rlimit()
        let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0
        return isKnown ? Int64(clamping: limit.rlim_cur) : .max
    }

    /// Whether one of the files is so large that the next write may go beyond the limit of this process.
    var isAtLimit: Bool { max(fileBytes, walBytes) > Self.limitOfProcess - 2 * (pageSize + 64) }

    /// Why nothing can be written where that limit is the cause.
    static var beyondLimit: String {
        "\(StoreError.reason(EFBIG)): no file of this process may have more than \(limitOfProcess) bytes (LimitFSIZE); raise "
            + "that limit, or restart Larder, which then sets a larger store aside"
    }

    var isWithinBound: Bool { fileBytes + walBytes <= maximum }

    /// Configures a connection; does nothing for readers.
    func configure(_ database: Database) throws {
        guard !database.configuration.readonly else { return }
        // This has an effect when the file is created or rewritten.
        PageChecksums.reserve(in: database)
        // The first two have an effect only while the file is empty.
        try database.execute(
            sql: """
                PRAGMA page_size = \(pageSize);
                PRAGMA auto_vacuum = INCREMENTAL;
                PRAGMA secure_delete = ON;
                PRAGMA temp_store = MEMORY;
                PRAGMA journal_size_limit = \(reserve);
                PRAGMA wal_autocheckpoint = \(max(wal / 4 / pageSize, 16));
                """
        )
    }

    /// Limits the size of the file; for the writing connection.
    func limit(_ database: Database) throws {
        let actual = try Int64.fetchOne(database, sql: "PRAGMA page_size") ?? pageSize
        try database.execute(sql: "PRAGMA max_page_count = \(self.database / actual)")
    }

    /// Stops the growth of the file and limits the WAL tightly, for the writing connection; returns the file's size.
    func freeze(_ database: Database) throws -> Int64 {
        let pages = try database.query("PRAGMA page_count").integer() ?? 0
        let size = try database.query("PRAGMA page_size").integer() ?? pageSize
        try database.execute(sql: "PRAGMA max_page_count = \(pages)")
        try database.execute(sql: "PRAGMA wal_autocheckpoint = \(max(reserve / 4 / size, 16))")
        return pages * size
    }

    /// The bytes in use in the file, without free pages.
    static func used(in database: Database) throws -> Int64 {
        let pages = try database.query("PRAGMA page_count").integer() ?? 0
        let free = try database.query("PRAGMA freelist_count").integer() ?? 0
        let size = try database.query("PRAGMA page_size").integer() ?? 0
        return (pages - free) * size
    }

    /// The size of a file, and how many bytes of the disk are allocated to it.
    static func extent(of path: String) -> (bytes: Int64, allocated: Int64) {
        var status = stat()
        // A call with the `String` itself would make an array of it.
        let isFound = path.withCString { stat($0, &status) } == 0
        return isFound ? (Int64(status.st_size), 512 * Int64(status.st_blocks)) : (0, 0)
    }
}

/// Disk blocks that a store preallocates, so that it still works on a full disk.
///
/// They are located after the ends of the two files, where only `du` shows them. Those of the WAL make small commits and cleans
/// possible. Those of the database make a checkpoint possible, after which the WAL restarts. SQLite frees both at checkpoints;
/// they are allocated again at once. On a file system without preallocation, there is no reserve.
struct DiskReserve: Sendable {
    let budget: FileBudget
    let file: Int32

    /// Allocates the missing part of the reserve; returns the error number if the disk has no room.
    ///
    /// - Parameter bytes: how much is about to be written at once, if that is more than usual.
    func replenish(for bytes: Int64 = 0) -> Int32? {
        let (end, allocated) = FileBudget.extent(of: budget.path)
        let length = max(budget.reserve, bytes)
        let lead = min(length, budget.database - end)
        if lead > 0, allocated < end + lead, let code = allocate(file, from: end, lead) { return code }
        let walPath = budget.path + "-wal"
        // Every commit looks, and nearly always all of it is there.
        guard FileBudget.extent(of: walPath).allocated < length else { return nil }
        let wal = open(walPath, O_WRONLY | O_CLOEXEC)
        guard wal >= 0 else { return nil }
        // Closing it releases no locks, because SQLite holds none on this file.
        defer { close(wal) }
        return allocate(wal, from: 0, length)
    }

    /// Runs a step of the start; if the disk has no room for it, gives up the blocks after the database and tries again.
    func withRoom<Value>(_ work: () throws -> Value) throws -> Value {
        do {
            return try work()
        } catch {
            guard StoreError(error).isOfDisk else { throw error }
            _ = ftruncate(file, off_t(budget.fileBytes))
            return try work()
        }
    }

    /// Whether the disk has enough free space not to be full again in a moment, once this many bytes are written.
    func hasMargin(for bytes: Int64 = 0) -> Bool {
        var status = statvfs()
        guard fstatvfs(file, &status) == 0 else { return true }
        return Int64(status.f_bavail) * Int64(status.f_frsize) >= budget.reserve + 2 * bytes
    }

    private func allocate(_ descriptor: Int32, from start: Int64, _ count: Int64) -> Int32? {
        guard let allocate = Self.fallocate else { return nil }
        while allocate(descriptor, Self.keepSize, off_t(start), off_t(count)) != 0 {
            switch errno {
            case EINTR: continue
            case ENOSPC, EDQUOT, EROFS, EIO, EFBIG: return errno
            // The file system does not support preallocation, or not of this size.
            default: return nil
            }
        }
        return nil
    }

    /// `FALLOC_FL_KEEP_SIZE` of Linux.
    private static let keepSize: Int32 = 1

    private typealias Allocate = @convention(c) (Int32, Int32, off_t, off_t) -> Int32
    /// Linux's own call, which Swift's Glibc module hides; the POSIX one would change the size of the file.
    private static let fallocate = dlsym(nil, "fallocate").map { unsafeBitCast($0, to: Allocate.self) }
}
