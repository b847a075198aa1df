import Mapping
import TestSupport
import Testing

@testable import Store

/// Copies that are added to a store with content of its own.
struct MergeTests: WriteMarkFixtures {
    /// A digest of a key of principals.
    private static let key: [UInt8] = [1, 2, 3]
    /// What the policy of a document of unknown age is here.
    private static let ageless: [UInt8] = [9]

    private func save(_ bench: Bench, _ name: String = "copy") async throws -> String {
        let path = bench.folder.file(name)
        try await bench.store.save(to: path, principalKey: Self.key)
        return path
    }

    /// A copy is used up: each merging gets one of its own.
    @discardableResult
    private func merge(_ copy: String, into bench: Bench, key: [UInt8] = key) async throws -> LoadResult {
        let path = bench.store.copyPaths.loading
        try ChildProcess.run("cp", [copy, path])
        return try await bench.store.merge(path, principalKey: key) { _ in Self.ageless }
    }

    private func clean(_ bench: Bench) async throws { _ = try await bench.store.clean(CleanFilter()) }

    /// What the store has, without its size.
    private func contents(_ bench: Bench) async throws -> StoreCount {
        var count = try await bench.store.count()
        count.bytes = 0
        return count
    }

    private func json(_ bench: Bench, _ model: String, _ identity: String) async throws -> String? {
        try await bench.store.objects(ObjectQuery(model: model, identity: identity)).rows.first
            .map { String(decoding: $0.json, as: UTF8.self) }
    }

    @Test func `after a save, a clean and a merge there is what was there before`() async throws {
        let bench = try bench(.remove)
        try await bench.receive("/issues", Self.list, issues)
        try await bench.receive("/issues/7", #"{"id":7,"title":"seven","user":{"id":1,"login":"ada"}}"#, issue)
        try await bench.receive("/plain", "no objects")
        // Shown by no document: what a write has shown.
        try await bench.complete(
            ReceivedObservation(
                body: Array(#"{"id":9,"login":"nine"}"#.utf8),
                start: bench.store.clock.now(),
                rule: user
            )
        )
        var deletion = try write(bench, "/issues/1", effect: .deleted, bound: first)
        deletion.collections = []
        try await bench.store.complete(deletion)
        let (before, list) = (try await contents(bench), try await bench.body("/issues"))
        #expect(list == #"[{"id":2,"title":"b"}]"#)
        let copy = try await save(bench)
        try await clean(bench)
        #expect(try await contents(bench).documents == 0)
        let result = try await merge(copy, into: bench)
        #expect(result.added.documents == before.documents && result.added.objects == before.objects)
        #expect(try await contents(bench) == before)
        #expect(try await bench.body("/issues") == list)
        #expect(try await bench.body("/plain") == "no objects")
        #expect(try await bench.document("/plain")?.policy == Self.ageless)
        #expect(try await json(bench, "User", "9")?.contains("nine") == true)
        #expect(try await bench.store.objects(ObjectQuery(model: "User", key: "ada")).rows.count == 1)
        await bench.store.close()
        let again = try self.bench(.remove, folder: bench.folder, time: bench.time)
        #expect(try await contents(again) == before)
        #expect(sqlite(bench.folder.file(), "PRAGMA integrity_check") == "ok")
        await again.store.close()
    }

    @Test func `what the store knows stays, and what the copy knows besides is added`() async throws {
        let bench = try Bench()
        try await bench.receive("/issues/1", #"{"id":1,"title":"old","number":5}"#, issue)
        try await bench.receive("/issues", #"[{"id":1,"title":"old","number":5},{"id":2,"title":"two"}]"#, issues)
        let copy = try await save(bench)
        try await clean(bench)
        try await bench.receive("/issues/1", #"{"id":1,"title":"new"}"#, issue)
        let result = try await merge(copy, into: bench)
        #expect(result.added.documents == 1 && result.added.objects == 1)
        #expect(try await bench.body("/issues/1") == #"{"id":1,"title":"new"}"#)
        #expect(try await bench.document("/issues/1")?.policy == [1, 2, 3])
        // The document that came with the copy shows what the store knows.
        #expect(try await bench.body("/issues") == #"[{"id":1,"title":"new","number":5},{"id":2,"title":"two"}]"#)
        let why = try await bench.store.why(ObjectID(rawValue: 1))
        #expect(why == nil || why?.members.isEmpty == false)
        // Any later observation is newer than what came with a copy.
        try await bench.receive("/two", #"{"id":2,"title":"zwei"}"#, issue)
        #expect(try await bench.body("/issues")?.contains(#""zwei""#) == true)
        await bench.store.close()
    }

    @Test func `only a later stamp of a copy replaces a value`() async throws {
        let models = [
            "github": try Models([
                ModelDeclaration(
                    name: "User",
                    identity: ["id"],
                    properties: [
                        PropertyDeclaration(name: "name", from: "name"), PropertyDeclaration(name: "at", from: "at"),
                    ],
                    modified: "at"
                )
            ])
        ]
        let bench = try Bench { $0.models = models }
        try await bench.receive("/users/1", #"{"id":1,"name":"later","at":"2026-02-01T00:00:00Z"}"#, user)
        try await bench.receive("/users/2", #"{"id":2,"name":"earlier","at":"2026-01-01T00:00:00Z"}"#, user)
        let copy = try await save(bench)
        try await clean(bench)
        try await bench.receive("/1", #"{"id":1,"name":"mine","at":"2026-01-15T00:00:00Z"}"#, user)
        try await bench.receive("/2", #"{"id":2,"name":"mine","at":"2026-01-15T00:00:00Z"}"#, user)
        try await merge(copy, into: bench)
        #expect(try await json(bench, "User", "1")?.contains("later") == true)
        #expect(try await json(bench, "User", "2")?.contains("mine") == true)
        #expect(try await bench.body("/users/2")?.contains("mine") == true)
        await bench.store.close()
    }

    @Test func `what was deleted here does not come back with a copy`() async throws {
        let bench = try bench(.remove)
        try await bench.receive("/issues", Self.list, issues)
        let copy = try await save(bench)
        try await bench.store.complete(write(bench, "/issues/1", effect: .deleted, bound: first))
        try await merge(copy, into: bench)
        #expect(try await bench.body("/issues") == #"[{"id":2,"title":"b"}]"#)
        // Nor where it was not known here when it was deleted.
        try await clean(bench)
        try await bench.store.complete(write(bench, "/issues/2", effect: .deleted, bound: second))
        try await merge(copy, into: bench)
        #expect(try await bench.body("/issues")?.contains(#""id":2"#) == false)
        await bench.store.close()
    }

    @Test func `merging twice, or a store's own copy, changes nothing`() async throws {
        let bench = try Bench()
        for number in 1...200 {
            try await bench.receive("/issues/\(number)", #"{"id":\#(number),"title":"\#(number)"}"#, issue)
        }
        try await bench.receive("/some", #"[{"id":1,"title":"changed"},{"id":2,"title":"2"}]"#, issues)
        let copy = try await save(bench)
        let before = try await contents(bench)
        #expect(try await merge(copy, into: bench).added == StoreCount())
        #expect(try await contents(bench) == before)
        #expect(try await json(bench, "Issue", "1")?.contains("changed") == true)
        try await clean(bench)
        #expect(try await merge(copy, into: bench).added.documents == before.documents)
        let sequence = sqlite(bench.folder.file(), "SELECT count(*), max(id) FROM _documents")
        #expect(try await merge(copy, into: bench).added == StoreCount())
        #expect(sqlite(bench.folder.file(), "SELECT count(*), max(id) FROM _documents") == sequence)
        #expect(try await contents(bench) == before)
        #expect(try await bench.body("/issues/1") == #"{"id":1,"title":"changed"}"#)
        await bench.store.close()
    }

    @Test func `a copy of another store brings its users' data under the ids of this one`() async throws {
        let (first, second) = (try Bench(), try Bench())
        let (ada, bob) = ([UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32))
        let there = try await first.store.principal(bob)
        try await first.receive("/users/1", #"{"id":1,"login":"bob"}"#, user, principal: there)
        try await first.receive("/users/2", #"{"id":2,"login":"eve"}"#, user)
        let copy = try await save(first)
        let here = try await second.store.principal(ada)
        try await second.receive("/users/1", #"{"id":1,"login":"ada"}"#, user, principal: here)
        let result = try await merge(copy, into: second)
        #expect(result.added.documents == 2 && result.dropped == StoreCount())
        #expect(try await second.document("/users/1", principal: here)?.body == Array(#"{"id":1,"login":"ada"}"#.utf8))
        let bobs = try #require(try await second.store.existingPrincipal(bob))
        #expect(bobs != here)
        #expect(try await second.document("/users/1", principal: bobs)?.body == Array(#"{"id":1,"login":"bob"}"#.utf8))
        // By its key the object is found, whatever secret its digest was made with.
        #expect(try await second.store.objects(ObjectQuery(model: "User", key: "eve")).rows.count == 1)
        // With another key of principals nobody could ask for bob's data.
        let third = try Bench()
        let dropped = try await merge(copy, into: third, key: [7])
        #expect(dropped.added.documents == 1 && dropped.dropped.documents == 1)
        #expect(try await third.store.existingPrincipal(bob) == nil)
        for bench in [first, second, third] { await bench.store.close() }
    }

    @Test(arguments: [false, true])
    func `a write finds what came with another store's copy by its key`(isMerged: Bool) async throws {
        let (first, second) = (try Bench(), try Bench())
        var aliased = first.response("/users/boss", #"{"id":1,"admin":false}"#, user)
        aliased.surroundings = MappingContext(bound: ["login": "boss"])
        _ = try await first.store.receive(aliased)
        try await first.receive("/users", #"[{"id":2,"login":"eve"}]"#, users)
        try await first.receive("/all", #"[{"id":1,"admin":false}]"#, users)
        let copy = try await save(first)
        if isMerged {
            try await merge(copy, into: second)
        } else {
            let path = second.store.copyPaths.loading
            try ChildProcess.run("cp", [copy, path])
            _ = try await second.store.load(path, principalKey: Self.key, replacing: true)
            // A name that only a path has given is in no value: a search finds it in the index of keys alone.
            let listing = try #require(ObjectListing(model: "User", text: "boss", order: .identity))
            #expect(try await second.store.list(listing).rows.map(\.identity) == ["1"])
        }
        for (login, shown) in [("eve", "/users"), ("boss", "/users/boss")] {
            second.time.advance(1_000_000)
            let change = CompletedWrite(
                upstream: "github",
                principal: .anonymous,
                context: "",
                path: "/elsewhere",
                time: second.store.clock.now(),
                effect: .changed,
                bound: BoundObject(model: "User", keys: [login])
            )
            try await second.store.complete(change)
            // Marked, or gone where only a path has given the name: never as it was.
            let form = try await second.document(shown)?.form
            #expect(form != .asReceived && form != .composed, "\(login): \(form.map { "\($0)" } ?? "gone")")
        }
        for bench in [first, second] { await bench.store.close() }
    }

    @Test func `a damaged copy is refused whole, and another one meanwhile`() async throws {
        let bench = try Bench()
        for number in 1...300 {
            try await bench.receive("/\(number)", #"{"id":\#(number),"login":"u\#(number)"}"#, user)
        }
        let copy = try await save(bench)
        try await clean(bench)
        #expect(
            alter(copy, "UPDATE _bodies SET pins = x'ff' WHERE document = (SELECT max(document) FROM _bodies)") == ""
        )
        await #expect(throws: StoreError.self) { try await merge(copy, into: bench) }
        #expect(try await contents(bench).documents == 0)
        // The store itself is whole.
        #expect(bench.store.statistics.damaged == 0)
        try await bench.receive("/after", #"{"id":1,"login":"after"}"#, user)
        #expect(try await contents(bench).documents == 1)
        await bench.store.close()
    }

    @Test func `times of a copy come before those of the store, and are shown as they were`() {
        let (early, late): (Int64, Int64) = (1_700_000_000_000_000, 1_700_000_000_000_007)
        #expect(CopiedTime.moved(late) - CopiedTime.moved(early) == 7)
        #expect(CopiedTime.moved(late) < 1_000_000_000_000_000)
        #expect(CopiedTime.moved(CopiedTime.moved(late)) == CopiedTime.moved(late))
        #expect(CopiedTime.shown(CopiedTime.moved(late)) == late)
        #expect(CopiedTime.shown(late) == late)
        #expect(CopiedTime.moved(.min) == .min)
    }
}
