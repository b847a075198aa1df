import Basics
import Proxy
import Store
import Synchronization

/// The last hour in short intervals, and the last day by upstream and route, for a dashboard that is opened; any thread.
package final class TrafficHistory: Sendable {
    package static let interval: Duration = .seconds(10)
    static let maximumIntervals = 360

    struct Counts: AdminBody, Equatable {
        var requests: UInt64 = 0
        /// Requests for which the upstream was not asked.
        var hits: UInt64 = 0
        /// Those of them that got a stale response.
        var stale: UInt64 = 0
        /// Problem documents of Larder's own.
        var errors: UInt64 = 0
        /// These, and responses of the upstream from 500 on.
        var failed: UInt64 = 0

        static func - (left: Counts, right: Counts) -> Counts {
            Counts(
                requests: left.requests &- right.requests,
                hits: left.hits &- right.hits,
                stale: left.stale &- right.stale,
                errors: left.errors &- right.errors,
                failed: left.failed &- right.failed
            )
        }
    }

    private let metrics: Metrics
    private let state: Mutex<(last: Counts, intervals: RecentList<Counts>, day: DayHistory)>

    init(_ metrics: Metrics) {
        self.metrics = metrics
        state = Mutex((Counts(metrics), RecentList(limit: Self.maximumIntervals), DayHistory(now: Self.now)))
    }

    package func turn() {
        let now = Counts(metrics)
        let totals = metrics.routeTotals
        state.withLock { state in
            state.intervals.append(now - state.last)
            state.last = now
            state.day.advance(to: totals, now: Self.now)
        }
    }

    /// The intervals of the last day by their number, and the number of the first one, with or without requests.
    var day: (intervals: [Int64: [DayHistory.Series: DayHistory.Figures]], first: Int64) {
        let (totals, now) = (metrics.routeTotals, Self.now)
        return (state.withLock { $0.day.intervals(totals, now: now) }, DayHistory.first(now))
    }

    private static var now: Int64 { Int64(ProcessFigures.wallClock()) }

    /// The intervals, the oldest first and the current one last; and the totals since the start.
    var current: (intervals: [Counts], total: Counts) {
        let now = Counts(metrics)
        return state.withLock { ($0.intervals + [now - $0.last], now) }
    }
}

extension TrafficHistory.Counts {
    fileprivate init(_ metrics: Metrics) {
        for outcome in Outcome.allCases {
            let count = metrics.total { $0.value(of: outcome) }
            requests &+= count
            if outcome.isHit { hits &+= count }
            if outcome.isStale { stale &+= count }
            if outcome == .error { errors &+= count }
        }
        failed = errors
        for upstream in metrics.allUpstreams {
            for (_, route) in upstream.metrics.allRoutes {
                for (kind, count) in route.requests where kind.hasFailed && kind.outcome != .error { failed &+= count }
            }
        }
    }
}

/// `GET /traffic`.
struct TrafficResponse: AdminBody {
    static let sentences = [
        "interval": "The length of an interval in seconds.",
        "requests": "Requests in each interval of the last hour, the oldest first; the last one is under way.",
        "hits": "Those among them for which the upstream was not asked.",
        "stale": "Those of the hits that got a stale response.",
        "errors": "Those among them that got a problem document of Larder's own.",
        "failed": "These, and those that got a response of the upstream from 500 on.",
        "total": "The same since the daemon started.", "version": "Larder's version.",
    ]
    var interval: Int64
    var requests: [UInt64]
    var hits: [UInt64]
    var stale: [UInt64]
    var errors: [UInt64]
    var failed: [UInt64]
    var total: TrafficHistory.Counts
    var version: String

    init(_ history: TrafficHistory, version: String) {
        let intervals: [TrafficHistory.Counts]
        (intervals, total) = history.current
        interval = TrafficHistory.interval.components.seconds
        (requests, hits, stale) = (intervals.map(\.requests), intervals.map(\.hits), intervals.map(\.stale))
        (errors, failed) = (intervals.map(\.errors), intervals.map(\.failed))
        self.version = version
    }
}
