import TestSupport
import Testing

@testable import Fleet

/// The clock of a fleet.
struct FleetClockTests {
    /// A server whose clock is ahead, and which replies after a while.
    private func reading(at sent: Int64, ahead: Int64, _ there: Int64, _ back: Int64) -> FleetClock.Reading {
        .init(sent: sent, received: sent + there + back, server: sent + there + ahead)
    }

    @Test func `a time of one clock lies between the bounds of the other`() {
        let clock = FleetClock(reading(at: 1_000_000, ahead: 5_000, 40, 60))
        let there = clock.server(1_000_100)
        #expect(there.contains(1_005_100) && there.upperBound - there.lowerBound <= 101)
        #expect(clock.local(1_005_100).contains(1_000_100))
        #expect(clock.error == 50 || clock.error == 51)
    }

    @Test func `a fast round trip to the server reduces the clock's error, and a slow one does not increase it`() {
        var clock = FleetClock(reading(at: 0, ahead: 7, 1000, 1000))
        let isFirstTaken = clock.add(reading(at: 3000, ahead: 7, 5, 5))
        #expect(isFirstTaken)
        let error = clock.error
        #expect(error <= 10)
        let isTaken = clock.add(reading(at: 4000, ahead: 7, 5000, 0))
        #expect(isTaken)
        #expect(clock.error <= error + 8)
        #expect(clock.server(10_000).contains(10_007))
    }

    @Test func `the clock's error grows by 500 µs for each second before or after its reading`() {
        let clock = FleetClock(reading(at: 0, ahead: 0, 0, 0))
        let later = clock.server(3_600_000_000)
        #expect(later.contains(3_600_000_000 + 1_700_000) && later.contains(3_600_000_000 - 1_700_000))
        #expect(!later.contains(3_600_000_000 + 1_900_000))
        // The past is as uncertain.
        #expect(clock.server(-3_600_000_000).contains(-3_600_000_000 + 1_700_000))
    }

    @Test func `a reading that contradicts the former ones, as after the clock was set, is not taken`() {
        var clock = FleetClock(reading(at: 1_000_000, ahead: 0, 100, 100))
        let former = clock
        for ahead: Int64 in [-3_600_000_000, 10_000] {
            let isTaken = clock.add(reading(at: 2_000_000, ahead: ahead, 100, 100))
            #expect(!isTaken)
        }
        #expect(clock == former)
        let isTaken = clock.add(reading(at: 2_000_000, ahead: 300, 100, 100))
        #expect(isTaken)
    }

    @Test func `the server's true time is within the estimated bounds, whatever the round trips and the drift`() {
        var random = SeededGenerator(seed: 38)
        for _ in 0..<300 {
            let drift = Double.random(in: -500...500, using: &random) / 1_000_000
            let ahead = Int64.random(in: -1_000_000_000...1_000_000_000, using: &random)
            func server(_ local: Int64) -> Int64 { local + ahead + Int64((Double(local) * drift).rounded(.down)) }
            var clock: FleetClock?
            var now: Int64 = 0
            for _ in 0..<20 {
                now += Int64.random(in: 0...10_000_000, using: &random)
                let there = Int64.random(in: 0...3000, using: &random)
                let back = Int64.random(in: 0...3000, using: &random)
                let reading = FleetClock.Reading(sent: now, received: now + there + back, server: server(now + there))
                now += there + back
                let isTaken = clock?.add(reading) ?? true
                #expect(isTaken)
                clock = clock ?? FleetClock(reading)
                for local in [now, now + 5_000_000, now - 2_000_000] {
                    #expect(clock?.server(local).contains(server(local)) == true)
                    #expect(clock?.local(server(local)).contains(local) == true)
                }
            }
        }
    }
}
