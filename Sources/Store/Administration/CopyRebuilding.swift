import GRDB
import GRDBSQLite
import Mapping

/// Writes the rows of a copy, as data, into a new file that our own code makes.
///
/// Each value is checked: its type, and its range. What the loading store does not take over (the journal, the numbers sent to
/// streams, the views) is not read at all. Documents get consecutive ids.
struct CopyRebuilding {
    private let copy: Database
    private let new: Database
    /// No time may be later, in microseconds.
    private let latest: Int64

    /// Makes a file with the tables of a store after a migration, and fills it with the rows of a copy.
    static func write(_ copy: Database, to path: String, upTo migration: String, latest: Int64, budget: FileBudget)
        throws
    {
        try StoreCopy.create(path)
        var settings = Configuration()
        settings.prepareDatabase { database in
            try budget.configure(database)
            PageChecksums.setComparing(false, in: database)
            // The file does not count until it is complete.
            try database.execute(sql: "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        }
        let queue = try DatabaseQueue(path: path, configuration: settings)
        defer { try? queue.close() }
        try queue.writeWithoutTransaction { database in
            try database.execute(sql: "PRAGMA user_version = \(Schema.checksummed)")
            try budget.limit(database)
        }
        try Schema.migrator.migrate(queue, upTo: migration)
        do {
            try queue.write { try CopyRebuilding(copy: copy, new: $0, latest: latest).run() }
        } catch {
            throw try queue.read { try refusal(StoreError(error), of: $0, budget) }
        }
        if migration != Schema.migrator.migrations.last { try Schema.migrator.migrate(queue) }
    }

    /// The error, if it is about the bound on the file or about rows that exclude each other.
    private static func refusal(_ error: StoreError, of new: Database, _ budget: FileBudget) throws -> StoreError {
        let isAtBound = try FileBudget.used(in: new) > budget.database / 100 * 99
        return switch error {
        case .full where isAtBound:
            .refused(
                "the copy does not fit into the store, which may have \(budget.database) bytes; raise store.maximum_size"
            )
        case .sqlite(let code, _) where code & 0xff == SQLITE_CONSTRAINT: .corrupt("two rows have the same key")
        default: error
        }
    }

    private func run() throws {
        try copyMeta()
        try new.query("DELETE FROM _principals").run()
        for table in Self.tables { try copy(table) }
        try copyDocuments()
        try recountOwners()
        try checkRelations()
    }

    // MARK: Values

    private enum Rule: Sendable {
        case number(ClosedRange<Int64>)
        case time
        case text
        /// A text without control characters.
        case line
        case blob
        /// The identity of an object, in its canonical form.
        case identity
        indirect case orNull(Rule)

        static let id = number(RowBounds.copiedIDs)
        static let count = number(RowBounds.copiedNumbers)
        static let digest = number(RowBounds.any)
    }

    private struct Table: Sendable {
        var name: String
        var columns: [(name: String, rule: Rule)]
        var condition = ""

        init(_ name: String, _ columns: KeyValuePairs<String, Rule>, _ condition: String = "") {
            (self.name, self.condition, self.columns) = (name, condition, columns.map { ($0, $1) })
        }
    }

    /// All tables but `_meta` and those of documents.
    private static let tables = rules.map { Table($0, $1) }

    private static let rules: KeyValuePairs<String, KeyValuePairs<String, Rule>> = [
        "_names": ["id": .id, "text": .text],
        "_principals": ["id": .id, "digest": .blob, "label": .line],
        "_scopes": ["id": .id, "upstream": .id, "principal": .id, "context": .id],
        "_collections": ["id": .id, "scope": .id, "model": .id],
        "_observations": [
            "id": .id, "start": .time, "finish": .time, "kind": .number(0...4), "uses": .count,
            "source": .orNull(.line), "document": .orNull(.digest), "divided": .orNull(.digest),
        ],
        "_objects": [
            "id": .id, "collection": .id, "identity": .identity, "changed": .count, "version": .orNull(.id),
            "state": .blob, "merged": .orNull(.text), "known": .orNull(.blob), "accumulated": .orNull(.text),
            "deleted": .orNull(.time), "unobserved": .orNull(.time), "wrote": .orNull(.time),
            "reused": .orNull(.number(0...1)),
        ],
        "_marks": ["object": .id, "source": .line],
        "_versions": ["id": .id, "payload": .text, "declared": .orNull(.number(0...Int64(Int32.max)))],
        "_spilled": ["version": .id, "uses": .count],
        "_shared_versions": ["version": .id, "owners": .count],
        "_shared_bodies": [
            "id": .id, "documents": .count, "skeleton": .orNull(.blob), "body": .orNull(.blob),
            "keyed": .orNull(.blob), "compressed": .orNull(.blob),
        ],
        "_keys": ["object": .id, "value": .digest, "bound": .orNull(.number(0...1))],
        "_models": ["upstream": .line, "model": .line, "version": .number(0...Int64(Int32.max))],
        "_orphans": ["object": .id, "since": .time],
        "_suspects": ["suspect": .id, "upstream": .line, "url": .line],
        "_suspect_objects": [
            "suspect": .id, "upstream": .line, "model": .line, "identity": .orNull(.text), "key": .orNull(.text),
        ],
        "_suspect_patterns": ["suspect": .id, "upstream": .line, "base": .line, "pattern": .line],
        "_warnings": [
            "kind": .line, "subject": .text, "message": .text, "url": .text, "pointer": .text, "count": .count,
            "first": .time, "last": .time,
        ],
    ]

    private static let document = Table(
        "_documents",
        [
            "id": .id, "low": .digest, "place": .digest, "scope": .id, "url": .line, "variant": .blob,
            "status": .number(RowBounds.statuses), "observation": .id, "verified": .count, "length": .count,
            "head": .blob, "policy": .blob, "covered": .orNull(.number(RowBounds.coverages)),
        ]
    )
    private static let body = Table(
        "_bodies",
        [
            "pins": .blob, "skeleton": .orNull(.blob), "body": .orNull(.blob), "keyed": .orNull(.blob),
            "shared": .orNull(.id), "compressed": .orNull(.blob),
        ],
        "WHERE document = ?"
    )
    private static let use = Table("_used", ["at": .time], "WHERE document = ?")

    static var columns: [String: [String]] {
        let all = tables + [document, body, use]
        return Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0.columns.map(\.name)) })
    }

    private func select(_ table: Table) throws -> Query {
        let names = table.columns.map(\.name).joined(separator: ", ")
        return try copy.query("SELECT \(names) FROM \(table.name) \(table.condition)")
    }

    private func insert(into table: String, columns: [String]) throws -> Query {
        let places = Array(repeating: "?", count: columns.count).joined(separator: ", ")
        return try new.query("INSERT INTO \(table) (\(columns.joined(separator: ", "))) VALUES (\(places))")
    }

    /// The values of a row, each as its column's rule allows.
    private func values(_ row: QueryRow, of table: Table) throws -> [any SQLBindable] {
        try table.columns.indices.map { index in
            let column = table.columns[index]
            guard let value = value(row, Int32(index), column.rule) else {
                throw StoreError.corrupt("\(table.name).\(column.name) has a value that no store can have")
            }
            return value
        }
    }

    private func value(_ row: QueryRow, _ column: Int32, _ rule: Rule) -> SQLValue? {
        switch rule {
        case .orNull(let rule): row.isNull(column) ? .null : value(row, column, rule)
        case .number(let range):
            row.isInteger(column) && range ~= row.integer(column) ? .integer(row.integer(column)) : nil
        case .time:
            row.isInteger(column) && RowBounds.times ~= row.integer(column) && row.integer(column) <= latest
                ? .integer(row.integer(column)) : nil
        case .blob: row.isBlob(column) ? .blob(row.bytes(column)) : nil
        case .text: text(row, column, isLine: false)
        case .line: text(row, column, isLine: true)
        case .identity: identity(row, column)
        }
    }

    private func text(_ row: QueryRow, _ column: Int32, isLine: Bool) -> SQLValue? {
        guard row.isText(column) else { return nil }
        let bytes = row.bytes(column)
        guard String(validating: bytes, as: UTF8.self) != nil else { return nil }
        return isLine && !bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7f } ? nil : .text(bytes)
    }

    private func identity(_ row: QueryRow, _ column: Int32) -> SQLValue? {
        guard row.isInteger(column) || row.isText(column) else { return nil }
        let identity = StoredIdentity(row, column: column)
        return StoredIdentity(identity.text) == identity ? identity.sql : nil
    }

    // MARK: Tables

    /// The table without the columns that a copy from before a migration does not have.
    private func existing(_ table: Table) throws -> Table {
        var table = table
        let existing = Set(try new.columns(in: table.name).map(\.name))
        table.columns.removeAll { !existing.contains($0.name) }
        return table
    }

    private func copy(_ table: Table) throws {
        guard try new.tableExists(table.name) else { return }
        let table = try existing(table)
        let insert = try insert(into: table.name, columns: table.columns.map(\.name))
        try select(table).each { row in try insert.run(values: values(row, of: table)) }
    }

    /// The single values that are taken over, all numbers; the others are those of the opening that made the copy.
    private static let metas: [(meta: Meta, range: ClosedRange<Int64>)] = [
        (.secretLow, RowBounds.any), (.secretHigh, RowBounds.any), (.keyLow, RowBounds.any), (.keyHigh, RowBounds.any),
        (.sequence, RowBounds.copiedNumbers), (.changed, RowBounds.copiedNumbers), (.object, RowBounds.copiedNumbers),
        (.clock, 0...RowBounds.times.upperBound), (.modernised, 0...1),
    ]

    private func copyMeta() throws {
        for (meta, range) in Self.metas {
            let value = try copy.query("SELECT value FROM _meta WHERE key = ?").first(meta.rawValue) { row in
                guard row.isInteger(0), range ~= row.integer(0) else {
                    throw StoreError.corrupt("its \(meta.rawValue) is none that a store can have")
                }
                return row.integer(0)
            }
            if let value { try meta.set(value, in: new) }
        }
        guard try Meta.secret(in: new) != nil else { throw StoreError.corrupt("its secret is missing") }
        try Meta.closed.set(1, in: new)
        let secrets = try copy.query("SELECT key, value FROM _meta WHERE key GLOB ?")
            .all("\(SecretErasure.keyPrefix)*") { row in
                (isText: row.isText(0) && row.isText(1), key: row.string(0), value: row.string(1))
            }
        for secret in secrets {
            guard secret.isText else { throw StoreError.corrupt("its list of secret members is unreadable") }
            try new.query("INSERT INTO _meta VALUES (?, ?)").run(secret.key, secret.value)
        }
    }

    private func copyDocuments() throws {
        let bodies = try existing(Self.body)
        let (body, use) = (try select(bodies), try select(Self.use))
        let undivided = try copy.query("SELECT 1 FROM _undivided WHERE document = ?")
        var documents = try existing(Self.document)
        let insertDocument = try insert(into: "_documents", columns: documents.columns.map(\.name))
        let insertBody = try insert(into: "_bodies", columns: ["document"] + bodies.columns.map(\.name))
        // Documents are in the order of their observations.
        documents.condition = "ORDER BY id"
        var id = DocumentID.zero
        try select(documents).each { row in
            let number = row.integer(0)
            let new = id.increment()
            var values = try values(row, of: documents)
            values[0] = new
            try insertDocument.run(values: values)
            guard let body = try body.first(number, read: { try self.values($0, of: bodies) }) else {
                throw StoreError.corrupt("the body of a document is missing")
            }
            try insertBody.run(values: [new] + body)
            // Without a time of use it would never be evicted.
            let used = try use.first(number) { try self.values($0, of: Self.use) }
            try self.new.query("INSERT INTO _used VALUES (?, ?)").run(values: [new] + (used ?? [SQLValue.integer(0)]))
            guard try undivided.integer(number) != nil else { return }
            let upstream = "SELECT ?, u.text FROM _scopes s JOIN _names u ON u.id = s.upstream WHERE s.id = ?"
            try self.new.query("INSERT INTO _undivided \(upstream)").run(new, row.id(3, as: ScopeID.self))
        }
    }

    // MARK: Relations

    /// Counts who shares versions and bodies, whatever the copy says: too low a number would delete what is still needed.
    private func recountOwners() throws {
        guard try new.tableExists("_shared_versions") else { return }
        var owners: [VersionID: Int64] = [:]
        try new.query("SELECT version FROM _shared_versions").each { owners[$0.id(0)] = 0 }
        try new.query("SELECT state FROM _objects").each { row in
            for entry in try ObjectRecord.decode(row.bytes(0)) { owners[entry.version]? += 1 }
        }
        try new.query("SELECT version FROM _spilled").each { owners[$0.id(0)]? += 1 }
        for (version, count) in owners {
            try new.query("UPDATE _shared_versions SET owners = ? WHERE version = ?").run(count, version)
        }
        try new.query("DELETE FROM _shared_versions WHERE owners < 2").run()
        var documents: [SharedBodyID: Int64] = [:]
        try new.query("SELECT id FROM _shared_bodies").each { documents[$0.id(0)] = 0 }
        try new.query("SELECT shared FROM _bodies WHERE shared IS NOT NULL").each { row in
            guard documents[row.id(0)] != nil else { throw StoreError.corrupt("the body of a document is missing") }
            documents[row.id(0), default: 0] += 1
        }
        for (id, count) in documents {
            try new.query("UPDATE _shared_bodies SET documents = ? WHERE id = ?").run(count, id)
        }
        try new.query("DELETE FROM _shared_bodies WHERE documents < 1").run()
    }

    /// The rows that other rows must name: a missing one counts as damage of the store.
    private static let relations: [(table: String, column: String, target: String)] = [
        ("_scopes", "upstream", "_names"), ("_scopes", "context", "_names"), ("_collections", "scope", "_scopes"),
        ("_collections", "model", "_names"), ("_objects", "collection", "_collections"),
        ("_documents", "scope", "_scopes"), ("_documents", "observation", "_observations"),
        ("_spilled", "version", "_versions"),
    ]

    private func checkRelations() throws {
        for (table, column, target) in Self.relations {
            let missing = "SELECT 1 FROM \(table) WHERE \(column) NOT IN (SELECT id FROM \(target)) LIMIT 1"
            guard try new.query(missing).integer() == nil else {
                throw StoreError.corrupt("\(table).\(column) names rows that are missing")
            }
        }
        let (sequence, changed) = (try Meta.commitNumber(in: new), try Meta.changed.integer(in: new) ?? 0)
        let changedLast = try new.query("SELECT max(changed) FROM _objects").integer() ?? 0
        let verifiedLast = try new.query("SELECT max(verified) FROM _documents").integer() ?? 0
        guard max(changed, changedLast, verifiedLast) <= sequence.rawValue else {
            throw StoreError.corrupt("it has changes that were never made")
        }
        let anonymous = try new.query("SELECT digest, label FROM _principals WHERE id = ?")
            .first(PrincipalID.anonymous) { $0.bytes(0).isEmpty && $0.string(1) == ObjectStore.label(ofPrincipal: []) }
        let others = try new.query("SELECT 1 FROM _principals WHERE id > ? AND length(digest) <> 32 LIMIT 1")
            .integer(PrincipalID.anonymous)
        guard anonymous == true, others == nil else { throw StoreError.corrupt("its users are not those of a store") }
    }
}
