import Mapping
import TestSupport
import Testing

@testable import Store

struct ObjectTests {
    private let list = #"[{"id":1,"title":"a","user":{"id":7,"login":"x"}},{"id":2,"title":"b"}]"#

    @Test func `a slow older read changes nothing`() async throws {
        let bench = try Bench()
        let slow = bench.response("/issues/1", #"{"id":1,"title":"stale"}"#, issue)
        // Sooner than that, lists count as lagging.
        bench.time.advance(60_000_000)
        try await bench.receive("/issues", list, issues)
        let receipt = try await bench.store.receive(slow)
        #expect(receipt.isDirty)
        #expect(try await bench.body("/issues") == list)
        let document = try #require(try await bench.document("/issues/1"))
        #expect(document.form == .composed)
        #expect(String(decoding: document.body, as: UTF8.self) == #"{"id":1,"title":"a"}"#)
        await bench.store.close()
    }

    @Test func `an older response does not replace a newer one`() async throws {
        let bench = try Bench()
        let slow = bench.response("/text", "old")
        try await bench.receive("/text", "new")
        #expect(try await bench.store.receive(slow).document == nil)
        #expect(try await bench.body("/text") == "new")
        #expect(try await bench.store.documents(at: bench.key("/text")).count == 1)
        await bench.store.close()
    }

    @Test func `different variants are stored side by side, and equal ones replace each other`() async throws {
        let bench = try Bench()
        for (variant, body) in [(1, "one"), (2, "two"), (1, "ONE")] as [(UInt8, String)] {
            var response = bench.response("/text", body)
            response.variant = [variant]
            _ = try await bench.store.receive(response)
        }
        let documents = try await bench.store.documents(at: bench.key("/text"))
        #expect(Set(documents.map { String(decoding: $0.body, as: UTF8.self) }) == ["ONE", "two"])
        await bench.store.close()
    }

    @Test func `nothing crosses principals or contexts but invalidation`() async throws {
        let bench = try Bench()
        // Until a new store has read its keys, it may have every key.
        let absent = bench.store.hasher.digest(bench.key("/absent"))
        #expect(await eventually { !bench.store.mayHave(absent) })
        let mine = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        try await bench.receive("/issues", list, issues)
        try await bench.receive("/issues", list, issues, principal: mine)
        try await bench.receive("/issues", list, issues, context: "de")
        try await bench.receive("/issues/1", #"{"id":1,"title":"mine"}"#, issue, principal: mine)
        #expect(try await bench.body("/issues") == list)
        #expect(try await bench.document("/issues", principal: mine)?.form == .composed)
        #expect(try await bench.store.documents(at: bench.key("/issues", context: "de")).first?.form == .asReceived)
        try await bench.store.removePaths(
            of: Invalidation(of: "github", paths: ["/issues"], at: bench.store.clock.now())
        )
        #expect(try await bench.store.count().documents == 1)
        #expect(!bench.store.mayHave(bench.store.hasher.digest(bench.key("/issues"))))
        await bench.store.close()
    }

    @Test func `a response that was requested before an invalidation is not stored`() async throws {
        let bench = try Bench()
        let early = bench.response("/issues/1", #"{"id":1,"title":"early"}"#, issue)
        try await bench.store.removePaths(
            of: Invalidation(of: "github", paths: ["/issues/1"], at: bench.store.clock.now())
        )
        #expect(try await bench.store.receive(early).document == nil)
        #expect(try await bench.store.count().objects == 0)
        try await bench.receive("/issues/1", #"{"id":1,"title":"late"}"#, issue)
        #expect(try await bench.body("/issues/1") == #"{"id":1,"title":"late"}"#)
        await bench.store.close()
    }

    @Test func `documents read before a write show its result, and later lists lag behind it`() async throws {
        let bench = try Bench { $0.lag = Lag(lists: 30_000_000) }
        try await bench.receive("/issues", list, issues)
        bench.time.advance(1000)
        let now = bench.store.clock.now()
        try await bench.complete(
            ReceivedObservation(
                body: Array(#"{"id":1,"title":"written","user":{"id":7,"login":"x"}}"#.utf8),
                start: now,
                rule: issue
            )
        )
        bench.time.advance(1000)
        let written = list.replacing(#""a""#, with: #""written""#)
        #expect(try await bench.body("/issues") == written)
        let lagging = try await bench.receive("/issues", list, issues)
        #expect(lagging.isDirty)
        #expect(try await bench.body("/issues") == written)
        bench.time.advance(60_000_000)
        try await bench.receive("/issues", list, issues)
        #expect(try await bench.body("/issues") == list)
        await bench.store.close()
    }

    @Test func `a 304 freshens a clean document and only that`() async throws {
        let bench = try Bench()
        let receipt = try await bench.receive("/issues", list, issues)
        let id = try #require(receipt.document)
        let slow = bench.response("/issues/1", #"{"id":1,"title":"older than the 304"}"#, issue)
        bench.time.advance(60_000_000)
        let start = bench.store.clock.now()
        let outcome = try await bench.store.freshen(id, head: [1], policy: [2], observedFrom: start, observedTo: start)
        #expect(outcome == .freshened)
        _ = try await bench.store.receive(slow)
        let document = try #require(try await bench.document("/issues"))
        #expect(document.form == .asReceived)
        #expect(document.head == [1])
        #expect(document.policy == [2])
        #expect(document.start == start)

        try await bench.receive("/issues/1", #"{"id":1,"title":"new"}"#, issue)
        let later = bench.store.clock.now()
        #expect(
            try await bench.store.freshen(id, head: [3], policy: [], observedFrom: later, observedTo: later) == .dirty
        )
        #expect(try await bench.document("/issues")?.head == [1])
        // The values are not confirmed, but they may not be served for longer than the 304 allows.
        let outdated = try await bench.store.freshen(
            id,
            head: [3],
            policy: [5],
            observedFrom: later,
            observedTo: later,
            policyIfDirty: [4]
        )
        let shortened = try #require(try await bench.document("/issues"))
        #expect(outdated == .dirty && shortened.form == .composed)
        #expect(shortened.head == [3] && shortened.policy == [4] && shortened.start == start)
        bench.store.remove(id)
        await bench.store.flush()
        #expect(
            try await bench.store.freshen(id, head: [], policy: [], observedFrom: later, observedTo: later) == .gone
        )
        await bench.store.close()
    }

    @Test func `documents suspected when the daemon crashed are removed at the next start`() async throws {
        let bench = try Bench()
        try await bench.receive("/issues/1", #"{"id":1}"#, issue)
        try await bench.receive("/issues/2", #"{"id":2}"#, issue)
        let suspect = try await bench.store.markSuspect(Invalidation(of: "github", paths: ["/issues/2"], at: 0))
        try await bench.store.clear(suspect)
        _ = try await bench.store.markSuspect(Invalidation(of: "github", paths: ["/issues/1", "/issues/9"], at: 0))
        await bench.store.close()
        let again = try Bench(folder: bench.folder, time: bench.time)
        #expect(again.notices == [.suspectsDropped(documents: 1)])
        #expect(try await again.body("/issues/1") == nil)
        #expect(try await again.body("/issues/2") != nil)
        await again.store.close()
        let third = try Bench(folder: bench.folder, time: bench.time)
        #expect(third.notices.isEmpty)
        await third.store.close()
    }

    @Test func `opaque, empty and broken bodies are read back unchanged`() async throws {
        let bench = try Bench()
        let bodies = ["", "not json", #"{"id":1"#, #"{"id":1,"id":2}"#, "[]", "null", #""\u0001User:1""#]
        for (number, body) in bodies.enumerated() {
            let url = "/\(number)"
            try await bench.receive(url, body, issue)
            #expect(try await bench.body(url) == body)
        }
        let bytes: [UInt8] = [0, 255, 254, 1, 0]
        var response = bench.response("/bytes", "")
        response.body = bytes
        _ = try await bench.store.receive(response)
        #expect(try await bench.document("/bytes")?.body == bytes)
        #expect(try await bench.store.warnings().rows.contains { $0.kind == "not-json" && $0.count == 2 })
        await bench.store.close()
    }

    @Test func `readers see whole responses while a writer is busy`() async throws {
        let bench = try Bench()
        try await bench.receive("/issues", #"[{"id":1,"title":"0"},{"id":2,"title":"0"}]"#, issues)
        try await withThrowingTaskGroup(of: Void.self) { group in
            let responses = (1..<150).map { number in
                bench.response("/issues", #"[{"id":1,"title":"\#(number)"},{"id":2,"title":"\#(number)"}]"#, issues)
            }
            group.addTask {
                for response in responses { _ = try await bench.store.receive(response) }
            }
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<100 {
                        let body = try await bench.body("/issues") ?? ""
                        let titles = Set(
                            body.split(separator: "\"title\":").dropFirst().map { $0.prefix(while: { $0 != "}" }) }
                        )
                        #expect(titles.count == 1, "\(body)")
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await bench.body("/issues")?.contains("149") == true)
        await bench.store.close()
    }

    @Test func `objects and documents are listed by pages`() async throws {
        let bench = try Bench()
        try await bench.receive("/issues", list, issues)
        try await bench.receive("/issues/1", #"{"id":1,"title":"new","number":9}"#, issue)
        let page = try await bench.store.list(#require(ObjectListing(model: "Issue", order: .stored, limit: 1)))
        #expect(page.rows.count == 1)
        let next = ObjectListing(model: "Issue", order: .stored, limit: 2, after: page.next)
        let rest = try await bench.store.list(#require(next))
        #expect(rest.rows.count == 1)
        #expect(rest.next == nil)
        let one = try await bench.store.objects(ObjectQuery(model: "Issue", identity: "1")).rows
        #expect(one.count == 1)
        let json = String(decoding: one[0].json, as: UTF8.self)
        #expect(json.contains(#""title":"new""#))
        #expect(json.contains(#""user":7"#))
        let others = ObjectQuery(model: "Issue", identity: "1", principal: "p-00000000")
        #expect(try await bench.store.objects(others).rows.isEmpty)
        let documents = try await bench.store.list(DocumentListing(covers: { $0.hasPrefix("/issues/") })).rows
        #expect(documents.map(\.url) == ["/issues/1"])
        #expect(documents[0].objects == 1)
        await bench.store.close()
    }

    @Test func `of two responses in one batch the later one makes the earlier one dirty`() async throws {
        let bench = try Bench { $0.batchDelay = .milliseconds(50) }
        let list = bench.response("/users", #"[{"id":1,"login":"ada"}]"#, BodyRule(model: "User", isList: true))
        let detail = bench.response("/users/1", #"{"id":1,"login":"ada l."}"#, BodyRule(model: "User", isList: false))
        async let first = bench.store.receive(list)
        async let second = bench.store.receive(detail)
        let (earlier, later) = try await (first, second)
        let isKnown = bench.store.mayHaveChanged(earlier.objects, since: earlier.sequence)
        // The one that was stored first shows the old name.
        #expect(earlier.isDirty || isKnown || later.sequence < earlier.sequence)
        #expect(
            try await bench.document("/users").map { String(decoding: $0.body, as: UTF8.self) }
                == #"[{"id":1,"login":"ada l."}]"#
        )
    }
}
