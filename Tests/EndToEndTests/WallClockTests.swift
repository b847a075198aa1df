import Foundation
import TestSupport
import Testing

/// Machines whose wall clock is set while the daemon runs, or while it does not.
@Suite(.scripts) struct WallClockTests {
    private static let day = 86_400

    private static func larder(_ origin: Origin, _ clock: WallClock) throws -> Larder {
        try Larder(
            arguments: ["--upstream", origin.url],
            folder: TemporaryFolder(),
            environment: clock.environment
        )
    }

    @Test(arguments: [false, true])
    func `a response stored while the wall clock was ahead becomes stale in time`(isRestarted: Bool)
        throws
    {
        let clock = try WallClock()
        // Without a Date of the upstream's, which would tell that the clock is wrong.
        let origin = try Origin { _ in .json("{}", ["Cache-Control": "max-age=2"]) }
        try clock.set(ahead: Self.day)
        let larder = try Self.larder(origin, clock)
        _ = try larder.get("/x")
        try clock.set(ahead: 0)
        if isRestarted { try larder.restart() }
        #expect(try eventually { try !larder.get("/x").isHit })
        #expect(origin.requests.count == 2)
    }

    @Test(arguments: [1, -1])
    func `a used-up limit ends when it would have ended, however the wall clock is set`(direction: Int) throws {
        let clock = try WallClock()
        let reset = Monitor(3_600)
        let origin = try Origin { _ in
            .json("{}", ["X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "\(reset.current)"])
        }
        try clock.set(ahead: 0)
        let larder = try Self.larder(origin, clock)
        _ = try larder.get("/x/1")
        try clock.set(ahead: direction * Self.day)
        let refusal = try larder.get("/x/2")
        #expect(refusal.status == 429 && (3_000...3_600).contains(Int(refusal["Retry-After"] ?? "") ?? 0))
        // Another path has another limit, as long as the upstream names none.
        reset.withLock { $0 = 2 }
        _ = try larder.get("/y/1")
        try clock.set(ahead: -direction * Self.day)
        #expect(try eventually { try larder.get("/y/2").status == 200 })
    }

    @Test func `if the wall clock was ahead when the store was closed, later responses are not stale on arrival`()
        throws
    {
        let clock = try WallClock()
        let origin = try Origin { _ in .json("{}", Fresh.hour) }
        try clock.set(ahead: Self.day)
        let larder = try Self.larder(origin, clock)
        _ = try larder.get("/x")
        larder.terminate()
        try clock.set(ahead: 0)
        try larder.start()
        _ = try larder.get("/y")
        #expect(try larder.get("/y").isHit)
    }
}
