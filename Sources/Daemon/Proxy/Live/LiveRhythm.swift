import HTTPSemantics

/// Schedules Larder's own inquiries about a followed document.
///
/// A value without a clock: times are nanoseconds of the loop's clock.
struct LiveRhythm: Hashable {
    /// Why the upstream must be asked.
    enum Need: Hashable {
        /// The response is fresh for this many seconds.
        case expiry(Int64)
        /// The response is stale, or must not be stored.
        case stale
        /// The response is gone, or something newer is known that cannot be shown.
        case displaced
    }

    enum Outage: Hashable {
        /// The upstream could be reached last.
        case none
        case lasting
        /// The upstream can be reached again, and has not been asked since.
        case over
    }

    /// The least time between two requests for a response that is merely stale.
    let interval: UInt64
    /// When the last inquiry ended, successfully or not; nil if there was none.
    private(set) var lastConcluded: UInt64?
    /// The number of successive failures: no response, or an error.
    private(set) var failures = 0
    private(set) var outage = Outage.none
    /// The number of successive inquiries because the response was displaced.
    private var displacements = 0

    private static let second: UInt64 = 1_000_000_000
    private static let firstDelay = second / 10
    /// Later times count as never.
    private static let farthest: Int64 = 100 * 365 * 86_400

    init(interval: Duration) { self.interval = interval.nanoseconds }

    mutating func concluded(now: UInt64) { (lastConcluded, failures, outage) = (now, 0, .none) }

    mutating func failed(isOutage: Bool, now: UInt64) {
        (lastConcluded, failures, outage) = (now, failures + 1, isOutage ? .lasting : .none)
    }

    /// The upstream can be reached again: the pause after failures ends.
    mutating func upstreamIsBack() { if outage == .lasting { outage = .over } }

    /// When the upstream is to be asked; this may be in the past.
    ///
    /// Successive failures increase the delay. A displaced response is requested at once, unless that happens again and again:
    /// two documents whose responses displace one another must not become a poll loop.
    mutating func due(_ need: Need, now: UInt64) -> UInt64 {
        guard let lastConcluded else {
            if case .expiry(let seconds) = need { return now + Self.span(seconds) }
            return now
        }
        if failures > 0 { return outage == .over ? lastConcluded : lastConcluded + Refreshes.pause(after: failures) }
        if now > lastConcluded + 2 * interval { displacements = 0 }
        switch need {
        case .expiry(let seconds): return max(now + Self.span(seconds), lastConcluded + interval)
        case .stale: return lastConcluded + interval
        case .displaced:
            let wait = displacements == 0 ? 0 : min(interval, Self.firstDelay << UInt64(min(displacements - 1, 20)))
            return lastConcluded + wait
        }
    }

    mutating func began(_ need: Need) { if need == .displaced { displacements += 1 } }
    private static func span(_ seconds: Int64) -> UInt64 { UInt64(max(0, min(seconds, farthest))) * second }
}
