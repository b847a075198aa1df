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

    @Test func `everything is there after a restart`() async throws {
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
                try ChildProcess.run("cp", [bench.folder.file() + suffix, copy.file() + suffix])
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

    @Test func `a newer schema is refused, and the file left alone`() async throws {
        let bench = try Bench()
        try await bench.receive("/x", "1")
        await bench.store.close()
        let known = sqlite(bench.folder.file(), "SELECT max(identifier) FROM grdb_migrations")
        #expect(alter(bench.folder.file(), "INSERT INTO grdb_migrations VALUES ('9999')") == "")
        let configuration = try configuration(bench.folder)
        #expect(
            throws: StoreError.newerSchema(path: bench.folder.file(), found: "9999", known: known)
        ) { _ = try ObjectStore.open(configuration) }
        #expect(!bench.folder.names.contains { $0.contains("corrupt") })
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM _documents") == "1")
    }

    @Test func `another program's database is left alone`() throws {
        let folder = TemporaryFolder()
        #expect(sqlite(folder.file(), "CREATE TABLE theirs (x)") == "")
        let configuration = try configuration(folder)
        #expect(throws: StoreError.self) { _ = try ObjectStore.open(configuration) }
        #expect(sqlite(folder.file(), "SELECT name FROM sqlite_schema") == "theirs")
    }

    @Test func `a missing folder is said`() throws {
        let configuration = StoreConfiguration(path: "/nonexistent/folder/larder.db")
        do throws(StoreError) {
            _ = try ObjectStore.open(configuration)
            Testing.Issue.record("opened")
        } catch {
            #expect(error.description.contains("cannot be opened"))
            #expect(error.description.contains("No such file"))
        }
    }

    @Test func `a store that is released still stores what it was given`() async throws {
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
