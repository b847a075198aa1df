package import CachePolicy

/// How an upstream does, as far as its responses and failures show.
///
/// A value: what happens goes in with its time, in µs since 1970, and what is worth a line in the log comes out.
package struct UpstreamHealth: Sendable {
    package enum State: String, Sendable {
        /// It was not asked yet.
        case unused
        case reachable
        /// The last request got no response, or one of a gateway that got none.
        case failing
        /// It wants no requests for a while.
        case backingOff = "backing_off"
    }

    /// What is worth a line in the log.
    enum News: Equatable {
        /// It fails. Further failures are silent until it has been reachable.
        case fails
        /// It is reachable again.
        case recovered(after: Duration, failures: Int)
    }

    /// Requests that have ended.
    package private(set) var requests = 0
    /// Those of them that count as failures.
    package private(set) var failures = 0
    /// The last failure, also when the upstream has been reachable since.
    package private(set) var lastError: (time: Int64, message: String)?
    package private(set) var failingSince: Int64?
    /// When it wants to be asked again; in the past once that is over.
    private var backOffEnd: Int64 = 0
    /// The last state of each limited resource, by the upstream's name for it.
    private var limits: [String: RateLimit] = [:]
    /// Failures since it was reachable last.
    private var failuresInARow = 0
    private var isAnnounced = false
    private var lastWarning = Int64.min

    /// The least time between two warnings, in µs, so that an upstream which answers every other request does not fill the log.
    static let quiet: Int64 = 10_000_000
    /// The names that are kept of limited resources.
    private static let resources = 32

    /// A request got no response, or one that says that nobody is there.
    mutating func failed(_ message: String, at time: Int64) -> News? {
        requests += 1
        failures += 1
        failuresInARow += 1
        lastError = (time, message)
        if failingSince == nil { failingSince = time }
        guard !isAnnounced, lastWarning == .min || time - lastWarning >= Self.quiet else { return nil }
        (isAnnounced, lastWarning) = (true, time)
        return .fails
    }

    /// A request got a response.
    mutating func responded(at time: Int64) -> News? {
        requests += 1
        guard let since = failingSince else { return nil }
        let news = News.recovered(after: .microseconds(max(0, time - since)), failures: failuresInARow)
        let wasAnnounced = isAnnounced
        (failingSince, failuresInARow, isAnnounced) = (nil, 0, false)
        return wasAnnounced ? news : nil
    }

    /// A request has ended in a way that says nothing of the upstream, as by the client's leaving.
    mutating func gaveUp() {
        requests += 1
    }

    mutating func backsOff(until time: Int64) {
        backOffEnd = max(backOffEnd, time)
    }

    mutating func limited(_ limit: RateLimit) {
        let name = limit.resource ?? ""
        guard limits[name] != nil || limits.count < Self.resources else { return }
        limits[name] = limit
    }

    package func state(at now: Int64) -> State {
        if backOffEnd > now { return .backingOff }
        if failingSince != nil { return .failing }
        return requests == 0 ? .unused : .reachable
    }

    /// Until when it wants no requests; nil where it takes them.
    package func backOffUntil(at now: Int64) -> Int64? { backOffEnd > now ? backOffEnd : nil }

    /// The state of each limited resource that is known, by name.
    package var allLimits: [RateLimit] { limits.sorted { $0.key < $1.key }.map(\.value) }

    /// The limit of which the smallest share is left; one whose time is over only if there is no other.
    package func tightestLimit(at now: Int64) -> RateLimit? {
        let seconds = now / 1_000_000
        let current = allLimits.filter { $0.reset.map { $0 > seconds } ?? true }
        return (current.isEmpty ? allLimits : current).min { $0.share < $1.share }
    }

    package init() {}
}

extension RateLimit {
    /// How much is left of it.
    fileprivate var share: Double {
        guard let limit, limit > 0 else { return remaining == 0 ? 0 : 1 }
        return Double(remaining) / Double(limit)
    }
}
