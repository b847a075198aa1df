import GRDB

/// The writer's state of the journal of changes: its bound, and the entries to write with the next commit.
///
/// A row contains the changes of one commit. Most entries take one byte: the objects of one response mostly have consecutive
/// numbers and sequences.
///
/// ```
/// runs of consecutive sequences, the first run first, each:
///     distance of its first sequence from the row's          varint
///     number of entries                                      varint
///     entries: object's distance from the one before, kind   varint (zigzag · 4 + kind)
/// ```
struct Journal {
    struct Entry: Equatable {
        var sequence: Int64
        var object: ObjectID
        var kind: ObjectChange.Kind
    }

    /// How many changes are kept; 0 for no journal.
    let limit: Int64
    /// Changes up to this sequence are no longer in the journal.
    var floor: Int64 = 0
    /// How many changes were ever written.
    var total: Int64 = 0
    /// How many of them are no longer in the journal.
    var dropped: Int64 = 0
    /// The new `floor` and `dropped`, to be set if the current transaction is committed.
    var newStart: (floor: Int64, dropped: Int64)?
    /// The changes of the current batch.
    var pending: [Entry] = []
    /// Whether the names of objects removed now are forgotten too.
    var isErasing = false

    var isOn: Bool { limit > 0 }

    /// How many changes are in the journal.
    var count: Int64 { total - dropped }

    /// Whether to drop the oldest changes.
    ///
    /// The threshold is an eighth above the limit, so that they are dropped in larger portions.
    var isOverfull: Bool { count > limit + limit / 8 }

    init(limit: Int64) {
        self.limit = limit
    }

    // MARK: Stored form

    /// Encodes entries; the sequence is that of the last one.
    static func encode(_ entries: [Entry], at sequence: Int64) -> [UInt8] {
        var writer = VariableWriter()
        var last: Int64 = 0
        var start = 0
        while start < entries.count {
            var end = start + 1
            while end < entries.count, entries[end].sequence == entries[end - 1].sequence + 1 { end += 1 }
            writer.append(UInt64(sequence - entries[start].sequence))
            writer.append(UInt64(end - start))
            for entry in entries[start..<end] {
                let distance = entry.object.rawValue - last
                writer.append(UInt64(bitPattern: distance << 1 ^ distance >> 63) << 2 | UInt64(entry.kind.rawValue))
                last = entry.object.rawValue
            }
            start = end
        }
        return writer.bytes
    }

    static func decode(_ bytes: [UInt8], at sequence: Int64) throws(StoreError) -> [Entry] {
        var reader = VariableReader(bytes, of: "a row of the journal is")
        var entries: [Entry] = []
        var last: Int64 = 0
        while !reader.isAtEnd {
            var number = sequence &- (try reader.nextInteger())
            for _ in 0..<(try reader.next()) {
                let coded = try reader.next()
                guard let kind = ObjectChange.Kind(rawValue: UInt8(coded & 3)) else { continue }
                let zigzag = coded >> 2
                last &+= Int64(bitPattern: zigzag >> 1) ^ -Int64(bitPattern: zigzag & 1)
                entries.append(Entry(sequence: number, object: ObjectID(rawValue: last), kind: kind))
                number += 1
            }
        }
        return entries
    }
}

/// Writes the journal of changes in the transaction of each change, and keeps it within its bound.
extension WriterSession {
    /// Reads the journal's position, or begins a journal; must come first, in a transaction.
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
            // The journal is complete from here on.
            journal.floor = numbers.sequence
            try Meta.journal.set(journal.floor, in: database)
        }
        let newest = try query("SELECT total FROM _changes ORDER BY sequence DESC LIMIT 1").integer()
        let oldest = try query("SELECT sequence, total, entries FROM _changes ORDER BY sequence LIMIT 1").first { row in
            row.integer(1) - Int64(try Journal.decode(row.bytes(2), at: row.integer(0)).count)
        }
        journal.total = newest ?? 0
        journal.dropped = oldest ?? journal.total
        if journal.isOverfull { try dropChanges(downTo: journal.limit) }
    }

    /// Adds the change of an object.
    func journal(_ kind: ObjectChange.Kind, _ object: ObjectID, at sequence: Int64) {
        guard journal.isOn else { return }
        journal.pending.append(Journal.Entry(sequence: sequence, object: object, kind: kind))
    }

    /// Writes the new entries; this is the last step before the commit.
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

    /// Ends a batch whose new and dropped entries were committed or rolled back.
    func endJournal(committed: Bool) {
        if committed {
            journal.total += Int64(journal.pending.count)
            if let start = journal.newStart { (journal.floor, journal.dropped) = start }
        }
        journal.newStart = nil
        journal.pending.removeAll(keepingCapacity: true)
    }

    /// Drops the oldest commits until at most `count` changes are left, in a transaction.
    ///
    /// Returns false if none could be dropped.
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

    // MARK: Names of removed objects

    /// Keeps the name of an object that leaves the store, as long as the journal contains changes of it.
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

    /// Longer names are forgotten with their objects, as after a clean.
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
