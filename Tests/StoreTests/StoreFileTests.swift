import Foundation
import Mapping
import Store
import TestSupport
import Testing

struct StoreFileTests {
    private func configuration(_ folder: TemporaryFolder) throws -> StoreConfiguration {
        StoreConfiguration(path: folder.file(), models: try exampleModels())
    }

    @Test func `a second opening names the owner of the store`() async throws {
        let bench = try Bench()
        let configuration = try configuration(bench.folder)
        #expect(throws: StoreError.locked(path: bench.folder.file(), pid: getpid())) {
            _ = try ObjectStore.open(configuration)
        }
        await bench.store.close()
        let (again, _) = try ObjectStore.open(configuration)
        await again.close()
    }

    @Test func `after a restart the store's documents and cache keys are there, and its clock has not gone back`()
        async throws
    {
        let first = try Bench()
        let list = #"[{"id":1,"title":"old"}]"#
        try await first.receive("/issues", list, issues)
        try await first.receive("/issues/1", #"{"id":1,"title":"new"}"#, issue)
        let digest = first.store.hasher.digest(first.key("/issues"))
        let end = first.store.clock.now()
        await first.store.close()

        let second = try Bench(folder: first.folder, time: ManualTime(5))
        #expect(second.notices.isEmpty)
        #expect(second.store.hasher.digest(second.key("/issues")) == digest)
        #expect(second.store.mayHave(digest))
        #expect(try await second.body("/issues") == #"[{"id":1,"title":"new"}]"#)
        #expect(second.store.clock.now() > end, "the machine's clock went back, the store's must not")
        await second.store.close()
    }

    @Test func `a store left without closing opens again`() async throws {
        let bench = try Bench()
        for number in 0..<50 { try await bench.receive("/issues/\(number)", #"{"id":\#(number)}"#, issue) }
        // What a killed process leaves: database and WAL as they are in the middle of it.
        let copy = TemporaryFolder()
        for suffix in ["", "-wal"] {
            try FileManager.default.copyItem(atPath: bench.folder.file() + suffix, toPath: copy.file() + suffix)
        }
        let survivor = try Bench(folder: copy)
        #expect(survivor.notices.isEmpty)
        #expect(try await survivor.store.count().documents == 50)
        #expect(try await survivor.body("/issues/49") == #"{"id":49}"#)
        await survivor.store.close()
        await bench.store.close()
    }

    @Test func `copies taken in the middle of writing are consistent`() async throws {
        let bench = try Bench()
        let writing = Task {
            for number in 0..<200 {
                try await bench.receive("/issues", #"[{"id":\#(number),"title":"\#(number)"},{"id":1}]"#, issues)
            }
        }
        for _ in 0..<5 {
            try await Task.sleep(for: .milliseconds(20))
            let copy = TemporaryFolder()
            // While the WAL is not reset, it holds all that the database lacks: a copy is what a crash would leave.
            let reader = try #require(ForeignReader(bench.folder.file()))
            // By another process: a process that closes a file loses all its locks on it.
            for suffix in ["", "-wal"] {
                try TestProcess.run("cp", [bench.folder.file() + suffix, copy.file() + suffix])
            }
            reader.end()
            let survivor = try Bench(folder: copy)
            for document in try await survivor.store.list(DocumentListing(), patience: .seconds(60)).rows {
                #expect(try await survivor.store.received(document.id) != nil)
            }
            #expect(sqlite(copy.file(), "PRAGMA integrity_check") == "ok")
            await survivor.store.close()
        }
        try await writing.value
        await bench.store.close()
    }

    enum Damage: CaseIterable {
        case garbage, truncated, garbledHeader, garbledMiddle
    }

    @Test(arguments: Damage.allCases)
    func `a damaged file is set aside and a new one started`(_ damage: Damage) async throws {
        let bench = try Bench()
        for number in 0..<200 {
            try await bench.receive("/issues/\(number)", #"{"id":\#(number),"title":"\#(number)"}"#, issue)
        }
        await bench.store.close()
        let path = bench.folder.file()
        var bytes = try #require(FileManager.default.contents(atPath: path))
        switch damage {
        case .garbage: bytes = Data(repeating: 0x5a, count: 10_000)
        case .truncated: bytes.removeLast(bytes.count / 2)
        case .garbledHeader: bytes.replaceSubrange(0..<8, with: Data(repeating: 0, count: 8))
        case .garbledMiddle:
            // Not closed in order, so the whole of it is looked at.
            #expect(alter(path, "UPDATE _meta SET value = 0 WHERE key = 'closed'") == "")
            bytes = try #require(FileManager.default.contents(atPath: path))
            bytes.replaceSubrange(8192..<40960, with: Data(repeating: 0xff, count: 32768))
        }
        try bytes.write(to: URL(fileURLWithPath: path))

        let again = try Bench(folder: bench.folder)
        guard case .corruptFileSetAside(let aside, _)? = again.notices.first else {
            Testing.Issue.record("no notice: \(again.notices)")
            return
        }
        #expect(aside.hasPrefix(path + ".corrupt-"))
        #expect(FileManager.default.contents(atPath: aside)?.dropFirst(4096) == bytes.dropFirst(4096))
        #expect(try await again.store.count().documents == 0)
        try await again.receive("/issues/1", #"{"id":1}"#, issue)
        await again.store.close()
    }

    @Test func `an empty file becomes a store`() async throws {
        let folder = TemporaryFolder()
        _ = FileManager.default.createFile(atPath: folder.file(), contents: Data())
        let bench = try Bench(folder: folder)
        #expect(bench.notices.isEmpty)
        try await bench.receive("/x", "1")
        await bench.store.close()
    }

    @Test(arguments: [
        "INSERT INTO grdb_migrations VALUES ('2001')",
        "DELETE FROM grdb_migrations; INSERT INTO grdb_migrations VALUES ('2001')",
    ])
    func `a file of a newer Larder is refused, and left alone`(_ change: String) async throws {
        let bench = try Bench()
        try await bench.receive("/x", "1")
        await bench.store.close()
        let path = bench.folder.file()
        let known = sqlite(path, "SELECT max(identifier) FROM grdb_migrations")
        #expect(alter(path, change) == "")
        let bytes = FileManager.default.contents(atPath: path)
        let configuration = try configuration(bench.folder)
        let error = #expect(throws: StoreError.newerSchema(path: path, found: "2001", known: known)) {
            _ = try ObjectStore.open(configuration)
        }
        #expect(
            error?.description
                == "the store \(path) was written by a newer Larder (schema 2001, this one knows \(known)); "
                + "update Larder, or give it another file with --store"
        )
        #expect(FileManager.default.contents(atPath: path) == bytes)
        #expect(!bench.folder.names.contains { $0.contains(".old-") || $0.contains(".corrupt-") })
        #expect(sqlite(path, "SELECT count(*) FROM _documents") == "1")
    }

    /// The migrations that a file of an earlier Larder has gone through: the first version's, and the last one's before 1001.
    @Test(arguments: [1, 11])
    func `a file of an earlier Larder is set aside whole, and the notice says what to do`(_ last: Int) async throws {
        let folder = TemporaryFolder()
        let path = folder.file()
        #expect(sqlite(path, earlierStore(migrations: last)) == "wal")
        let bytes = FileManager.default.contents(atPath: path)

        let bench = try Bench(folder: folder)
        guard case .earlierFileSetAside(path, let aside)? = bench.notices.first, bench.notices.count == 1 else {
            Testing.Issue.record("another notice: \(bench.notices)")
            return
        }
        #expect(aside.wholeMatch(of: /.+\.old-[0-9]{8}-[0-9]{6}/) != nil && aside.hasPrefix(path))
        #expect(
            bench.notices[0].description
                == "the store \(path) was written by an earlier Larder, in a format that this one does not read; "
                + "it was set aside as \(aside), and an empty one was started, which fills again; "
                + "read the old one with sqlite3, or delete it"
        )
        #expect(FileManager.default.contents(atPath: aside) == bytes)
        #expect(sqlite(aside, "SELECT url, body FROM _documents JOIN _bodies ON document = id") == "/issues|[]")
        #expect(sqlite(aside, "PRAGMA integrity_check") == "ok")

        let count = try await bench.store.count()
        #expect(count.documents == 0 && count.objects == 0)
        try await bench.receive("/issues/1", #"{"id":1}"#, issue)
        await bench.store.close()
        let again = try Bench(folder: folder)
        #expect(again.notices.isEmpty, "the new file has this Larder's format")
        #expect(try await again.body("/issues/1") == #"{"id":1}"#)
        await again.store.close()
    }

    @Test func `a file of Larder 0.2 keeps everything`() async throws {
        let bench = try Bench()
        try await bench.receive("/issues", #"[{"id":1,"title":"old"}]"#, issues)
        try await bench.receive("/issues/1", #"{"id":1,"title":"new"}"#, issue)
        await bench.store.close()
        let path = bench.folder.file()
        let changes = """
            DROP INDEX _observations_divided;
            ALTER TABLE _observations DROP COLUMN divided;
            ALTER TABLE _observations DROP COLUMN document;
            ALTER TABLE _objects DROP COLUMN wrote;
            ALTER TABLE _objects DROP COLUMN reused;
            ALTER TABLE _documents DROP COLUMN covered;
            DROP TABLE _recent_marks;
            DROP TABLE _deliveries;
            ALTER TABLE _bodies DROP COLUMN shared;
            ALTER TABLE _bodies DROP COLUMN compressed;
            DROP TABLE _shared_bodies;
            DROP TABLE _shared_versions;
            DELETE FROM grdb_migrations WHERE identifier >= '1002';
            """
        #expect(alter(path, changes) == "")
        let again = try Bench(folder: bench.folder, time: bench.time)
        #expect(again.notices.isEmpty)
        #expect(try await again.body("/issues") == #"[{"id":1,"title":"new"}]"#)
        try await again.receive("/issues", #"[{"id":1,"title":"newer"}]"#, issues)
        #expect(try await again.body("/issues/1") == #"{"id":1,"title":"newer"}"#)
        await again.store.close()
    }

    @Test func `the WAL of an earlier Larder is set aside with its file`() async throws {
        let (origin, folder) = (TemporaryFolder(), TemporaryFolder())
        #expect(sqlite(origin.file(), earlierStore(migrations: 11)) == "wal")
        let reader = try #require(ForeignReader(origin.file()))
        #expect(sqlite(origin.file(), "UPDATE _documents SET url = '/newer'") == "")
        // What a killed process leaves.
        for suffix in ["", "-wal"] { try TestProcess.run("cp", [origin.file() + suffix, folder.file() + suffix]) }
        reader.end()
        let bench = try Bench(folder: folder)
        guard case .earlierFileSetAside(_, let aside)? = bench.notices.first else {
            Testing.Issue.record("another notice: \(bench.notices)")
            return
        }
        #expect(sqlite(aside, "SELECT url FROM _documents") == "/newer")
        #expect(try await bench.store.count().documents == 0)
        await bench.store.close()
    }

    @Test func `another program's database is left alone`() throws {
        let folder = TemporaryFolder()
        #expect(sqlite(folder.file(), "CREATE TABLE theirs (x)") == "")
        let configuration = try configuration(folder)
        #expect(throws: StoreError.self) { _ = try ObjectStore.open(configuration) }
        #expect(sqlite(folder.file(), "SELECT name FROM sqlite_schema") == "theirs")
    }

    @Test func `opening a store in a missing folder fails with the system's reason`() throws {
        let configuration = StoreConfiguration(path: "/nonexistent/folder/larder.db")
        do throws(StoreError) {
            _ = try ObjectStore.open(configuration)
            Testing.Issue.record("opened")
        } catch {
            #expect(error.description.contains("cannot be opened"))
            #expect(error.description.contains("No such file"))
        }
    }

    @Test func `a released store still commits what it was given`() async throws {
        let folder = TemporaryFolder()
        let responses = AsyncStream<Result<Receipt, StoreError>>.makeStream()
        do {
            let bench = try Bench(folder: folder)
            for number in 0..<100 {
                let response = bench.response("/issues/\(number)", #"{"id":\#(number)}"#, issue)
                bench.store.receive(response) { responses.continuation.yield($0) }
            }
        }
        var results = responses.stream.prefix(100).makeAsyncIterator()
        while let result = await results.next() {
            #expect(throws: Never.self) { try result.get() }
        }
    }

    @Test func `everything fails clearly after closing`() async throws {
        let bench = try Bench()
        await bench.store.close()
        await bench.store.close()
        await #expect(throws: StoreError.closed) { try await bench.receive("/x", "1") }
        await #expect(throws: StoreError.closed) { _ = try await bench.document("/x") }
        await bench.store.flush()
    }
}

/// SQL that makes a store as the Larder before migration 1001 did, with one document; it prints "wal".
private func earlierStore(migrations last: Int) -> String {
    let applied = ["0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011 undivided"]
    return """
        PRAGMA journal_mode = WAL;
        CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY);
        INSERT INTO grdb_migrations VALUES \(applied.prefix(last).map { "('\($0)')" }.joined(separator: ", "));
        PRAGMA application_id = 0x4c726472;
        CREATE TABLE _meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
        INSERT INTO _meta VALUES ('secretLow', 1), ('secretHigh', 2), ('sequence', 3), ('clock', 4), ('closed', 1);
        CREATE TABLE _names (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
        INSERT INTO _names VALUES (1, 'github'), (2, '');
        CREATE TABLE _principals (id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, label TEXT NOT NULL);
        INSERT INTO _principals VALUES (1, x'', 'anonymous');
        CREATE TABLE _scopes (id INTEGER PRIMARY KEY, upstream INTEGER NOT NULL, principal INTEGER NOT NULL,
            context INTEGER NOT NULL, UNIQUE (upstream, principal, context));
        INSERT INTO _scopes VALUES (1, 1, 1, 2);
        CREATE TABLE _observations (id INTEGER PRIMARY KEY, start INTEGER NOT NULL, finish INTEGER NOT NULL,
            kind INTEGER NOT NULL, uses INTEGER NOT NULL);
        INSERT INTO _observations VALUES (1, 1, 2, 0, 1);
        CREATE TABLE _objects (id INTEGER PRIMARY KEY, collection INTEGER NOT NULL, identity NOT NULL,
            changed INTEGER NOT NULL, version INTEGER, state BLOB NOT NULL, merged TEXT);
        CREATE TABLE _versions (id INTEGER PRIMARY KEY, payload TEXT NOT NULL);
        CREATE TABLE _documents (id INTEGER PRIMARY KEY, low INTEGER NOT NULL, place INTEGER NOT NULL,
            scope INTEGER NOT NULL, url TEXT NOT NULL, variant BLOB NOT NULL, status INTEGER NOT NULL,
            observation INTEGER NOT NULL, verified INTEGER NOT NULL, length INTEGER NOT NULL, head BLOB NOT NULL,
            policy BLOB NOT NULL);
        INSERT INTO _documents VALUES (1, 1, 1, 1, '/issues', x'', 200, 1, 3, 2, x'', x'');
        CREATE TABLE _bodies (document INTEGER PRIMARY KEY, pins BLOB NOT NULL, skeleton BLOB, body BLOB);
        INSERT INTO _bodies VALUES (1, x'', NULL, '[]');
        """
}
