import Synchronization
import TestSupport
import Testing

@testable import Store

@Suite struct StoreClockTests {
    /// A machine whose clocks do what they like.
    private final class WildTime: Sendable {
        private let times = Mutex((wall: Int64(0), elapsed: Int64(0)))

        func jump(wall: Int64, elapsed: Int64) { times.withLock { $0 = (wall, elapsed) } }

        var source: TimeSource {
            TimeSource(wall: { self.times.withLock(\.wall) }, elapsed: { self.times.withLock(\.elapsed) })
        }
    }

    @Test(arguments: 0..<20 as Range<UInt64>)
    func `whatever the machine's clocks do, each time is later than all before, restarts included`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let machine = WildTime()
        let year: Int64 = 31_536_000_000_000
        var persisted: Int64 = 0
        var newest: Int64 = 0
        for _ in 0..<20 {
            let clock = StoreClock(source: machine.source, persisted: persisted)
            for _ in 0..<50 {
                switch random.below(4) {
                // Hours back and forth, years as well, a moment, or not at all.
                case 0: machine.jump(wall: random.within(2 * year), elapsed: random.within(year))
                case 1: machine.jump(wall: random.within(7_200_000_000), elapsed: random.within(7_200_000_000))
                case 2: machine.jump(wall: newest + random.within(10), elapsed: newest % year + random.within(10))
                default: break
                }
                let now = clock.now()
                #expect(now > newest, "seed \(seed)")
                newest = now
            }
            // A commit is as late as the last observation in it, or later.
            persisted = random.once(in: 2) ? newest : clock.now()
            newest = max(newest, persisted)
        }
    }

    @Test func `threads that ask at once are given different times`() async {
        let machine = WildTime()
        let clock = StoreClock(source: machine.source, persisted: 0)
        let times = await withTaskGroup(of: [Int64].self) { group in
            for _ in 0..<4 { group.addTask { (0..<500).map { _ in clock.now() } } }
            return await group.reduce(into: []) { $0 += [$1] }
        }
        #expect(Set(times.joined()).count == 2000)
        for own in times { #expect(own == own.sorted()) }
    }

    @Test func `what is observed after a restart is later than what was before, whatever the wall clock says`()
        async throws
    {
        let folder = TemporaryFolder()
        let machine = WildTime()
        var newest: Int64 = 0
        for wall in [5_000_000_000, 1_000_000, 9_000_000_000, 2_000_000] as [Int64] {
            machine.jump(wall: wall, elapsed: wall % 7_000)
            let bench = try Bench(folder: folder) { $0.time = machine.source }
            let before = bench.store.clock.now()
            #expect(before > newest)
            try await bench.receive("/issues/1", #"{"id":1,"title":"\#(wall)"}"#, issue)
            #expect(try await bench.body("/issues/1")?.contains("\(wall)") == true)
            newest = bench.store.clock.now()
            await bench.store.close()
        }
    }
}

/// Random numbers that a seed gives again.
extension SeededGenerator {
    fileprivate mutating func within(_ limit: Int64) -> Int64 { Int64.random(in: 0..<limit, using: &self) }
}
