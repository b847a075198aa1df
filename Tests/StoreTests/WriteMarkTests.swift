import Mapping
import Store
import TestSupport
import Testing

/// What writes and deletions leave behind in the store.
struct WriteMarkTests {
    private static let list = #"[{"id":1,"title":"a"}, {"id":2,"title":"b"}]"#

    private func bench(
        _ policy: DeletionPolicy = .stale,
        folder: TemporaryFolder = TemporaryFolder(),
        time: ManualTime = ManualTime()
    ) throws -> Bench {
        try Bench(folder: folder, time: time, onDelete: policy)
    }

    /// A write that ends a second from now.
    private func write(
        _ bench: Bench,
        _ path: String,
        effect: SettledWrite.Effect = .changed,
        bound: BoundObject? = nil,
        answer: String? = nil,
        principal: PrincipalID = Store.anonymous,
        context: String = "",
        patterns: [String] = []
    ) throws -> SettledWrite {
        bench.time.advance(1_000_000)
        let now = bench.store.clock.now()
        var write = SettledWrite(
            upstream: "github",
            principal: principal,
            context: context,
            path: path,
            time: now,
            effect: effect,
            bound: bound,
            patterns: try patterns.map {
                InvalidationPattern(upstream: "github", base: "/v1", pattern: try RoutePattern($0))
            }
        )
        write.observation = answer.map { answer in
            ReceivedObservation(
                upstream: "github",
                principal: principal,
                context: context,
                body: Array(answer.utf8),
                start: now - 1000,
                end: now,
                rule: issue
            )
        }
        return write
    }

    private let first = BoundObject(model: "Issue", identity: "1")
    private let second = BoundObject(model: "Issue", identity: "2")

    private func form(_ bench: Bench, _ url: String, principal: PrincipalID = Store.anonymous, context: String = "")
        async throws -> StoredDocument.Form?
    {
        try await bench.store.documents(at: bench.key(url, principal: principal, context: context)).first?.form
    }

    private func isOutdated(
        _ bench: Bench,
        _ url: String,
        principal: PrincipalID = Store.anonymous,
        context: String = ""
    )
        async throws -> Bool
    {
        guard case .outdated = try await form(bench, url, principal: principal, context: context) else { return false }
        return true
    }

    @Test func `documents from before a write that tells nothing are stale, later ones are not`() async throws {
        let bench = try bench()
        try await bench.receive("/issues", Self.list, issues)
        try await bench.store.settle(write(bench, "/issues/1", bound: first))
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

    @Test func `a list that began before a write that tells nothing is stale when it comes, and not renewed by a 304`()
        async throws
    {
        let bench = try bench()
        let slow = bench.answer("/search", Self.list, issues)
        let id = try #require(try await bench.receive("/issues", Self.list, issues).document)
        try await bench.store.settle(write(bench, "/issues/1", bound: first))
        #expect(try await bench.store.receive(slow).isDirty)
        #expect(try await isOutdated(bench, "/search"))
        let now = bench.store.clock.now()
        #expect(
            try await bench.store.refresh(id, head: [], policy: [], observedFrom: now + 1, observedTo: now + 2)
                == .dirty
        )
        await bench.store.close()
    }

    @Test func `an object that nobody had seen is remembered for answers on their way`() async throws {
        let bench = try bench()
        let other = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        let mine = bench.answer("/issues", Self.list, issues)
        let theirs = bench.answer("/issues", Self.list, issues, principal: other)
        try await bench.store.settle(write(bench, "/issues/1", bound: first))
        #expect(try await bench.store.receive(mine).isDirty)
        #expect(try await bench.store.receive(theirs).isDirty)
        await bench.store.close()
    }

    @Test func `of two writes to an object that nobody had seen the earlier counts for what is older than both`()
        async throws
    {
        let bench = try bench()
        let slow = bench.answer("/issues", Self.list, issues)
        try await bench.store.settle(write(bench, "/issues/1", bound: first))
        // Told to the one who wrote, and to nobody else.
        try await bench.store.settle(write(bench, "/issues/1", bound: first, answer: #"{"id":1,"title":"a"}"#))
        #expect(try await bench.store.receive(slow).isDirty)
        #expect(try await isOutdated(bench, "/issues"))
        await bench.store.close()
    }

    @Test func `an object made anew is not the one that lists from before its deletion show`() async throws {
        let bench = try bench(.remove)
        let slow = bench.answer("/search", Self.list, issues)
        bench.time.advance(1_000_000)
        try await bench.store.note(
            ObservedAbsence(key: bench.key("/issues/1"), bound: first, start: bench.store.clock.now())
        )
        try await bench.store.settle(write(bench, "/issues", answer: #"{"id":1,"title":"new"}"#))
        #expect(try await bench.store.receive(slow).isDirty)
        #expect(try await isOutdated(bench, "/search"))
        await bench.store.close()
    }

    @Test func `a clean forgets what was deleted, and what was made anew since`() async throws {
        let bench = try bench(.remove)
        bench.time.advance(1_000_000)
        try await bench.store.note(
            ObservedAbsence(key: bench.key("/issues/1"), bound: first, start: bench.store.clock.now())
        )
        try await bench.store.settle(write(bench, "/issues", answer: #"{"id":1,"title":"new"}"#))
        _ = try await bench.store.clean(CleanFilter(model: "Issue", identity: "1"))
        bench.time.advance(1_000_000)
        // Not long enough after the deletion for a list to count against it.
        #expect(try await !bench.receive("/issues", Self.list, issues).isDirty)
        #expect(try await bench.body("/issues") == Self.list)
        try await bench.store.note(
            ObservedAbsence(key: bench.key("/issues/2"), bound: second, start: bench.store.clock.now())
        )
        _ = try await bench.store.clean(.all)
        bench.time.advance(1_000_000)
        #expect(try await !bench.receive("/issues", Self.list, issues).isDirty)
        #expect(try await bench.body("/issues") == Self.list)
        await bench.store.close()
    }

    @Test func `a clean forgets what others wrote, of all whom it is meant for`() async throws {
        let bench = try bench()
        let other = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        let before = bench.store.clock.now()
        // As an answer from a cache on the way, made before the write.
        func isStale() async throws -> Bool {
            var answer = bench.answer("/issues", Self.list, issues)
            (answer.start, answer.end) = (before, before + 1)
            return try await bench.store.receive(answer).isDirty
        }
        try await bench.store.settle(write(bench, "/issues/1", bound: first, answer: "{}", principal: other))
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

    @Test func `after a write that tells nothing, lag protects nothing of what was told before`() async throws {
        let bench = try bench()
        try await bench.receive("/issues", Self.list, issues)
        try await bench.store.settle(write(bench, "/issues/1", bound: first, answer: #"{"id":1,"title":"first"}"#))
        #expect(try await bench.body("/issues") == Self.list.replacing(#""a""#, with: #""first""#))
        try await bench.store.settle(write(bench, "/issues/1", bound: first))
        let second = Self.list.replacing(#""a""#, with: #""second""#)
        #expect(try await !bench.receive("/issues", second, issues).isDirty)
        #expect(try await bench.body("/issues") == second)
        await bench.store.close()
    }

    @Test func `an answer that shows nothing but the identity tells nothing`() async throws {
        let bench = try bench()
        try await bench.receive("/issues", Self.list, issues)
        try await bench.store.settle(write(bench, "/issues/1", bound: first, answer: #"{"id":1}"#))
        #expect(try await isOutdated(bench, "/issues"))
        await bench.store.close()
    }

    @Test func `what a write tells one context, it makes stale in all others and for all others`() async throws {
        let bench = try bench()
        let other = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        try await bench.receive("/issues", Self.list, issues)
        try await bench.receive("/issues", Self.list, issues, context: "de")
        try await bench.receive("/issues", Self.list, issues, principal: other)
        try await bench.store.settle(write(bench, "/issues/1", bound: first, answer: #"{"id":1,"title":"new"}"#))
        #expect(try await form(bench, "/issues") == .composed)
        #expect(try await isOutdated(bench, "/issues", context: "de"))
        #expect(try await isOutdated(bench, "/issues", principal: other))
        await bench.store.close()
    }

    @Test func `an object is found by what the path is about, and by its keys`() async throws {
        let bench = try bench()
        try await bench.receive("/users/ada", #"{"id":7,"login":"ada"}"#, user)
        try await bench.receive("/issues", #"[{"id":1,"user":{"id":7,"login":"ada"}}]"#, issues)
        try await bench.receive("/other", #"[{"id":2,"user":{"id":8,"login":"bela"}}]"#, issues)
        try await bench.store.settle(write(bench, "/users/ada"))
        #expect(try await isOutdated(bench, "/issues"))
        #expect(try await form(bench, "/other") == .asReceived)
        try await bench.store.settle(write(bench, "/x", bound: BoundObject(model: "User", keys: ["bela"])))
        #expect(try await isOutdated(bench, "/other"))
        await bench.store.close()
    }

    @Test func `a key that the answer's object is bound by speaks of that object`() async throws {
        let bench = try bench()
        try await bench.receive("/users/ada", #"{"id":7,"login":"ada"}"#, user)
        var change = try write(
            bench,
            "/users/ada",
            bound: BoundObject(model: "User", keys: ["ada"]),
            answer: #"{"id":7,"login":"bela"}"#
        )
        change.observation?.rule = user
        try await bench.store.settle(change)
        #expect(try await bench.body("/users/ada") == #"{"id":7,"login":"bela"}"#)
        await bench.store.close()
    }

    // MARK: Tombstones

    @Test func `a deletion removes, makes stale, or leaves what shows the object`() async throws {
        for (policy, expected) in [(DeletionPolicy.remove, #"[{"id":2,"title":"b"}]"#), (.keep, Self.list)] {
            let bench = try bench(policy)
            try await bench.receive("/issues", Self.list, issues)
            var deletion = try write(bench, "/issues/1", effect: .deleted, bound: first)
            deletion.collections = [InvalidationTarget(upstream: "github", path: "/issues")]
            #expect(try await bench.store.settle(deletion).removed == [])
            #expect(try await bench.body("/issues") == expected)
            #expect(try await bench.store.count().models["Issue"] == 1)
            #expect(try await bench.store.objects(ObjectQuery(model: "Issue", identity: "1")).rows.isEmpty)
            var query = ObjectQuery(model: "Issue", identity: "1")
            query.areDeleted = true
            #expect(try await bench.store.objects(query).rows.count == 1)
            #expect(sqlite(bench.folder.file(), "SELECT id FROM Issue") == "2")
            // Twice is the same.
            try await bench.store.settle(write(bench, "/issues/1", effect: .absent, bound: first))
            #expect(try await bench.body("/issues") == expected)
            await bench.store.close()
            let again = try self.bench(policy, folder: bench.folder, time: bench.time)
            #expect(try await again.body("/issues") == expected)
            await again.store.close()
        }
        let bench = try bench(.stale)
        try await bench.receive("/issues", Self.list, issues)
        try await bench.receive("/search", Self.list, issues)
        var deletion = try write(bench, "/issues/1", effect: .deleted, bound: first)
        deletion.collections = [InvalidationTarget(upstream: "github", path: "/issues")]
        #expect(try await bench.store.settle(deletion).removed == ["/issues"])
        #expect(try await bench.body("/issues") == nil)
        #expect(try await isOutdated(bench, "/search"))
        await bench.store.close()
    }

    @Test func `a list that began before the deletion shows no more of it`() async throws {
        let bench = try bench(.remove)
        var slow = bench.answer("/issues", Self.list, issues)
        let deletion = try write(bench, "/issues/1", effect: .deleted, bound: first)
        try await bench.store.settle(deletion)
        // As it is taken in when a write has overtaken it.
        slow.end = deletion.time
        #expect(try await bench.store.receive(slow).isDirty)
        #expect(try await bench.body("/issues") == #"[{"id":2,"title":"b"}]"#)
        // A list that lags behind does not bring it back, and neither shows it.
        try await bench.receive("/lagging", Self.list, issues)
        #expect(try await bench.body("/lagging") == #"[{"id":2,"title":"b"}]"#)
        bench.time.advance(60_000_000)
        try await bench.receive("/late", Self.list, issues)
        #expect(try await bench.body("/late") == Self.list)
        await bench.store.close()
    }

    @Test func `a reused id is a new object`() async throws {
        let bench = try bench(.keep)
        try await bench.receive("/issues", #"[{"id":1,"title":"a","number":5}]"#, issues)
        try await bench.store.settle(write(bench, "/issues/1", effect: .deleted, bound: first))
        try await bench.store.settle(write(bench, "/issues", answer: #"{"id":1,"title":"other"}"#))
        // Nothing of the new one moves into what showed the old one, nor the other way round.
        #expect(try await isOutdated(bench, "/issues"))
        #expect(try await bench.body("/issues") == #"[{"id":1,"title":"a","number":5}]"#)
        let rows = try await bench.store.objects(ObjectQuery(model: "Issue", identity: "1")).rows
        #expect(rows.map { String(decoding: $0.json, as: UTF8.self) } == [#"{"id":1,"title":"other"}"#])
        try await bench.receive("/detail", #"{"id":1,"title":"other","number":9}"#, issue)
        #expect(try await form(bench, "/detail") == .asReceived)
        await bench.store.close()
    }

    @Test func `what a POST creates below its path is known there as absent no longer`() async throws {
        let bench = try bench()
        try await bench.receive("/issues/1", "not found")
        var creation = try write(bench, "/issues", answer: #"{"id":1,"title":"new"}"#)
        creation.isCreation = true
        #expect(try await bench.store.settle(creation).removed == ["/issues/1"])
        #expect(try await bench.body("/issues/1") == nil)
        await bench.store.close()
    }

    @Test func `a retrieval that finds nothing makes a tombstone for the one who asked`() async throws {
        let bench = try bench(.remove)
        let other = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        try await bench.receive("/issues", Self.list, issues)
        try await bench.receive("/issues", Self.list, issues, principal: other)
        try await bench.receive("/one", #"{"id":2,"title":"b"}"#, issue)
        bench.time.advance(1_000_000)
        let now = bench.store.clock.now()
        try await bench.store.note(ObservedAbsence(key: bench.key("/issues/1"), bound: first, start: now))
        #expect(try await bench.body("/issues") == #"[{"id":2,"title":"b"}]"#)
        #expect(try await bench.store.documents(at: bench.key("/issues", principal: other)).first?.form == .asReceived)
        // By what the document under its key is about; a query may ask for something else than the object.
        try await bench.store.note(
            ObservedAbsence(
                key: bench.key("/issues/2?v=9"),
                bound: BoundObject(model: "Issue", identity: "2"),
                start: now
            )
        )
        #expect(try await bench.body("/issues") == #"[{"id":2,"title":"b"}]"#)
        try await bench.store.note(ObservedAbsence(key: bench.key("/one"), bound: nil, start: now))
        #expect(try await bench.body("/issues") == "[]")
        await bench.store.close()
    }

    @Test func `an absence that is older than what is known changes nothing`() async throws {
        let bench = try bench(.remove)
        let before = bench.store.clock.now()
        // Longer than a list may lag behind it.
        bench.time.advance(60_000_000)
        try await bench.receive("/issues", Self.list, issues)
        try await bench.store.note(ObservedAbsence(key: bench.key("/issues/1"), bound: first, start: before))
        #expect(try await form(bench, "/issues") == .asReceived)
        await bench.store.close()
    }

    @Test func `what says of itself that it is deleted leaves the lists from before`() async throws {
        let bench = try Bench { configuration in
            var model = ModelDeclaration(
                name: "Issue",
                identity: ["id"],
                properties: [PropertyDeclaration(name: "title", from: "title")]
            )
            model.deletedWhen = .has("deleted_at")
            model.onDelete = .remove
            configuration.models = (try? ["github": Models([model])]) ?? [:]
        }
        try await bench.receive("/issues", Self.list, issues)
        bench.time.advance(60_000_000)
        let gone = #"{"id":1,"title":"a","deleted_at":"2020-01-01"}"#
        try await bench.receive("/issues/1", gone, issue)
        #expect(try await bench.body("/issues") == #"[{"id":2,"title":"b"}]"#)
        // The answer that says so stays as it came.
        #expect(try await bench.body("/issues/1") == gone)
        #expect(try await form(bench, "/issues/1") == .asReceived)
        await bench.store.close()
    }

    @Test func `an object that was not found is remembered for a list on its way, though nobody has seen it`()
        async throws
    {
        let bench = try bench(.remove)
        let other = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        // The first answers of a scope.
        let slow = bench.answer("/issues", Self.list, issues)
        let before = bench.answer("/search", Self.list, issues)
        bench.time.advance(1_000_000)
        let now = bench.store.clock.now()
        try await bench.store.note(ObservedAbsence(key: bench.key("/issues/1"), bound: first, start: now))
        #expect(try await bench.store.receive(before).isDirty)
        #expect(try await bench.body("/search") == #"[{"id":2,"title":"b"}]"#)
        // One that overlaps with it says otherwise: neither overrides the other, and it is asked for again.
        var overlapping = slow
        overlapping.end = now + 1000
        #expect(try await bench.store.receive(overlapping).isDirty)
        #expect(try await isOutdated(bench, "/issues"))
        // Of somebody else's nothing is known by it.
        try await bench.receive("/issues", Self.list, issues, principal: other)
        #expect(try await form(bench, "/issues", principal: other) == .asReceived)
        await bench.store.close()
    }

    @Test func `a write whose answer has no room counts as one that told nothing`() async throws {
        let bench = try Bench(maximumFileBytes: 4 << 20)
        try await bench.receive("/issues", Self.list, issues)
        let huge = #"{"id":2,"title":"\#(String(repeating: "x", count: 6 << 20))"}"#
        // Nothing but that answer says which object it is.
        try await bench.store.settle(write(bench, "/issues/find", answer: huge))
        #expect(try await isOutdated(bench, "/issues"))
        #expect(try await bench.body("/issues") == Self.list)
        await bench.store.close()
    }

    // MARK: Patterns and suspects

    @Test func `patterns reach every principal, context and query of their paths`() async throws {
        let bench = try bench()
        let other = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        for number in 0..<1200 { try await bench.receive("/v1/repos/a/issues/\(number)?page=\(number)", "{}") }
        try await bench.receive("/v1/repos/a/issues/1", "{}", principal: other)
        try await bench.receive("/v1/repos/a/issues/1", "{}", context: "de")
        try await bench.receive("/v1/repos/b/issues/1", "{}")
        try await bench.receive("/repos/a/issues/1", "{}")
        let slow = bench.answer("/v1/repos/a/issues/2", "{}")
        try await bench.store.settle(write(bench, "/v1/repos/a/issues", patterns: ["repos/a/issues/*"]))
        #expect(try await bench.store.count().documents == 2)
        #expect(try await bench.store.receive(slow).document == nil)
        try await bench.receive("/v1/repos/a/issues/2", "{}")
        #expect(try await bench.store.count().documents == 3)
        await bench.store.close()
    }

    @Test func `a write that was under way at the end counts as one that told nothing`() async throws {
        let bench = try bench()
        try await bench.receive("/issues", Self.list, issues)
        try await bench.receive("/search", #"[{"id":2,"title":"b"}]"#, issues)
        try await bench.receive("/v1/x/y", "{}")
        let pattern = InvalidationPattern(upstream: "github", base: "/v1", pattern: try RoutePattern("x/*"))
        _ = try await bench.store.markSuspect(
            upstream: "github",
            urls: ["/issues/1"],
            object: first,
            patterns: [pattern]
        )
        let settled = try await bench.store.markSuspect(
            upstream: "github",
            urls: ["/search"],
            object: BoundObject(model: "Issue", identity: "2"),
            patterns: [pattern]
        )
        try await bench.store.settle(settled)
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
