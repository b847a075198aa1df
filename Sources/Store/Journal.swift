import GRDB
import Mapping

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
        var sequence: CommitNumber
        var object: ObjectID
        var kind: ObjectChange.Kind
    }

    /// How many changes are kept; 0 for no journal.
    let limit: Int64
    /// Changes up to this sequence are no longer in the journal.
    var floor = CommitNumber.zero
    /// How many changes were ever written.
    var total: Int64 = 0
    /// How many of them are no longer in the journal.
    var dropped: Int64 = 0
    /// The new `floor` and `dropped`, to be set if the current transaction is committed.
    var newStart: (floor: CommitNumber, dropped: Int64)?
    var pending: [Entry] = []
    /// Whether the names of objects removed now are forgotten too.
    var isErasing = false

    var isOn: Bool { limit > 0 }
    var count: Int64 { total - dropped }
    /// Whether to drop the oldest changes: an eighth above the limit, so that they are dropped in larger portions.
    var isOverfull: Bool { count > limit + limit / 8 }

    // MARK: Stored form

    /// Encodes entries; the sequence is that of the last one.
    static func encode(_ entries: [Entry], at sequence: CommitNumber) -> [UInt8] {
        var writer = VariableWriter()
        var last: Int64 = 0
        var start = 0
        while start < entries.count {
            var end = start + 1
            while end < entries.count, entries[end].sequence.rawValue == entries[end - 1].sequence.rawValue + 1 {
                end += 1
            }
            writer.append(UInt64(sequence.rawValue - entries[start].sequence.rawValue))
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

    static func decode(_ bytes: [UInt8], at sequence: CommitNumber) throws(StoreError) -> [Entry] {
        var reader = VariableReader(bytes, of: "a row of the journal is")
        var entries: [Entry] = []
        var last: Int64 = 0
        while !reader.isAtEnd {
            var number = sequence.rawValue &- (try reader.nextInteger())
            for _ in 0..<(try reader.next()) {
                let coded = try reader.next()
                guard let kind = ObjectChange.Kind(rawValue: UInt8(coded & 3)) else { continue }
                let zigzag = coded >> 2
                last &+= Int64(bitPattern: zigzag >> 1) ^ -Int64(bitPattern: zigzag & 1)
                let sequence = CommitNumber(rawValue: number)
                entries.append(Entry(sequence: sequence, object: ObjectID(rawValue: last), kind: kind))
                number &+= 1
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
            journal.floor = CommitNumber(rawValue: floor)
        } else {
            // The journal is complete from here on.
            journal.floor = numbers.sequence
            try Meta.journal.set(journal.floor.rawValue, in: database)
        }
        let newest = try query("SELECT total FROM _changes ORDER BY sequence DESC LIMIT 1").first { $0.count(0) }
        let oldest = try query("SELECT sequence, total, entries FROM _changes ORDER BY sequence LIMIT 1").first { row in
            row.count(1) - Int64(try Journal.decode(row.bytes(2), at: row.id(0)).count)
        }
        journal.total = newest ?? 0
        journal.dropped = oldest ?? journal.total
        if journal.isOverfull { try dropChanges(downTo: journal.limit) }
    }

    func journal(_ kind: ObjectChange.Kind, _ object: ObjectID, at sequence: CommitNumber) {
        guard journal.isOn else { return }
        journal.pending.append(Journal.Entry(sequence: sequence, object: object, kind: kind))
    }

    /// Writes the new entries; this is the last step before the commit.
    func flushJournal() throws {
        guard let last = journal.pending.last else { return }
        try query("INSERT INTO _changes VALUES (?, ?, ?, ?)").run(values: [
            last.sequence, clock.now(), journal.total + Int64(journal.pending.count),
            Journal.encode(journal.pending, at: last.sequence),
        ])
        effects.isJournaled = true
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

    /// Drops the oldest commits until at most `count` changes are left, in a transaction; false if none could be
    /// dropped.
    @discardableResult
    func dropChanges(downTo count: Int64) throws -> Bool {
        var start: (floor: CommitNumber, dropped: Int64)?
        try query("SELECT sequence, total FROM _changes ORDER BY sequence").eachWhile { row in
            guard row.integer(1) <= journal.total - count else { return false }
            start = (row.id(0), row.integer(1))
            return true
        }
        guard let start else { return false }
        try query("DELETE FROM _changes WHERE sequence <= ?").run(start.floor)
        try query("DELETE FROM _gone WHERE changed <= ?").run(start.floor)
        try Meta.journal.set(start.floor.rawValue, in: database)
        journal.newStart = start
        return true
    }

    // MARK: Names of removed objects

    /// Writes the name of an object that leaves the store, as long as the journal contains changes of it.
    func writeName(of record: ObjectRecord) throws {
        guard journal.isOn, !journal.isErasing, record.changed > journal.floor else { return }
        // Longer names are forgotten with their objects, as after a clean.
        if case .text(let text) = record.identity, text.utf8.count > 512 { return }
        try query("INSERT OR REPLACE INTO _gone VALUES (?, ?, ?, ?)").run(values: [
            record.id, record.collection, record.identity, record.changed,
        ])
    }

    /// Erases the names of objects that have left the store, as a clean must.
    func eraseJournaledNames(of collections: [CollectionID], identity: StoredIdentity?) throws {
        for collection in collections {
            if let identity {
                try query("DELETE FROM _gone WHERE collection = ? AND identity = ?").run(collection, identity)
            } else {
                try query("DELETE FROM _gone WHERE collection = ?").run(collection)
            }
        }
    }
}

/// A change of one object, of an upstream by name and a principal by label; each has its own commit sequence.
public struct ObjectChange: Sendable, Equatable {
    /// The kind of change.
    public enum Kind: UInt8, Sendable, CaseIterable {
        /// A response showed the object for the first time, or for the first time since it was forgotten or deleted.
        case created = 0
        case changed = 1
        case deleted = 2
        /// A write may have changed the object, and its response did not show it.
        case unknown = 3

        public var name: String { String(describing: self) }
    }

    /// The commit sequence, unique among all changes.
    public var sequence: CommitNumber
    public var kind: Kind
    /// When it was committed, in microseconds of the store's clock.
    public var time: Int64
    public var upstream: String
    public var principal: String
    public var context: String
    /// The model's name; for a cluster, that of its base.
    public var model: String
    /// The models of the object: of a cluster, its base and the concrete model selected by its members, or all if these
    /// are not known.
    public var models: [String]
    public var identity: String
    /// Its identity as JSON, spelled as by the upstream if a response that shows it is still stored.
    var id: [UInt8]
    /// Its newest known members as JSON at the time of reading; nil if not requested or not known.
    public var json: [UInt8]?
}

/// A page of the journal.
public struct ChangePage: Sendable {
    public var changes: [ObjectChange]
    /// The commit sequence up to which this page is complete: the start of the next page.
    public var end: CommitNumber
    public var isLast: Bool
    /// The commit sequence up to which changes are no longer in the journal.
    public var floor: CommitNumber
    /// How many changes in this page's range concern objects erased by a clean.
    public var erased: Int
}

extension ObjectStore {
    /// Sets the function that is called on the writer's thread after each commit that added to the journal; it must be
    /// quick, and must not wait for the store.
    public func onChanges(_ handler: @escaping @Sendable () -> Void) { core.onChanges = handler }

    /// The changes after a commit sequence, at most `limit`; nil if the configuration has no journal.
    ///
    /// Successive pages contain every change after `start` exactly once, as long as `start` is not below the page's
    /// floor. Names are the current ones. A change of an object removed by a clean is only counted.
    ///
    /// - Parameter values: whether to include each object's newest known members.
    public func changes(after start: CommitNumber, limit: Int, values: Bool = false) async throws(StoreError)
        -> ChangePage?
    {
        let models = core.models
        let found = try await core.read { database in
            try ChangeReader(database: database, models: models).page(after: start, max(limit, 1), values: values)
        }
        guard let page = found else { return nil }
        // The writer may not have published its last commit yet, but an issued number must be recognised.
        core.publicNumbers.advance(to: page.end)
        return page
    }
}

/// Reads the journal of changes, in one read snapshot.
struct ChangeReader {
    /// The number of bytes of members after which a page ends.
    private static let byteLimit = 1 << 20

    let database: Database
    let models: [UpstreamKey: UpstreamModels]

    /// The changes after a sequence, at most `limit`; nil if there is no journal.
    func page(after start: CommitNumber, _ limit: Int, values: Bool) throws -> ChangePage? {
        guard let floor = try Meta.journal.integer(in: database).map(CommitNumber.init) else { return nil }
        let end = try max(start, Meta.commitNumber(in: database))
        var page = ChangePage(changes: [], end: end, isLast: true, floor: floor, erased: 0)
        var entries: [(entry: Journal.Entry, time: Int64)] = []
        try database.query("SELECT sequence, at, entries FROM _changes WHERE sequence > ? ORDER BY sequence")
            .eachWhile(start) { row in
                let time = row.integer(1)
                for entry in try Journal.decode(row.bytes(2), at: row.id(0)) where entry.sequence > start {
                    guard entries.count < limit else {
                        page.isLast = false
                        return false
                    }
                    entries.append((entry, time))
                }
                return true
            }
        if !page.isLast, let last = entries.last { page.end = last.entry.sequence }
        var bytes = 0
        for (index, (entry, time)) in entries.enumerated() {
            if let change = try change(entry, at: time, values: values) {
                page.changes.append(change)
                bytes += change.json?.count ?? 0
            } else {
                page.erased += 1
            }
            if bytes > Self.byteLimit, index < entries.count - 1 {
                (page.end, page.isLast) = (entry.sequence, false)
                break
            }
        }
        return page
    }

    private struct Row {
        var upstream: UpstreamKey
        var principal: String
        var context: String
        var model: String
        var identity: StoredIdentity
        /// Nil if the object has left the store.
        var state: StoredState?
        var isDeleted = false
        var payload: [UInt8] = []
        var declared = 0

        static let columns = "u.text, p.label, x.text, m.text, o.identity"

        init(_ row: QueryRow) {
            (upstream, principal, context) = (row.upstream(0), row.string(1), row.string(2))
            (model, identity) = (row.string(3), StoredIdentity(row, column: 4))
        }
    }

    /// An entry with the names of its object; nil if they are no longer known.
    private func change(_ entry: Journal.Entry, at time: Int64, values: Bool) throws -> ObjectChange? {
        guard let row = try row(of: entry.object) else { return nil }
        let known = models[row.upstream]
        var change = ObjectChange(
            sequence: entry.sequence,
            kind: entry.kind,
            time: time,
            upstream: models.label(of: row.upstream),
            principal: row.principal,
            context: row.context,
            model: row.model,
            models: try models(of: row),
            identity: row.identity.text,
            id: Self.spelling(of: row, known?.models)
        )
        if values, !row.isDeleted, let known { change.json = try json(of: row, known.models) }
        return change
    }

    private func json(of row: Row, _ models: Models) throws -> [UInt8]? {
        try row.state?.state(of: row.model, models, in: database).plainJSON(model: row.model, models: models)
    }

    /// An object's models; its members are read only for a cluster, to find the concrete ones.
    private func models(of row: Row) throws -> [String] {
        guard let known = models[row.upstream]?.models else { return [row.model] }
        let all = known.names(ofObjectsNamed: row.model)
        guard all.count > 1, let json = try json(of: row, known) else { return all.isEmpty ? [row.model] : all }
        return all.filter { known.isObject(json, of: $0) }
    }

    private func row(of object: ObjectID) throws -> Row? {
        let known = try database.query(
            """
            SELECT \(Row.columns), o.deleted, v.payload, v.declared, \(StoredState.columns)
            FROM _objects o \(FoundObject.joins) LEFT JOIN _versions v ON v.id = o.version WHERE o.id = ?
            """
        ).first(object) { row in
            var known = Row(row)
            known.isDeleted = !row.isNull(5)
            (known.payload, known.declared) = (row.bytes(6), Int(row.integer(7)))
            known.state = try StoredState(row, from: 8)
            return known
        }
        return try known
            ?? database.query("SELECT \(Row.columns) FROM _gone o \(FoundObject.joins) WHERE o.object = ?")
            .first(object, read: Row.init)
    }

    /// An identity as the newest response spells it, or else as references to the object are shown.
    private static func spelling(of row: Row, _ models: Models?) -> [UInt8] {
        if let models, !row.payload.isEmpty {
            let newest = Contribution(
                observation: Observation(sequence: 0, start: 0, end: 0, kind: .detail),
                version: 0,
                payload: models.migrate(row.payload, of: row.model, from: row.declared)
            )
            let state = ObjectState(base: newest)
            if let known = state.identityJSON(model: row.model, models: models) { return known }
        }
        return Reference.plain(Reference.literal(ObjectName(model: row.model, identity: row.identity.text)))
    }
}
