import HTTPSemantics

/// When a followed document is asked for anew, although no client asked for it.
///
/// A value without a clock of its own: times are nanoseconds of the loop's.
struct LiveRhythm {
    /// Why the upstream has to be asked.
    enum Need: Equatable {
        /// What is known is fresh for so many seconds.
        case expiry(Int64)
        /// What is known is stale, or nothing may be kept.
        case stale
        /// What was known is gone, or something newer is known than can be shown.
        case displaced
    }

    /// The least time between two requests for what is merely stale.
    let interval: UInt64
    /// When the upstream was last asked in vain or not; nil: never.
    private(set) var lastWord: UInt64?
    /// How many times in succession it did not answer, or with an error.
    private(set) var failures = 0
    /// How many times it was asked in succession because something was displaced.
    private var haste = 0

    private static let second: UInt64 = 1_000_000_000
    private static let longestWait = 60 * second
    private static let firstHaste = second / 10
    /// Times beyond are as good as never.
    private static let farthest: Int64 = 100 * 365 * 86_400

    init(interval: Duration) {
        self.interval = interval.nanoseconds
    }

    /// The upstream has given its word, or failed to.
    mutating func concluded(hasFailed: Bool, now: UInt64) {
        lastWord = now
        failures = hasFailed ? failures + 1 : 0
    }

    /// When the upstream is to be asked; it may be in the past.
    ///
    /// After failures with growing distance. What is displaced is asked for at once, unless that happens again and again:
    /// two documents whose responses displace one another must not become a poll loop.
    mutating func due(_ need: Need, now: UInt64) -> UInt64 {
        guard let lastWord else {
            if case .expiry(let seconds) = need { return now + Self.span(seconds) }
            return now
        }
        if failures > 0 {
            let wait = min(Self.longestWait, Self.second << UInt64(min(failures - 1, 6)))
            return lastWord + wait
        }
        if now > lastWord + 2 * interval { haste = 0 }
        switch need {
        case .expiry(let seconds): return max(now + Self.span(seconds), lastWord + interval)
        case .stale: return lastWord + interval
        case .displaced:
            let wait = haste == 0 ? 0 : min(interval, Self.firstHaste << UInt64(min(haste - 1, 20)))
            return lastWord + wait
        }
    }

    /// The upstream is being asked for this need.
    mutating func asked(_ need: Need) {
        if need == .displaced { haste += 1 }
    }

    private static func span(_ seconds: Int64) -> UInt64 { UInt64(max(0, min(seconds, farthest))) * second }
}
