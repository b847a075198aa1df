import HTTPSemantics
import Synchronization

/// Who asks how much, and for what: the requests of the last minute, hour and day, counted by client program, principal,
/// upstream, route and URL.
///
/// Any thread. Bounded: an interval counts `nameLimit` names of each kind; further ones are counted together, under `othersName`.
/// Unwatched hits from memory are counted by samples.
package final class TopLists: Sendable {
    /// What requests are counted by.
    package enum Subject: String, CaseIterable, Sendable {
        case program, principal, upstream, route, url

        fileprivate var place: Int {
            switch self {
            case .program: 0
            case .principal: 1
            case .upstream: 2
            case .route: 3
            case .url: 4
            }
        }
    }

    /// The time that a list covers, up to now.
    package enum Period: String, CaseIterable, Sendable {
        case minute, hour, day

        /// The seconds of one interval, and how many of them are kept.
        fileprivate var intervals: (seconds: Int64, count: Int64) {
            switch self {
            case .minute: (10, 6)
            case .hour: (60, 60)
            case .day: (3_600, 24)
            }
        }
    }

    /// What a list is in the order of.
    package enum Order: String, CaseIterable, Sendable {
        case requests
        case upstreamRequests = "upstream_requests"
        case bytes, seconds

        fileprivate func value(of counts: Counts) -> Double {
            switch self {
            case .requests: Double(counts.requests)
            case .upstreamRequests: Double(counts.upstreamRequests)
            case .bytes: Double(counts.bytes)
            case .seconds: counts.seconds
            }
        }
    }

    /// The requests under one name.
    package struct Counts: Sendable, Equatable {
        package var requests = 0
        package var hits = 0
        /// Those for which the upstream was asked.
        package var upstreamRequests = 0
        /// Of responses' bodies.
        package var bytes = 0
        /// The sum of their durations.
        package var seconds = 0.0

        static func += (left: inout Counts, right: Counts) {
            left.requests += right.requests
            left.hits += right.hits
            left.upstreamRequests += right.upstreamRequests
            left.bytes += right.bytes
            left.seconds += right.seconds
        }
    }

    /// For names beyond the limit; no name of a program, principal, upstream, route or URL is like it.
    package static let othersName = "(others)"
    static let nameLimit = 256

    private struct Interval {
        /// Counts up from 1970.
        let number: Int64
        /// By the places of the subjects: their names need not be hashed.
        var counts: [[String: Counts]] = Subject.allCases.map { _ in [:] }

        mutating func add(_ new: Counts, at place: Int, _ name: String) {
            if let known = counts[place].index(forKey: name) {
                counts[place].values[known] += new
            } else {
                let isListed = counts[place].count < TopLists.nameLimit
                counts[place][isListed ? name : TopLists.othersName, default: Counts()] += new
            }
        }

        mutating func add(_ other: Interval) {
            for (place, names) in other.counts.enumerated() {
                for (name, new) in names { add(new, at: place, name) }
            }
        }
    }

    /// What consecutive requests mostly have in common, so that they are counted together.
    private struct Sender: Equatable {
        let program, principal, upstream, route: String?

        init(of served: ServedRequest) {
            (program, principal) = (served.program, served.principal)
            (upstream, route) = (served.upstream, served.route)
        }
    }

    private struct State {
        /// The latest sender, and its latest requests, which are not in the interval yet but for their URLs.
        var sender: Sender?
        var unattributed = Counts()
        /// The interval under way, of the shortest kind; later it becomes part of the others.
        var current = Interval(number: 0)
        var finished: [Period: [Interval]] = [:]
    }

    private let state = Mutex(State())

    /// - Parameters:
    ///   - weight: for how many requests it stands.
    ///   - now: in seconds since 1970.
    func count(_ served: ServedRequest, weight: Int = 1, now: Int64 = RequestClock.wall / 1_000_000) {
        let counts = Counts(
            requests: weight,
            hits: served.outcome.isHit ? weight : 0,
            upstreamRequests: served.upstreamSeconds == nil ? 0 : weight,
            bytes: served.bytes * weight,
            seconds: served.seconds * Double(weight)
        )
        let sender = Sender(of: served)
        state.withLock { state in
            Self.advance(&state, to: now)
            if state.sender != sender { Self.attribute(&state, to: sender) }
            state.unattributed += counts
            state.current.add(counts, at: Subject.url.place, served.url)
        }
    }

    /// The names with the most, the first of them first.
    package func list(
        by subject: Subject,
        of period: Period,
        order: Order,
        limit: Int,
        now: Int64 = RequestClock.wall / 1_000_000
    ) -> [(name: String, counts: Counts)] {
        var sums: [String: Counts] = [:]
        state.withLock { state in
            Self.advance(&state, to: now)
            Self.attribute(&state, to: nil)
            for interval in (state.finished[period] ?? []) + [state.current] {
                for (name, counts) in interval.counts[subject.place] { sums[name, default: Counts()] += counts }
            }
        }
        return sums.sorted { (order.value(of: $1.value), $0.key) < (order.value(of: $0.value), $1.key) }.prefix(limit)
            .map { ($0.key, $0.value) }
    }

    /// Adds the latest requests to the interval; those that follow are another sender's.
    private static func attribute(_ state: inout State, to next: Sender?) {
        if let sender = state.sender {
            let names: [(Subject, String?)] = [
                (.program, sender.program), (.principal, sender.principal), (.upstream, sender.upstream),
                (.route, sender.route),
            ]
            for case (let subject, let name?) in names {
                state.current.add(state.unattributed, at: subject.place, name)
            }
        }
        (state.sender, state.unattributed) = (next, Counts())
    }

    /// Adds the current interval to the others when it is over, and drops those that are too old.
    private static func advance(_ state: inout State, to now: Int64) {
        let number = now / Period.minute.intervals.seconds
        guard number != state.current.number else { return }
        attribute(&state, to: nil)
        for period in Period.allCases {
            let (seconds, count) = period.intervals
            let own = state.current.number * Period.minute.intervals.seconds / seconds
            var intervals = state.finished[period] ?? []
            if intervals.last?.number != own { intervals.append(Interval(number: own)) }
            intervals[intervals.endIndex - 1].add(state.current)
            intervals.removeAll { !(now / seconds - count..<now / seconds + 1).contains($0.number) }
            state.finished[period] = intervals
        }
        state.current = Interval(number: number)
    }
}

/// The program of a client: the first product in its `User-Agent` (RFC 9110 §10.1.5), without its version.
enum ClientProgram {
    private static let nameLength = 40

    /// `PyGithub` for `PyGithub/Python`; nil for none that can be shown.
    static func name(of userAgent: some Collection<UInt8>) -> String? {
        let name = userAgent.prefix { $0 > 0x20 && $0 < 0x7F && $0 != 0x2F && $0 != 0x28 }.prefix(nameLength)
        return name.isEmpty ? nil : String(decoding: name, as: UTF8.self)
    }
}
