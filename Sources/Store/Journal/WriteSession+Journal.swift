import GRDB

/// The journal of changes: noted with each change, written in the same transaction, and kept within its bound.
extension WriteSession {
    /// Reads where the journal stands, or begins one; within a transaction, before anything else is done.
    func beginJournal() throws {
        guard journal.isOn else {
            try query("DELETE FROM _changes").run()
            try query("DELETE FROM _gone").run()
            try Meta.journal.remove(in: database)
            return
        }
        if let floor = try Meta.journal.integer(in: database) {
            journal.floor = floor
        } else {
            // From here on everything is written down.
            journal.floor = numbers.sequence
            try Meta.journal.set(journal.floor, in: database)
        }
        let newest = try query("SELECT total FROM _changes ORDER BY sequence DESC LIMIT 1").first { $0.integer(0) }
        let oldest = try query("SELECT sequence, total, entries FROM _changes ORDER BY sequence LIMIT 1").first { row in
            row.integer(1) - Int64(try Journal.decode(row.bytes(2), at: row.integer(0)).count)
        }
        journal.total = newest ?? 0
        journal.dropped = oldest ?? journal.total
        if journal.isOverfull { try dropChanges(downTo: journal.limit) }
    }

    /// Notes what became of an object.
    func journal(_ kind: ObjectChange.Kind, _ object: ObjectID, at sequence: Int64) {
        guard journal.isOn else { return }
        journal.pending.append(Journal.Entry(sequence: sequence, object: object, kind: kind))
    }

    /// Writes what was noted; the last thing before the commit.
    func flushJournal() throws {
        guard let last = journal.pending.last else { return }
        try query("INSERT INTO _changes VALUES (?, ?, ?, ?)").run(
            .integer(last.sequence),
            .integer(clock.now()),
            .integer(journal.total + Int64(journal.pending.count)),
            .blob(Journal.encode(journal.pending, at: last.sequence))
        )
        outcome.isJournaled = true
    }

    /// What was noted or dropped is committed, or rolled back.
    func endJournal(committed: Bool) {
        if committed {
            journal.total += Int64(journal.pending.count)
            if let start = journal.newStart { (journal.floor, journal.dropped) = start }
        }
        journal.newStart = nil
        journal.pending.removeAll(keepingCapacity: true)
    }

    /// Drops the oldest commits for as long as so many changes are left, within a transaction; false if none could go.
    @discardableResult
    func dropChanges(downTo count: Int64) throws -> Bool {
        var start: (floor: Int64, dropped: Int64)?
        try query("SELECT sequence, total FROM _changes ORDER BY sequence").eachWhile { row in
            guard row.integer(1) <= journal.total - count else { return false }
            start = (row.integer(0), row.integer(1))
            return true
        }
        guard let start else { return false }
        try query("DELETE FROM _changes WHERE sequence <= ?").run(.integer(start.floor))
        try query("DELETE FROM _gone WHERE changed <= ?").run(.integer(start.floor))
        try Meta.journal.set(start.floor, in: database)
        journal.newStart = start
        return true
    }

    // MARK: Who they were

    /// An object leaves the store: notes its name for as long as the journal speaks of it.
    func remember(_ record: ObjectRecord) throws {
        guard journal.isOn, !journal.isErasing, record.changed > journal.floor else { return }
        if case .text(let text) = record.identity, text.utf8.count > Self.longestName { return }
        try query("INSERT OR REPLACE INTO _gone VALUES (?, ?, ?, ?)").run(
            .id(record.id),
            .id(record.collection),
            record.identity.sql,
            .integer(record.changed)
        )
    }

    /// Longer names than this one are forgotten with their objects, as by a clean.
    private static let longestName = 512

    /// Forgets the names of objects that have left the store.
    func eraseNames(of collections: [CollectionID], identity: Identity?) throws {
        for collection in collections {
            if let identity {
                try query("DELETE FROM _gone WHERE collection = ? AND identity = ?")
                    .run(.id(collection), identity.sql)
            } else {
                try query("DELETE FROM _gone WHERE collection = ?").run(.id(collection))
            }
        }
    }
}
