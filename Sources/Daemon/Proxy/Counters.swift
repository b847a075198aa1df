package import Basics
import HTTPServer
import Synchronization

/// All of the daemon's metrics.
///
/// Each worker counts in an object of its own, so that no two threads share a cache line on the hit path; reads add them up. The
/// store and the memory tier report their own figures then, too (`Metric.Reading`).
package final class Metrics: Sendable {
    private let workers: [WorkerMetrics]
    private let upstreams = Mutex<[String: UpstreamMetrics]>([:])
    package let changeStreams = Gauge()
    /// Streams of `/changes` that were cut off because their clients did not keep up.
    package let changeStreamsCut = Counter()
    package let live = LiveMetrics()
    package let accessLogDropped = Counter()
    /// When the process started, in seconds since 1970.
    package let startTime: Double

    package init(workers count: Int, startTime: Double) {
        workers = (0..<count).map { _ in WorkerMetrics() }
        self.startTime = startTime
    }

    /// The counters of one worker; callers keep the object.
    package func worker(_ index: Int) -> WorkerMetrics { workers[index] }

    /// The counters of one upstream, by its name in the config; created at first use.
    func upstream(_ name: String) -> UpstreamMetrics {
        upstreams.withLock { upstreams in
            if let known = upstreams[name] { return known }
            let made = UpstreamMetrics()
            upstreams[name] = made
            return made
        }
    }

    package func total(_ read: (WorkerMetrics) -> UInt64) -> UInt64 { workers.reduce(0) { $0 &+ read($1) } }

    /// All upstreams that have received requests, by name.
    package var allUpstreams: [(name: String, metrics: UpstreamMetrics)] {
        upstreams.withLock { $0.map { (name: $0.key, metrics: $0.value) } }.sorted { $0.name < $1.name }
    }

    package var totalOpenConnections: Int { workers.reduce(0) { $0 + $1.connectionsOpen.value } }
}

/// How a request to the proxy was served; each request counts once.
package enum Outcome: String, Sendable, CaseIterable {
    /// From memory or disk: fresh, as received.
    case hit
    /// From memory or disk: stale.
    case stale
    /// From memory or disk: with newer values of its objects.
    case composed
    /// Fetched for this request or for another that it joined.
    case miss
    /// Validated by the upstream.
    case revalidated
    /// From memory or disk, because the mode is offline.
    case offline
    /// From memory or disk, because the upstream failed or cannot be reached.
    case staleIfError = "stale-if-error"
    /// A problem document of Larder's own.
    case error
    /// Relayed without a look-up, such as unsafe methods.
    case bypass

    /// Whether it was served from the cache although it was no longer fresh.
    package var isStale: Bool {
        switch self {
        case .stale, .offline, .staleIfError: true
        case .hit, .composed, .miss, .revalidated, .error, .bypass: false
        }
    }

    /// Whether it was served without the upstream.
    package var isHit: Bool {
        switch self {
        case .hit, .stale, .composed, .offline, .staleIfError: true
        case .miss, .revalidated, .error, .bypass: false
        }
    }
}

/// The counters of one worker; only its own thread adds; any thread reads.
package final class WorkerMetrics: Sendable {
    let hits = Counter()
    let stale = Counter()
    let composed = Counter()
    let misses = Counter()
    let revalidated = Counter()
    let offline = Counter()
    let staleIfError = Counter()
    let errors = Counter()
    let bypassed = Counter()
    /// Bytes of request heads and bodies.
    package let bytesReceived = Counter()
    /// Bytes of responses, heads included.
    package let bytesSent = Counter()
    package let connectionsAccepted = Counter()
    let connectionsOpen = Gauge()
    /// Keeps the counters of two workers out of one cache line (64 bytes, fetched in pairs).
    private let padding = Padding()

    private struct Padding: Sendable {
        let lines: (SIMD64<UInt8>, SIMD64<UInt8>) = (.zero, .zero)
    }

    func count(_ outcome: Outcome) { with(outcome) { $0.add() } }
    package func value(of outcome: Outcome) -> UInt64 { with(outcome) { $0.value } }

    private func with<Value>(_ outcome: Outcome, _ use: (borrowing Counter) -> Value) -> Value {
        switch outcome {
        case .hit: use(hits)
        case .stale: use(stale)
        case .composed: use(composed)
        case .miss: use(misses)
        case .revalidated: use(revalidated)
        case .offline: use(offline)
        case .staleIfError: use(staleIfError)
        case .error: use(errors)
        case .bypass: use(bypassed)
        }
    }
}

extension WorkerMetrics: HTTPMeter {
    func connectionOpened() {
        connectionsAccepted.add()
        connectionsOpen.add()
    }

    func connectionClosed() { connectionsOpen.subtract() }
    func received(bytes: Int) { bytesReceived.add(UInt64(bytes)) }
    func sent(bytes: Int) { bytesSent.add(UInt64(bytes)) }
}

/// The metrics of live streams; any thread.
package final class LiveMetrics: Sendable {
    package let streams = Gauge()
    /// Responses that they follow; several streams may share one.
    package let documents = Gauge()
    /// Events written, each to one client.
    package let events = Counter()
    /// Streams cut off because their clients did not read.
    package let cutOff = Counter()
}

/// The metrics of one upstream; any thread.
package final class UpstreamMetrics: Sendable {
    package let inFlight = Gauge()
    /// Requests that joined a fetch already under way.
    package let coalesced = Counter()
    /// Responses that asked Larder to back off.
    package let backOffs = Counter()
    /// Requests not sent because of such a pause.
    package let heldBack = Counter()
    /// Requests not sent because it cannot be reached.
    package let unreachable = Counter()
    private let finished = Mutex(Finished())
    private let condition = Mutex(UpstreamHealth())
    private let routes = Mutex<[String?: RouteFigures]>([:])
    /// The maximum number of routes that are counted one by one, should reloads bring ever new ones.
    static let routeLimit = 1_000

    package struct Finished: Sendable {
        /// Their number by result: `2xx` … `5xx`, or the label of an `UpstreamError`.
        package fileprivate(set) var results: [String: UInt64] = [:]
        /// The time from sending the request to the last byte of the response.
        package fileprivate(set) var latency = Histogram()
    }

    func started() { inFlight.add() }

    /// Counts the end of a fetch; `result` comes from a fixed set, so that the number of time series stays bounded.
    func ended(result: String, seconds: Double) {
        inFlight.subtract()
        finished.withLock { finished in
            finished.results[result, default: 0] += 1
            finished.latency.record(seconds: seconds)
        }
    }

    func ended(status: Int, seconds: Double) {
        ended(result: (100..<600).contains(status) ? Self.classes[status / 100 - 1] : "other", seconds: seconds)
    }

    private static let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"]

    package var allFinished: Finished { finished.withLock { $0 } }
    package var health: UpstreamHealth { condition.withLock { $0 } }

    /// Counts a request that was not sent because the upstream cannot be reached.
    func countUnreachable() {
        unreachable.add()
        record { $0.heldBack() }
    }

    func record<Result: Sendable>(_ event: (inout UpstreamHealth) -> Result) -> Result {
        condition.withLock { event(&$0) }
    }

    /// Counts a request under its route; under none if there are too many.
    ///
    /// - Parameters:
    ///   - weight: for how many requests it stands.
    ///   - isTimed: whether its duration counts: it is neither a hit from memory nor a stream.
    func count(_ served: ServedRequest, weight: Int = 1, isTimed: Bool) {
        let kind = RouteFigures.Kind(outcome: served.outcome, status: served.status / 100)
        routes.withLock { routes in
            let isListed = routes.count < Self.routeLimit || routes[served.route] != nil
            routes[isListed ? served.route : nil, default: RouteFigures()]
                .count(kind, UInt64(weight), seconds: isTimed ? served.seconds : nil)
        }
    }

    /// The requests by the path of their route, in order; those without one as nil.
    package var allRoutes: [(route: String?, figures: RouteFigures)] {
        routes.withLock { $0 }.sorted { ($0.key ?? "") < ($1.key ?? "") }.map { (route: $0.key, figures: $0.value) }
    }
}

/// The requests of a route, and how they were served.
package struct RouteFigures: Sendable {
    package struct Kind: Hashable, Sendable {
        package let outcome: Outcome
        /// The first digit of the status.
        package let status: Int

        /// Whether it is one of those that a person has to see: Larder's own problem, or an error of the upstream.
        package var hasFailed: Bool { outcome == .error || !outcome.isHit && status == 5 }
    }

    package private(set) var requests: [Kind: UInt64] = [:]
    /// The response times of those that were neither hits from memory nor streams.
    package private(set) var durations = Histogram()

    /// - Parameter seconds: its response time; nil if that does not count.
    fileprivate mutating func count(_ kind: Kind, _ count: UInt64, seconds: Double?) {
        requests[kind, default: 0] += count
        if let seconds { durations.record(seconds: seconds) }
    }
}

/// A number that only grows: one relaxed atomic add, from any thread.
package struct Counter: ~Copyable, Sendable {
    private let count = Atomic<UInt64>(0)

    @inline(__always)
    package func add(_ amount: UInt64 = 1) { count.wrappingAdd(amount, ordering: .relaxed) }

    package var value: UInt64 { count.load(ordering: .relaxed) }
}

/// A number that goes up and down, from any thread.
package struct Gauge: ~Copyable, Sendable {
    private let level = Atomic<Int>(0)

    @inline(__always)
    func add() { level.wrappingAdd(1, ordering: .relaxed) }

    @inline(__always)
    func subtract() { level.wrappingSubtract(1, ordering: .relaxed) }

    package func set(_ value: Int) { level.store(value, ordering: .relaxed) }

    package var value: Int { level.load(ordering: .relaxed) }
}
