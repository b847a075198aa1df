import Foundation
import Mapping
import TestSupport
import Testing

@testable import Store

/// Copies that somebody has made or changed to do harm.
struct ForeignCopyTests {
    private static let key: [UInt8] = [1, 2, 3]

    private func load(
        _ bench: Bench,
        _ copy: String,
        isServable: @escaping @Sendable (OpaqueResponse) -> Bool = { _ in true }
    )
        async throws -> LoadResult
    {
        let path = bench.store.copyPaths.loading
        try TestProcess.run("cp", [copy, path])
        return try await bench.store.load(
            path,
            principalKey: Self.key,
            replacing: true,
            bodyLimit: 1 << 20,
            isServable: isServable
        )
    }

    /// Why a copy was refused.
    private func refusal(_ bench: Bench, _ copy: String) async -> String {
        do {
            _ = try await load(bench, copy)
            return "it was loaded"
        } catch let error as StoreError {
            guard case .refused(let reason) = error else { return "\(error)" }
            return reason
        } catch {
            return "\(error)"
        }
    }

    /// Makes a copy, has SQL change it, and requires that it is refused for a reason, and that the store stays as it is.
    private func isRefused(_ changes: [(sql: String, reason: String)]) async throws {
        let bench = try await Bench.filled()
        let copy = bench.folder.file("copy")
        try await bench.store.save(to: copy, principalKey: Self.key)
        let (count, body) = (try await bench.store.count(), try await bench.body("/issues"))
        for (sql, reason) in changes {
            let changed = bench.folder.file("changed")
            try? FileManager.default.removeItem(atPath: changed)
            try TestProcess.run("cp", [copy, changed])
            #expect(alter(changed, sql) == "", "\(sql)")
            let refusal = await refusal(bench, changed)
            #expect(refusal.contains(reason), "\(sql): \(refusal)")
            #expect(try await bench.store.count().documents == count.documents, "\(sql)")
        }
        #expect(try await bench.body("/issues") == body)
        #expect(!bench.folder.names.contains { $0.contains("rebuilding") || $0.contains("loading") })
        // None of them stands in the way of the next.
        #expect(try await load(bench, copy).count.documents == count.documents)
        #expect(try await bench.body("/issues") == body)
        await bench.store.close()
    }

    @Test func `a copy with anything in its schema that Larder does not make is refused`() async throws {
        let forms = [
            ("CREATE TRIGGER t AFTER INSERT ON _documents BEGIN UPDATE _documents SET scope = 1; END", "a trigger"),
            ("CREATE TRIGGER t BEFORE DELETE ON _principals BEGIN SELECT raise(IGNORE); END", "a trigger"),
            ("CREATE TRIGGER t INSTEAD OF INSERT ON User BEGIN DELETE FROM _documents; END", "a trigger"),
            (
                "CREATE TRIGGER t AFTER UPDATE ON _scopes BEGIN INSERT INTO _names (text) WITH RECURSIVE n(i) AS "
                    + "(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n; END", "a trigger"
            ),
            ("CREATE TABLE more (x)", "a table"),
            ("CREATE TABLE _more (x INTEGER PRIMARY KEY AUTOINCREMENT)", "a table"),
            ("CREATE VIRTUAL TABLE words USING fts5(text)", "a table"),
            ("ANALYZE", "a table"),
            ("CREATE INDEX more ON _documents (url)", "an index"),
            ("CREATE INDEX more ON _documents (length(url))", "an index"),
            ("CREATE INDEX more ON _documents (url) WHERE status > 1", "an index"),
            ("DROP INDEX _documents_low", "missing"),
            ("DROP TABLE _told", "missing"),
            ("DROP TABLE _told; CREATE VIEW _told AS SELECT 1 AS subject, 2 AS sequence, 3 AS content", "a view"),
            ("DROP TABLE _meta; CREATE VIEW _meta AS SELECT 'principalKey' AS key, x'010203' AS value", "a view"),
            ("ALTER TABLE _documents ADD COLUMN more", "a table"),
            ("ALTER TABLE _documents ADD COLUMN more AS (id + 1)", "a table"),
            ("ALTER TABLE _names RENAME COLUMN text TO word", "a table"),
            ("DROP TABLE grdb_migrations", "format"),
            ("DROP TABLE grdb_migrations; CREATE VIEW grdb_migrations AS SELECT '1001' AS identifier", "format"),
            ("INSERT INTO grdb_migrations VALUES ('9999')", "newer Larder"),
            ("DELETE FROM grdb_migrations", "earlier Larder"),
            ("DELETE FROM _meta WHERE key = 'principalKey'", "not a copy"),
            ("PRAGMA application_id = 7", "another program"),
            ("PRAGMA user_version = 7", "not as larder save makes it"),
        ]
        let rewritten = [
            ("status INTEGER NOT NULL", "status INTEGER NOT NULL DEFAULT 200"),
            ("url TEXT NOT NULL,", "url TEXT NOT NULL COLLATE NOCASE,"),
            ("low INTEGER NOT NULL", "low INTEGER NOT NULL CHECK (random() > 0)"),
            ("CREATE TABLE _documents", "CREATE  TABLE _documents"),
        ].map { old, new in
            (
                "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = "
                    + "replace(sql, '\(old)', '\(new)') WHERE name = '_documents'",
                "a table"
            )
        }
        try await isRefused(forms + rewritten)
    }

    @Test func `numbers that no store reaches are refused in every column`() async throws {
        let keys = [
            "_names.id", "_scopes.id", "_collections.id", "_observations.id", "_objects.id", "_versions.id",
            "_documents.id", "_marks.object", "_shared_versions.version", "_shared_bodies.id",
        ]
        let others = [
            "_scopes.upstream", "_scopes.principal", "_scopes.context", "_collections.scope", "_collections.model",
            "_observations.uses", "_observations.start", "_observations.finish", "_objects.collection",
            "_objects.changed", "_objects.version", "_objects.unobserved", "_versions.declared", "_keys.object",
            "_documents.scope", "_documents.observation", "_documents.verified", "_documents.length",
            "_documents.status", "_used.at", "_suspects.suspect", "_suspect_objects.suspect", "_warnings.count",
            "_warnings.first", "_warnings.last", "_shared_versions.owners", "_shared_bodies.documents",
            "_bodies.shared",
        ]
        func changes(_ columns: [String], _ values: [String]) -> [(sql: String, reason: String)] {
            columns.flatMap { column in
                let parts = column.split(separator: ".")
                // One row is enough, and several would not be distinct.
                let hasRowID = !["_keys", "_suspects", "_warnings"].contains(parts[0])
                let row = hasRowID ? "WHERE rowid = (SELECT max(rowid) FROM \(parts[0]))" : ""
                return values.map { ("UPDATE OR REPLACE \(parts[0]) SET \(parts[1]) = \($0) \(row)", "damaged") }
            }
        }
        let numbers = ["9223372036854775807", "9223372036854775806", "-9223372036854775808"]
        try await isRefused(changes(keys, numbers) + changes(others, numbers + ["'text'", "1.5", "x'00'"]))
        try await isRefused(
            ["sequence", "changed", "object", "clock"].flatMap { meta in
                ["9223372036854775807", "-1", "'text'", "x'00'"].map {
                    ("INSERT OR REPLACE INTO _meta VALUES ('\(meta)', \($0))", "the copy is")
                }
            }
        )
    }

    @Test func `a copy with bytes that the store would not have written is refused`() async throws {
        try await isRefused(
            [
                "UPDATE _documents SET status = -5", "UPDATE _documents SET status = 0",
                "UPDATE _documents SET status = 1000", "UPDATE _documents SET length = length + 1",
                "UPDATE _documents SET url = x'2f'", "UPDATE _documents SET url = '/a' || char(13, 10) || 'b: c'",
                "UPDATE _documents SET head = 'text'", "UPDATE _documents SET scope = 77",
                "UPDATE _documents SET observation = 7777",
                "UPDATE _documents SET verified = verified + 100000",
                "UPDATE _bodies SET pins = x'ffffffffffffffffffff7f' WHERE skeleton IS NOT NULL",
                "UPDATE _bodies SET pins = x'0202' WHERE skeleton IS NOT NULL",
                "UPDATE _bodies SET pins = x'' WHERE skeleton IS NOT NULL",
                "UPDATE _bodies SET skeleton = x'22' WHERE skeleton IS NOT NULL",
                "UPDATE _bodies SET skeleton = x'5b' WHERE skeleton IS NOT NULL",
                "UPDATE _bodies SET keyed = x'ffffffff0f' WHERE skeleton IS NOT NULL",
                "UPDATE _bodies SET keyed = x'ff' WHERE skeleton IS NOT NULL",
                "UPDATE _bodies SET skeleton = NULL, body = NULL", "DELETE FROM _bodies", "DELETE FROM _versions",
                "DELETE FROM _shared_bodies", "UPDATE _bodies SET shared = shared + 1",
                "UPDATE _shared_bodies SET skeleton = x'5b'", "UPDATE _shared_bodies SET skeleton = NULL",
                "DELETE FROM _observations", "DELETE FROM _objects", "DELETE FROM _collections", "DELETE FROM _scopes",
                "DELETE FROM _names", "DELETE FROM _principals", "UPDATE _principals SET digest = x'01' WHERE id > 1",
                "UPDATE _principals SET digest = zeroblob(32) WHERE id = 1",
                "UPDATE _versions SET payload = '[]'", "UPDATE _versions SET payload = '{'",
                #"UPDATE _versions SET payload = '"' || char(92) || 'u0001User:7"'"#,
                "UPDATE _versions SET payload = CAST(x'7b22ff223a317d' AS TEXT)",
                "UPDATE _objects SET state = x'ff'", "UPDATE _objects SET state = x'80'",
                "UPDATE _objects SET state = x''",
                "UPDATE _objects SET known = x'02ff'", "UPDATE _objects SET merged = '{'",
                "UPDATE _objects SET merged = '1'", "UPDATE _objects SET accumulated = 'x'",
                "UPDATE _objects SET identity = '12' WHERE id = (SELECT min(id) FROM _objects)",
                "UPDATE _objects SET identity = x'12' WHERE id = (SELECT min(id) FROM _objects)",
                "UPDATE _objects SET unobserved = 4000000000000000",
                "UPDATE _observations SET finish = 4000000000000000", "UPDATE _observations SET kind = 5",
                "DELETE FROM _meta WHERE key = 'secretLow'",
            ].map { ($0, "damaged") }
        )
    }

    @Test func `a copy is refused if the caller's check rejects the fields or the policy of a response in it`()
        async throws
    {
        let bench = try await Bench.filled()
        let copy = bench.folder.file("copy")
        try await bench.store.save(to: copy, principalKey: Self.key)
        await #expect(throws: StoreError.refused("the copy is damaged: the fields of a response cannot be served")) {
            try await load(bench, copy) { $0.policy != [1, 2, 3] }
        }
        #expect(try await load(bench, copy).count.documents > 0)
        await bench.store.close()
    }

    @Test func `every column of every table is copied, or listed as not copied`() async throws {
        let bench = try Bench()
        await bench.store.close()
        let columns = sqlite(
            bench.folder.file(),
            "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'"
        ).split(separator: "\n").map { $0.split(separator: "|").map(String.init) }
        #expect(columns.count > 50)
        let others: Set<String> = ["_meta", "_undivided", "_changes", "_gone", "_told", "_recent_marks", "_deliveries"]
        for column in columns where column[0] != "grdb_migrations" && !others.contains(column[0]) {
            let isKey = ["_bodies", "_used"].contains(column[0]) && column[1] == "document"
            #expect(isKey || CopyRebuilding.columns[column[0]]?.contains(column[1]) == true, "\(column)")
        }
    }

    @Test func `views of a copy are not taken over, whatever they say`() async throws {
        let bench = try await Bench.filled()
        let copy = bench.folder.file("copy")
        try await bench.store.save(to: copy, principalKey: Self.key)
        let change =
            "DROP VIEW User; CREATE VIEW User AS SELECT 'forged' AS login; CREATE VIEW endless AS WITH RECURSIVE n(i) AS "
            + "(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
        #expect(alter(copy, change) == "")
        _ = try await load(bench, copy)
        await bench.store.close()
        #expect(sqlite(bench.folder.file(), "SELECT login FROM User WHERE identity = 7 LIMIT 1") == "ada")
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM sqlite_schema WHERE name = 'endless'") == "0")
    }

    @Test func `saving and loading again and again does not use up ids`() async throws {
        let bench = try await Bench.filled()
        for _ in 0..<60 {
            let copy = bench.folder.file("copy")
            try await bench.store.save(to: copy, principalKey: Self.key)
            _ = try await load(bench, copy)
        }
        let id = try await bench.document("/plain")?.id.rawValue ?? .max
        #expect(id < 1 << 32)
        await bench.store.close()
    }

    @Test func `an error does not quote a copy`() async throws {
        try await isRefused([
            (
                "INSERT INTO _suspect_patterns VALUES (7, 'github', '', '/{quoted')",
                "the copy is damaged: a write that was under way has a malformed pattern"
            ),
            (
                "INSERT INTO grdb_migrations VALUES ('x\u{202e}\u{1b}[31m')",
                #"schema x\u{202E}\u{1B}[31m, this one"#
            ),
        ])
    }

    @Test func `a store and a copy with an unusual page size are saved and loaded`() async throws {
        let bench = try await Bench.filled()
        let copy = bench.folder.file("copy")
        try await bench.store.save(to: copy, principalKey: Self.key)
        let first = try Bench(time: bench.time)
        await first.store.close()
        let repaged = "PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM; PRAGMA journal_mode = WAL"
        #expect(alter(first.folder.file(), repaged) == "delete\nwal")
        let other = try Bench(folder: first.folder, time: first.time)
        #expect(other.notices.isEmpty)
        #expect(try await load(other, copy).count.documents == bench.store.count().documents)
        let small = bench.folder.file("small")
        try await other.store.save(to: small, principalKey: Self.key)
        #expect(sqlite(small, "PRAGMA page_size") == "4096")
        #expect(try await load(other, small).count.documents == bench.store.count().documents)
        await other.store.close()
        await bench.store.close()
    }
}

/// A store's own file with values that no store has.
struct AbsurdStoreTests {
    @Test(
        arguments: [
            "UPDATE _documents SET id = 9223372036854775807", "UPDATE _objects SET id = 9223372036854775807",
            "UPDATE _versions SET id = 9223372036854775807", "UPDATE _observations SET id = 9223372036854775807",
            "UPDATE _names SET id = 9223372036854775807 WHERE id = 1", "UPDATE _scopes SET id = 9223372036854775807",
            "UPDATE _collections SET id = 9223372036854775807",
            "UPDATE _scopes SET principal = 9223372036854775807",
            "INSERT INTO _principals VALUES (9223372036854775807, zeroblob(32), 'p')",
            "INSERT INTO _suspects VALUES (9223372036854775807, 'github', '/')",
            "INSERT INTO _changes VALUES (9223372036854775807, 1, 9223372036854775807, x'')",
            "INSERT OR REPLACE INTO _meta VALUES ('sequence', 9223372036854775807)",
            "INSERT OR REPLACE INTO _meta VALUES ('object', 9223372036854775807)",
            "INSERT OR REPLACE INTO _meta VALUES ('clock', 9223372036854775807)",
            "INSERT OR REPLACE INTO _meta VALUES ('clockOffset', 9223372036854775807)",
            "INSERT OR REPLACE INTO _meta VALUES ('agesKnownSince', -9223372036854775808)",
            "INSERT OR REPLACE INTO _meta VALUES ('openings', x'00ffffffffffffffff7f')",
        ]
    )
    func `a file whose numbers no store reaches is set aside at the start`(_ change: String) async throws {
        let bench = try Bench()
        try await bench.receive("/issues/1", #"{"id":1,"title":"a"}"#, issue)
        await bench.store.close()
        #expect(alter(bench.folder.file(), change) == "")
        let again = try Bench(folder: bench.folder, time: bench.time)
        guard case .corruptFileSetAside? = again.notices.first else {
            Issue.record("\(again.notices)")
            return
        }
        try await again.receive("/issues/1", #"{"id":1,"title":"b"}"#, issue)
        #expect(try await again.body("/issues/1") == #"{"id":1,"title":"b"}"#)
        await again.store.close()
    }

    @Test(
        arguments: [
            "UPDATE _observations SET start = -9223372036854775808, finish = 9223372036854775807",
            "UPDATE _observations SET uses = 9223372036854775807", "UPDATE _documents SET length = 9223372036854775807",
            "UPDATE _used SET at = 9223372036854775807", "UPDATE _used SET at = -9223372036854775808",
            "UPDATE _objects SET deleted = -9223372036854775808",
            "UPDATE _objects SET unobserved = 9223372036854775807",
            "UPDATE _objects SET known = x'0201ffffffffffffffff7f0100'", "UPDATE _objects SET state = x'80'",
            "UPDATE _versions SET declared = -9223372036854775808",
            "INSERT OR REPLACE INTO _meta VALUES ('journal', 9223372036854775807)",
        ]
    )
    func `a file with absurd values is read, listed and written without a crash`(_ change: String) async throws {
        let bench = try Bench()
        try await bench.receive("/issues", #"[{"id":1,"title":"a"},{"id":2,"title":"b"}]"#, issues)
        try await bench.receive("/issues/1", #"{"id":1,"title":"a"}"#, issue)
        await bench.store.close()
        #expect(alter(bench.folder.file(), change) == "")
        let again = try Bench(folder: bench.folder, time: bench.time)
        _ = try? await again.body("/issues")
        _ = try? await again.store.list(DocumentListing())
        let known = (try? await again.store.objects(ObjectQuery(model: "Issue", identity: "1")))?.rows.first
        if let known { _ = try? await again.store.why(known.id) }
        _ = try? await again.receive("/issues/1", #"{"id":1,"title":"new"}"#, issue)
        _ = try? await again.receive("/issues", #"[{"id":1,"title":"new"}]"#, issues)
        _ = try? await again.store.clean(CleanFilter())
        try await again.receive("/issues/3", #"{"id":3,"title":"c"}"#, issue)
        #expect(try await again.body("/issues/3") == #"{"id":3,"title":"c"}"#)
        await again.store.close()
    }
}
