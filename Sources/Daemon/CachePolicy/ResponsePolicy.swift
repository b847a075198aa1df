package import HTTPSemantics

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

package enum Storability: Sendable, Equatable {
    case yes
    case no(Reason)

    /// The reason, in the words of `Cache-Status` details and of `explain`.
    package enum Reason: String, Sendable {
        case method = "method"
        case momentaryStatus = "momentary-status"
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
        let directives = targeted?.directives ?? ResponseDirectives(fields)
        let dateField = fields.contains(.date) ? HTTPDate.earliest(of: fields.all("date"), now: times.wall) : nil
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
        stored.flags = Self.flags(directives, isShared: settings.isShared)
        if dateField == nil { stored.flags.insert(.dateAssumed) }
        if targeted == nil, !fields.contains(oneOf: Self.ofCaching) {
            stored.flags.insert(.saysNothing)
        }
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
            hasExpires: targeted == nil && fields.contains(.expires),
            hasContentLocation: fields.contains(.contentLocation),
            settings: settings,
            route: route
        ) {
            storability = .no(reason)
            // A 304 may forbid reuse of a response that is already stored.
            if Self.forbidsReuse(reason) { self.stored.flags.insert(.noStore) }
        }
    }

    private static let ofCaching: KnownFields = [.cacheControl, .expires, .pragma]

    /// Whether the refusal to store a response also forbids reusing a stored one.
    private static func forbidsReuse(_ reason: Storability.Reason) -> Bool {
        switch reason {
        case .noStore, .isPrivate, .authorization, .notUnderstood, .varyAny: true
        case .method, .momentaryStatus, .interim, .partial, .notModified, .requestNoStore, .notExplicit, .neverByRoute:
            false
        }
    }

    private static func flags(_ directives: ResponseDirectives, isShared: Bool) -> StoredPolicy.Flags {
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
        default: StatusFacts.isMomentary(status, for: request) ? .momentaryStatus : nil
        }
    }
}
