import Testing

@testable import Proxy

/// When a followed document is asked for, although no client asked for it.
@Suite struct LiveRhythmTests {
    private static let second: UInt64 = 1_000_000_000
    private static let start = 1000 * second

    /// One whose upstream has just given its word.
    private static func asked(failing times: Int = 0) -> LiveRhythm {
        var rhythm = LiveRhythm(interval: .seconds(15))
        rhythm.concluded(now: start)
        for _ in 0..<times { rhythm.failed(isOutage: true, now: start) }
        return rhythm
    }

    @Test func `a response that was never fetched is fetched when needed`() {
        var rhythm = LiveRhythm(interval: .seconds(15))
        #expect(rhythm.due(.stale, now: Self.start) == Self.start)
        #expect(rhythm.due(.displaced, now: Self.start) == Self.start)
        #expect(rhythm.due(.expiry(60), now: Self.start) == Self.start + 60 * Self.second)
    }

    @Test func `a stale response is fetched at the interval, however short its freshness`() {
        var rhythm = Self.asked()
        let now = Self.start + Self.second
        #expect(rhythm.due(.stale, now: now) == Self.start + 15 * Self.second)
        #expect(rhythm.due(.expiry(1), now: now) == Self.start + 15 * Self.second)
        #expect(rhythm.due(.expiry(60), now: now) == now + 60 * Self.second)
        #expect(rhythm.due(.expiry(.max), now: now) > now)
    }

    @Test func `fetches of a response that is displaced again and again slow down to the interval`() {
        var rhythm = Self.asked()
        var now = Self.start
        var times: [UInt64] = []
        for _ in 0..<200 {
            let due = rhythm.due(.displaced, now: now)
            now = max(now, due)
            rhythm.began(.displaced)
            rhythm.concluded(now: now)
            times.append(now)
        }
        #expect(times[0] == Self.start)
        #expect(times[4] - Self.start < 2 * Self.second)
        #expect(times[199] - times[198] == 15 * Self.second)
        // After a rest at once again.
        now += 60 * Self.second
        #expect(rhythm.due(.displaced, now: now) <= now)
    }

    @Test(arguments: zip(1...10, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60] as [UInt64]))
    func `after each failure the pause doubles, up to a minute`(failures: Int, seconds: UInt64) {
        var rhythm = Self.asked(failing: failures)
        for need in [LiveRhythm.Need.stale, .displaced, .expiry(3600)] {
            #expect(rhythm.due(need, now: Self.start) == Self.start + seconds * Self.second)
        }
        rhythm.concluded(now: Self.start)
        #expect(rhythm.due(.stale, now: Self.start) == Self.start + 15 * Self.second)
    }

    @Test func `an upstream that can be reached again is asked at once, and only once`() {
        var rhythm = Self.asked(failing: 7)
        rhythm.upstreamIsBack()
        #expect(rhythm.due(.expiry(3600), now: Self.start + 1) == Self.start)
        rhythm.failed(isOutage: true, now: Self.start)
        #expect(rhythm.due(.stale, now: Self.start) == Self.start + 60 * Self.second)
        // A response that was no failure has nothing to make good, nor has an error of an upstream that was there.
        rhythm = Self.asked()
        rhythm.upstreamIsBack()
        #expect(rhythm.due(.stale, now: Self.start) == Self.start + 15 * Self.second)
        rhythm.failed(isOutage: false, now: Self.start)
        rhythm.upstreamIsBack()
        #expect(rhythm.due(.stale, now: Self.start) == Self.start + Self.second)
    }
}
