package import HTTPSemantics

/// The rules for interpreting one upstream's responses.
package struct CachePolicySettings: Sendable, Equatable {
    /// The heuristic lifetime of responses that name none, in percent of the time since their last change.
    package static let heuristicPercent: Int64 = 10

    /// Whether to follow RFC 9111's rules for a shared cache, instead of those for a private one.
    package var isShared = false
    /// Whether Larder adds a credential of its own to every request.
    ///
    /// The rules for a shared cache treat it as `Authorization`, whatever field it is sent in.
    package var addsCredential = false
    /// The fields of RFC 9213 that are heeded, the most specific first.
    package var targets: [String] = ["Larder-Cache-Control"]
    /// The longest heuristic lifetime, in seconds.
    package var heuristicMaximum: Int64 = 86_400
    /// Whether partial responses may be stored.
    package var storesPartialContent = false

    package init() {}
}

/// When a request was sent, and when the head of its response arrived.
package struct ExchangeTimes: Sendable {
    /// In seconds of the store's clock, which alone measures elapsed time.
    var request: Int64
    var response: Int64
    /// `response` in seconds of the wall clock, which alone can be compared with `Date`.
    package var wall: Int64

    /// - Parameter wall: nil if the clocks agree.
    package init(request: Int64, response: Int64, wall: Int64? = nil) {
        (self.request, self.response, self.wall) = (request, response, wall ?? response)
    }
}

/// A route's changes to the upstream's caching rules; nil keeps the upstream's rule.
package struct CacheOverrides: Sendable, Equatable {
    /// The freshness lifetime that replaces the upstream's.
    package var fresh: Duration?
    /// How long a stale response may be served while it is revalidated.
    package var stale: Duration?
    /// Whether to store at all; nil leaves that to the response's directives.
    package var cache: Cache?
    /// The freshness lifetime of responses such as 404 and 410 that name none.
    package var negative: Duration?
    package var vary = Vary()
    package var key = Key()

    package init() {}

    /// How the response's `Vary` is changed.
    package struct Vary: Sendable, Equatable {
        /// Request fields that select no variant, even if `Vary` names them.
        package var ignore: [String] = []

        package init() {}
    }

    /// Which URLs are treated as equal.
    package struct Key: Sendable, Equatable {
        /// Whether the order of query parameters with different names is ignored.
        package var sort = false
        /// Names of query parameters to ignore; `*` matches any text.
        package var ignore: [String] = []

        package init() {}
        package init(sort: Bool, ignore: [String]) { (self.sort, self.ignore) = (sort, ignore) }
    }

    package enum Cache: String, Sendable, CaseIterable {
        /// Nothing is stored, and no stored response is served.
        case never
        /// Responses are stored and served even if the upstream forbids it; see `StatusFacts.takesRouteLifetime`.
        case force
    }
}

/// Whether a response may be stored.
package enum Storability: Sendable, Equatable {
    case yes
    case no(Reason)

    /// The reason, in the words of `Cache-Status` details and of `explain`.
    package enum Reason: String, Sendable {
        case method = "method"
        case askAgain = "momentary-status"
        case interim = "interim-status"
        case partial = "partial"
        case notModified = "not-modified"
        case notUnderstood = "status-not-understood"
        case requestNoStore = "request-no-store"
        case noStore = "no-store"
        case isPrivate = "private"
        case authorization = "authorization"
        case varyAny = "vary-any"
        case notExplicit = "no-explicit-freshness"
        case neverByRoute = "never-by-route"
    }
}

/// The policy for one upstream response: whether it may be stored, and when it may be reused.
package struct ResponsePolicy: Sendable, Equatable {
    package var storability: Storability
    /// The upstream's own rules, stored with the response; `stored.applying(route)` gives the policy in effect.
    package var stored: StoredPolicy
    package var vary: VaryField
    /// Whether it only serves requests that agree in their `OtherFields`: it is private, or may not be served without asking.
    ///
    /// Never in a shared cache, where RFC 9111 alone counts.
    package var isForSameOtherFields: Bool
    /// Whether it only serves requests with the same `Accept-Encoding`, because its coding must not be changed.
    package var hasFixedCoding = false
    /// Lower-case names of fields to omit when the response is reused without validation (`no-cache="…"`).
    package var fieldsNotReused: [[UInt8]]
    /// Lower-case names of fields not to store (`private="…"`, shared cache only).
    package var fieldsNotStored: [[UInt8]]

    /// Evaluates a response (RFC 9111 §3, §4.2).
    ///
    /// Any final status may be stored with explicit freshness, known or not, except 202, 304, and 206 unless parts are stored.
    /// The caller must see to it that a 5xx never replaces a stored response.
    package init(
        request: Request,
        status: Int,
        fields: Fields,
        times: ExchangeTimes,
        settings: CachePolicySettings,
        route: CacheOverrides = CacheOverrides()
    ) {
        let targeted = TargetedDirectives.find(in: fields, targets: settings.targets)
        let directives = targeted?.directives ?? ResponseDirectives(lines: fields.all("cache-control"))
        let dateField = HTTPDate.earliest(of: fields.all("date"), now: times.wall)
        let age = AgeField.parse(fields) ?? -1
        let lifetime = FreshnessLifetime(
            status: status,
            directives: directives,
            isTargeted: targeted != nil,
            fields: fields,
            date: dateField ?? times.wall,
            now: times.wall,
            settings: settings
        )

        var stored = StoredPolicy(times, date: dateField ?? times.wall)
        stored.status = Int64(status)
        stored.ageValue = age
        stored.initialAge = StoredPolicy.initialAge(times, apparentAge: times.wall - stored.date, ageValue: age)
        stored.lastModified = lifetime.lastModified ?? -1
        stored.lifetime = lifetime.seconds
        stored.lifetimeSource = lifetime.source
        stored.staleWhileRevalidate = directives.staleWhileRevalidate ?? -1
        stored.staleIfError = directives.staleIfError ?? -1
        stored.flags = Self.flags(directives, fields: fields, isShared: settings.isShared)
        if dateField == nil { stored.flags.insert(.dateAssumed) }
        self.stored = stored
        vary = VaryField(fields)
        let isPrivate = directives.isPrivate || !directives.privateFields.isEmpty
        let mustBeAsked = directives.noCache || lifetime.isOverOnArrival
        isForSameOtherFields = !settings.isShared && (isPrivate || mustBeAsked)
        if isForSameOtherFields, !isPrivate { self.stored.flags.insert(.isReleasedByValidation) }
        fieldsNotReused = directives.noCacheFields
        fieldsNotStored = settings.isShared ? directives.privateFields : []
        storability = .yes
        if let reason = refusal(
            request: request,
            directives: directives,
            hasExpires: targeted == nil && fields.contains("expires"),
            hasContentLocation: fields.contains("content-location"),
            settings: settings,
            route: route
        ) {
            storability = .no(reason)
            // A 304 may forbid reuse of a response that is already stored.
            if Self.forbidsReuse(reason) { self.stored.flags.insert(.noStore) }
        }
    }

    /// Whether the refusal to store a response also forbids reusing a stored one.
    private static func forbidsReuse(_ reason: Storability.Reason) -> Bool {
        switch reason {
        case .noStore, .isPrivate, .authorization, .notUnderstood, .varyAny: true
        case .method, .askAgain, .interim, .partial, .notModified, .requestNoStore, .notExplicit, .neverByRoute: false
        }
    }

    private static func flags(_ directives: ResponseDirectives, fields: Fields, isShared: Bool) -> StoredPolicy.Flags {
        var flags: StoredPolicy.Flags = []
        if directives.noCache { flags.insert(.noCache) }
        if directives.noStore, !directives.mustUnderstand { flags.insert(.noStore) }
        if directives.mustRevalidate { flags.insert(.mustRevalidate) }
        // For a shared cache `s-maxage` implies `proxy-revalidate` (RFC 9111 §5.2.2.10).
        if isShared, directives.proxyRevalidate || directives.sMaxAge != nil { flags.insert(.mustRevalidate) }
        if directives.immutable { flags.insert(.immutable) }
        return flags
    }

    /// The reason why the response may not be stored; nil if it may (RFC 9111 §3).
    private func refusal(
        request: Request,
        directives: ResponseDirectives,
        hasExpires: Bool,
        hasContentLocation: Bool,
        settings: CachePolicySettings,
        route: CacheOverrides
    ) -> Storability.Reason? {
        let status = Int(stored.status)
        let isExplicit = directives.maxAge != nil || hasExpires || settings.isShared && directives.sMaxAge != nil
        switch request.method {
        case "GET", "HEAD": break
        // RFC 9110 §9.3.3: explicit freshness, and a `Content-Location` that the caller compares with the target.
        case "POST" where isExplicit && hasContentLocation && (200...299).contains(status): break
        default: return .method
        }
        if let reason = Self.refusal(ofStatus: status, for: request, settings: settings) { return reason }
        if route.cache == .never { return .neverByRoute }
        if RequestDirectives(fields: request.fields).noStore { return .requestNoStore }
        if route.cache == .force, StatusFacts.takesRouteLifetime(status) { return nil }
        if directives.mustUnderstand {
            // `no-store` beside it is for caches that do not know the directive (RFC 9111 §5.2.2.3).
            if status != 206, !StatusFacts.isUnderstood(status) { return .notUnderstood }
        } else if directives.noStore {
            return .noStore
        }
        if vary == .any { return .varyAny }
        if settings.isShared {
            if directives.isPrivate { return .isPrivate }
            let isAuthorized = request.fields.contains("authorization") || settings.addsCredential
            if isAuthorized, !directives.permitsAuthorization { return .authorization }
        }
        let isPermitted =
            directives.isPublic || isExplicit || StatusFacts.isHeuristicallyCacheable(status)
            || !settings.isShared && (directives.isPrivate || !directives.privateFields.isEmpty)
            || route.fresh != nil && StatusFacts.takesRouteLifetime(status)
            || route.negative != nil && StatusFacts.isNegative(status)
        return isPermitted ? nil : .notExplicit
    }

    private static func refusal(ofStatus status: Int, for request: Request, settings: CachePolicySettings)
        -> Storability.Reason?
    {
        switch status {
        case ..<200: .interim
        case 206: settings.storesPartialContent ? nil : .partial
        case 304: .notModified
        case _ where StatusFacts.isInvalid(status): .notUnderstood
        default: StatusFacts.isMomentary(status, for: request) ? .askAgain : nil
        }
    }
}

/// The freshness lifetime of a response, and its source (RFC 9111 §4.2.1, §4.2.2).
struct FreshnessLifetime: Sendable, Equatable {
    var seconds: Int64
    var source: StoredPolicy.LifetimeSource
    /// The value of `Last-Modified`, if it is a date; the latest of several.
    var lastModified: Int64?

    /// Whether the upstream declares the response stale from the start.
    var isOverOnArrival: Bool {
        switch source {
        case .none, .heuristic, .route, .negative: false
        case .maxAge, .sMaxAge, .expires, .targeted: seconds <= 0
        }
    }

    /// Determines the lifetime from the first that is present: `s-maxage` (shared cache), `max-age`, `Expires`, the heuristic.
    ///
    /// An unreadable directive is not skipped: its value is 0. Of several `Expires` lines the earliest counts; one that is no
    /// date has already expired (§5.3). The heuristic applies to responses whose status allows it or that contain `public`, with
    /// a `Last-Modified` before their `Date`, regardless of a query in the URL (§4.2.2). `Pragma` in a response is ignored
    /// (§5.4), and so is `Warning` (§5.5).
    init(
        status: Int,
        directives: ResponseDirectives,
        isTargeted: Bool,
        fields: Fields,
        date: Int64,
        now: Int64,
        settings: CachePolicySettings
    ) {
        lastModified = HTTPDate.latest(of: fields.all("last-modified"), now: now)
        if settings.isShared, let sMaxAge = directives.sMaxAge {
            (seconds, source) = (sMaxAge, isTargeted ? .targeted : .sMaxAge)
        } else if let maxAge = directives.maxAge {
            (seconds, source) = (maxAge, isTargeted ? .targeted : .maxAge)
        } else if !isTargeted, let expires = Self.expires(fields, date: date, now: now) {
            (seconds, source) = (expires, .expires)
        } else if let lastModified, directives.isPublic || StatusFacts.isHeuristicallyCacheable(status),
            lastModified < date
        {
            let guess = (date - lastModified) * CachePolicySettings.heuristicPercent / 100
            (seconds, source) = (min(guess, settings.heuristicMaximum), .heuristic)
        } else {
            (seconds, source) = (0, .none)
        }
    }

    private static func expires(_ fields: Fields, date: Int64, now: Int64) -> Int64? {
        fields.all("expires").map { value in
            HTTPDate.parse(value, now: now).map { min(max(0, $0 - date), DeltaSeconds.maximum) } ?? 0
        }.min()
    }
}

/// The `Age` of a response (RFC 9111 §5.1).
package enum AgeField {
    /// The age in seconds; nil if the field is absent or unreadable, which counts as absent.
    ///
    /// The field holds one number, but lists occur. Then the first non-empty member counts, whether in one line or in several.
    /// A sign, a fraction, a parameter, quotes or text make that member invalid. An invalid member is ignored, not replaced by a
    /// later one. RFC 9111 demands both. A huge number becomes 2^31.
    static func parse(lines: [[UInt8]]) -> Int64? {
        let members = lines.joined(separator: [0x2C]).split(separator: 0x2C).map { FieldSyntax.trimmed($0) }
        return members.first { !$0.isEmpty }.flatMap { DeltaSeconds.parse($0) }
    }

    package static func parse(_ fields: Fields) -> Int64? { parse(lines: fields.all("age")) }
}
