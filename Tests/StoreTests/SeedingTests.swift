import Mapping
import TestSupport
import Testing

@testable import Store

/// Objects that are given to the store without a response, beside those that responses show.
struct SeedingTests {
    private static let lag: Int64 = 30_000_000

    /// A store whose lists lag by half a minute.
    private func bench(_ time: ManualTime = ManualTime(), folder: TemporaryFolder = TemporaryFolder()) throws -> Bench {
        try Bench(folder: folder, time: time) { $0.lag = Lag(lists: Self.lag) }
    }

    @discardableResult
    private func seed(
        _ bench: Bench,
        _ values: String...,
        model: String = "User",
        principal: PrincipalID = .anonymous
    ) async throws -> SeedReceipt {
        bench.time.advance(1_000)
        defer { bench.time.advance(1_000) }
        let seed = Seed(upstream: "github", principal: principal, model: model, values: values.map { Array($0.utf8) })
        return try await bench.store.seed(seed)
    }

    private func login(_ bench: Bench, _ id: String = "1") async throws -> String? {
        let page = try await bench.store.objects(ObjectQuery(model: "User", identity: id))
        return page.rows.first.map { String(decoding: $0.json, as: UTF8.self) }
    }

    @Test func `seeded values are objects, with those within them, and are counted`() async throws {
        let bench = try bench()
        let first = try await seed(bench, #"{"id":5,"title":"a","user":{"id":1,"login":"ada"}}"#, model: "Issue")
        #expect(first.created == 2 && first.changed == 0 && first.unchanged == 0 && first.skipped.isEmpty)
        let again = try await seed(
            bench,
            #"{"id":5,"title":"b","user":{"id":1,"login":"ada"}}"#,
            #"{"id":5,"title":"b","user":{"id":1,"login":"ada"}}"#,
            #"{"title":"c"}"#,
            model: "Issue"
        )
        #expect(again.created == 0 && again.changed == 1 && again.unchanged == 1)
        #expect(again.skipped.map(\.value) == [2] && again.skipped[0].warning.kind == .identityMissing)
        #expect(try await bench.store.count().objects == 2)
        #expect(try await login(bench) == #"{"id":1,"login":"ada"}"#)
        await bench.store.close()
    }

    @Test func `a later value of the same batch is newer`() async throws {
        let bench = try bench()
        try await seed(bench, #"{"id":1,"login":"a","admin":true}"#, #"{"id":1,"login":"b"}"#)
        #expect(try await login(bench) == #"{"id":1,"login":"b","admin":true}"#)
        await bench.store.close()
    }

    @Test(arguments: [true, false]) func `a seed replaces what responses showed before, and their documents show it`(
        isWhole: Bool
    ) async throws {
        let bench = try bench()
        try await bench.receive("/users/1", #"{"id":1,"login":"old","admin":true}"#, user)
        try await bench.receive("/users", #"[{"id":1,"login":"old"}]"#, users)
        try await seed(bench, isWhole ? #"{"id":1,"login":"new","admin":true}"# : #"{"id":1,"login":"new"}"#)
        #expect(try await bench.body("/users/1") == #"{"id":1,"login":"new","admin":true}"#)
        #expect(try await bench.body("/users") == #"[{"id":1,"login":"new"}]"#)
        #expect(try await bench.document("/users/1")?.doubts == [])
        await bench.store.close()
    }

    @Test(arguments: [true, false]) func `a later response is newer than a seed, even that of a list that lags`(
        wasKnown: Bool
    ) async throws {
        let bench = try bench()
        if wasKnown { try await bench.receive("/users/1", #"{"id":1,"login":"old"}"#, user) }
        try await seed(bench, #"{"id":1,"login":"seeded"}"#)
        let receipt = try await bench.receive("/users", #"[{"id":1,"login":"later"}]"#, users)
        #expect(!receipt.isDirty)
        #expect(try await login(bench)?.contains("later") == true)
        #expect(try await bench.document("/users")?.doubts == [])
        await bench.store.close()
    }

    @Test(arguments: [true, false]) func `a response that was under way during a seed replaces the seeded value`(
        isStoredFirst: Bool
    ) async throws {
        let bench = try bench()
        try await seed(bench, #"{"id":1,"login":"first"}"#)
        let (start, value) = (bench.store.clock.now(), #"{"id":1,"login":"seeded"}"#)
        bench.time.advance(1_000_000)
        if !isStoredFirst { try await seed(bench, value) }
        let end = bench.store.clock.now() + (isStoredFirst ? 5_000_000 : 0)
        let body = Array(#"{"id":1,"login":"response"}"#.utf8)
        _ = try await bench.store.receive(
            ReceivedDocument(key: bench.key("/users/1"), body: body, start: start, end: end, rule: user)
        )
        if isStoredFirst { try await seed(bench, value) }
        #expect(try await login(bench)?.contains("response") == true)
        await bench.store.close()
    }

    @Test func `after a crash a later response is newer than a seed`() async throws {
        let (time, folder) = (ManualTime(), TemporaryFolder())
        var store: Bench? = try bench(time, folder: folder)
        if let store {
            try await store.receive("/users/1", #"{"id":1,"login":"old"}"#, user)
            try await seed(store, #"{"id":1,"login":"seeded"}"#)
            await store.store.close()
        }
        store = nil
        #expect(alter(folder.file(), "UPDATE _meta SET value = 0 WHERE key = 'closed'").isEmpty)
        let again = try bench(time, folder: folder)
        try await again.receive("/users", #"[{"id":1,"login":"later"}]"#, users)
        #expect(try await login(again)?.contains("later") == true)
        await again.store.close()
    }

    @Test func `a later write is newer than a seed`() async throws {
        let bench = try bench()
        try await seed(bench, #"{"id":1,"login":"seeded"}"#)
        try await bench.receive("/users/1", #"{"id":1,"login":"seeded"}"#, user)
        try await seed(bench, #"{"id":1,"login":"again"}"#)
        bench.time.advance(1_000)
        let start = bench.store.clock.now()
        bench.time.advance(1_000)
        let written = Array(#"{"id":1,"login":"written"}"#.utf8)
        try await bench.complete(ReceivedObservation(body: written, start: start, rule: user))
        #expect(try await login(bench)?.contains("written") == true)
        await bench.store.close()
    }

    @Test func `a seed brings a deleted object back, as any later observation does`() async throws {
        let bench = try bench()
        try await bench.receive("/users/1", #"{"id":1,"login":"old"}"#, user)
        var deletion = CompletedWrite(
            upstream: "github",
            principal: .anonymous,
            context: "",
            path: "/users/1",
            time: bench.store.clock.now(),
            effect: .deleted,
            bound: BoundObject(model: "User", identity: "1")
        )
        deletion.method = "DELETE"
        try await bench.store.complete(deletion)
        #expect(try await login(bench) == nil)
        try await seed(bench, #"{"id":1,"login":"back"}"#)
        #expect(try await login(bench) == #"{"id":1,"login":"back"}"#)
        await bench.store.close()
    }

    @Test func `seeding an equal value changes nothing, and the response remains the value's source`() async throws {
        let bench = try bench()
        try await bench.receive("/users/1", #"{"id":1,"login":"a"}"#, user)
        let receipt = try await seed(bench, #"{"id":1,"login":"a"}"#)
        #expect(receipt.changed == 0 && receipt.unchanged == 1)
        let row = try await bench.store.objects(ObjectQuery(model: "User", identity: "1")).rows[0]
        let why = try #require(try await bench.store.why(row.id))
        #expect(why.sources.values.allSatisfy { !$0.isSeed })
        // So a list that lags is still ordered against the response.
        try await bench.receive("/users", #"[{"id":1,"login":"b"}]"#, users)
        #expect(try await login(bench)?.contains(#""a""#) == true)
        await bench.store.close()
    }

    @Test func `why names a seed as the source`() async throws {
        let bench = try bench()
        try await bench.receive("/users/1", #"{"id":1,"login":"old","admin":true}"#, user)
        try await seed(bench, #"{"id":1,"login":"new"}"#)
        let row = try await bench.store.objects(ObjectQuery(model: "User", identity: "1")).rows[0]
        let why = try #require(try await bench.store.why(row.id))
        let login = try #require(why.members.first { $0.pointer == "/login" }?.shown)
        #expect(why.sources[login.source]?.isSeed == true && login.time > 0)
        let admin = try #require(why.members.first { $0.pointer == "/admin" }?.shown)
        #expect(why.sources[admin.source]?.url == "/users/1")
        await bench.store.close()
    }

    @Test func `of a batch that fails, nothing is stored`() async throws {
        let bench = try bench()
        await #expect(throws: StoreError.self) {
            try await seed(bench, #"{"id":1,"login":"a"}"#, #"{"id":2,"login":"b"}"#, principal: 999)
        }
        #expect(try await bench.store.count().objects == 0)
        await #expect(throws: StoreError.self) {
            try await bench.store.seed(Seed(upstream: "gone", principal: .anonymous, model: "User", values: []))
        }
        await bench.store.close()
        await #expect(throws: StoreError.closed) { try await seed(bench, #"{"id":1}"#) }
    }
}
