import HTTPSemantics
import Testing

@testable import CachePolicy
@testable import Proxy

/// One machine's part in a rate limit that a fleet spends.
@Suite struct SpendingTogetherTests {
    private static let second: UInt64 = 1_000_000_000

    private func known(_ remaining: Int64, machines: Int64 = 2) -> SharedBudget {
        .known(Budget.Common(limit: 100, remaining: remaining, left: 60 * Self.second, machines: machines))
    }

    private func common(_ remaining: Int64, machines: Int64 = 2) -> Budget.Common {
        Budget.Common(limit: 100, remaining: remaining, left: 60 * Self.second, machines: machines)
    }

    private func budget(remaining: Int, limit: Int = 100) throws -> Budget {
        let fields: Fields = [
            "X-RateLimit-Limit": "\(limit)", "X-RateLimit-Remaining": "\(remaining)", "X-RateLimit-Reset": "1060",
        ]
        return try #require(Budget(fields, now: 0, wall: 1_000))
    }

    @Test func `requests begun after a call to the fleet's server are not included in what its reply says is left`() {
        var together = SpendingTogether()
        let first = together.begin(1)
        let second = together.begin(2)
        #expect((first.requests, second.requests) == (1, 2))
        #expect(together.end(first, known(50), at: 0) == .adopt(common(50), takenSince: 2))
        #expect(together.end(second, known(48), at: 0) == .adopt(common(48), takenSince: 0))
    }

    @Test func `a reply that arrives after the reply to a later call is ignored`() {
        var together = SpendingTogether()
        let (first, second) = (together.begin(1), together.begin(1))
        #expect(together.end(second, known(48), at: 0) == .adopt(common(48), takenSince: 0))
        #expect(together.end(first, known(49), at: 0) == .nothing)
    }

    @Test func `a machine without the server gets its share of the limit once, and reports its requests later`() {
        var together = SpendingTogether()
        #expect(
            together.end(together.begin(1), known(60, machines: 3), at: 0)
                == .adopt(common(60, machines: 3), takenSince: 0)
        )
        #expect(together.end(together.begin(1), .alone, at: 0) == .divide(among: 3))
        #expect(together.isAlone)
        #expect(together.end(together.begin(2), .alone, at: 0) == .nothing)
        let back = together.begin(1)
        #expect(back.requests == 4)
        #expect(together.end(back, known(40, machines: 3), at: 0) == .adopt(common(40, machines: 3), takenSince: 0))
        #expect(!together.isAlone)
    }

    @Test func `requests reported in a call that failed still count, and the next call reports them again`() {
        var together = SpendingTogether()
        let (first, second) = (together.begin(1), together.begin(1))
        #expect(together.end(first, .alone, at: 0) == .divide(among: 1))
        #expect(together.end(second, known(50), at: 0) == .adopt(common(50), takenSince: 1))
        #expect(together.begin(0).requests == 1)
    }

    @Test func `a request asks once a second, and always while little is left`() throws {
        var together = SpendingTogether()
        let (much, little, none) = (try budget(remaining: 50), try budget(remaining: 5), try budget(remaining: 0))
        #expect(together.mustAsk(much, at: 0))
        _ = together.end(together.begin(0), known(50), at: 0)
        #expect(!together.mustAsk(much, at: Self.second / 2) && !together.mustAsk(none, at: Self.second / 2))
        #expect(together.mustAsk(little, at: Self.second / 2))
        #expect(together.mustAsk(much, at: Self.second) && together.mustAsk(none, at: Self.second))
        // Without the server, trying once a second is enough.
        _ = together.end(together.begin(0), .alone, at: Self.second)
        #expect(!together.mustAsk(little, at: 3 * Self.second / 2) && together.mustAsk(little, at: 2 * Self.second))
    }

    @Test func `a budget adopts what the fleet has left, and is divided into one machine's share`() throws {
        var budget = try budget(remaining: 90)
        budget.adopt(common(30), takenSince: 2, now: 5)
        #expect((budget.remaining, budget.limit, budget.end) == (28, 100, 60 * Self.second + 5))
        budget.divide(among: 4)
        #expect((budget.remaining, budget.limit) == (7, 25))
    }
}
