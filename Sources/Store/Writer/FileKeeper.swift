import GRDB
import GRDBSQLite
import Glibc

/// Keeps the file and the WAL within their bound: evicts, checkpoints, returns free pages.
struct FileKeeper {
    let core: StoreCore
    // Whether anything was written to the WAL since it was last emptied.
    var isWALUsed = true
    // The newest principal when principals without data were last removed.
    private var sweptPrincipal = PrincipalID.nobody

    init(core: StoreCore) {
        self.core = core
    }

    /// How long the writer may sleep before the next check, in microseconds.
    var patience: Int64 { isWALUsed ? 1_000_000 : 3_600_000_000 }

    /// Runs after a batch: evicts if the file is too large, and keeps the WAL short.
    mutating func committed(_ session: WriterSession) {
        isWALUsed = true
        sweep(session)
        if session.journal.isOverfull {
            // If there is no room for it, the next batch tries again.
            _ = try? session.transaction { try session.dropChanges(downTo: session.journal.limit) }
        }
        if let used = try? FileBudget.used(in: session.database), used > high(session) {
            evict(session, down: low(session))
        }
        shortenWAL(session)
        look(session)
    }

    /// Removes principals without data after every `unusedPrincipals` new ones.
    private mutating func sweep(_ session: WriterSession) {
        let newest = session.numbers.principal
        guard newest.rawValue - sweptPrincipal.rawValue >= core.unusedPrincipals else { return }
        // The latest may have requests under way.
        let last = PrincipalID(rawValue: newest.rawValue - core.unusedPrincipals / 4)
        // If there is no room for it, the next batch tries again.
        guard (try? session.transaction { try session.forgetUnused(keepingPrincipalsAfter: last) }) != nil else {
            return
        }
        sweptPrincipal = newest
        core.principals.forgetAll()
        core.listener?.principalsForgotten()
    }

    /// Runs before a batch that adds data.
    ///
    /// Returns nil if there is room for it, otherwise the reason.
    ///
    /// - Parameter bytes: about how much it adds.
    mutating func makeRoom(_ session: WriterSession, for bytes: Int) -> String? {
        // The batch must be small enough to be checkpointed.
        if Int64(bytes) > core.budget.reserve / 4, session.disk.trouble == nil {
            if core.reserve.keep(for: Int64(bytes) * 2) != nil { look(session) }
        }
        guard !core.budget.isKept else { return nil }
        evict(session, down: low(session))
        returnPages(session)
        _ = emptyWAL(session, patience: 250)
        guard !core.budget.isKept else { return nil }
        return "the file and its WAL are past their bound, and another process reads an old state of it"
    }

    /// Runs when there is nothing to do: empties the WAL.
    mutating func idle(_ session: WriterSession) {
        if emptyWAL(session, patience: 0) { isWALUsed = session.disk.trouble != nil }
        look(session)
    }

    mutating func close(_ session: WriterSession) {
        // If this fails, only the mark of an orderly shutdown is missing, and the next opening checks the file.
        _ = try? session.transaction { try Meta.closed.set(1, in: session.database) }
        _ = emptyWAL(session, patience: 100, erasing: true)
    }

    /// Removes the least recently used documents until at most this many bytes are used.
    func evict(_ session: WriterSession, down target: Int64) {
        while let used = try? FileBudget.used(in: session.database), used > target {
            guard (try? evictSome(session)) == true || (try? halveJournal(session)) == true else { return }
            shortenWAL(session)
        }
        if core.budget.fileBytes > core.budget.database { returnPages(session) }
    }

    /// Removes one slice, small enough for the WAL; returns false if there is nothing left to evict.
    private func evictSome(_ session: WriterSession) throws -> Bool {
        var documents: [DocumentID] = []
        var last: Int64 = .max
        var bytes = 0
        try Query(
            session.database,
            "SELECT u.document, u.at, d.length FROM _used u JOIN _documents d ON d.id = u.document ORDER BY u.at LIMIT 64"
        ).eachWhile { row in
            documents.append(row.id(0))
            last = row.integer(1)
            bytes += Int(row.integer(2))
            return bytes < core.budget.batch
        }
        let (orphans, outcome) = try session.transaction {
            for document in documents { try session.remove(document) }
            // Flushing comes first: then objects that only these documents showed are orphans.
            try session.flush()
            return try session.removeOrphans(until: last, limit: 1024)
        }
        core.publish(outcome, of: session)
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
        _ = emptyWAL(session, patience: 100)
    }

    /// Checkpoints the WAL, so that it restarts.
    ///
    /// Returns false if a reader still needs it. It also truncates the WAL, except on a full disk, where the WAL keeps its
    /// blocks unless its bytes must be erased.
    func emptyWAL(_ session: WriterSession, patience milliseconds: Int, erasing: Bool = false) -> Bool {
        let database = session.database
        defer { try? database.execute(sql: "PRAGMA busy_timeout = 2000") }
        do {
            try database.execute(sql: "PRAGMA busy_timeout = \(milliseconds)")
            let isCut = erasing || session.disk.trouble == nil
            defer { if isCut { _ = core.reserve.keep() } }
            let pragma = "PRAGMA wal_checkpoint(\(isCut ? "TRUNCATE" : "RESTART"))"
            return try Query(database, pragma).first { $0.integer(0) == 0 } ?? false
        } catch {
            return false
        }
    }

    /// Returns free pages to the file system.
    func returnPages(_ session: WriterSession) {
        // It works in slices, because each is a transaction that must fit into the WAL.
        while (try? returnSomePages(session)) == true {}
    }

    /// Returns some free pages; the result is true while there are more.
    func returnSomePages(_ session: WriterSession) throws -> Bool {
        func free() throws -> Int64 {
            try Query(session.database, "PRAGMA freelist_count").integer() ?? 0
        }
        let before = try free()
        guard before > 0 else { return false }
        try Query(session.database, "PRAGMA incremental_vacuum(512)").run()
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
    /// Whether the file was moved, which has been reported.
    var isFileMoved = false
    var nextLook = ContinuousClock.now
}

/// Keeps the store at its size while the disk accepts no writes, for whatever reason.
///
/// So a checkpoint is always possible: all pages of the database are allocated. New data replaces the least recently used, and
/// the WAL keeps its blocks. A notice reports when this begins and when it ends.
extension FileKeeper {
    /// Makes room after a batch that did not fit on the disk or within the bound.
    ///
    /// - Parameter bytes: about how much the batch would have added.
    mutating func failed(_ session: WriterSession, _ error: StoreError, adding bytes: Int = 0) {
        switch error {
        case .unwritable(let message):
            // SQLite's message only says that it failed.
            let code = session.database.sqliteConnection.map { sqlite3_system_errno($0) } ?? 0
            begin(code == 0 ? message : Self.message(code), session)
        case .full:
            // This may be the store's own bound, which is normal.
            if !core.reserve.hasMargin(for: Int64(bytes)), !isAtBound(session) { begin(Self.message(ENOSPC), session) }
        default: return
        }
        evict(session, down: low(session))
    }

    /// The error for the callers: `.unwritable` if the keeper has already logged the cause, else the error itself.
    func reported(_ error: StoreError, _ session: WriterSession) -> StoreError {
        guard case .full = error, let trouble = session.disk.trouble else { return error }
        return .unwritable(trouble)
    }

    /// Reallocates the reserve, and checks whether the disk has become full or has room again.
    mutating func look(_ session: WriterSession) {
        guard session.disk.trouble == nil else { return lookForRoom(session) }
        if let code = core.reserve.keep() { begin(Self.message(code), session) }
        guard session.disk.nextLook <= .now else { return }
        session.disk.nextLook = .now + Self.pause
        let isMoved = !core.lock.isInPlace
        if isMoved, !session.disk.isFileMoved { core.notify(.fileMoved(path: core.budget.path)) }
        session.disk.isFileMoved = isMoved
    }

    private static let pause: Duration = .seconds(1)

    private mutating func lookForRoom(_ session: WriterSession) {
        guard session.disk.nextLook <= .now else { return }
        session.disk.nextLook = .now + Self.pause
        guard core.reserve.keep() == nil, core.reserve.hasMargin() else { return }
        // A limit of the process or a failing disk shows only in a write.
        guard (try? session.transaction {}) != nil else { return }
        try? core.budget.configure(session.database)
        try? core.budget.limit(session.database)
        (session.disk.trouble, session.disk.cap) = (nil, nil)
        core.updateStatistics { $0.trouble = nil }
        core.notify(.writesWork)
    }

    private mutating func begin(_ reason: String, _ session: WriterSession) {
        guard session.disk.trouble == nil else { return }
        session.disk.trouble = reason
        session.disk.nextLook = .now + Self.pause
        isWALUsed = true
        core.updateStatistics { $0.trouble = reason }
        core.notify(.writesFail(reason: reason))
        _ = emptyWAL(session, patience: 100)
        guard let size = try? core.budget.freeze(session.database) else { return }
        session.disk.cap = size
    }

    /// Whether the store has reached its own bound.
    private func isAtBound(_ session: WriterSession) -> Bool {
        guard let used = try? FileBudget.used(in: session.database) else { return false }
        // Less is left than a usual batch may take.
        return core.budget.database - used < 8 * Int64(core.budget.batch)
    }

    /// The number of bytes in use above which documents are evicted.
    func high(_ session: WriterSession) -> Int64 { (session.disk.cap ?? core.budget.database) / 100 * 92 }
    /// The number of bytes in use down to which documents are evicted.
    func low(_ session: WriterSession) -> Int64 { (session.disk.cap ?? core.budget.database) / 100 * 85 }

    private static func message(_ code: Int32) -> String { String(cString: strerror(code)) }
}
