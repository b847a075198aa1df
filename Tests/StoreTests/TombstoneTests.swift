import Mapping
import TestSupport
import Testing

@testable import Store

/// What deletions leave behind in the store: tombstones, what still shows the object, and its identity used again.
struct TombstoneTests: WriteMarkFixtures {
    @Test func `a deletion removes the object's documents, makes them stale or leaves them, as declared`() async throws
    {
        for (policy, expected) in [(DeletionPolicy.remove, #"[{"id":2,"title":"b"}]"#), (.keep, Self.list)] {
            let bench = try bench(policy)
            try await bench.receive("/issues", Self.list, issues)
            var deletion = try write(bench, "/issues/1", effect: .deleted, bound: first)
            deletion.collections = ["/issues"]
            #expect(try await bench.store.complete(deletion).removed == [])
            #expect(try await bench.body("/issues") == expected)
            #expect(try await bench.store.count().models["Issue"] == 1)
            #expect(try await bench.store.objects(ObjectQuery(model: "Issue", identity: "1")).rows.isEmpty)
            var query = ObjectQuery(model: "Issue", identity: "1")
            query.areDeleted = true
            #expect(try await bench.store.objects(query).rows.count == 1)
            #expect(sqlite(bench.folder.file(), "SELECT id FROM Issue") == "2")
            // Twice is the same.
            try await bench.store.complete(write(bench, "/issues/1", effect: .absent, bound: first))
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
        deletion.collections = ["/issues"]
        #expect(try await bench.store.complete(deletion).removed == ["/issues"])
        #expect(try await bench.body("/issues") == nil)
        #expect(try await isOutdated(bench, "/search"))
        await bench.store.close()
    }

    @Test func `a list requested before a deletion does not show the deleted object`() async throws {
        let bench = try Bench(onDelete: .remove) { $0.lag = Lag(lists: 30_000_000) }
        var slow = bench.response("/issues", Self.list, issues)
        let deletion = try write(bench, "/issues/1", effect: .deleted, bound: first)
        try await bench.store.complete(deletion)
        // As it is stored after a write that came later.
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
        try await bench.store.complete(write(bench, "/issues/1", effect: .deleted, bound: first))
        try await bench.store.complete(write(bench, "/issues", response: #"{"id":1,"title":"other"}"#))
        // Nothing of the new one moves into what showed the old one, nor the other way round.
        #expect(try await isOutdated(bench, "/issues"))
        #expect(try await bench.body("/issues") == #"[{"id":1,"title":"a","number":5}]"#)
        let rows = try await bench.store.objects(ObjectQuery(model: "Issue", identity: "1")).rows
        #expect(rows.map { String(decoding: $0.json, as: UTF8.self) } == [#"{"id":1,"title":"other"}"#])
        try await bench.receive("/detail", #"{"id":1,"title":"other","number":9}"#, issue)
        #expect(try await form(bench, "/detail") == .asReceived)
        await bench.store.close()
    }

    @Test func `lists from before a deletion do not show the object that was created anew`() async throws {
        let bench = try bench(.remove)
        let slow = bench.response("/search", Self.list, issues)
        bench.time.advance(1_000_000)
        try await bench.store.commit(
            ObservedAbsence(key: bench.key("/issues/1"), bound: first, start: bench.store.clock.now())
        )
        try await bench.store.complete(write(bench, "/issues", response: #"{"id":1,"title":"new"}"#))
        #expect(try await bench.store.receive(slow).isDirty)
        #expect(try await isOutdated(bench, "/search"))
        await bench.store.close()
    }

    @Test func `an object that a POST creates no longer counts as absent`() async throws {
        let bench = try bench()
        try await bench.receive("/issues/1", "not found")
        var creation = try write(bench, "/issues", response: #"{"id":1,"title":"new"}"#)
        creation.isCreation = true
        #expect(try await bench.store.complete(creation).removed == ["/issues/1"])
        #expect(try await bench.body("/issues/1") == nil)
        await bench.store.close()
    }

    @Test func `a 404 makes a tombstone for the principal who asked`() async throws {
        let bench = try bench(.remove)
        let other = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        try await bench.receive("/issues", Self.list, issues)
        try await bench.receive("/issues", Self.list, issues, principal: other)
        try await bench.receive("/one", #"{"id":2,"title":"b"}"#, issue)
        bench.time.advance(1_000_000)
        let now = bench.store.clock.now()
        try await bench.store.commit(ObservedAbsence(key: bench.key("/issues/1"), bound: first, start: now))
        #expect(try await bench.body("/issues") == #"[{"id":2,"title":"b"}]"#)
        #expect(try await bench.store.documents(at: bench.key("/issues", principal: other)).first?.form == .asReceived)
        // By what the document under its key is about; a query may ask for something else than the object.
        try await bench.store.commit(
            ObservedAbsence(
                key: bench.key("/issues/2?v=9"),
                bound: BoundObject(model: "Issue", identity: "2"),
                start: now
            )
        )
        #expect(try await bench.body("/issues") == #"[{"id":2,"title":"b"}]"#)
        // That a path which does not end with the identity is gone does not say that the object is.
        try await bench.store.commit(ObservedAbsence(key: bench.key("/one"), bound: nil, start: now))
        #expect(try await isOutdated(bench, "/issues"))
        await bench.store.close()
    }

    @Test func `an absence that is older than the known object changes nothing`() async throws {
        let bench = try bench(.remove)
        let before = bench.store.clock.now()
        // Longer than a list may lag behind it.
        bench.time.advance(60_000_000)
        try await bench.receive("/issues", Self.list, issues)
        try await bench.store.commit(ObservedAbsence(key: bench.key("/issues/1"), bound: first, start: before))
        #expect(try await form(bench, "/issues") == .asReceived)
        await bench.store.close()
    }

    @Test func `an object that says it is deleted is removed from earlier lists`() async throws {
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
        // The response that says so stays as received.
        #expect(try await bench.body("/issues/1") == gone)
        #expect(try await form(bench, "/issues/1") == .asReceived)
        await bench.store.close()
    }

    @Test func `an object that was not found is removed from a list on its way, even if it was never observed`()
        async throws
    {
        let bench = try bench(.remove)
        let other = try await bench.store.principal([UInt8](repeating: 1, count: 32))
        // The first responses of a scope.
        let slow = bench.response("/issues", Self.list, issues)
        let before = bench.response("/search", Self.list, issues)
        bench.time.advance(1_000_000)
        let now = bench.store.clock.now()
        try await bench.store.commit(ObservedAbsence(key: bench.key("/issues/1"), bound: first, start: now))
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

    @Test func `a clean forgets deletions, and objects created since`() async throws {
        let bench = try bench(.remove)
        bench.time.advance(1_000_000)
        try await bench.store.commit(
            ObservedAbsence(key: bench.key("/issues/1"), bound: first, start: bench.store.clock.now())
        )
        try await bench.store.complete(write(bench, "/issues", response: #"{"id":1,"title":"new"}"#))
        _ = try await bench.store.clean(CleanFilter(model: "Issue", identity: "1"))
        bench.time.advance(1_000_000)
        // Not long enough after the deletion for a list to count against it.
        #expect(try await !bench.receive("/issues", Self.list, issues).isDirty)
        #expect(try await bench.body("/issues") == Self.list)
        try await bench.store.commit(
            ObservedAbsence(key: bench.key("/issues/2"), bound: second, start: bench.store.clock.now())
        )
        _ = try await bench.store.clean(CleanFilter())
        bench.time.advance(1_000_000)
        #expect(try await !bench.receive("/issues", Self.list, issues).isDirty)
        #expect(try await bench.body("/issues") == Self.list)
        await bench.store.close()
    }
}
