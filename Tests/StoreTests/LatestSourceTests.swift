import Mapping
import TestSupport
import Testing

@testable import Store

/// Responses of the document that was the latest source of a value are ordered without the lag (law 3, row D1).
struct LatestSourceTests: WriteMarkFixtures {
    private func bench(folder: TemporaryFolder = TemporaryFolder(), time: ManualTime = ManualTime()) throws -> Bench {
        try Bench(folder: folder, time: time) { $0.lag = Lag(lists: 30_000_000) }
    }

    private func list(_ title: String) -> String { #"[{"id":1,"title":"\#(title)"}]"# }

    private func show(_ bench: Bench, _ title: String, at url: String = "/issues") async throws {
        try await bench.receive(url, list(title), issues)
    }

    @Test func `hits of a polled list show its latest response`() async throws {
        let bench = try bench()
        for title in ["one", "one", "two", "two", "three"] {
            try await show(bench, title)
            #expect(try await bench.body("/issues") == list(title))
            #expect(try await bench.document("/issues")?.doubts == [])
        }
        try await bench.receive("/issues/1", #"{"id":1,"title":"four"}"#, issue)
        #expect(try await bench.body("/issues") == list("four"))
        await bench.store.close()
    }

    @Test func `a document that confirms a value counts as its latest source`() async throws {
        let bench = try bench()
        try await show(bench, "one")
        try await show(bench, "one", at: "/other")
        try await show(bench, "two")
        #expect(try await bench.body("/issues") == list("one"))
        #expect(try await bench.document("/issues")?.doubts.count == 1)
        // The other list had the last word, and says something else now.
        try await show(bench, "two", at: "/other")
        #expect(try await bench.body("/issues") == list("two"))
        #expect(try await bench.document("/issues")?.doubts == [])
        await bench.store.close()
    }

    @Test func `a 304 makes its document the latest source, so that its next value replaces the known one`()
        async throws
    {
        let bench = try bench()
        let id = try #require(try await bench.receive("/issues", list("one"), issues).document)
        try await show(bench, "one", at: "/other")
        bench.time.advance(1_000_000)
        let now = bench.store.clock.now()
        #expect(
            try await bench.store.freshen(id, head: [], policy: [], observedFrom: now - 1000, observedTo: now)
                == .freshened
        )
        try await show(bench, "two")
        #expect(try await bench.body("/other") == list("two"))
        await bench.store.close()
    }

    @Test func `a list does not take back an own write within the lag`() async throws {
        let bench = try bench()
        try await show(bench, "old")
        try await bench.store.complete(
            write(bench, "/issues/1", bound: first, response: #"{"id":1,"title":"written"}"#)
        )
        try await show(bench, "written")
        try await show(bench, "old")
        #expect(try await bench.body("/issues") == list("written"))
        // Whatever restarted meanwhile.
        await bench.store.close()
        let again = try self.bench(folder: bench.folder, time: bench.time)
        try await show(again, "written", at: "/other")
        try await show(again, "old", at: "/other")
        #expect(try await again.body("/other") == list("written"))
        again.time.advance(60_000_000)
        try await show(again, "newer", at: "/other")
        #expect(try await again.body("/issues") == list("newer"))
        await again.store.close()
    }

    @Test func `the latest source of a value is known after a restart`() async throws {
        let bench = try bench()
        try await show(bench, "one")
        try await bench.receive("/issues/1", #"{"id":1,"title":"one","number":7}"#, issue)
        try await show(bench, "one")
        await bench.store.close()
        let again = try self.bench(folder: bench.folder, time: bench.time)
        try await show(again, "two")
        #expect(try await again.body("/issues") == list("two"))
        #expect(try await again.body("/issues/1") == #"{"id":1,"title":"two","number":7}"#)
        await again.store.close()
    }

    @Test func `after a crash, earlier observations count as lasting until the restart`() async throws {
        let bench = try bench()
        try await show(bench, "one")
        // What a killed process leaves: its last observations may be missing.
        let copy = TemporaryFolder()
        for suffix in ["", "-wal"] {
            try TestProcess.run("cp", [bench.folder.file() + suffix, copy.file() + suffix])
        }
        await bench.store.close()
        bench.time.advance(60_000_000)
        let again = try self.bench(folder: copy, time: bench.time)
        try await show(again, "two")
        #expect(try await again.body("/issues") == list("one"))
        #expect(try await again.document("/issues")?.doubts.count == 1)
        await again.store.close()
        // An orderly restart does not make that start forgotten.
        let third = try self.bench(folder: copy, time: bench.time)
        try await show(third, "three", at: "/other")
        #expect(try await third.body("/other") == list("one"))
        third.time.advance(31_000_000)
        try await show(third, "four")
        try await show(third, "four", at: "/other")
        #expect(try await third.body("/issues") == list("four"))
        await third.store.close()
    }
}
