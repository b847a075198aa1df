import Mapping
import TestSupport
import Testing

@testable import Store

/// Law 3 as the store keeps it, over what it drops and what it counts once.
@Suite struct OrderTests {
    private func write(_ bench: Bench, _ body: String) async throws {
        bench.time.advance(1000)
        let start = bench.store.clock.now()
        bench.time.advance(1000)
        try await bench.complete(
            ReceivedObservation(
                body: Array(body.utf8),
                start: start,
                rule: issue
            )
        )
    }

    @Test(arguments: [nil, 0, 60_000_000] as [Int64?])
    func `each upstream's lists lag by its own lag`(lag: Int64?) async throws {
        let bench = try Bench { configuration in
            configuration.lags["slow"] = Lag(lists: 3_600_000_000)
            configuration.lags["github"] = Lag(lists: lag ?? 30_000_000)
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

    @Test func `a read sent before a write is older than it, even if later reads repeated the write's values`()
        async throws
    {
        let bench = try Bench()
        try await bench.receive("/issues/1", #"{"id":1,"title":"old"}"#, issue)
        var slow = bench.response("/repos/issues/1", #"{"id":1,"title":"old"}"#, issue)
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

    @Test func `a response from a cache is as old as its Age says`() async throws {
        let bench = try Bench()
        try await bench.receive("/issues/1", #"{"id":1,"title":"new"}"#, issue)
        var aged = bench.response("/repos/issues/1", #"{"id":1,"title":"old"}"#, issue)
        aged.start -= 60_000_000
        #expect(try await bench.store.receive(aged).isDirty)
        #expect(try await bench.body("/repos/issues/1") == #"{"id":1,"title":"new"}"#)
        #expect(try await bench.body("/issues/1") == #"{"id":1,"title":"new"}"#)
        await bench.store.close()
    }

    @Test func `equal payloads share one version, which is removed with its last use`() async throws {
        let bench = try Bench()
        try await write(bench, #"{"id":1,"title":"new"}"#)
        try await bench.receive("/issues/1", #"{"id":1,"title":"new"}"#, issue)
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM _versions") == "1")
        #expect(sqlite(bench.folder.file(), "SELECT count(*) FROM _observations") == "1")
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

    // MARK: Doubts

    /// Two responses that are under way at the same time.
    private func overlap(_ bench: Bench, _ one: String, _ other: String) async throws {
        let responses = [one, other].enumerated().map { index, title in
            bench.response("/\(index)/1", #"{"id":1,"title":"\#(title)"}"#, issue)
        }
        for var response in responses {
            response.start = responses[0].start
            response.end = responses[1].end
            _ = try await bench.store.receive(response)
        }
    }

    @Test func `a document that shows a member in doubt says so, until a later response settles it`() async throws {
        let bench = try Bench()
        try await overlap(bench, "one", "two")
        let document = try #require(try await bench.document("/1/1"))
        #expect(document.doubts.count == 1)
        #expect(text(document.body) == #"{"id":1,"title":"one"}"#)
        try await bench.receive("/2/1", #"{"id":1,"title":"two"}"#, issue)
        #expect(try await bench.document("/1/1")?.doubts == [])
        #expect(try await bench.body("/0/1") == #"{"id":1,"title":"two"}"#)
        await bench.store.close()
    }

    @Test func `a doubt survives a restart`() async throws {
        let bench = try Bench()
        try await overlap(bench, "one", "two")
        let doubts = try await bench.document("/1/1")?.doubts
        await bench.store.close()
        let again = try Bench(folder: bench.folder, time: bench.time)
        #expect(try await again.document("/1/1")?.doubts == doubts)
        #expect(try await again.body("/1/1") == #"{"id":1,"title":"one"}"#)
        await again.store.close()
    }

    @Test func `a doubt that keeps returning waits longer each time, and its third return gives a warning`()
        async throws
    {
        let bench = try Bench { $0.lag = Lag(lists: 30_000_000) }
        var waits: [Int64] = []
        for round in 0..<5 {
            try await overlap(bench, "one", "two")
            let document = try #require(try await bench.document("/1/1"))
            waits.append(try #require(document.doubts.first) - bench.store.clock.now())
            // Whatever it is then.
            try await bench.receive("/1/1", #"{"id":1,"title":"\#(round)"}"#, issue)
            try await bench.receive("/1/1", #"{"id":1,"title":"\#(round)"}"#, issue)
            #expect(try await bench.document("/1/1")?.doubts == [])
        }
        #expect(waits[0] <= 0)
        #expect(zip(waits, waits.dropFirst()).allSatisfy(<))
        let warnings = try await bench.store.warnings(limit: 10).rows.filter { $0.kind == "flip-flop" }
        let warning = try #require(warnings.first)
        #expect(warnings.count == 1)
        #expect(warning.subject == "Issue.title")
        #expect(warning.message.contains(#""local: [score, title]" under the model Issue"#))
        await bench.store.close()
    }

    @Test func `a value that a list contradicted within the lag is fetched again when the lag ends`() async throws {
        let bench = try Bench { $0.lag = Lag(lists: 30_000_000) }
        try await bench.receive("/issues/1", #"{"id":1,"title":"old"}"#, issue)
        try await write(bench, #"{"id":1,"title":"new"}"#)
        let replaced = bench.store.clock.now()
        try await bench.receive("/issues", #"[{"id":1,"title":"old"}]"#, issues)
        let document = try #require(try await bench.document("/issues"))
        let asksFrom = try #require(document.doubts.first)
        #expect(text(document.body) == #"[{"id":1,"title":"new"}]"#)
        #expect(asksFrom >= replaced + 25_000_000 && asksFrom <= replaced + 31_000_000)
        await bench.store.close()
    }
}

private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
