import GRDB
import GRDBSQLite
import Glibc

/// Keeps file and WAL within their bound: evicts, checkpoints, gives free pages back.
struct FileKeeper {
    let core: StoreCore
    // Whether the WAL holds anything since it was last emptied.
    var isWALUsed = true
    // The newest principal when those of whom nothing is kept were last forgotten.
    private var sweptPrincipal = PrincipalID.nobody

    init(core: StoreCore) {
        self.core = core
    }

    /// How long the writer may sleep before the next look, in microseconds.
    var patience: Int64 { isWALUsed ? 1_000_000 : 3_600_000_000 }

    /// After a batch: evicts if the file has grown past its mark, and keeps the WAL short.
    mutating func committed(_ session: WriterSession) {
        isWALUsed = true
        sweep(session)
        if session.journal.isOverfull {
            // Without room for it, the next batch tries again.
            _ = try? session.transaction { try session.dropChanges(downTo: session.journal.limit) }
        }
        if let used = try? FileBudget.used(in: session.database), used > high(session) {
            evict(session, down: low(session))
        }
        shortenWAL(session)
        look(session)
    }

    /// Forgets principals once so many new ones have come that they might matter.
    private mutating func sweep(_ session: WriterSession) {
        let newest = session.numbers.principal
        guard newest.rawValue - sweptPrincipal.rawValue >= core.unusedPrincipals else { return }
        // The latest may be at work: their answers are still to come.
        let last = PrincipalID(rawValue: newest.rawValue - core.unusedPrincipals / 4)
        // Without room for it, the next batch tries again.
        guard (try? session.transaction { try session.forgetUnused(keepingPrincipalsAfter: last) }) != nil else {
            return
        }
        sweptPrincipal = newest
        core.principals.forgetAll()
        core.listener?.principalsForgotten()
    }

    /// Before a batch that adds: nil when there is room for it, else why not.
    ///
    /// - Parameter bytes: about how much it adds.
    mutating func makeRoom(_ session: WriterSession, for bytes: Int) -> String? {
        // Once committed, it must be possible to copy it into the database.
        if Int64(bytes) > core.budget.reserve / 4, session.disk.trouble == nil {
            if core.reserve.keep(for: Int64(bytes) * 2) != nil { look(session) }
        }
        guard !core.budget.isKept else { return nil }
        evict(session, down: low(session))
        giveBack(session)
        _ = emptyWAL(session, patience: 250)
        guard !core.budget.isKept else { return nil }
        return "the file and its WAL are past their bound, and another process reads an old state of it"
    }

    /// Nothing to do: a good time to empty the WAL, which costs the next writer its start.
    mutating func idle(_ session: WriterSession) {
        if emptyWAL(session, patience: 0) { isWALUsed = session.disk.trouble != nil }
        look(session)
    }

    mutating func close(_ session: WriterSession) {
        // What cannot be written now is only the mark of an orderly end: the next opening checks the file.
        _ = try? session.transaction { try Meta.closed.set(1, in: session.database) }
        _ = emptyWAL(session, patience: 100, erasing: true)
    }

    /// Removes the least recently used until no more is used than this.
    func evict(_ session: WriterSession, down target: Int64) {
        while let used = try? FileBudget.used(in: session.database), used > target {
            guard (try? evictSome(session)) == true || (try? halveJournal(session)) == true else { return }
            shortenWAL(session)
        }
        if core.budget.fileBytes > core.budget.database { giveBack(session) }
    }

    /// One slice, small enough for the WAL; false when there is nothing left to evict.
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
            // Written first: what these documents alone showed is among the orphans then.
            try session.flush()
            return try session.removeOrphans(until: last, limit: 1024)
        }
        core.publish(outcome, of: session)
        core.updateStatistics { $0.evicted += Int64(documents.count) }
        return orphans > 0 || !documents.isEmpty
    }

    /// Where nothing else is left to go; false when there is no journal either.
    private func halveJournal(_ session: WriterSession) throws -> Bool {
        let half = session.journal.count / 2
        return try session.transaction {
            // What one commit brought goes as a whole.
            if try session.dropChanges(downTo: half) { return true }
            return try session.dropChanges(downTo: 0)
        }.0
    }

    func shortenWAL(_ session: WriterSession) {
        guard core.budget.walBytes > core.budget.wal else { return }
        _ = emptyWAL(session, patience: 100)
    }

    /// Copies the WAL into the file, from where it begins anew; false if a reader still needs it.
    ///
    /// It is cut to nothing besides, but on a full disk: there it keeps the blocks it has, unless its bytes are to go.
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

    /// Gives free pages back to the file system.
    func giveBack(_ session: WriterSession) {
        // In slices: each is a transaction that the WAL has to hold.
        while (try? giveSomeBack(session)) == true {}
    }

    /// Gives some of them back; true while there are more.
    func giveSomeBack(_ session: WriterSession) throws -> Bool {
        func free() throws -> Int64 {
            try Query(session.database, "PRAGMA freelist_count").first { $0.integer(0) } ?? 0
        }
        let before = try free()
        guard before > 0 else { return false }
        try Query(session.database, "PRAGMA incremental_vacuum(512)").run()
        shortenWAL(session)
        let after = try free()
        return after > 0 && after < before
    }
}

/// What the writer knows of the disk below its files.
struct DiskState {
    /// Why nothing can be written; nil while all is well.
    var trouble: String?
    /// The size that the database keeps to meanwhile.
    var cap: Int64?
    /// Whether the file was found moved, and that has been said.
    var isFileMoved = false
    var nextLook = ContinuousClock.now
}

/// While the disk takes no writes, for whatever reason, the store keeps the size it has.
///
/// Then the WAL can always be copied into the database, whose pages all have their place; what is new takes the place of what
/// was not used for longest; and the WAL keeps the blocks it has. Operators hear of it when it begins and when it ends.
extension FileKeeper {
    /// After a batch that the disk or the bound has had no room for: makes some.
    ///
    /// - Parameter bytes: about how much was to be added.
    mutating func failed(_ session: WriterSession, _ error: StoreError, adding bytes: Int = 0) {
        switch error {
        case .unwritable(let message):
            // SQLite says only that it failed.
            let code = session.database.sqliteConnection.map { sqlite3_system_errno($0) } ?? 0
            begin(code == 0 ? message : Self.message(code), session)
        case .full:
            // It may be the store's own bound, which is nothing out of the ordinary.
            if !core.reserve.hasMargin(for: Int64(bytes)), !isAtBound(session) { begin(Self.message(ENOSPC), session) }
        default: return
        }
        evict(session, down: low(session))
    }

    /// The error for the callers: `.unwritable` where the keeper has logged the cause already, else the error itself.
    func reported(_ error: StoreError, _ session: WriterSession) -> StoreError {
        guard case .full = error, let trouble = session.disk.trouble else { return error }
        return .unwritable(trouble)
    }

    /// Takes the reserve again, and sees whether the disk has become full or has room again.
    mutating func look(_ session: WriterSession) {
        guard session.disk.trouble == nil else { return lookForRoom(session) }
        if let code = core.reserve.keep() { begin(Self.message(code), session) }
        guard session.disk.nextLook <= .now else { return }
        session.disk.nextLook = .now + Self.pause
        let isMoved = !core.isFileInPlace
        if isMoved, !session.disk.isFileMoved { core.notify(.fileMoved(path: core.budget.path)) }
        session.disk.isFileMoved = isMoved
    }

    private static let pause: Duration = .seconds(1)

    private mutating func lookForRoom(_ session: WriterSession) {
        guard session.disk.nextLook <= .now else { return }
        session.disk.nextLook = .now + Self.pause
        guard core.reserve.keep() == nil, core.reserve.hasMargin() else { return }
        // A limit of the process or a failing disk shows in writing only.
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

    /// Whether it was the store's own bound that something did not fit into.
    private func isAtBound(_ session: WriterSession) -> Bool {
        guard let used = try? FileBudget.used(in: session.database) else { return false }
        // Less is left than one of the usual batches takes with all that goes with it.
        return core.budget.database - used < 8 * Int64(core.budget.batch)
    }

    /// Above this many bytes in use, documents are evicted.
    func high(_ session: WriterSession) -> Int64 { (session.disk.cap ?? core.budget.database) / 100 * 92 }
    /// Down to this many they are.
    func low(_ session: WriterSession) -> Int64 { (session.disk.cap ?? core.budget.database) / 100 * 85 }

    private static func message(_ code: Int32) -> String { String(cString: strerror(code)) }
}
