import GRDB

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
    mutating func committed(_ session: WriteSession) {
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
    private mutating func sweep(_ session: WriteSession) {
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
    mutating func makeRoom(_ session: WriteSession, for bytes: Int) -> String? {
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
    mutating func idle(_ session: WriteSession) {
        if emptyWAL(session, patience: 0) { isWALUsed = session.disk.trouble != nil }
        look(session)
    }

    mutating func close(_ session: WriteSession) {
        // What cannot be written now is only the mark of an orderly end: the next opening checks the file.
        _ = try? session.transaction { try Meta.closed.set(1, in: session.database) }
        _ = emptyWAL(session, patience: 100, erasing: true)
    }

    /// Removes the least recently used until no more is used than this.
    func evict(_ session: WriteSession, down target: Int64) {
        while let used = try? FileBudget.used(in: session.database), used > target {
            guard (try? evictSome(session)) == true || (try? halveJournal(session)) == true else { return }
            shortenWAL(session)
        }
        if core.budget.fileBytes > core.budget.database { giveBack(session) }
    }

    /// One slice, small enough for the WAL; false when there is nothing left to evict.
    private func evictSome(_ session: WriteSession) throws -> Bool {
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
    private func halveJournal(_ session: WriteSession) throws -> Bool {
        let half = session.journal.count / 2
        return try session.transaction {
            // What one commit brought goes as a whole.
            if try session.dropChanges(downTo: half) { return true }
            return try session.dropChanges(downTo: 0)
        }.0
    }

    func shortenWAL(_ session: WriteSession) {
        guard core.budget.walBytes > core.budget.wal else { return }
        _ = emptyWAL(session, patience: 100)
    }

    /// Copies the WAL into the file, from where it begins anew; false if a reader still needs it.
    ///
    /// It is cut to nothing besides, but on a full disk: there it keeps the blocks it has, unless its bytes are to go.
    func emptyWAL(_ session: WriteSession, patience milliseconds: Int, erasing: Bool = false) -> Bool {
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
    func giveBack(_ session: WriteSession) {
        // In slices: each is a transaction that the WAL has to hold.
        while (try? giveSomeBack(session)) == true {}
    }

    /// Gives some of them back; true while there are more.
    func giveSomeBack(_ session: WriteSession) throws -> Bool {
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
