import Testing

@testable import Proxy

@Suite struct SpendingTests {
    private static func spender(_ number: Int, _ program: String? = "gh") -> BudgetSpender {
        BudgetSpender(upstream: "github", resource: "core", principal: "p\(number)", program: program)
    }

    @Test func `requests are counted by minute for an hour, also when the clock is set back`() {
        var spending = Spending()
        for second in [0, 59, 60, 3_540] as [Int64] { spending.count(Self.spender(1), now: second) }
        #expect(spending.minutes.map(\.number) == [0, 1, 59])
        #expect(spending.minutes.map { $0.counts[Self.spender(1)] } == [2, 1, 1])
        spending.count(Self.spender(1), now: 3_600)
        #expect(spending.minutes.map(\.number) == [1, 59, 60])
        // The clock is set back.
        spending.count(Self.spender(1), now: 0)
        #expect(spending.minutes.map(\.number) == [0])
        #expect(spending.totals[Self.spender(1)] == 6)
    }

    @Test func `the pace is that of all programs in the last ten minutes`() {
        var spending = Spending()
        for (minute, program) in [(0, "gh"), (1, "gh"), (10, "PyGithub"), (10, "gh")] as [(Int64, String)] {
            spending.count(Self.spender(1, program), now: minute * 60)
            spending.count(Self.spender(2, program), now: minute * 60)
        }
        #expect(spending.pace(now: 600)[Self.spender(1, nil)] == 3)
    }

    @Test func `beyond a limit of spenders requests are counted together`() throws {
        var spending = Spending()
        for number in 0..<10_000 { spending.count(Self.spender(number), now: 0) }
        let counts = try #require(spending.minutes.first?.counts)
        #expect(counts.count == 257 && counts.values.reduce(0, +) == 10_000)
        for number in 0..<10_000 {
            spending.count(BudgetSpender(upstream: "u", resource: "\(number)", principal: nil, program: nil), now: 0)
        }
        #expect(spending.totals.count <= 514 && spending.totals.values.reduce(0, +) == 20_000)
    }
}
