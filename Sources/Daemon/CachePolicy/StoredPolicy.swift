import HTTPSemantics

/// All that deciding on the reuse of one stored response needs: a flat value of integers, kept with it in memory and store.
///
/// It holds the upstream's word; `applying(_:)` lays a route's configuration over it. Times are seconds since 1970, spans are
/// seconds, and -1 means absent.
package struct StoredPolicy: Sendable, Equatable {
    /// Where the lifetime comes from.
    package enum LifetimeSource: UInt8, Sendable, CaseIterable {
        /// Nothing gives one: stale from the start.
        case none, maxAge, sMaxAge, expires, heuristic
        /// `fresh:` or `cache: force` of a route.
        case route
        /// `negative:` of a route.
        case negative
        /// A targeted field (RFC 9213).
        case targeted
    }

    /// Stored policies hold them as numbers: 4 and 7 once had a meaning, and are not given again.
    package struct Flags: OptionSet, Sendable {
        package let rawValue: UInt32

        package init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        /// Never without validation.
        package static let noCache = Flags(rawValue: 1 << 0)
        /// Never once stale without validation: `must-revalidate`, or its likes where the cache is shared.
        package static let mustRevalidate = Flags(rawValue: 1 << 1)
        /// Should not have been stored but for `cache: force`.
        package static let noStore = Flags(rawValue: 1 << 2)
        /// Said `immutable`; for people only.
        package static let immutable = Flags(rawValue: 1 << 3)
        /// `cache: never` of a route.
        package static let neverReused = Flags(rawValue: 1 << 5)
        /// Had no valid `Date`; `date` is the time of its arrival.
        package static let dateAssumed = Flags(rawValue: 1 << 6)
        /// `stale:` of a route replaced the upstream's words about serving stale.
        package static let staleByRoute = Flags(rawValue: 1 << 8)
    }

    package var status: Int64 = 200
    /// When the request was sent and when the head of its response came, on the store's clock.
    ///
    /// The wall clock may be set back or ahead at any time; no age is taken from it.
    package var requestTime: Int64
    package var responseTime: Int64
    /// The value of `Date`.
    package var date: Int64
    /// The value of `Age`.
    package var ageValue: Int64 = -1

    /// What the response's `Age` says in µs, rounded up; 0 without one.
    package var knownAge: Int64 { ageValue < 0 ? 0 : (ageValue + 1) * 1_000_000 }
    package var lastModified: Int64 = -1
    /// `corrected_initial_age` of RFC 9111 §4.2.3, the age at `responseTime`.
    package var initialAge: Int64 = 0
    package var lifetime: Int64 = 0
    package var lifetimeSource = LifetimeSource.none
    package var staleWhileRevalidate: Int64 = -1
    package var staleIfError: Int64 = -1
    package var flags: Flags = []

    init(requestTime: Int64, responseTime: Int64, date: Int64) {
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.date = date
    }

    /// The age at `now` of the store's clock; never less than on arrival, whatever thread read the clock first.
    @inline(__always)
    package func age(at now: Int64) -> Int64 {
        initialAge &+ max(0, now &- responseTime)
    }

    /// The policy as read from disk: of unknown age where the store's clock cannot tell how long ago the response came.
    ///
    /// - Parameter moment: what came before it is of unknown age (`StoreClock`).
    package func aged(at now: Int64, knownSince moment: Int64) -> StoredPolicy {
        // A time to come is of a store that took its times from the wall clock, which was set back since.
        guard responseTime < moment || responseTime > now + 1 else { return self }
        var policy = self
        policy.initialAge = DeltaSeconds.maximum
        return policy
    }

    /// What is left of the lifetime at `now`; negative once stale.
    @inline(__always)
    package func timeToLive(at now: Int64) -> Int64 {
        lifetime &- age(at: now)
    }

    /// `corrected_initial_age` (RFC 9111 §4.2.3).
    static func initialAge(responseDelay: Int64, apparentAge: Int64, ageValue: Int64) -> Int64 {
        let correctedAge = max(0, ageValue) + max(0, responseDelay)
        return min(max(0, apparentAge, correctedAge), DeltaSeconds.maximum)
    }

    /// The policy as a route's configuration has it.
    package func applying(_ route: CacheOverrides) -> StoredPolicy {
        var policy = self
        if route.cache == .never { policy.flags.insert(.neverReused) }
        let takesLifetime = StatusFacts.takesRouteLifetime(Int(status))
        let isForced = route.cache == .force && takesLifetime
        if isForced { policy.flags.subtract([.noStore, .noCache, .mustRevalidate]) }
        let fresh = takesLifetime ? route.fresh?.seconds ?? (isForced ? DeltaSeconds.maximum : nil) : nil
        // `negative` leaves the upstream its word, unless the route has taken it already.
        if let negative = route.negative?.seconds, StatusFacts.isNegative(Int(status)), fresh != nil || !saysLifetime {
            policy.flags.remove(.noCache)
            policy.lifetime = negative
            policy.lifetimeSource = .negative
        } else if let fresh {
            policy.flags.remove(.noCache)
            policy.lifetime = fresh
            policy.lifetimeSource = .route
        }
        if let stale = route.stale?.seconds {
            policy.staleWhileRevalidate = stale
            policy.staleIfError = stale
            policy.flags.remove(.mustRevalidate)
            policy.flags.insert(.staleByRoute)
        }
        return policy
    }

    /// Whether the upstream itself gave the lifetime.
    private var saysLifetime: Bool {
        switch lifetimeSource {
        case .none, .heuristic, .negative: flags.contains(.noCache)
        case .maxAge, .sMaxAge, .expires, .route, .targeted: true
        }
    }
}
