import Mapping
import Store
import TestSupport
import Testing

/// Law 3 as the store keeps it, over what it drops and what it counts once.
@Suite struct OrderTests {
    private func write(_ bench: Bench, _ body: String) async throws {
        bench.time.advance(1000)
        let start = bench.store.clock.now()
        bench.time.advance(1000)
        _ = try await bench.store.observe(
            ReceivedObservation(
                upstream: "github",
                principal: Store.anonymous,
                context: "",
                body: Array(body.utf8),
                start: start,
                end: bench.store.clock.now(),
                rule: issue
            )
        )
    }

    @Test(arguments: [nil, 0, 60_000_000] as [Int64?])
    func `each upstream's lists lag by its own lag`(lag: Int64?) async throws {
        let bench = try Bench { configuration in
            configuration.lags["slow"] = 3_600_000_000
            if let lag { configuration.lags["github"] = lag }
        }
        try await bench.receive("/issues/1", #"{"id":1,"title":"detail"}"#, issue)
        try await bench.receive("/issues", #"[{"id":1,"title":"list"}]"#, issues)
        let newest = lag == 0 ? "list" : "detail"
        #expect(try await bench.body("/issues/1") == #"{"id":1,"title":"\#(newest)"}"#)
        // Past half a minute, but not past a whole one.
        bench.time.advance(40_000_000)
        try await bench.receive("/more", #"[{"id":1,"title":"more"}]"#, issues)
        let last = lag == 60_000_000 ? "detail" : "more"
        #expect(try await bench.body("/issues/1") == #"{"id":1,"title":"\#(last)"}"#)
        await bench.store.close()
    }

    @Test func `a read sent before a write is older than it, also when reads have repeated what the write said`()
        async throws
    {
        let bench = try Bench()
        try await bench.receive("/issues/1", #"{"id":1,"title":"old"}"#, issue)
        var slow = bench.answer("/repos/issues/1", #"{"id":1,"title":"old"}"#, issue)
        try await write(bench, #"{"id":1,"title":"new"}"#)
        try await bench.receive("/issues/1", #"{"id":1,"title":"new"}"#, issue)
        // It was on its way all the while, and overlapped with the read that repeats the write.
        slow.end = bench.store.clock.now()
        let receipt = try await bench.store.receive(slow)
        #expect(receipt.isDirty)
        #expect(try await bench.body("/issues/1") == #"{"id":1,"title":"new"}"#)
        #expect(try await bench.body("/repos/issues/1") == #"{"id":1,"title":"new"}"#)
        await bench.store.close()
    }

    @Test func `an answer out of a cache is as old as its Age says`() async throws {
        let bench = try Bench()
        try await bench.receive("/issues/1", #"{"id":1,"title":"new"}"#, issue)
        var aged = bench.answer("/repos/issues/1", #"{"id":1,"title":"old"}"#, issue)
        aged.start -= 60_000_000
        #expect(try await bench.store.receive(aged).isDirty)
        #expect(try await bench.body("/repos/issues/1") == #"{"id":1,"title":"new"}"#)
        #expect(try await bench.body("/issues/1") == #"{"id":1,"title":"new"}"#)
        await bench.store.close()
    }

    @Test func `one version that was seen at several times is one, and goes with the last that needs it`() async throws
    {
        let bench = try Bench()
        try await write(bench, #"{"id":1,"title":"new"}"#)
        try await bench.receive("/issues/1", #"{"id":1,"title":"new"}"#, issue)
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM _versions") == "1")
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM _observations") == "2")
        let document = try #require(try await bench.document("/issues/1"))
        bench.time.advance(3_600_000_000)
        try await bench.receive("/issues/1", #"{"id":1,"title":"newer"}"#, issue)
        #expect(
            sqlite(bench.folder.file(), "SELECT group_concat(payload) FROM _versions") == #"{"id":1,"title":"newer"}"#
        )
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM _observations") == "1")
        #expect(try await bench.document("/issues/1")?.id != document.id)
        await bench.store.close()
    }

    // MARK: Flip-flops

    /// An answer of a route, later than all before.
    private func show(_ bench: Bench, _ route: String, _ title: String) async throws {
        var answer = bench.answer("/\(route)/1", #"{"id":1,"title":"\#(title)"}"#, issue)
        answer.route = route
        _ = try await bench.store.receive(answer)
    }

    private func warnings(_ bench: Bench) async throws -> [StoredWarning] {
        try await bench.store.warnings(limit: 10).rows.filter { $0.kind == "flip-flop" }
    }

    private func shown(_ bench: Bench, _ route: String) async throws -> String {
        try await bench.body("/\(route)/1") ?? ""
    }

    @Test func `what two routes disagree about again and again stays with each, and moves to all others`() async throws
    {
        let bench = try Bench()
        try await show(bench, "c", "old")
        for _ in 0..<2 {
            try await show(bench, "a", "one")
            try await show(bench, "b", "two")
            #expect(try await shown(bench, "a").contains("two"))
        }
        #expect(try await warnings(bench).isEmpty)
        try await show(bench, "a", "one")
        let warning = try #require(try await warnings(bench).first)
        #expect(warning.subject == "Issue.title")
        #expect(warning.message.contains(#""local: [score, title]" under the model Issue"#))
        #expect(warning.message.contains(#""a" and "b""#))
        #expect(warning.url == "/a/1")
        try await show(bench, "b", "two")
        #expect(try await shown(bench, "a").contains("one"))
        #expect(try await shown(bench, "b").contains("two"))
        #expect(try await shown(bench, "c").contains("two"))
        try await show(bench, "a", "one")
        #expect(try await shown(bench, "b").contains("two"))
        #expect(try await shown(bench, "c").contains("one"))
        #expect(try await warnings(bench).first?.count == 1)
        // What a third one says is news to both.
        try await show(bench, "c", "three")
        for route in ["a", "b"] { #expect(try await shown(bench, route).contains("three")) }
        await bench.store.close()
    }

    @Test func `it is known after a restart, until the model is declared otherwise`() async throws {
        let bench = try Bench()
        for _ in 0..<3 {
            try await show(bench, "a", "one")
            try await show(bench, "b", "two")
        }
        await bench.store.close()
        let again = try Bench(folder: bench.folder, time: bench.time)
        #expect(try await shown(again, "a").contains("one"))
        try await show(again, "b", "three")
        #expect(try await shown(again, "a").contains("one"))
        await again.store.close()
        let declared = try Bench(folder: bench.folder, time: bench.time) { configuration in
            guard let models = configuration.models["github"] else { return }
            var declarations = models.declarations
            declarations[2].local = []
            configuration.models["github"] = try? Models(declarations)
        }
        try await show(declared, "b", "four")
        #expect(try await shown(declared, "a").contains("four"))
        await declared.store.close()
    }

    @Test func `a value that one route shows to change to and fro has changed`() async throws {
        let bench = try Bench()
        for _ in 0..<6 {
            for title in ["one", "two"] {
                try await show(bench, "a", title)
                try await show(bench, "b", title)
            }
        }
        #expect(try await warnings(bench).isEmpty)
        try await show(bench, "b", "three")
        #expect(try await shown(bench, "a").contains("three"))
        await bench.store.close()
    }

    @Test func `what is written in between has changed`() async throws {
        let bench = try Bench()
        for _ in 0..<6 {
            try await show(bench, "a", "one")
            try await write(bench, #"{"id":1,"title":"two"}"#)
            try await show(bench, "b", "two")
            try await write(bench, #"{"id":1,"title":"one"}"#)
        }
        #expect(try await warnings(bench).isEmpty)
        await bench.store.close()
    }
}
