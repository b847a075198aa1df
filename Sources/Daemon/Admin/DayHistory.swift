import Basics
import HTTPSemantics
import Proxy
import Settings
import Store

/// The requests of the last day by upstream and route, in intervals of ten minutes.
///
/// A value. It is made of the differences of the metrics' counters, so that it costs requests nothing. Bounded: an interval has the
/// `seriesLimit` busiest routes; the others of an upstream are counted together, under `TopLists.othersName`.
struct DayHistory {
    static let interval: Int64 = 600
    /// The number of intervals, the one under way among them: a day.
    static let intervalsOfDay: Int64 = 144
    static let seriesLimit = 64

    struct Series: Hashable {
        let upstream: String
        /// The path of the route in the config; `RouteName.other` without one.
        let route: String
    }

    struct Figures {
        /// By how somebody sees them who wants to know whether all is well; each request counts once.
        var hits: UInt64 = 0
        var stale: UInt64 = 0
        var forwarded: UInt64 = 0
        var failed: UInt64 = 0
        /// The response times of those that were no hits from memory.
        var durations = Histogram()

        var requests: UInt64 { hits &+ stale &+ forwarded &+ failed }

        static func += (left: inout Figures, right: Figures) {
            left.hits &+= right.hits
            left.stale &+= right.stale
            left.forwarded &+= right.forwarded
            left.failed &+= right.failed
            left.durations += right.durations
        }

        static func - (left: Figures, right: Figures) -> Figures {
            Figures(
                hits: left.hits &- right.hits,
                stale: left.stale &- right.stale,
                forwarded: left.forwarded &- right.forwarded,
                failed: left.failed &- right.failed,
                durations: left.durations - right.durations
            )
        }
    }

    /// The counters since the start of the daemon.
    typealias Totals = [Series: Figures]

    /// Their numbers count up from 1970.
    private typealias Interval = (number: Int64, figures: [Series: Figures])

    /// While the clock is set back again and again, none of them may be old; so their number has a limit of its own.
    private var finished = RecentList<Interval>(limit: Int(intervalsOfDay))
    /// The interval under way, and the counters when it began.
    private var number: Int64
    private var start: Totals = [:]

    init(now: Int64) { number = now / Self.interval }

    /// Ends the interval under way if its time is over; called every few seconds.
    mutating func advance(to totals: Totals, now: Int64) {
        let current = now / Self.interval
        guard current != number else { return }
        finished.append((number, Self.limited(Self.difference(totals, start))))
        (number, start) = (current, totals)
        finished.removeAll { $0.number < Self.first(now) }
    }

    /// The intervals with requests, by their number, and the one under way.
    func intervals(_ totals: Totals, now: Int64) -> [Int64: [Series: Figures]] {
        let kept = Self.kept(now)
        var sums: [Int64: [Series: Figures]] = [:]
        for interval in finished + [(number, Self.difference(totals, start))]
        where kept.contains(interval.number) && !interval.figures.isEmpty {
            // A clock that was set back gives two intervals one number.
            sums[interval.number, default: [:]].merge(interval.figures) { first, second in
                var sum = first
                sum += second
                return sum
            }
        }
        return sums
    }

    static func first(_ now: Int64) -> Int64 { kept(now).lowerBound }

    private static func kept(_ now: Int64) -> ClosedRange<Int64> {
        let current = now / interval
        return current - intervalsOfDay + 1...current
    }

    private static func difference(_ totals: Totals, _ start: Totals) -> [Series: Figures] {
        var new: [Series: Figures] = [:]
        for (series, total) in totals {
            let figures = start[series].map { total - $0 } ?? total
            if figures.requests > 0 { new[series] = figures }
        }
        return new
    }

    private static func limited(_ figures: [Series: Figures]) -> [Series: Figures] {
        guard figures.count > seriesLimit else { return figures }
        let sorted = figures.sorted { $0.value.requests > $1.value.requests }
        var kept = Dictionary(uniqueKeysWithValues: sorted.prefix(seriesLimit).map { ($0.key, $0.value) })
        for (series, one) in sorted.dropFirst(seriesLimit) {
            kept[Series(upstream: series.upstream, route: TopLists.othersName), default: Figures()] += one
        }
        return kept
    }
}

extension DayHistory.Figures {
    init(_ route: RouteFigures) {
        for (kind, count) in route.requests {
            if kind.hasFailed {
                failed &+= count
            } else if kind.outcome.isStale {
                stale &+= count
            } else if kind.outcome.isHit {
                hits &+= count
            } else {
                forwarded &+= count
            }
        }
        durations = route.durations
    }
}

extension Metrics {
    var routeTotals: DayHistory.Totals {
        var totals: DayHistory.Totals = [:]
        for upstream in allUpstreams {
            for (route, figures) in upstream.metrics.allRoutes {
                let series = DayHistory.Series(upstream: upstream.name, route: route ?? RouteName.other)
                totals[series, default: DayHistory.Figures()] += DayHistory.Figures(figures)
            }
        }
        return totals
    }
}

/// What metrics and history call the requests without a route.
enum RouteName {
    static let other = "other"
}

/// `GET /history`.
struct HistoryResponse: AdminBody {
    static let sentences = [
        "interval": "The length of an interval in seconds.",
        "start": "When the first interval of the day began (RFC 3339).",
        "intervals": "Those with requests, the oldest first; the last one is under way.",
        "total": "The requests of the day that were asked for.",
        "series": "The requests of the day by upstream and route, the most first, whichever were asked for.",
    ]
    var interval: Int64
    var start: String
    var intervals: [Interval]
    var total: Figures
    var series: [Series]

    struct Interval: AdminBody {
        static let sentences = ["time": "When it began (RFC 3339)."]
        var time: String
        var figures: Figures
    }

    struct Series: AdminBody {
        static let sentences = [
            "route":
                "The path in the config; `\(RouteName.other)` without one; `\(TopLists.othersName)`: routes beyond those that are counted one by one."
        ]
        var upstream: String
        var route: String
        var figures: Figures
    }

    struct Figures: AdminBody {
        static let sentences = [
            "requests": "The sum of the four that follow.", "hits": "Served from the cache, fresh.",
            "stale": "Served from the cache, stale: `stale`, `stale-if-error` or `offline`.",
            "forwarded": "Those that went upstream and got a response below 500.",
            "failed": "Problem documents of Larder's own, and responses of the upstream from 500 on.",
            "p50":
                "The response time in seconds that half of the requests did not exceed, without hits from memory and streams; absent without any.",
            "p95": "The same for 95 of 100.", "p99": "The same for 99 of 100.",
        ]
        var requests: UInt64
        var hits: UInt64
        var stale: UInt64
        var forwarded: UInt64
        var failed: UInt64
        var p50: Double?
        var p95: Double?
        var p99: Double?

        init(_ figures: DayHistory.Figures) {
            (requests, hits, stale) = (figures.requests, figures.hits, figures.stale)
            (forwarded, failed) = (figures.forwarded, figures.failed)
            (p50, p95, p99) = (figures.quantile(0.5), figures.quantile(0.95), figures.quantile(0.99))
        }
    }

    static let parameters = AdminRoute.Parameter.documented([
        "Only requests to this upstream.": .init("upstream"),
        "Only requests of this route: its path in the config, or `\(RouteName.other)` for those without one.":
            .init("route"),
    ])

    init(to request: AdminRequest, _ daemon: DaemonCore) async throws {
        let (upstream, route) = (request.value("upstream"), request.value("route"))
        if let upstream { try await daemon.checkUpstream(upstream) }
        let day = daemon.traffic.day
        let known = Set(day.intervals.values.flatMap(\.keys).map(\.route))
        if let route, route != RouteName.other, !known.contains(route) {
            _ = try daemon.routes(spelled: route, of: upstream)
        }
        interval = DayHistory.interval
        start = Self.time(of: day.first)
        var (sums, all) = ([DayHistory.Series: DayHistory.Figures](), DayHistory.Figures())
        intervals = []
        for (number, figures) in day.intervals.sorted(by: { $0.key < $1.key }) {
            var sum = DayHistory.Figures()
            for (series, one) in figures {
                sums[series, default: DayHistory.Figures()] += one
                guard upstream ?? series.upstream == series.upstream, route ?? series.route == series.route
                else { continue }
                sum += one
            }
            all += sum
            if sum.requests > 0 { intervals.append(Interval(time: Self.time(of: number), figures: Figures(sum))) }
        }
        total = Figures(all)
        series = sums.sorted { ($1.value.requests, $0.key.route) < ($0.value.requests, $1.key.route) }
            .map { Series(upstream: $0.key.upstream, route: $0.key.route.printable, figures: Figures($0.value)) }
    }

    private static func time(of number: Int64) -> String { StoreTime.text(number * DayHistory.interval * 1_000_000) }
}

extension DayHistory.Figures {
    fileprivate func quantile(_ share: Double) -> Double? {
        durations.quantile(share).map { ($0 * 1_000_000).rounded() / 1_000_000 }
    }
}
