import Mapping
import TestSupport
import Testing

@testable import Store

/// What writes leave behind in the store, for what is older than they are.
struct WriteMarkTests: WriteMarkFixtures {
    @Test func `documents from before a write without a body are stale, later ones are not`() async throws {
        let bench = try bench()
        try await bench.receive("/issues", Self.list, issues)
        try await bench.store.complete(write(bench, "/issues/1", bound: first))
        #expect(try await isOutdated(bench, "/issues"))
        #expect(try await bench.body("/issues") == Self.list)
        let changed = Self.list.replacing(#""a""#, with: #""new""#)
        let receipt = try await bench.receive("/issues", changed, issues)
        #expect(!receipt.isDirty)
        #expect(try await form(bench, "/issues") == .asReceived)
        await bench.store.close()
        // It outlives a restart.
        let again = try self.bench(folder: bench.folder, time: bench.time)
        #expect(try await form(again, "/issues") == .asReceived)
        await again.store.close()
    }

    @Test func `a list requested before a write without a body is stale on arrival, and no 304 renews it`()
        async throws
    {
        let bench = try bench()
        let slow = bench.response("/search", Self.list, issues)
        let id = try #require(try await bench.receive("/issues", Self.list, issues).document)
        try await bench.store.complete(write(bench, "/issues/1", bound: first))
        #expect(try await bench.store.receive(slow).isDirty)
        #expect(try await isOutdated(bench, "/search"))
        let now = bench.store.clock.now()
        #expect(
            try await bench.store.freshen(id, head: [], policy: [], observedFrom: now + 1, observedTo: now + 2)
                == .dirty
        )
        await bench.store.close()
    }

    @Test func `a write to an object that was never observed is remembered for responses on their way`() async throws {
        let bench = try bench()
        let other = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        let mine = bench.response("/issues", Self.list, issues)
        let theirs = bench.response("/issues", Self.list, issues, principal: other)
        try await bench.store.complete(write(bench, "/issues/1", bound: first))
        #expect(try await bench.store.receive(mine).isDirty)
        #expect(try await bench.store.receive(theirs).isDirty)
        await bench.store.close()
    }

    @Test func `responses older than two writes to an unobserved object are judged by the earlier write`()
        async throws
    {
        let bench = try bench()
        let slow = bench.response("/issues", Self.list, issues)
        try await bench.store.complete(write(bench, "/issues/1", bound: first))
        // Shown only to the principal who wrote.
        try await bench.store.complete(write(bench, "/issues/1", bound: first, response: #"{"id":1,"title":"a"}"#))
        #expect(try await bench.store.receive(slow).isDirty)
        #expect(try await isOutdated(bench, "/issues"))
        await bench.store.close()
    }

    @Test func `a clean forgets the writes of others, for all principals that it selects`() async throws {
        let bench = try bench()
        let other = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        let before = bench.store.clock.now()
        // Like a response from a cache on the way, made before the write.
        func isStale() async throws -> Bool {
            var response = bench.response("/issues", Self.list, issues)
            (response.start, response.end) = (before, before + 1)
            return try await bench.store.receive(response).isDirty
        }
        try await bench.store.complete(write(bench, "/issues/1", bound: first, response: "{}", principal: other))
        #expect(try await isStale())
        for filter in [
            CleanFilter(model: "User"), CleanFilter(model: "Issue", identity: "2"), CleanFilter(upstream: "gitlab"),
            CleanFilter(principal: "anonymous"),
        ] {
            _ = try await bench.store.clean(filter)
            #expect(try await isStale())
        }
        _ = try await bench.store.clean(CleanFilter(model: "Issue", identity: "1", upstream: "github"))
        #expect(try await !isStale())
        await bench.store.close()
    }

    @Test func `after a write without a body the lag protects no value that was observed before`() async throws {
        let bench = try bench()
        try await bench.receive("/issues", Self.list, issues)
        try await bench.store.complete(write(bench, "/issues/1", bound: first, response: #"{"id":1,"title":"first"}"#))
        #expect(try await bench.body("/issues") == Self.list.replacing(#""a""#, with: #""first""#))
        try await bench.store.complete(write(bench, "/issues/1", bound: first))
        let second = Self.list.replacing(#""a""#, with: #""second""#)
        #expect(try await !bench.receive("/issues", second, issues).isDirty)
        #expect(try await bench.body("/issues") == second)
        await bench.store.close()
    }

    @Test func `a write whose response shows only the identity counts as a write without a body`() async throws {
        let bench = try bench()
        try await bench.receive("/issues", Self.list, issues)
        try await bench.store.complete(write(bench, "/issues/1", bound: first, response: #"{"id":1}"#))
        #expect(try await isOutdated(bench, "/issues"))
        await bench.store.close()
    }

    @Test func `a write makes its object stale in other contexts and for other principals`() async throws {
        let bench = try bench()
        let other = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        try await bench.receive("/issues", Self.list, issues)
        try await bench.receive("/issues", Self.list, issues, context: "de")
        try await bench.receive("/issues", Self.list, issues, principal: other)
        try await bench.store.complete(write(bench, "/issues/1", bound: first, response: #"{"id":1,"title":"new"}"#))
        #expect(try await form(bench, "/issues") == .composed)
        #expect(try await isOutdated(bench, "/issues", context: "de"))
        #expect(try await isOutdated(bench, "/issues", principal: other))
        await bench.store.close()
    }

    @Test func `a write's object is found by the path's captures, and by its keys`() async throws {
        let bench = try bench()
        try await bench.receive("/users/ada", #"{"id":7,"login":"ada"}"#, user)
        try await bench.receive("/issues", #"[{"id":1,"user":{"id":7,"login":"ada"}}]"#, issues)
        try await bench.receive("/other", #"[{"id":2,"user":{"id":8,"login":"bela"}}]"#, issues)
        try await bench.store.complete(write(bench, "/users/ada"))
        #expect(try await isOutdated(bench, "/issues"))
        #expect(try await form(bench, "/other") == .asReceived)
        try await bench.store.complete(write(bench, "/x", bound: BoundObject(model: "User", keys: ["bela"])))
        #expect(try await isOutdated(bench, "/other"))
        await bench.store.close()
    }

    @Test func `a key by which the path names the response's object names that object`() async throws {
        let bench = try bench()
        try await bench.receive("/users/ada", #"{"id":7,"login":"ada"}"#, user)
        var change = try write(
            bench,
            "/users/ada",
            bound: BoundObject(model: "User", keys: ["ada"]),
            response: #"{"id":7,"login":"bela"}"#
        )
        change.observation?.rule = user
        try await bench.store.complete(change)
        #expect(try await bench.body("/users/ada") == #"{"id":7,"login":"bela"}"#)
        await bench.store.close()
    }

    @Test func `a write whose response has no room counts as one without a body`() async throws {
        let bench = try Bench(maximumFileBytes: 4 << 20)
        try await bench.receive("/issues", Self.list, issues)
        let huge = #"{"id":2,"title":"\#(String(repeating: "x", count: 6 << 20))"}"#
        // Only that response shows which object it is.
        try await bench.store.complete(write(bench, "/issues/find", response: huge))
        #expect(try await isOutdated(bench, "/issues"))
        #expect(try await bench.body("/issues") == Self.list)
        await bench.store.close()
    }

    // MARK: Lists that may lag

    private static let written = list.replacing(#""a""#, with: #""written""#)

    private func laggingBench() throws -> Bench { try Bench { $0.lag = Lag(lists: 30_000_000) } }

    @Test func `once a detail is known after a write, lists are hits again`() async throws {
        let bench = try laggingBench()
        try await bench.receive("/issues", Self.list, issues)
        try await bench.store.complete(write(bench, "/issues/1", bound: first))
        #expect(try await isOutdated(bench, "/issues"))
        try await bench.receive("/issues/1", #"{"id":1,"title":"written"}"#, issue)
        // The list was requested before the write, and may show what else was written.
        #expect(try await isOutdated(bench, "/issues"))
        try await bench.receive("/issues", Self.written, issues)
        #expect(try await form(bench, "/issues") == .asReceived)
        // A list that lags is composed, and its value noted as a doubt.
        try await bench.receive("/search", Self.list, issues)
        #expect(try await form(bench, "/search") == .composed)
        #expect(try await bench.body("/search") == Self.written)
        #expect(try await bench.document("/search")?.doubts.count == 1)
        await bench.store.close()
    }

    @Test func `after an own write without a body a list that shows no change is a hit only after the lag`()
        async throws
    {
        let bench = try laggingBench()
        try await bench.receive("/issues", Self.list, issues)
        try await bench.store.complete(write(bench, "/issues/1", bound: first))
        for url in ["/issues", "/search"] {
            try await bench.receive(url, Self.list, issues)
            #expect(try await isOutdated(bench, url), "it may lag behind the write")
        }
        bench.time.advance(40_000_000)
        try await bench.receive("/search", Self.list, issues)
        #expect(try await form(bench, "/search") == .asReceived)
        await bench.store.close()
    }

    @Test func `after another principal's write a list with the known values is a hit, and refreshed after the lag`()
        async throws
    {
        let bench = try laggingBench()
        try await bench.receive("/issues", Self.list, issues)
        let other = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        try await bench.receive("/issues", Self.list, issues, principal: other)
        let write = try write(bench, "/issues/1", bound: first, principal: other)
        try await bench.store.complete(write)
        try await bench.receive("/search", Self.list, issues)
        #expect(try await form(bench, "/search") == .asReceived)
        #expect(try await bench.document("/search")?.doubts == [write.time + 30_000_000])
        #expect(try await isOutdated(bench, "/issues"))
        bench.time.advance(40_000_000)
        try await bench.receive("/search", Self.written, issues)
        #expect(try await bench.document("/search")?.doubts == [])
        #expect(try await bench.body("/search") == Self.written)
        await bench.store.close()
    }

    @Test func `after an own write without a body a list that shows a change is a hit only after the lag`()
        async throws
    {
        let bench = try laggingBench()
        try await bench.receive("/issues", Self.list, issues)
        try await bench.store.complete(write(bench, "/issues/1", bound: first))
        try await bench.receive("/issues", Self.written, issues)
        #expect(try await isOutdated(bench, "/issues"), "what has changed may have been there before the write")
        bench.time.advance(40_000_000)
        try await bench.receive("/issues", Self.written, issues)
        #expect(try await bench.body("/issues") == Self.written)
        #expect(try await form(bench, "/issues") == .asReceived)
        await bench.store.close()
    }

    @Test func `if lists disagree after a write without a body, none is a hit until the object itself is read`()
        async throws
    {
        let bench = try laggingBench()
        try await bench.receive("/issues/1", #"{"id":1,"title":"a"}"#, issue)
        try await bench.store.complete(write(bench, "/issues/1", bound: first))
        try await bench.receive("/lagging", Self.list, issues)
        try await bench.receive("/issues", Self.written, issues)
        #expect(try await isOutdated(bench, "/issues"))
        #expect(try await isOutdated(bench, "/lagging"))
        try await bench.receive("/issues/1", #"{"id":1,"title":"written"}"#, issue)
        #expect(try await bench.body("/issues") == Self.written)
        #expect(try await bench.body("/lagging") == Self.written)
        await bench.store.close()
    }

    @Test func `a write that overlaps a read settles the value, and later lists are hits`() async throws {
        let bench = try laggingBench()
        var slow = bench.response("/issues/1", #"{"id":1,"title":"a"}"#, issue)
        var change = try write(bench, "/issues/1", bound: first, response: #"{"id":1,"title":"written"}"#)
        change.observation?.start = slow.start + 1
        slow.end = bench.store.clock.now()
        _ = try await bench.store.receive(slow)
        change.time = bench.store.clock.now()
        try await bench.store.complete(change)
        try await bench.receive("/issues/1", #"{"id":1,"title":"written"}"#, issue)
        try await bench.receive("/issues", Self.written, issues)
        #expect(try await form(bench, "/issues") == .asReceived)
        #expect(try await form(bench, "/issues/1") == .asReceived)
        await bench.store.close()
    }

    @Test func `an object is found by either value of a key that is in doubt`() async throws {
        let bench = try bench()
        let responses = ["ada", "lovelace"].map { login in
            bench.response("/users/\(login)", #"{"id":7,"login":"\#(login)"}"#, user)
        }
        for var response in responses {
            (response.start, response.end) = (responses[0].start, responses[1].end)
            _ = try await bench.store.receive(response)
        }
        try await bench.receive("/team", #"[{"id":7,"admin":true}]"#, users)
        #expect(try await bench.document("/users/ada")?.doubts.count == 1)
        for login in ["lovelace", "ada"] {
            let key = BoundObject(model: "User", keys: [login])
            try await bench.store.complete(write(bench, "/elsewhere/\(login)", bound: key))
            #expect(try await isOutdated(bench, "/team"), "\(login)")
            try await bench.receive("/team", #"[{"id":7,"admin":true}]"#, users)
            #expect(try await !isOutdated(bench, "/team"))
        }
        await bench.store.close()
    }

    // MARK: Patterns and suspects

    @Test func `an invalidated pattern applies to every principal, context and query of its paths`() async throws {
        let bench = try bench()
        let other = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        for number in 0..<1200 { try await bench.receive("/v1/repos/a/issues/\(number)?page=\(number)", "{}") }
        try await bench.receive("/v1/repos/a/issues/1", "{}", principal: other)
        try await bench.receive("/v1/repos/a/issues/1", "{}", context: "de")
        try await bench.receive("/v1/repos/b/issues/1", "{}")
        try await bench.receive("/repos/a/issues/1", "{}")
        let slow = bench.response("/v1/repos/a/issues/2", "{}")
        try await bench.store.complete(write(bench, "/v1/repos/a/issues", patterns: ["repos/a/issues/*"]))
        #expect(try await bench.store.count().documents == 2)
        #expect(try await bench.store.receive(slow).document == nil)
        try await bench.receive("/v1/repos/a/issues/2", "{}")
        #expect(try await bench.store.count().documents == 3)
        await bench.store.close()
    }

    @Test func `a write that was under way when the daemon ended counts as one without a body`() async throws {
        let bench = try bench()
        try await bench.receive("/issues", Self.list, issues)
        try await bench.receive("/search", #"[{"id":2,"title":"b"}]"#, issues)
        try await bench.receive("/v1/x/y", "{}")
        let pattern = InvalidationPattern(base: "/v1", pattern: try RoutePattern("x/*"))
        _ = try await bench.store.markSuspect(
            Invalidation(of: "github", paths: ["/issues/1"], patterns: [pattern], objects: [first], at: 0)
        )
        let suspect = try await bench.store.markSuspect(
            Invalidation(
                of: "github",
                paths: ["/search"],
                patterns: [pattern],
                objects: [BoundObject(model: "Issue", identity: "2")],
                at: 0
            )
        )
        try await bench.store.clear(suspect)
        await bench.store.close()
        bench.time.advance(1_000_000)
        let again = try self.bench(folder: bench.folder, time: bench.time)
        #expect(try await isOutdated(again, "/issues"))
        #expect(try await form(again, "/search") == .asReceived)
        #expect(try await again.body("/v1/x/y") == nil)
        await again.store.close()
        let third = try self.bench(folder: bench.folder, time: bench.time)
        #expect(third.notices.isEmpty)
        await third.store.close()
    }
}
