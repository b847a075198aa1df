/// Whether a stored response may be used for a request now.
package enum Reuse: Sendable, Equatable {
    /// As it is.
    case fresh(age: Int64, timeToLive: Int64)
    /// In the circumstances that `allowed` names only; `staleness` is how long its lifetime is over.
    case stale(age: Int64, staleness: Int64, allowed: StaleAllowance)
    /// Not before the upstream was asked. `otherwise` says when it may be used nonetheless.
    case mustValidate(age: Int64, reason: Reason, otherwise: StaleAllowance)

    package enum Reason: String, Sendable {
        /// The response said `no-cache`.
        case noCache = "no-cache"
        /// The response is stale and said `must-revalidate`, or the like.
        case mustRevalidate = "must-revalidate"
        /// The response may not be kept, or the route says `cache: never`.
        case notReusable = "not-reusable"
        /// The request said `no-cache`.
        case requestNoCache = "request-no-cache"
        /// The response is older than the request's `max-age`.
        case requestMaxAge = "request-max-age"
        /// The response will not be fresh for as long as the request's `min-fresh`.
        case requestMinFresh = "request-min-fresh"
    }
}

/// When a response that is not fresh enough may be used.
package struct StaleAllowance: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Now, since the request's `max-stale` says so.
    package static let byRequest = StaleAllowance(rawValue: 1)
    /// Now, while it is refreshed behind (`stale-while-revalidate`, or the route's `stale`).
    package static let whileRevalidating = StaleAllowance(rawValue: 2)
    /// When the upstream answers with an error, or not at all.
    package static let onError = StaleAllowance(rawValue: 4)
    /// When the upstream cannot be reached, or must not be asked.
    static let whileDisconnected = StaleAllowance(rawValue: 8)
}

extension StoredPolicy {
    /// Decides on reuse (RFC 9111 §4, RFC 5861).
    ///
    /// Integer arithmetic only; the hit path calls it.
    ///
    /// Nothing is stale by Larder's own choice where a directive forbids it: `no-cache`, `must-revalidate`, and in the
    /// shared reading `proxy-revalidate` and `s-maxage`. Elsewhere a response may stand in for a failing upstream, as long
    /// as `stale-if-error` does not set a term.
    @inline(__always)
    package func reuse(at now: Int64, for request: RequestDirectives) -> Reuse {
        let age = age(at: now)
        let timeToLive = lifetime &- age
        if timeToLive > 0, flags.isDisjoint(with: [.noCache, .noStore, .neverReused]), request.isPlain {
            return .fresh(age: age, timeToLive: timeToLive)
        }
        return restrictedReuse(age: age, timeToLive: timeToLive, request)
    }

    private func restrictedReuse(age: Int64, timeToLive: Int64, _ request: RequestDirectives) -> Reuse {
        if !flags.isDisjoint(with: [.noStore, .neverReused]) {
            return .mustValidate(age: age, reason: .notReusable, otherwise: [])
        }
        if flags.contains(.noCache) { return .mustValidate(age: age, reason: .noCache, otherwise: []) }
        if timeToLive <= 0, flags.contains(.mustRevalidate) {
            return .mustValidate(age: age, reason: .mustRevalidate, otherwise: [])
        }
        if request.noCache { return .mustValidate(age: age, reason: .requestNoCache, otherwise: []) }
        let onError = allowance(staleness: max(0, -timeToLive), request)
        // An age is rounded down: no response is so young that `max-age=0`, a browser's reload, would take it.
        if request.maxAge >= 0, age > request.maxAge || request.maxAge == 0 {
            return .mustValidate(age: age, reason: .requestMaxAge, otherwise: onError)
        }
        if request.minFresh >= 0, timeToLive < request.minFresh {
            return .mustValidate(age: age, reason: .requestMinFresh, otherwise: onError)
        }
        if timeToLive > 0 { return .fresh(age: age, timeToLive: timeToLive) }
        let staleness = -timeToLive
        var allowed = onError
        // `max-age` limits what the client takes; only `max-stale` beside it lets staleness in (RFC 9111 §5.2.1.1).
        if request.maxStale >= 0 {
            if staleness <= request.maxStale { allowed.insert(.byRequest) }
        }
        if request.maxAge < 0, staleWhileRevalidate >= 0, staleness <= staleWhileRevalidate {
            allowed.insert(.whileRevalidating)
        }
        return .stale(age: age, staleness: staleness, allowed: allowed)
    }

    /// What is allowed once the upstream fails.
    private func allowance(staleness: Int64, _ request: RequestDirectives) -> StaleAllowance {
        let term = max(staleIfError, request.staleIfError)
        // Without a term the default of Larder's configuration holds: an old answer is better than an error.
        return term < 0 || staleness <= term ? [.onError, .whileDisconnected] : .whileDisconnected
    }
}
