package import Proxy
import Synchronization

/// The traffic of the last hour, in short intervals; any thread.
///
/// It lets the dashboard show the past when it is opened.
package final class TrafficHistory: Sendable {
    /// The length of an interval.
    package static let interval: Duration = .seconds(10)
    /// The number of intervals kept: an hour.
    static let limit = 360

    /// Numbers of requests by outcome.
    struct Counts: Sendable, Equatable {
        var requests: UInt64 = 0
        /// Requests for which the upstream was not asked.
        var hits: UInt64 = 0
        /// Problem documents of Larder's own.
        var errors: UInt64 = 0

        static func - (left: Counts, right: Counts) -> Counts {
            Counts(
                requests: left.requests &- right.requests,
                hits: left.hits &- right.hits,
                errors: left.errors &- right.errors
            )
        }
    }

    private let metrics: Metrics
    private let state: Mutex<(last: Counts, intervals: [Counts])>

    package init(_ metrics: Metrics) {
        self.metrics = metrics
        state = Mutex((Counts(metrics), []))
    }

    /// Ends an interval; called once in each.
    package func turn() {
        let now = Counts(metrics)
        state.withLock { state in
            if state.intervals.count == Self.limit { state.intervals.removeFirst() }
            state.intervals.append(now - state.last)
            state.last = now
        }
    }

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
            if outcome == .error { errors &+= count }
        }
    }
}

/// `GET /traffic`.
struct TrafficResponse: AdminBody {
    static let sentences = [
        "interval": "The length of an interval in seconds.",
        "requests": "Requests in each interval of the last hour, the oldest first; the last one is under way.",
        "hits": "Those among them for which the upstream was not asked.",
        "errors": "Those among them that got a problem document of Larder's own.",
        "total": "The same since the daemon started.", "version": "Larder's version.",
    ]
    var interval: Int64
    var requests: [UInt64]
    var hits: [UInt64]
    var errors: [UInt64]
    var total: Total
    var version: String

    struct Total: AdminBody {
        static let sentences: [String: String] = [:]
        var requests: UInt64
        var hits: UInt64
        var errors: UInt64
    }

    init(_ history: TrafficHistory, version: String) {
        let (intervals, total) = history.current
        interval = TrafficHistory.interval.components.seconds
        (requests, hits, errors) = (intervals.map(\.requests), intervals.map(\.hits), intervals.map(\.errors))
        self.total = Total(requests: total.requests, hits: total.hits, errors: total.errors)
        self.version = version
    }
}
