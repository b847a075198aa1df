import GRDB
import GRDBSQLite
import Glibc

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
    mutating func failed(_ session: WriteSession, _ error: StoreError, adding bytes: Int = 0) {
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
    func reported(_ error: StoreError, _ session: WriteSession) -> StoreError {
        guard case .full = error, let trouble = session.disk.trouble else { return error }
        return .unwritable(trouble)
    }

    /// Takes the reserve again, and sees whether the disk has become full or has room again.
    mutating func look(_ session: WriteSession) {
        guard session.disk.trouble == nil else { return lookForRoom(session) }
        if let code = core.reserve.keep() { begin(Self.message(code), session) }
        guard session.disk.nextLook <= .now else { return }
        session.disk.nextLook = .now + Self.pause
        let isMoved = !core.isFileInPlace
        if isMoved, !session.disk.isFileMoved { core.notify(.fileMoved(path: core.budget.path)) }
        session.disk.isFileMoved = isMoved
    }

    private static let pause: Duration = .seconds(1)

    private mutating func lookForRoom(_ session: WriteSession) {
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

    private mutating func begin(_ reason: String, _ session: WriteSession) {
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
    private func isAtBound(_ session: WriteSession) -> Bool {
        guard let used = try? FileBudget.used(in: session.database) else { return false }
        // Less is left than one of the usual batches takes with all that goes with it.
        return core.budget.database - used < 8 * Int64(core.budget.batch)
    }

    /// Above this many bytes in use, documents are evicted.
    func high(_ session: WriteSession) -> Int64 { (session.disk.cap ?? core.budget.database) / 100 * 92 }
    /// Down to this many they are.
    func low(_ session: WriteSession) -> Int64 { (session.disk.cap ?? core.budget.database) / 100 * 85 }

    private static func message(_ code: Int32) -> String { String(cString: strerror(code)) }
}
