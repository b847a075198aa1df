import Mapping
import Synchronization
import TestSupport
import Testing

@testable import Store

/// What the response to a write on another machine has shown holds as if it had been written here.
struct SharedWriteTests: WriteMarkFixtures {
    private static let second: Int64 = 1_000_000
    private static let digest = [UInt8](repeating: 7, count: 32)

    private func issue(_ id: Int, _ title: String) -> String { #"{"id":\#(id),"title":"\#(title)"}"# }

    /// A write on another machine to both issues, which began a second ago, and whose response has shown the first one.
    private func news(
        _ bench: Bench,
        _ title: String?,
        _ objects: [BoundObject]? = nil,
        principal: [UInt8] = [],
        context: String = "",
        start: Int64? = nil
    ) -> AppliedNews {
        let from = bench.store.clock.now()
        bench.time.advance(Self.second)
        let end = bench.store.clock.now()
        let invalidation = Invalidation(of: "github", paths: ["/issues/1"], objects: objects ?? [first], at: end)
        let shown = title.map { title in
            SharedObservation(
                principal: principal,
                context: context,
                url: "/issues/1",
                isList: false,
                write: "PATCH",
                objects: [.init(model: "Issue", identity: "1", payload: Array(issue(1, title).utf8))]
            )
        }
        return .write(invalidation, shown.map { AppliedValues($0, start: start ?? from, end: end) })
    }

    private func lagging() throws -> Bench { try Bench { $0.lag = Lag(lists: 30 * Self.second) } }

    private func titles(_ first: String) -> String { "[\(issue(1, first)), \(issue(2, "b"))]" }

    @Test func `lists show at once what another machine has written, and are not fetched again`() async throws {
        let bench = try lagging()
        try await bench.receive("/issues", titles("a"), issues)
        try await bench.receive("/issues/1", issue(1, "a"), Self.issue)
        bench.time.advance(Self.second)
        try await bench.store.commit([news(bench, "w")], of: "github")
        #expect(try await bench.body("/issues") == titles("w"))
        #expect(try await !isOutdated(bench, "/issues"))
        #expect(try await bench.document("/issues/1") == nil)
        // As on the machine itself, one that lags does not undo it.
        bench.time.advance(Self.second)
        try await bench.receive("/issues?page=2", titles("a"), issues)
        #expect(try await bench.body("/issues") == titles("w"))
        await bench.store.close()
    }

    @Test func `a list is outdated if the response to another machine's write does not show all that was written`()
        async throws
    {
        let bench = try lagging()
        try await bench.receive("/issues", titles("a"), issues)
        bench.time.advance(Self.second)
        try await bench.store.commit([news(bench, "w", [first, second])], of: "github")
        #expect(try await isOutdated(bench, "/issues"))
        let other = try lagging()
        try await other.receive("/issues", titles("a"), issues)
        other.time.advance(Self.second)
        try await other.store.commit([news(other, nil)], of: "github")
        #expect(try await isOutdated(other, "/issues"))
        await bench.store.close()
        await other.store.close()
    }

    @Test func `another machine's write makes responses of other principals and contexts outdated, without its values`()
        async throws
    {
        let bench = try lagging()
        let mine = try await bench.store.principal(Self.digest)
        for principal in [PrincipalID.anonymous, mine] {
            try await bench.receive("/issues", titles("a"), issues, principal: principal)
        }
        try await bench.receive("/issues", titles("a"), issues, principal: mine, context: "other")
        bench.time.advance(Self.second)
        try await bench.store.commit([news(bench, "w", principal: Self.digest)], of: "github")
        #expect(try await bench.document("/issues", principal: mine)?.body == Array(titles("w").utf8))
        #expect(try await !isOutdated(bench, "/issues", principal: mine))
        #expect(try await isOutdated(bench, "/issues"))
        #expect(try await isOutdated(bench, "/issues", principal: mine, context: "other"))
        await bench.store.close()
    }

    @Test(arguments: [false, true])
    func `a response requested before another machine's write, and stored later, shows what was written`(
        isShared: Bool
    )
        async throws
    {
        let bench = try lagging()
        var early = bench.response("/issues", titles("a"), issues)
        early.isShared = isShared
        bench.time.advance(Self.second)
        try await bench.store.commit([news(bench, "w")], of: "github")
        _ = try await bench.store.receive(early)
        #expect(try await bench.body("/issues") == titles("w"))
        #expect(try await !isOutdated(bench, "/issues"))
        await bench.store.close()
    }

    @Test func `a write on another machine that overlaps a response makes it outdated until the next one`() async throws
    {
        let bench = try Bench()
        try await bench.receive("/issues", titles("a"), issues)
        try await bench.store.commit(
            [news(bench, "w", start: bench.store.clock.now() - 60 * Self.second)],
            of: "github"
        )
        #expect(try await isOutdated(bench, "/issues"))
        bench.time.advance(Self.second)
        try await bench.receive("/issues", titles("w"), issues)
        #expect(try await bench.body("/issues") == titles("w"))
        #expect(try await !isOutdated(bench, "/issues"))
        await bench.store.close()
    }

    @Test(arguments: ["", "{", "[]", "null", #"{"id":1,"title""#])
    func `a malformed value in another machine's write makes documents that show its object outdated`(payload: String)
        async throws
    {
        let bench = try lagging()
        try await bench.receive("/issues", titles("a"), issues)
        guard case .write(let invalidation, let values?) = news(bench, "w") else {
            Issue.record("a write that shows no values")
            return
        }
        var malformed = values.observation
        malformed.objects[0].payload = Array(payload.utf8)
        let applied = AppliedValues(malformed, start: values.start, end: values.end)
        try await bench.store.commit([.write(invalidation, applied)], of: "github")
        #expect(try await isOutdated(bench, "/issues"))
        await bench.store.close()
    }

    @Test func `a write's values are announced, except those of a deleted object and those too large`() async throws {
        let bench = try Bench()
        var own = try write(bench, "/issues/1", bound: first, response: issue(1, "w"))
        own.method = "PATCH"
        #expect(try await bench.store.complete(own).shown == nil)
        bench.store.showValues(where: { $0 == "github" }, to: { _ in })
        // It is the same as before.
        let completion = try await bench.store.complete(own)
        let shown = try #require(completion.shown)
        #expect(shown.objects.map(\.payload) == [Array(issue(1, "w").utf8)] && shown.write == "PATCH")
        #expect(completion.objects == [first])
        let large = String(repeating: "x", count: ShownValues.objectByteLimit)
        let unsent = try await bench.store.complete(
            write(bench, "/issues/1", bound: first, response: issue(1, large))
        )
        #expect(unsent.shown == nil && unsent.objects == [first])
        let deleted = try await bench.store.complete(
            write(bench, "/issues/1", effect: .deleted, bound: first, response: issue(1, "w"))
        )
        #expect(deleted.shown == nil && deleted.objects == [first])
        await bench.store.close()
    }

    private static let issue = BodyRule(model: "Issue", isList: false)
}
