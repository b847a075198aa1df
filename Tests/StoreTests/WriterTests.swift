import Mapping
import Synchronization
import TestSupport
import Testing

@testable import Store

/// What becomes of work that fails, or cannot be done at all.
@Suite(.scripts) struct WriterTests {
    @Test(.timeLimit(.minutes(30)))
    func `a store can be closed though another process keeps its file locked`() async throws {
        let bench = try Bench()
        let foreigner = try #require(ForeignReader(bench.folder.file(), mayWrite: true))
        let results = Mutex<[Result<Receipt, StoreError>]>([])
        for number in 0..<3 {
            bench.store.receive(bench.response("/\(number)", "1")) { result in results.withLock { $0.append(result) } }
        }
        await bench.store.close(within: .milliseconds(100))
        // All completions have been called.
        #expect(results.withLock { $0.allSatisfy { (try? $0.get()) == nil } })
        foreigner.end()
        // Only what the store could not store is missing.
        let again = try Bench(folder: bench.folder, time: bench.time)
        try await again.receive("/0", "1")
        #expect(try await again.body("/0") == "1")
        await again.store.close()
    }

    @Test func `a response that meets damage in the file is stored again, with its whole batch`() async throws {
        let bench = try Bench { $0.batchDelay = .seconds(3) }
        try await bench.receive("/broken", "1")
        #expect(sqlite(bench.folder.file(), "DELETE FROM _observations") == "")
        let results = Mutex<[String: Bool]>([:])
        for url in ["/before", "/broken", "/after"] {
            bench.store.receive(bench.response(url, "2")) { result in
                results.withLock { $0[url] = (try? result.get().document) != nil }
            }
        }
        await bench.store.flush()
        #expect(results.withLock { $0 } == ["/before": true, "/broken": true, "/after": true])
        for url in ["/before", "/broken"] { #expect(try await bench.body(url) == "2") }
        #expect(try await bench.body("/after") == "2")
        await bench.store.close()
    }

    @Test func `a cache key is forgotten with its document, whether or not the listener is notified`() async throws {
        let bench = try Bench()
        let key = bench.store.hasher.digest(bench.key("/x"))
        #expect(await eventually { !bench.store.mayHave(key) })
        let id = try #require(try await bench.receive("/x", "1").document)
        #expect(bench.store.mayHave(key))
        // Replaced, it is still there.
        let next = try #require(try await bench.receive("/x", "2").document)
        bench.store.remove(id)
        await bench.store.flush()
        #expect(bench.store.mayHave(key))
        bench.store.remove(next)
        await bench.store.flush()
        #expect(!bench.store.mayHave(key))
        await bench.store.close()
    }

    @Test func `if a newly secret member cannot be removed alone, everything is erased`() async throws {
        let bench = try Bench()
        try await bench.receive("/issues", #"[{"id":1,"title":"a"}]"#, issues)
        try await bench.receive("/other", "1")
        await bench.store.close()
        let file = bench.folder.file()
        // What it shows cannot be removed.
        #expect(alter(file, "DELETE FROM _observations WHERE id = 1") == "")
        let notices = Mutex<[StoreNotice]>([])
        var issue = ModelDeclaration(name: "Issue", identity: ["id"])
        issue.secret = ["title"]
        let models = try Models([issue])
        let again = try Bench(folder: bench.folder, time: bench.time) { configuration in
            configuration.models = ["github": models]
            configuration.notify = { notice in notices.withLock { $0.append(notice) } }
        }
        #expect(
            await eventually(within: .seconds(600)) {
                notices.withLock { notices in
                    notices.contains { if case .damagedFileEmptied = $0 { true } else { false } }
                }
            }
        )
        #expect(await eventually { sqlite(file, "SELECT count(*) FROM _documents") == "0" })
        await again.store.close()
    }
}
