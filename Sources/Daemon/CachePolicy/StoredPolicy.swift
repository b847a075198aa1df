import HTTPSemantics

/// The policy for reusing one stored response: a flat value of integers, kept with it in memory and in the store.
///
/// It contains the upstream's rules; `applying(_:)` adds a route's configuration. Times are seconds since 1970, spans are
/// seconds, and -1 means absent.
package struct StoredPolicy: Sendable, Equatable {
    /// What determined the freshness lifetime.
    package enum LifetimeSource: UInt8, Sendable, CaseIterable {
        /// No source: stale from the start.
        case none, maxAge, sMaxAge, expires, heuristic
        /// `fresh:` or `cache: force` of a route.
        case route
        /// `negative:` of a route.
        case negative
        /// A targeted field (RFC 9213).
        case targeted
        /// `fresh_unsaid:` of the upstream's configuration.
        case unsaid
    }

    /// Flags, stored as bits; bits 4 and 7 had a meaning once and must not be reused.
    package struct Flags: OptionSet, Sendable {
        package let rawValue: UInt32

        package init(rawValue: UInt32) { self.rawValue = rawValue }

        /// Must not be reused without validation.
        package static let noCache = Flags(rawValue: 1 << 0)
        /// Must not be reused without validation once stale: `must-revalidate`, or its equivalents for a shared cache.
        package static let mustRevalidate = Flags(rawValue: 1 << 1)
        /// Must not be stored, except by `cache: force`.
        package static let noStore = Flags(rawValue: 1 << 2)
        /// The response contained `immutable`; for display only.
        package static let immutable = Flags(rawValue: 1 << 3)
        /// `cache: never` of a route.
        package static let neverReused = Flags(rawValue: 1 << 5)
        /// The response had no valid `Date`; `date` is the time of its arrival.
        package static let dateAssumed = Flags(rawValue: 1 << 6)
        /// `stale:` of a route replaced the upstream's rules for serving stale responses.
        package static let staleByRoute = Flags(rawValue: 1 << 8)
        /// A 304 with a strong tag, to a request that differs in its `OtherFields`, makes it that request's response too.
        package static let isReleasedByValidation = Flags(rawValue: 1 << 9)
        /// The response had none of `Cache-Control`, `Expires` and `Pragma`, nor a targeted field.
        static let saysNothing = Flags(rawValue: 1 << 10)
        /// The flags that forbid some use of a response.
        static let restrictions: Flags = [.noCache, .mustRevalidate, .noStore]
    }

    package var status: Int64 = 200
    /// When the request was sent and when the head of its response arrived, on the store's clock.
    ///
    /// No age is computed from the wall clock, which may be set at any time.
    package var requestTime: Int64
    package var responseTime: Int64
    /// The value of `Date`; without a valid one the time of arrival, and `dateAssumed` is set.
    package var date: Int64
    package var ageValue: Int64 = -1

    /// The value of `Age` in µs, rounded up; 0 if absent.
    package var knownAge: Int64 { ageValue < 0 ? 0 : (ageValue + 1) * 1_000_000 }
    package var lastModified: Int64 = -1
    /// `corrected_initial_age` of RFC 9111 §4.2.3, the age at `responseTime`.
    package var initialAge: Int64 = 0
    /// The freshness lifetime (RFC 9111 §4.2.1).
    package var lifetime: Int64 = 0
    package var lifetimeSource = LifetimeSource.none
    package var staleWhileRevalidate: Int64 = -1
    package var staleIfError: Int64 = -1
    package var flags: Flags = []

    init(_ times: ExchangeTimes, date: Int64) {
        (requestTime, responseTime, self.date) = (times.request, times.response, date)
    }

    /// The policy of a response that the upstream never sent: it is stale from the start.
    ///
    /// - Parameter time: from when on its age is counted, in seconds of the store's clock.
    package static func unsent(since time: Int64) -> StoredPolicy {
        StoredPolicy(ExchangeTimes(request: time, response: time), date: time)
    }

    /// The age at `now` of the store's clock; never less than on arrival, even if threads read the clock out of order.
    @inline(__always)
    package func age(at now: Int64) -> Int64 { initialAge &+ max(0, now &- responseTime) }

    /// The policy after reading it from disk: of unknown age if the store's clock cannot tell when the response arrived.
    ///
    /// - Parameter moment: The time before which ages are unknown (`StoreClock`).
    package func aged(at now: Int64, knownSince moment: Int64) -> StoredPolicy {
        // A future time comes from a store that used the wall clock, which has been set back since.
        guard responseTime < moment || responseTime > now + 1 else { return self }
        var policy = self
        policy.initialAge = DeltaSeconds.maximum
        return policy
    }

    /// The remaining lifetime at `now`; negative once stale.
    @inline(__always)
    package func timeToLive(at now: Int64) -> Int64 { lifetime &- age(at: now) }

    static func initialAge(_ times: ExchangeTimes, apparentAge: Int64, ageValue: Int64) -> Int64 {
        let correctedAge = max(0, ageValue) + max(0, times.response - times.request)
        return min(max(0, apparentAge, correctedAge), DeltaSeconds.maximum)
    }

    /// Whether `fresh_unsaid` gives the lifetime: the response says nothing of caching, and is neither an error nor an absence.
    package var takesUnsaidLifetime: Bool {
        flags.contains(.saysNothing) && StatusFacts.isHeuristicallyCacheable(Int(status))
            && !StatusFacts.isNegative(Int(status))
    }

    /// The policy with the configuration applied.
    ///
    /// - Parameter freshUnsaid: the lifetime of responses that say nothing of caching; nil to leave it to the heuristic.
    package func applying(_ route: CacheOverrides, freshUnsaid: Duration? = nil) -> StoredPolicy {
        var policy = self
        if let fresh = freshUnsaid?.seconds, takesUnsaidLifetime {
            (policy.lifetime, policy.lifetimeSource) = (fresh, .unsaid)
        }
        if route.cache == .never { policy.flags.insert(.neverReused) }
        let takesLifetime = StatusFacts.takesRouteLifetime(Int(status))
        let isForced = route.cache == .force && takesLifetime
        if isForced { policy.flags.subtract([.noStore, .noCache, .mustRevalidate]) }
        let fresh = takesLifetime ? route.fresh?.seconds ?? (isForced ? DeltaSeconds.maximum : nil) : nil
        // `negative` does not override the upstream's lifetime, unless the route's `fresh` already does.
        if let negative = route.negative?.seconds, StatusFacts.isNegative(Int(status)), fresh != nil || !saysLifetime {
            policy.flags.remove(.noCache)
            (policy.lifetime, policy.lifetimeSource) = (negative, .negative)
        } else if let fresh {
            policy.flags.remove(.noCache)
            (policy.lifetime, policy.lifetimeSource) = (fresh, .route)
        }
        if let stale = route.stale?.seconds {
            (policy.staleWhileRevalidate, policy.staleIfError) = (stale, stale)
            policy.flags.remove(.mustRevalidate)
            policy.flags.insert(.staleByRoute)
        }
        return policy
    }

    /// Whether the upstream itself named the lifetime.
    private var saysLifetime: Bool {
        switch lifetimeSource {
        case .none, .heuristic, .negative, .unsaid: flags.contains(.noCache)
        case .maxAge, .sMaxAge, .expires, .route, .targeted: true
        }
    }
}

extension StoredPolicy {
    /// The version of the stored form; a response stored in another form is fetched again.
    private static let formVersion: UInt8 = 1
    private static let byteCount = 1 + 10 * 8 + 1 + 4

    /// The stored form: a version byte, the numbers as little-endian 64-bit integers in the order of declaration, the source in
    /// one byte, the flags in four.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Self.byteCount)
        bytes.append(Self.formVersion)
        let numbers = (
            status.littleEndian, requestTime.littleEndian, responseTime.littleEndian, date.littleEndian,
            ageValue.littleEndian, lastModified.littleEndian, initialAge.littleEndian, lifetime.littleEndian,
            staleWhileRevalidate.littleEndian, staleIfError.littleEndian
        )
        withUnsafeBytes(of: numbers) { bytes += $0 }
        bytes.append(lifetimeSource.rawValue)
        withUnsafeBytes(of: flags.rawValue.littleEndian) { bytes += $0 }
        return bytes
    }

    /// Reads the form written by `bytes`; nil if it has another form, or numbers that no response has.
    package init?(bytes: some RandomAccessCollection<UInt8>) {
        let bytes = Array(bytes)
        guard bytes.count == Self.byteCount, bytes[0] == Self.formVersion,
            let source = LifetimeSource(rawValue: bytes[81])
        else { return nil }
        let numbers = bytes.withUnsafeBytes { bytes in
            (0..<10).map { Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: 1 + $0 * 8, as: Int64.self)) }
        }
        // Whoever can write the store's file can write any number: these are so far from the end of 64 bits that no sum or
        // product of ages overflows.
        guard numbers.allSatisfy({ -(1 << 42)...(1 << 42) ~= $0 }) else { return nil }
        let bits = bytes.withUnsafeBytes { UInt32(littleEndian: $0.loadUnaligned(fromByteOffset: 82, as: UInt32.self)) }
        self.init(ExchangeTimes(request: numbers[1], response: numbers[2]), date: numbers[3])
        status = numbers[0]
        ageValue = numbers[4]
        lastModified = numbers[5]
        initialAge = numbers[6]
        lifetime = numbers[7]
        staleWhileRevalidate = numbers[8]
        staleIfError = numbers[9]
        lifetimeSource = source
        flags = Flags(rawValue: bits)
    }
}

/// Whether a stored response may be used for a request now.
package enum Reuse: Sendable, Equatable {
    case fresh(age: Int64, timeToLive: Int64)
    /// The response is stale, and may be used only as `allowed` says; `staleness` is the time since its lifetime ended.
    case stale(age: Int64, staleness: Int64, allowed: StaleAllowance)
    /// The response must be validated first; `otherwise` says when it may be used nonetheless.
    case mustValidate(age: Int64, reason: Reason, otherwise: StaleAllowance)

    package enum Reason: String, Sendable {
        /// The response contains `no-cache`.
        case noCache = "no-cache"
        /// The response is stale and contains `must-revalidate`, or an equivalent.
        case mustRevalidate = "must-revalidate"
        /// The response must not be stored, or the route says `cache: never`.
        case notReusable = "not-reusable"
        case requestNoCache = "request-no-cache"
        /// The response is older than the request's `max-age`.
        case requestMaxAge = "request-max-age"
        /// The response will not stay fresh for the request's `min-fresh`.
        case requestMinFresh = "request-min-fresh"
    }
}

/// When a response that is not fresh enough may be used.
package struct StaleAllowance: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Now, because the request's `max-stale` allows it.
    package static let byRequest = StaleAllowance(rawValue: 1)
    /// Now, with a background revalidation (`stale-while-revalidate`, or the route's `stale`).
    package static let whileRevalidating = StaleAllowance(rawValue: 2)
    /// When the upstream responds with an error, or not at all.
    package static let onError = StaleAllowance(rawValue: 4)
}

extension StoredPolicy {
    /// The policy that allows only what both this and a later one allow.
    ///
    /// A 304 that does not confirm a document, because its objects have changed meanwhile, still says how long it may be used.
    package func restricted(by later: StoredPolicy) -> StoredPolicy {
        var policy = later.end < end ? later : self
        policy.flags.formUnion(flags.union(later.flags).intersection(.restrictions))
        policy.staleWhileRevalidate = min(staleWhileRevalidate, later.staleWhileRevalidate)
        // Without a limit of its own, a stale response stands in for an error as long as the config says.
        let terms = [staleIfError, later.staleIfError].filter { $0 >= 0 }
        policy.staleIfError = terms.min() ?? -1
        return policy
    }

    /// When its lifetime ends, in seconds of the store's clock.
    private var end: Int64 { responseTime &+ lifetime &- initialAge }

    /// Decides on reuse (RFC 9111 §4, RFC 5861).
    ///
    /// The hit path calls it, so it uses integer arithmetic only.
    ///
    /// Larder never serves a stale response on its own account if a directive forbids it: `no-cache`, `must-revalidate`, and in
    /// a shared cache `proxy-revalidate` and `s-maxage`. Otherwise a response may stand in for a failing upstream, for as long
    /// as `stale-if-error` allows, if it is present.
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
        let onError = allowanceOnError(staleness: max(0, -timeToLive), request)
        // Ages are rounded down, so `max-age=0`, a browser's reload, must never accept a response.
        if request.maxAge >= 0, age > request.maxAge || request.maxAge == 0 {
            return .mustValidate(age: age, reason: .requestMaxAge, otherwise: onError)
        }
        if request.minFresh >= 0, timeToLive < request.minFresh {
            return .mustValidate(age: age, reason: .requestMinFresh, otherwise: onError)
        }
        if timeToLive > 0 { return .fresh(age: age, timeToLive: timeToLive) }
        let staleness = -timeToLive
        var allowed = onError
        // `max-age` limits the age; staleness is allowed only by `max-stale` beside it (RFC 9111 §5.2.1.1).
        if request.maxStale >= 0, staleness <= request.maxStale { allowed.insert(.byRequest) }
        if request.maxAge < 0, staleWhileRevalidate >= 0, staleness <= staleWhileRevalidate {
            allowed.insert(.whileRevalidating)
        }
        return .stale(age: age, staleness: staleness, allowed: allowed)
    }

    /// The staleness allowed when the upstream fails.
    private func allowanceOnError(staleness: Int64, _ request: RequestDirectives) -> StaleAllowance {
        let term = max(staleIfError, request.staleIfError)
        // Without a limit Larder's default applies: a stale response is better than an error.
        return term < 0 || staleness <= term ? .onError : []
    }
}
