import Foundation
import TestSupport
import Testing

/// A token's rate limit, spent by several machines.
@Suite(.scripts, .enabled(if: RedisServer.isAvailable, "redis-server is not installed")) struct FleetBudgetTests {
    private func fleet(_ github: GitHubOrigin, redis: RedisServer? = nil) throws -> TestFleet {
        try TestFleet(3, github.origin, redis: redis, upstream: ", budget: { reserve: 0%, wait: 0s }", "")
    }

    private func get(_ fleet: TestFleet, _ machine: Int, _ number: Int) throws -> Response {
        try fleet[machine].get("/repos/o/r\(number)", BudgetFixture.token)
    }

    @Test func `several machines spend one limit, and nothing is refused upstream`() throws {
        let github = try BudgetFixture.github(200)
        github.limit { $0.requests["core"] = 60 }
        let fleet = try fleet(github)
        // Without a credential a limit is that of an address, and each machine has its own.
        #expect(try fleet[0].get("/repos/o/r0").status == 200 && fleet[1].get("/repos/o/r0").status == 200)
        #expect(try fleet.redis.command("KEYS", "*:limit:*") == "")
        fleet.origin.forget()
        let statuses = try (0..<90).map { try get(fleet, $0 % 3, $0).status }
        #expect(statuses.count { $0 == 200 } == 60 && statuses.count { $0 == 429 } == 30)
        #expect(github.refusals == 0 && github.origin.count() == 60)
        // All show what is left for all.
        for machine in fleet.machines {
            let budgets = try machine.admin("GET", "/budget").text
            #expect(budgets.contains("\"remaining\":0"), "\(budgets)")
        }
        // Another token has a limit of its own.
        #expect(try fleet[0].get("/repos/o/r1", ["Authorization": "Bearer other"]).status == 200)
    }

    @Test func `what one machine has used up alone, another knows before it asks`() throws {
        let github = try BudgetFixture.github(200)
        github.limit { $0.requests["core"] = 40 }
        let fleet = try fleet(github)
        #expect(try get(fleet, 1, 100).status == 200)
        // On a busy machine the server may be too slow for a moment; then this one has only its share, and asks nothing.
        for number in 0..<39 { #expect(try eventually { try get(fleet, 0, number).status == 200 }) }
        // What this machine has seen itself is older than a second, or little is left.
        pause(.milliseconds(1_100))
        #expect(try get(fleet, 1, 101).status == 429)
        #expect(github.refusals == 0 && github.origin.count() == 40)
    }

    @Test func `without the server each machine has its share`() throws {
        let github = try BudgetFixture.github(200)
        github.limit { $0.requests["core"] = 60 }
        let redis = try RedisServer(port: Socket.freePort())
        let fleet = try fleet(github, redis: redis)
        for number in 0..<9 { #expect(try get(fleet, number % 3, number).status == 200) }
        redis.kill()
        let statuses = try (0..<150).map { try get(fleet, $0 % 3, 20 + $0).status }
        #expect(statuses.count { $0 == 429 } >= 99)
        #expect(github.refusals == 0)
        #expect(github.origin.count() <= 60)
    }
}
