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
    func `the store's clock only goes forward, whatever the machine's clocks do, also over restarts`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let machine = WildTime()
        let year: Int64 = 31_536_000_000_000
        var persisted: Int64 = 0
        var newest: Int64 = 0
        for _ in 0..<20 {
            let clock = StoreClock(source: machine.source, stored: StoredTime(clock: persisted))
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

    private static let hour: Int64 = 3_600_000_000
    private static let wall: Int64 = 1_700_000_000_000_000

    private func source(wall: Int64, elapsed: Int64, boot: Int64) -> TimeSource {
        TimeSource(wall: { wall }, elapsed: { elapsed }, boot: boot)
    }

    /// A store's clock that has run for an hour, while the wall clock was set by so much.
    private func stored(wallSetBy change: Int64) -> StoredTime {
        var stored = StoreClock(source: source(wall: Self.wall, elapsed: 0, boot: 7), stored: StoredTime()).stored
        stored.clock = Self.wall + Self.hour
        stored.wallLead = change
        return stored
    }

    @Test(arguments: [0, -hour * 2, hour * 24])
    func `a store that was closed for a day is a day older, however the wall clock was set before`(change: Int64) {
        let stored = stored(wallSetBy: change)
        let now = Self.wall + Self.hour + change + 24 * Self.hour
        let clock = StoreClock(source: source(wall: now, elapsed: 5, boot: 8), stored: stored)
        #expect(clock.now() >= stored.clock + 24 * Self.hour)
        #expect(clock.agesKnownSince == 0)
    }

    @Test func `within one boot the time that a store was closed is known, whatever the wall clock says`() {
        let stored = stored(wallSetBy: 0)
        let back = source(wall: Self.wall - 10 * Self.hour, elapsed: 3 * Self.hour, boot: 7)
        let clock = StoreClock(source: back, stored: stored)
        #expect(clock.now() == Self.wall + 3 * Self.hour)
        #expect(clock.agesKnownSince == 0)
    }

    @Test func `after a period of unknown length, the age of everything before it is unknown`() {
        let stored = stored(wallSetBy: 0)
        let clock = StoreClock(source: source(wall: Self.wall - Self.hour, elapsed: 5, boot: 8), stored: stored)
        #expect(clock.now() > stored.clock)
        #expect(clock.agesKnownSince > stored.clock)
        let later = source(wall: Self.wall, elapsed: Self.hour, boot: 8)
        #expect(StoreClock(source: later, stored: clock.stored).agesKnownSince == clock.agesKnownSince)
    }

    @Test func `threads that ask at once are given different times`() async {
        let machine = WildTime()
        let clock = StoreClock(source: machine.source, stored: StoredTime())
        let times = await withTaskGroup(of: [Int64].self) { group in
            for _ in 0..<4 { group.addTask { (0..<500).map { _ in clock.now() } } }
            return await group.reduce(into: []) { $0 += [$1] }
        }
        #expect(Set(times.joined()).count == 2000)
        for own in times { #expect(own == own.sorted()) }
    }

    @Test func `an observation after a restart is later than all before, whatever the wall clock says`()
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
