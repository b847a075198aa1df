import Testing

@testable import CachePolicy
@testable import HTTPSemantics

@Suite struct BudgetTests {
    private static let second: UInt64 = 1_000_000_000

    /// What a response at second 1000 says, by both clocks.
    private static func budget(_ fields: (String, String)...) -> Budget? {
        Budget(Fields(fields.map { Field($0.0, $0.1) }), now: 1_000 * second, wall: 1_000)
    }

    private static func left(_ remaining: Int, of limit: Int = 100, for seconds: Int = 60) throws -> Budget {
        let fields = [("Limit", limit), ("Remaining", remaining), ("Reset", seconds)]
        let lines = fields.map { Field("X-RateLimit-" + $0.0, "\($0.1)") }
        return try #require(Budget(Fields(lines), now: 1_000 * second, wall: 1_000))
    }

    private static func admitted(_ budget: Budget, reserve: Int = 10, after seconds: UInt64 = 0) -> [Bool] {
        [.background, .replaceable, .needed].map { urgency in
            budget.admits(urgency, reserve: reserve, at: (1_000 + seconds) * second)
        }
    }

    @Test(
        arguments: [
            ([("X-RateLimit-Limit", "60"), ("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "30")], 30),
            ([("RateLimit", "limit=100, remaining=0, reset=50")], 50),
            ([("RateLimit", #""default";r=0;t=30"#), ("RateLimit-Policy", #""default";q=100;w=60"#)], 30),
            // The upstream's clock is an hour ahead.
            (
                [
                    ("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "1800003605"),
                    ("Date", "Fri, 15 Jan 2027 09:00:00 GMT"),
                ], 5
            ),
            // A response from another cache has an old date.
            (
                [
                    ("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "1800000005"),
                    ("Date", "Fri, 15 Jan 2027 07:00:00 GMT"), ("Age", "3600"),
                ], 5
            ),
            // The year 2090.
            ([("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "3800000000")], 3_600),
            ([("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "4503599627370496")], 3_600),
            ([("RateLimit", #""x";r=-999999999999999;t=999999999999999"#)], 3_600),
        ] as [([(String, String)], UInt64)]
    )
    func `a used-up limit ends at its reset by the upstream's clock, or after an hour`(
        _ lines: [(String, String)],
        _ seconds: UInt64
    ) throws {
        let now = 7 * Self.second
        let budget = try #require(Budget(Fields(lines.map { Field($0.0, $0.1) }), now: now, wall: 1_800_000_000))
        #expect(budget.end == now + seconds * Self.second && budget.remaining == 0)
        let end = now + seconds * Self.second
        #expect(!budget.admits(.needed, reserve: 0, at: end - 1) && budget.isUsedUp(at: end - 1))
        #expect(budget.admits(.background, reserve: 10, at: end) && !budget.isUsedUp(at: end))
    }

    @Test func `a limit without an end, without requests or with an end in the past holds nothing back`() throws {
        let withoutEnd = try #require(Self.budget(("X-RateLimit-Remaining", "0")))
        #expect(Self.admitted(withoutEnd) == [true, true, true])
        for reset in ["0", "-5", "soon"] {
            let lines = [("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", reset)].map { Field($0.0, $0.1) }
            let past = try #require(Budget(Fields(lines), now: 5, wall: 1_800_000_000))
            #expect(!past.isUsedUp(at: 5), "\(reset)")
        }
        let ended = try #require(
            Budget(
                Fields([Field("X-RateLimit-Remaining", "0"), Field("X-RateLimit-Reset", "1700000000")]),
                now: 5,
                wall: 1_800_000_000
            )
        )
        #expect(!ended.isUsedUp(at: 5))
        #expect(Self.budget(("X-RateLimit-Limit", "0"), ("X-RateLimit-Remaining", "0")) == nil)
        #expect(Self.budget(("X-RateLimit-Limit", "60")) == nil)
        #expect(Self.budget(("X-RateLimit-Remaining", "many")) == nil)
    }

    @Test func `below the reserve background requests stop, then those with a stale response, and the rest at zero`()
        throws
    {
        for (remaining, admitted) in [
            (11, [true, true, true]), (10, [false, true, true]), (6, [false, true, true]), (5, [false, false, true]),
            (1, [false, false, true]), (0, [false, false, false]),
        ] { #expect(Self.admitted(try Self.left(remaining)) == admitted, "\(remaining)") }
        #expect(Self.admitted(try Self.left(1), reserve: 0) == [true, true, true])
        #expect(Self.admitted(try Self.left(99), reserve: 100) == [false, true, true])
        // The largest number that is read, and a limit that is unknown.
        #expect(Self.admitted(try Self.left(1, of: 1 << 52), reserve: 100) == [false, false, true])
        let unknown = try #require(Self.budget(("X-RateLimit-Remaining", "1"), ("X-RateLimit-Reset", "9")))
        #expect(Self.admitted(unknown) == [true, true, true])
        #expect(Self.admitted(try Self.left(0), after: 60) == [true, true, true])
    }

    @Test func `a request reserves one unit when it is sent, and gets it back if the upstream does not count it`()
        throws
    {
        var budget = try Self.left(2)
        let (first, second) = (budget.reserve(), budget.reserve())
        #expect(Self.admitted(budget) == [false, false, false])
        budget.end(first, isCounted: false)
        #expect(budget.remaining == 1)
        budget.end(second, isCounted: true)
        #expect(budget.remaining == 1)
        for _ in 1...5 { _ = budget.reserve() }
        #expect(budget.isUsedUp(at: 1_000 * Self.second))
    }

    @Test func `a response's count replaces the computed one, unless the response to a later request came first`()
        throws
    {
        var budget = try Self.left(50)
        let (slow, fast) = (budget.reserve(), budget.reserve())
        budget.end(fast, isCounted: true)
        // Somebody else spends, too. The slow request may be in the number or not.
        budget.hear(try Self.left(41), after: fast)
        #expect(budget.remaining == 41)
        budget.end(slow, isCounted: true)
        budget.hear(try Self.left(48), after: slow)
        #expect(budget.remaining == 41)
        // A request that was sent since then is newer, whatever it says.
        let next = budget.reserve()
        budget.end(next, isCounted: true)
        budget.hear(try Self.left(90), after: next)
        #expect(budget.remaining == 90)
    }

    @Test func `requests under way are not spent twice, whichever of them a response's count includes`() throws {
        var budget = try Self.left(20)
        let sent = (0..<20).map { _ in budget.reserve() }
        #expect(budget.remaining == 0)
        for (number, reservation) in sent.enumerated() {
            budget.end(reservation, isCounted: true)
            budget.hear(try Self.left(19 - number), after: reservation)
            #expect(budget.remaining == 0, "\(number)")
        }
        // What is not counted without anybody's knowing does not add up: no more is reserved than what is under way.
        var free = try Self.left(20)
        var waiting = free.reserve()
        for number in 0..<100 {
            let next = free.reserve()
            free.end(waiting, isCounted: true)
            free.hear(try Self.left(20), after: waiting)
            #expect(free.remaining >= 16, "\(number)")
            waiting = next
        }
    }

    @Test func `overlapping responses of an earlier period change nothing, and those of a later period count`() throws {
        var budget = try Self.left(50, for: 600)
        let (old, new) = (budget.reserve(), budget.reserve())
        budget.end(new, isCounted: true)
        budget.hear(try Self.left(99, for: 1_200), after: new)
        #expect(budget.remaining == 98)
        budget.end(old, isCounted: true)
        budget.hear(try Self.left(0, for: 599), after: old)
        #expect(budget.remaining == 98)
        var other = try Self.left(0, for: 10)
        let sent = other.reserve()
        other.hear(try Self.left(0, for: 10), after: sent)
        other.hear(try Self.left(100, for: 70), after: sent)
        #expect(other.remaining == 99)
    }
}
