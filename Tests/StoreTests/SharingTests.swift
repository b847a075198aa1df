import Mapping
import Synchronization
import TestSupport
import Testing

@testable import Store

/// What other machines observe and invalidate is merged and obeyed as if it had happened here, also late, twice and malformed.
struct SharingTests {
    private static let second: Int64 = 1_000_000

    private func object(_ payload: String, model: String = "User", id: String = "7") -> SharedObservation.Object {
        .init(model: model, identity: id, payload: Array(payload.utf8))
    }

    /// What another machine's response, complete a tenth of a second from now, has shown.
    private func values(
        _ bench: Bench,
        _ objects: [SharedObservation.Object],
        principal: [UInt8] = [],
        context: String = "",
        url: String = "/users/7",
        start: Int64? = nil,
        end: Int64? = nil
    ) -> AppliedValues {
        bench.time.advance(Self.second)
        let from = bench.store.clock.now()
        bench.time.advance(100_000)
        let shown = SharedObservation(principal: principal, context: context, url: url, isList: false, objects: objects)
        return AppliedValues(shown, start: start ?? from, end: end ?? bench.store.clock.now())
    }

    private func apply(_ bench: Bench, _ objects: [SharedObservation.Object], principal: [UInt8] = []) async throws {
        try await bench.store.commit([.values(values(bench, objects, principal: principal))], of: "github")
    }

    private func ada(_ login: String) -> String { #"{"id":7,"login":"\#(login)"}"# }

    private func isServed(_ bench: Bench, _ url: String, _ principal: PrincipalID = .anonymous) async throws -> Bool {
        guard let document = try await bench.document(url, principal: principal) else { return false }
        if case .outdated = document.form { return false }
        return document.doubts.isEmpty
    }

    // MARK: Values

    @Test func `an announced value changes all documents of its principal and context, and no others`() async throws {
        let bench = try Bench()
        let other = try await bench.store.principal([UInt8](repeating: 7, count: 32))
        try await bench.receive("/users/7", ada("a"), user)
        try await bench.receive("/users", "[\(ada("a"))]", users)
        try await bench.receive("/users/7", ada("a"), user, principal: other)
        try await apply(bench, [object(ada("b"))])
        #expect(try await bench.body("/users/7") == ada("b"))
        #expect(try await bench.body("/users") == "[\(ada("b"))]")
        let others = try await bench.document("/users/7", principal: other)
        #expect(others?.body == Array(ada("a").utf8))
        try await apply(bench, [object(ada("c"))], principal: [UInt8](repeating: 7, count: 32))
        #expect(try await bench.document("/users/7", principal: other)?.body == Array(ada("c").utf8))
        #expect(try await bench.body("/users/7") == ada("b"))
        await bench.store.close()
    }

    @Test func `an older value is ignored, a repeated one changes nothing, and an overlapping one causes a doubt`()
        async throws
    {
        let bench = try Bench()
        let early = values(bench, [object(ada("early"))])
        try await bench.receive("/users/7", ada("a"), user)
        try await bench.store.commit([.values(early)], of: "github")
        #expect(try await bench.body("/users/7") == ada("a"))
        #expect(try await isServed(bench, "/users/7"))
        let late = values(bench, [object(ada("b"))])
        for _ in 1...2 { try await bench.store.commit([.values(late)], of: "github") }
        #expect(try await bench.body("/users/7") == ada("b"))
        #expect(try await isServed(bench, "/users/7"))
        // It was requested before the value that is known, and complete after.
        let long = values(
            bench,
            [object(ada("c"))],
            url: "/users/other",
            start: bench.store.clock.now() - 60 * Self.second
        )
        try await bench.store.commit([.values(long)], of: "github")
        #expect(try await bench.body("/users/7") == ada("b"))
        #expect(try await !isServed(bench, "/users/7"))
        await bench.store.close()
    }

    @Test func `a later response to the same URL changes a value despite the lag, even if another machine got it`()
        async throws
    {
        let bench = try Bench { $0.lag = Lag(lists: 30 * Self.second) }
        try await bench.receive("/users", "[\(ada("a"))]", users)
        bench.time.advance(Self.second)
        let start = bench.store.clock.now()
        bench.time.advance(100_000)
        let word = SharedObservation(
            principal: [],
            context: "",
            url: "/users",
            isList: true,
            objects: [.init(model: "User", identity: "7", payload: Array(ada("b").utf8), isEmbedded: true)]
        )
        let applied = AppliedValues(word, start: start, end: bench.store.clock.now())
        try await bench.store.commit([.values(applied)], of: "github")
        #expect(try await bench.body("/users") == "[\(ada("b"))]")
        #expect(try await isServed(bench, "/users"))
        await bench.store.close()
    }

    @Test(arguments: [false, true])
    func `a response requested before an announced value is older, even if it shows the object first`(isShared: Bool)
        async throws
    {
        let bench = try Bench()
        var early = bench.response("/users/7", ada("a"), user)
        early.isShared = isShared
        try await apply(bench, [object(ada("b"))])
        #expect(try await bench.store.count().objects == 0)
        _ = try await bench.store.receive(early)
        #expect(try await bench.body("/users/7") == ada("b"))
        // One that was requested later is newer.
        try await bench.receive("/users/7", ada("c"), user)
        #expect(try await bench.body("/users/7") == ada("c"))
        await bench.store.close()
    }

    @Test func `a first response is outdated if another machine observed another value while it was under way`()
        async throws
    {
        let bench = try Bench()
        let early = bench.response("/users/7", ada("a"), user)
        // It was observed while the response was under way.
        let time = bench.store.clock.now() - 50_000
        try await bench.store.commit([.values(values(bench, [object(ada("b"))], start: time, end: time))], of: "github")
        let receipt = try await bench.store.receive(early)
        #expect(receipt.isDirty)
        #expect(try await !isServed(bench, "/users/7"))
        try await bench.receive("/users/7", ada("b"), user)
        #expect(try await isServed(bench, "/users/7"))
        await bench.store.close()
    }

    /// The number of observations in the file.
    private func observations(_ bench: Bench) async throws -> Int64? {
        try await bench.store.core.read { try $0.query("SELECT count(*) FROM _observations").integer() }
    }

    @Test
    func `values announced from a fetch and the shared response of that fetch are one observation`() async throws {
        let fetch = SharedFetch(sender: [1], url: "/users/7", start: 5)
        let others = [
            nil, SharedFetch(sender: [2], url: "/users/7", start: 5), SharedFetch(sender: [1], url: "/users", start: 5),
            SharedFetch(sender: [1], url: "/users/7", start: 6),
        ]
        for (number, announced) in ([fetch] + others).enumerated() {
            let bench = try Bench()
            var shared = bench.response("/users/7", ada("a"), user)
            (shared.isShared, shared.fetch) = (true, fetch)
            // The clocks of the two machines are known less exactly now.
            var shown = values(bench, [object(ada("a"))], start: shared.start - 1_000, end: shared.end + 1_000)
            shown.fetch = announced
            try await bench.store.commit([.values(shown)], of: "github")
            bench.time.advance(Self.second)
            let receipt = try await bench.store.receive(shared)
            #expect(!receipt.isDirty)
            #expect(try await observations(bench) == (number == 0 ? 1 : 2), "\(number)")
            #expect(try await bench.body("/users/7") == ada("a"))
            await bench.store.close()
        }
    }

    @Test(arguments: [#"{"id":7,"login":"b"}"#, #"{"login":"b","id":7}"#])
    func `a response shared by another machine is outdated if any machine has announced newer values`(newer: String)
        async throws
    {
        for isOfSameFetch in [false, true] {
            let bench = try Bench()
            var shared = bench.response("/users/7", ada("a"), user)
            (shared.isShared, shared.fetch) = (true, SharedFetch(sender: [1], url: "/users/7", start: 5))
            var shown = values(bench, [object(newer)])
            shown.fetch = isOfSameFetch ? shared.fetch : SharedFetch(sender: [2], url: "/users/7", start: 9)
            try await bench.store.commit([.values(shown)], of: "github")
            let foreseen = Mutex(false)
            let receipt = await withCheckedContinuation { continuation in
                bench.store.receive(shared, isAwaited: true, foreseen: { foreseen.withLock { $0 = true } }) {
                    continuation.resume(returning: $0)
                }
            }
            #expect(try receipt.get().isDirty && !foreseen.withLock { $0 })
            #expect(try await bench.body("/users/7") == ada("b"))
            await bench.store.close()
        }
    }

    @Test func `announced values of unknown objects and principals are stored only once a response shows the object`()
        async throws
    {
        let bench = try Bench()
        let digest = [UInt8](repeating: 9, count: 32)
        var early = bench.response("/users/7", ada("a"), user)
        try await apply(bench, [object(ada("b"))], principal: digest)
        #expect(try await bench.store.count().objects == 0)
        #expect(try await bench.store.existingPrincipal(digest) == nil)
        _ = try await bench.store.receive(early)
        #expect(try await bench.body("/users/7") == ada("a"))
        let principal = try await bench.store.principal(digest)
        early.key = bench.key("/users/7", principal: principal)
        _ = try await bench.store.receive(early)
        #expect(try await bench.document("/users/7", principal: principal)?.body == Array(ada("b").utf8))
        await bench.store.close()
    }

    @Test(arguments: ["", "{", "[]", "7", "null", #"{"id":7,"login":"x""#, "\u{0}", #"{"id":8,"login":7}"#])
    func `a malformed value changes no other value, and does not make the commit fail`(payload: String) async throws {
        let bench = try Bench()
        try await bench.receive("/users/7", ada("a"), user)
        try await bench.receive("/users/8", #"{"id":8,"login":"h"}"#, user)
        try await apply(
            bench,
            [
                object(payload), object(payload, model: "Nothing"), object(payload, model: "", id: ""),
                object(#"{"id":8,"login":"i"}"#, id: "8"),
            ]
        )
        #expect(try await bench.body("/users/8") == #"{"id":8,"login":"i"}"#)
        try await bench.store.commit([.values(values(bench, [object(ada("z"))]))], of: "unknown")
        let reversed = values(bench, [object(ada("z"))], start: bench.store.clock.now() + 10 * Self.second)
        try await bench.store.commit([.values(reversed)], of: "github")
        #expect(try await bench.body("/users/7")?.contains("z") == false)
        await bench.store.close()
    }

    @Test
    func `if too many values are remembered, older ones are dropped, and their latest time is returned`()
        throws
    {
        var recent = RecentObservations()
        func name(_ number: Int) -> RecentObservations.Name {
            .init(upstream: "u", principal: [], context: "", model: "M", identity: "\(number)")
        }
        func seen(_ end: Int) -> RecentObservations.Sighting {
            .init(
                shown: [object("{}")],
                start: Int64(end) - 1,
                end: Int64(end),
                isList: false,
                url: "/",
                dividedBy: nil
            )
        }
        for number in 0..<RecentObservations.countLimit { #expect(recent.add(seen(number), of: name(number)) == nil) }
        #expect(recent[name(5)] == [seen(5)])
        let last = RecentObservations.countLimit
        #expect(recent.add(seen(last), of: name(last)) == Int64(last - 1))
        #expect(recent[name(5)].isEmpty && recent[name(last)] == [seen(last)])
        // Of one object, the oldest go.
        var forgotten: [Int64] = []
        for number in 1...RecentObservations.limitOfObject {
            if let time = recent.add(seen(last + number), of: name(last)) { forgotten.append(time) }
            #expect(recent.add(seen(last + number), of: name(last)) == nil)
        }
        #expect(forgotten == [Int64(last)])
        #expect(recent[name(last)].count == RecentObservations.limitOfObject)
    }

    // MARK: Invalidations

    @Test func `an invalidation removes the documents of its paths that were requested before, for every principal`()
        async throws
    {
        let bench = try Bench()
        let other = try await bench.store.principal([7])
        for principal in [PrincipalID.anonymous, other] {
            try await bench.receive("/users", "[]", users, principal: principal)
            try await bench.receive("/plain?page=2", "x", principal: principal)
            try await bench.receive("/else", "y", principal: principal)
        }
        let under = bench.response("/users", "[\(ada("late"))]", users)
        bench.time.advance(Self.second)
        let time = bench.store.clock.now()
        try await bench.receive("/users", "[\(ada("new"))]", users)
        let invalidation = Invalidation(of: "github", paths: ["/users", "/plain", "/nothing"], at: time)
        for _ in 1...2 { try await bench.store.commit([.write(invalidation, nil)], of: "github") }
        #expect(try await bench.body("/users") == "[\(ada("new"))]")
        #expect(try await bench.document("/users", principal: other) == nil)
        #expect(try await bench.document("/plain?page=2") == nil)
        #expect(try await bench.document("/else", principal: other) != nil)
        #expect(try await bench.store.receive(under).document == nil)
        // One that comes late does not undo a later one.
        let late = Invalidation(of: "github", paths: ["/users"], at: time - Self.second)
        try await bench.store.commit([.write(late, nil)], of: "github")
        #expect(try await bench.store.receive(under).document == nil)
        await bench.store.close()
    }

    @Test func `an invalidation of objects makes the responses that show them outdated, also those under way`()
        async throws
    {
        let bench = try Bench()
        try await bench.receive("/users/7", ada("a"), user)
        try await bench.receive("/users/8", #"{"id":8,"login":"h"}"#, user)
        let early = bench.response("/users", "[\(ada("a"))]", users)
        bench.time.advance(Self.second)
        let objects = [
            BoundObject(model: "User", identity: "7"), BoundObject(model: "User", identity: "99"),
            BoundObject(model: "Nothing", identity: "1"), BoundObject(model: "User", keys: ["nobody"]),
        ]
        let invalidation = Invalidation(of: "github", objects: objects, at: bench.store.clock.now())
        try await bench.store.commit([.write(invalidation, nil)], of: "github")
        #expect(try await !isServed(bench, "/users/7"))
        #expect(try await isServed(bench, "/users/8"))
        _ = try await bench.store.receive(early)
        #expect(try await !isServed(bench, "/users"))
        try await bench.receive("/users/7", ada("b"), user)
        #expect(try await bench.body("/users/7") == ada("b"))
        #expect(try await isServed(bench, "/users/7"))
        await bench.store.close()
    }

    @Test func `another machine's invalidation of a pattern removes the documents that it matches`() async throws {
        let bench = try Bench()
        try await bench.receive("/teams/1/users", "[]", users)
        try await bench.receive("/teams", "x")
        let pattern = InvalidationPattern(base: "", pattern: try RoutePattern("teams/*/users"))
        let invalidation = Invalidation(of: "github", patterns: [pattern], at: bench.store.clock.now())
        try await bench.store.commit([.write(invalidation, nil)], of: "github")
        #expect(try await bench.document("/teams/1/users") == nil)
        #expect(try await bench.document("/teams") != nil)
        await bench.store.close()
    }

    // MARK: What is shown to others

    @Test func `first and changed values are announced, and values from other machines are not announced again`()
        async throws
    {
        let shown = Mutex<[ShownValues]>([])
        let bench = try Bench()
        bench.store.showValues(where: { $0 == "github" }) { values in shown.withLock { $0.append(values) } }
        func names() -> [String] {
            shown.withLock { shown in
                defer { shown = [] }
                return shown.flatMap { values in
                    values.observation.objects.map {
                        "\($0.model) \($0.identity) \(String(decoding: $0.payload, as: UTF8.self))"
                    }
                }
            }
        }
        try await bench.receive("/users", "[\(ada("a"))]", users)
        #expect(names() == ["User 7 \(ada("a"))"])
        try await bench.receive("/users", "[\(ada("a"))]", users)
        #expect(names() == [])
        try await bench.receive("/users", "[\(ada("b"))]", users)
        #expect(names() == ["User 7 \(ada("b"))"])
        try await apply(bench, [object(ada("c"))])
        var shared = bench.response("/users/7", ada("d"), user)
        shared.isShared = true
        _ = try await bench.store.receive(shared)
        #expect(names() == [])
        // Each machine merges it as it would here.
        let elsewhere = try Bench()
        try await elsewhere.receive("/users/7", ada("a"), user)
        bench.time.advance(60 * Self.second)
        try await bench.receive("/users/7", ada("e"), user)
        let values = try #require(shown.withLock { $0.first })
        #expect(
            values.observation.url == "/users/7" && !values.observation.isList && values.observation.principal == []
        )
        try await elsewhere.store.commit(
            [.values(AppliedValues(values.observation, start: values.start, end: values.end))],
            of: "github"
        )
        #expect(try await elsewhere.body("/users/7") == ada("e"))
        await bench.store.close()
        await elsewhere.store.close()
    }

    @Test func `a value too large to be announced is named only if it replaces another value`() async throws {
        let shown = Mutex<[ShownValues]>([])
        let bench = try Bench()
        bench.store.showValues(where: { _ in true }) { values in shown.withLock { $0.append(values) } }
        func large(_ mark: String) -> String { ada(mark + String(repeating: "x", count: ShownValues.objectByteLimit)) }
        try await bench.receive("/users/7", large("a"), user)
        #expect(shown.withLock { $0 }.isEmpty)
        try await bench.receive("/users/7", large("b"), user)
        #expect(shown.withLock { $0.map(\.oversized) } == [[ObjectName(model: "User", identity: "7")]])
        await bench.store.close()
    }

    // MARK: Responses of other machines

    @Test func `a response of another machine is merged by its own times`() async throws {
        let bench = try Bench()
        var early = bench.response("/users", "[\(ada("early"))]", users)
        early.isShared = true
        early.namesObjects = true
        try await bench.receive("/users/7", ada("a"), user)
        let receipt = try await bench.store.receive(early)
        #expect(receipt.names == [ObjectName(model: "User", identity: "7")])
        #expect(try await bench.body("/users") == "[\(ada("a"))]")
        await bench.store.close()
    }

    @Test func `a response that another machine requested before a clean is not stored after it, nor after a restart`()
        async throws
    {
        let (folder, time) = (TemporaryFolder(), ManualTime())
        var bench = try Bench(folder: folder, time: time)
        var early = bench.response("/users/7", ada("a"), user)
        early.isShared = true
        bench.time.advance(Self.second)
        _ = try await bench.store.clean(CleanFilter(model: "User"))
        #expect(try await bench.store.receive(early).document == nil)
        await bench.store.close()
        bench = try Bench(folder: folder, time: time)
        #expect(try await bench.store.receive(early).document == nil)
        var late = bench.response("/users/7", ada("b"), user)
        late.isShared = true
        #expect(try await bench.store.receive(late).document != nil)
        await bench.store.close()
    }
}
