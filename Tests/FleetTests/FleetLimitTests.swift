import CachePolicy
import Proxy
import TestSupport
import Testing

@testable import Fleet

/// Rate limits that several machines spend, over a real server.
@Suite(.scripts, .enabled(if: RedisServer.isAvailable)) struct FleetLimitTests {
    private static func limit(_ credential: String = "ann", _ scope: String = "core") -> SharedLimit {
        SharedLimit(upstream: Machine.upstream, credential: Array(credential.utf8), scope: scope)
    }

    private static func stated(_ remaining: Int64, seconds: UInt64 = 3_600) -> Budget.Common {
        Budget.Common(limit: 100, remaining: remaining, left: seconds * 1_000_000_000, machines: 0)
    }

    private func left(_ reply: SharedBudget) -> Int64? {
        if case .known(let common) = reply { common.remaining } else { nil }
    }

    @Test func `requests that one machine spends are subtracted for all machines`() async throws {
        let server = try RedisServer()
        let (one, other) = (try Machine(server), try Machine(server))
        await one.waitUntilConnected()
        await other.waitUntilConnected()
        #expect(await one.member.spend(SharedExpense(requests: 1), of: Self.limit()) == .unknown)
        let first = await one.member.spend(SharedExpense(stated: Self.stated(80)), of: Self.limit())
        guard case .known(let common) = first else { return #expect(Bool(false), "\(first)") }
        #expect((common.limit, common.remaining, common.machines) == (100, 80, 1))
        #expect((3_590_000_000_000...3_600_000_000_000).contains(common.left))
        let second = await other.member.spend(SharedExpense(requests: 3), of: Self.limit())
        guard case .known(let common) = second else { return #expect(Bool(false), "\(second)") }
        #expect((common.remaining, common.machines) == (77, 2))
        // Given back.
        #expect(left(await one.member.spend(SharedExpense(requests: -1), of: Self.limit())) == 78)
        // Another credential and another resource have limits of their own.
        #expect(await one.member.spend(SharedExpense(), of: Self.limit("bob")) == .unknown)
        #expect(await one.member.spend(SharedExpense(), of: Self.limit("ann", "search")) == .unknown)
    }

    @Test func `of the numbers that responses state for one period the smallest counts, and a new period begins anew`()
        async throws
    {
        let server = try RedisServer()
        let one = try Machine(server)
        await one.waitUntilConnected()
        func hear(_ remaining: Int64, _ seconds: UInt64) async -> Int64? {
            left(
                await one.member.spend(
                    SharedExpense(stated: Self.stated(remaining, seconds: seconds)),
                    of: Self.limit()
                )
            )
        }
        #expect(await hear(50, 1_000) == 50)
        #expect(await hear(60, 1_001) == 50)
        #expect(await hear(40, 999) == 40)
        // Of a former period.
        #expect(await hear(10, 500) == 40)
        #expect(await hear(99, 3_600) == 99)
    }

    @Test func `a limit whose period is over is unknown`() async throws {
        let server = try RedisServer()
        let one = try Machine(server)
        await one.waitUntilConnected()
        #expect(left(await one.member.spend(SharedExpense(stated: Self.stated(9, seconds: 1)), of: Self.limit())) == 9)
        var reply: SharedBudget?
        for _ in 0..<1_000 where reply != .unknown {
            try await Task.sleep(for: .milliseconds(20))
            reply = await one.member.spend(SharedExpense(), of: Self.limit())
        }
        #expect(reply == .unknown)
    }

    @Test func `the names of limits on the server contain neither principal nor resource`() async throws {
        let server = try RedisServer()
        let one = try Machine(server)
        await one.waitUntilConnected()
        _ = await one.member.spend(SharedExpense(stated: Self.stated(9)), of: Self.limit())
        let names = try server.command("KEYS", "*limit*")
        #expect(!names.isEmpty && !names.contains("ann") && !names.contains("core"))
    }
}
