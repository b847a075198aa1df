import Foundation
import TestSupport
import Testing

/// Random reads, writes and failures on three machines, against what is true.
@Suite(.scripts, .enabled(if: RedisServer.isAvailable, "redis-server is not installed")) struct FleetHistoryTests {
    @Test(arguments: [1, 2])
    func `three machines never serve a response older than promised`(seed: UInt64) throws {
        #expect(try FleetHistory(seed: seed, steps: 500).run() == [])
    }

    @Test(arguments: FleetTrouble.allCases)
    func `three machines never serve a response older than promised, whichever trouble occurs`(trouble: FleetTrouble)
        throws
    {
        #expect(try FleetHistory(seed: 3, steps: 300, [trouble]).run() == [])
    }

    @Test(arguments: [4, 5])
    func `three machines never serve a response older than promised, even if all troubles occur`(seed: UInt64) throws {
        #expect(try FleetHistory(seed: seed, steps: 500, FleetTrouble.allCases).run() == [])
    }

    @Test(.enabled(if: SoakOptions.current != nil, "make soak FLEET=1 runs it"))
    func `in thousands of random steps three machines never serve a response older than promised`() throws {
        #expect(FleetCampaign(options: try #require(SoakOptions.current)).run() == [])
    }
}

/// Histories of one seed after the other, several at a time, until one fails or there have been enough.
private struct FleetCampaign {
    let options: SoakOptions

    private struct Progress {
        var begun: UInt64 = 0
        var steps = 0
        var running = 0
        var failures: [String] = []
    }

    private static let length = 2_000

    /// Returns what is wrong.
    func run() -> [String] {
        let first = options.seed ?? UInt64.random(in: 0..<1 << 32)
        let start = ContinuousClock.now
        let limit = options.minutes.map { Duration.seconds($0 * 60) }
        let wanted = UInt64(options.seed == nil ? options.steps / Self.length : options.seeds ?? 1)
        let progress = Monitor(Progress())
        for _ in 0..<options.jobs {
            progress.withLock { $0.running += 1 }
            startThread {
                while true {
                    let seed = progress.withLock { progress -> UInt64? in
                        let isOver = limit.map { ContinuousClock.now - start > $0 } ?? (progress.begun >= wanted)
                        guard !isOver, progress.failures.isEmpty else { return nil }
                        progress.begun += 1
                        return first &+ progress.begun - 1
                    }
                    guard let seed else { break }
                    let (steps, failures) = Self.run(seed)
                    progress.withLock { progress in
                        progress.steps += steps
                        progress.failures += failures
                    }
                }
                progress.withLock { $0.running -= 1 }
            }
        }
        while !progress.wait(.seconds(5), until: { $0.running == 0 }) { say(progress.current, first, start) }
        say(progress.current, first, start)
        for failure in progress.current.failures { Self.say(failure) }
        return progress.current.failures
    }

    /// One history; half of all troubles are in it, and one in four has none.
    private static func run(_ seed: UInt64) -> (steps: Int, failures: [String]) {
        var random = SeededGenerator(seed: seed)
        let kinds = random.once(in: 4) ? [] : FleetTrouble.allCases.filter { _ in random.once(in: 2) }
        do {
            let history = try FleetHistory(seed: seed, steps: length, kinds)
            let failures = try history.run()
            return (history.done, failures.map { "make soak FLEET=1 SEED=\(seed)\n\($0)" })
        } catch { return (0, ["make soak FLEET=1 SEED=\(seed)\n\(kinds)\n\(error)"]) }
    }

    private func say(_ progress: Progress, _ first: UInt64, _ start: ContinuousClock.Instant) {
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        let line =
            "fleet: \(progress.steps) steps in \(Int(seconds)) s, \(Int(Double(progress.steps) / max(seconds, 0.001))) a second; "
            + "\(progress.begun) seeds from \(first) on"
        Self.say(line)
    }

    private static func say(_ line: String) { FileHandle.standardError.write(Data("\(line)\n".utf8)) }
}
