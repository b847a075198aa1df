import Basics
import Testing

@testable import Admin
@testable import Proxy
@testable import Store

@Suite struct DayHistoryTests {
    private let metrics = Metrics(workers: 1, startTime: 0)
    private let noon: Int64 = 1_800_000_000 / 600 * 600

    private func count(_ route: String?, _ outcome: Outcome, status: Int = 200, seconds: Double? = nil, times: Int = 1)
    {
        let served = ServedRequest.sample(route: route, outcome, status: status, seconds: seconds ?? 0)
        metrics.upstream("github").count(served, weight: times, isTimed: seconds != nil)
    }

    private func sum(_ day: DayHistory, at now: Int64) -> [Int64: UInt64] {
        day.intervals(metrics.routeTotals, now: now).mapValues { $0.values.reduce(0) { $0 + $1.requests } }
    }

    @Test func `each request counts once, as a hit, stale, forwarded or failed`() {
        let day = DayHistory(now: noon)
        for outcome in Outcome.allCases { count("users/{id}", outcome) }
        count("users/{id}", .miss, status: 503)
        count("users/{id}", .hit, status: 501)
        let intervals = day.intervals(metrics.routeTotals, now: noon)
        let figures = intervals[noon / 600]?[.init(upstream: "github", route: "users/{id}")]
        // hit, composed and a stored error; stale, offline, stale-if-error; miss, revalidated, bypass; error and 503.
        #expect(figures?.hits == 3 && figures?.stale == 3 && figures?.forwarded == 3 && figures?.failed == 2)
        #expect(figures?.requests == UInt64(Outcome.allCases.count + 2))
    }

    @Test func `a request counts in the interval in which it ended, and an interval is kept for a day`() {
        var day = DayHistory(now: noon)
        count(nil, .miss)
        day.advance(to: metrics.routeTotals, now: noon + 590)
        count(nil, .miss, times: 2)
        day.advance(to: metrics.routeTotals, now: noon + 601)
        count(nil, .miss, times: 4)
        #expect(sum(day, at: noon + 602) == [noon / 600: 3, noon / 600 + 1: 4])
        day.advance(to: metrics.routeTotals, now: noon + 86_000)
        #expect(sum(day, at: noon + 86_000) == [noon / 600: 3, noon / 600 + 1: 4])
        day.advance(to: metrics.routeTotals, now: noon + 86_400)
        #expect(sum(day, at: noon + 86_400) == [noon / 600 + 1: 4])
        #expect(sum(day, at: noon + 200_000) == [:])
    }

    @Test func `when the clock is set back no request is lost`() {
        var day = DayHistory(now: noon)
        count(nil, .miss)
        day.advance(to: metrics.routeTotals, now: noon + 600)
        count(nil, .miss)
        day.advance(to: metrics.routeTotals, now: noon)
        count(nil, .miss)
        #expect(sum(day, at: noon) == [noon / 600: 2])
        #expect(sum(day, at: noon + 600) == [noon / 600: 2, noon / 600 + 1: 1])
    }

    @Test func `an interval keeps the busiest routes, and counts the others together`() {
        var day = DayHistory(now: noon)
        for number in 1...DayHistory.seriesLimit + 20 { count("route/\(number)", .miss, times: number) }
        day.advance(to: metrics.routeTotals, now: noon + 600)
        let kept = day.intervals(metrics.routeTotals, now: noon + 600)[noon / 600] ?? [:]
        #expect(kept.count == DayHistory.seriesLimit + 1)
        #expect(kept[.init(upstream: "github", route: TopLists.othersName)]?.requests == 210)
        #expect(kept[.init(upstream: "github", route: "route/20")] == nil)
        #expect(kept[.init(upstream: "github", route: "route/21")]?.requests == 21)
    }

    @Test func `percentiles are of the response times in the interval`() throws {
        var day = DayHistory(now: noon)
        for _ in 1...100 { count("a", .miss, seconds: 20) }
        day.advance(to: metrics.routeTotals, now: noon + 600)
        for _ in 1...90 { count("a", .miss, seconds: 0.002) }
        for _ in 1...10 { count("a", .miss, seconds: 0.7) }
        count("a", .hit, times: 1_000)
        let now = try #require(day.intervals(metrics.routeTotals, now: noon + 600)[noon / 600 + 1])
        let durations = try #require(now[.init(upstream: "github", route: "a")]).durations
        let median = try #require(durations.quantile(0.5))
        #expect(median > 0.001 && median <= 0.0025)
        #expect(try #require(durations.quantile(0.95)) == 0.75)
        #expect(try #require(durations.quantile(0.99)) > 0.9)
        #expect(Histogram().quantile(0.5) == nil)
    }
}
