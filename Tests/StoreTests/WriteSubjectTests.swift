import Mapping
import TestSupport
import Testing

@testable import Store

/// Which objects a write concerns, and their marks besides what its response shows.
struct WriteSubjectTests {
    private func bench() throws -> Bench { try Bench(onDelete: .remove) }

    /// A write to a user, named by the login in its path.
    private func write(
        _ bench: Bench,
        user login: String,
        effect: CompletedWrite.Effect = .changed,
        response: String? = nil
    ) -> CompletedWrite {
        var write = write(
            bench,
            "/users/\(login)",
            BoundObject(model: "User", keys: [login]),
            effect: effect,
            response: response
        )
        write.observation?.rule = user
        write.observation?.mappingContext = MappingContext(bound: ["login": login])
        return write
    }

    private func write(
        _ bench: Bench,
        _ path: String,
        _ bound: BoundObject,
        effect: CompletedWrite.Effect = .changed,
        response: String? = nil
    ) -> CompletedWrite {
        bench.time.advance(1_000_000)
        let now = bench.store.clock.now()
        var write = CompletedWrite(
            upstream: "github",
            principal: .anonymous,
            context: "",
            path: path,
            time: now,
            effect: effect,
            bound: bound
        )
        write.observation = response.map { response in
            ReceivedObservation(
                body: Array(response.utf8),
                start: now - 1000,
                rule: issue
            )
        }
        return write
    }

    private func isOutdated(_ bench: Bench, _ url: String) async throws -> Bool {
        guard case .outdated = try await bench.document(url)?.form else { return false }
        return true
    }

    // MARK: Names

    @Test func `an object that a write has renamed is not deleted when nothing is found under its former key`()
        async throws
    {
        let bench = try bench()
        try await bench.receive("/team", #"[{"id":41,"login":"jan"}]"#, users)
        try await bench.store.complete(write(bench, user: "jan", response: #"{"id":41,"login":"kim"}"#))
        bench.time.advance(1_000_000)
        try await bench.store.commit(
            ObservedAbsence(
                key: bench.key("/users/jan"),
                bound: BoundObject(model: "User", keys: ["jan"]),
                start: bench.store.clock.now()
            )
        )
        #expect(try await bench.body("/team") == #"[{"id":41,"login":"kim"}]"#)
        try await bench.store.complete(write(bench, user: "jan", effect: .deleted))
        #expect(try await bench.body("/team") == #"[{"id":41,"login":"kim"}]"#)
        #expect(try await bench.document("/team")?.form == .composed)
        await bench.store.close()
    }

    @Test func `a key taken from a path is dropped once a write's response shows another`()
        async throws
    {
        let bench = try bench()
        var detail = bench.response("/users/jan", #"{"id":41,"admin":true}"#, user)
        detail.mappingContext = MappingContext(bound: ["login": "jan"])
        _ = try await bench.store.receive(detail)
        try await bench.receive("/team", #"[{"id":41,"admin":true}]"#, users)
        try await bench.store.complete(write(bench, user: "jan", response: #"{"id":41,"login":"kim","admin":true}"#))
        try await bench.store.complete(write(bench, user: "jan", effect: .absent))
        #expect(try await bench.body("/team") == #"[{"id":41,"admin":true}]"#)
        await bench.store.close()
    }

    @Test func `a key from a write's path is the object's if the response shows none`() async throws {
        let bench = try bench()
        try await bench.receive("/team", #"[{"id":41,"admin":true}]"#, users)
        try await bench.store.complete(write(bench, user: "jan", response: #"{"id":41,"admin":false}"#))
        try await bench.store.complete(write(bench, user: "jan", effect: .deleted))
        #expect(try await bench.body("/team") == "[]")
        await bench.store.close()
    }

    @Test func `a deletion by key deletes the object that the path's document shows`() async throws {
        let bench = try Bench(onDelete: .remove) { $0.lag = Lag(lists: 30_000_000) }
        // The order of a dictionary would make one of two of it.
        for id in 1...16 {
            try await bench.receive("/team", #"[{"id":\#(id),"login":"u\#(id)"}]"#, users)
            try await bench.receive("/users/u\(id)", #"{"id":\#(id),"login":"u\#(id)"}"#, user)
            try await bench.store.complete(write(bench, user: "u\(id)", effect: .deleted))
            #expect(try await bench.body("/team") == "[]")
            // Nor does a list that lags behind bring it back, whatever else is known of it.
            try await bench.receive("/lagging", #"[{"id":\#(id),"login":"v\#(id)"}]"#, users)
            #expect(try await bench.body("/lagging") == "[]")
        }
        await bench.store.close()
    }

    @Test func `a deletion by key makes another object that the path once showed outdated, but does not delete it`()
        async throws
    {
        let bench = try bench()
        try await bench.receive("/users/jan", #"{"id":41,"login":"jan"}"#, user)
        try await bench.receive("/team", #"[{"id":41,"login":"kim"}]"#, users, kind: .detail)
        try await bench.receive("/others", #"[{"id":42,"login":"jan"}]"#, users)
        try await bench.store.complete(write(bench, user: "jan", effect: .deleted))
        #expect(try await bench.body("/others") == "[]")
        // Not gone, but to be asked for.
        #expect(try await isOutdated(bench, "/team"))
        await bench.store.close()
    }

    // MARK: Contradictions

    @Test(
        arguments: [
            #"{"id":1,"title":"middle","title":"new"}"#,
            #"{"id":1,"title":"middle","title":"new","number":2}"#,
            #"{"id":1,"title":"new","number":2,"user":{"id":7,"labels":[]},"title":"new"}"#,
        ]
    )
    func `a member that a write's response shows twice is fetched again`(response: String) async throws {
        let bench = try bench()
        let slow = bench.response("/slow", #"[{"id":1,"title":"old"}]"#, issues)
        try await bench.receive("/issues", #"[{"id":1,"title":"old"}]"#, issues)
        try await bench.store.complete(
            write(bench, "/issues/1", BoundObject(model: "Issue", identity: "1"), response: response)
        )
        #expect(try await isOutdated(bench, "/issues"))
        #expect(try await bench.store.receive(slow).isDirty)
        #expect(try await isOutdated(bench, "/slow"))
        let fresh = #"[{"id":1,"title":"new"}]"#
        #expect(try await !bench.receive("/issues", fresh, issues).isDirty)
        #expect(try await bench.body("/issues") == fresh)
        #expect(try await bench.document("/issues")?.form == .asReceived)
        await bench.store.close()
    }

    @Test func `if a write's response shows a member with two values, only that member is unknown`()
        async throws
    {
        let models = try Models([
            ModelDeclaration(
                name: "Issue",
                identity: ["id"],
                properties: [
                    PropertyDeclaration(name: "title", from: "title"),
                    PropertyDeclaration(name: "number", from: "number"),
                    PropertyDeclaration(name: "parent", from: "parent", relation: .one("Issue")),
                ]
            )
        ])
        let bench = try Bench { $0.models = ["github": models] }
        // As the response shows it in one of the places, so that nothing else distinguishes them.
        try await bench.receive("/issues", #"[{"id":1,"title":"other"}]"#, issues)
        try await bench.store.complete(
            write(
                bench,
                "/issues/1",
                BoundObject(model: "Issue", identity: "1"),
                response: #"{"id":1,"title":"new","number":2,"parent":{"id":1,"title":"other"}}"#
            )
        )
        #expect(try await isOutdated(bench, "/issues"))
        let row = try await bench.store.objects(ObjectQuery(model: "Issue", identity: "1")).rows.first
        #expect(row.map { String(decoding: $0.json, as: UTF8.self).contains(#""number":2"#) } == true)
        await bench.store.close()
    }

    @Test func `a POST's object no longer counts as absent, even if the response contradicts itself`() async throws {
        let bench = try bench()
        try await bench.receive("/issues/1", "not found")
        var creation = write(
            bench,
            "/issues",
            BoundObject(model: "Issue", identity: "1"),
            response: #"{"id":1,"title":"a","title":"b"}"#
        )
        (creation.bound, creation.isCreation) = (nil, true)
        #expect(try await bench.store.complete(creation).removed == ["/issues/1"])
        await bench.store.close()
    }
}
