package import HTTPSemantics

/// How one upstream's responses are to be read.
package struct CachePolicySettings: Sendable, Equatable {
    /// The lifetime given to answers that name none, in percent of the time since their last change.
    package static let heuristicPercent: Int64 = 10

    /// RFC 9111's reading for a shared cache, instead of that for a private one.
    package var isShared = false
    /// Whether Larder adds a credential of its own to every request: to the shared reading that is `Authorization`, whatever
    /// field it is sent in.
    package var addsCredential = false
    /// The fields of RFC 9213 that are heeded, the most specific first.
    package var targets: [String] = ["Larder-Cache-Control"]
    /// The longest such lifetime, in seconds.
    package var heuristicMaximum: Int64 = 86_400
    /// Whether parts of a response may be stored as such.
    package var storesPartialContent = false

    package init() {}
}

/// What of a request bears on its response's policy.
package struct RequestFacts: Sendable {
    /// In the request's spelling.
    var method: String
    var hasAuthorization: Bool
    var directives: RequestDirectives
    /// Whether it had conditions or a range of its own.
    var isConditional = false
    var hasRange = false

    init(method: String, hasAuthorization: Bool = false, directives: RequestDirectives = .none) {
        self.method = method
        self.hasAuthorization = hasAuthorization
        self.directives = directives
    }

    package init(method: String, fields: Fields) {
        self.init(
            method: method,
            hasAuthorization: fields.contains("authorization"),
            directives: RequestDirectives(fields: fields)
        )
        isConditional = fields.lines.contains { UpstreamFields.conditional.contains($0.lowercasedName) }
        hasRange = fields.contains("range")
    }
}

/// Whether a response may be stored.
package enum Storability: Sendable, Equatable {
    case yes
    case no(Reason)

    /// In the words of `Cache-Status` details and of `explain`.
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

/// What is to be done with one response of the upstream: may it be stored, and on what terms is it used again.
package struct ResponsePolicy: Sendable, Equatable {
    package var storability: Storability
    /// The upstream's word, to be stored with the response.
    ///
    /// `answer.applying(route)` is what decides.
    package var stored: StoredPolicy
    package var vary: VaryField
    /// Whether it is private, or must be revalidated: then it is for requests alone that agree in their `OtherFields`.
    package var isForAgreeing: Bool
    /// Lower-case names of fields to leave out when the response is used again without validation (`no-cache="…"`).
    package var fieldsNotReused: [[UInt8]]
    /// Lower-case names of fields to leave out of what is stored (`private="…"`, shared reading only).
    package var fieldsNotStored: [[UInt8]]

    /// Reads a response (RFC 9111 §3, §4.2).
    ///
    /// Any final status may be stored with explicit freshness, known or not, but for 202, 206 where parts are not kept, and
    /// 304. Whether a 5xx may take the place of what is stored is the caller's to say: it never does.
    ///
    /// - Parameters:
    ///   - requestTime: when the request was sent, `responseTime` when the head of its response came; seconds of the store's
    ///     clock, which alone says what time has passed.
    ///   - wall: the latter in seconds of the wall clock, which alone can be compared with `Date`; nil: the two clocks agree.
    package init(
        request: RequestFacts,
        status: Int,
        fields: Fields,
        requestTime: Int64,
        responseTime: Int64,
        wall: Int64? = nil,
        settings: CachePolicySettings,
        route: CacheOverrides = CacheOverrides()
    ) {
        let targeted = TargetedDirectives.find(in: fields, targets: settings.targets)
        let directives = targeted?.directives ?? ResponseDirectives(lines: fields.all("cache-control"))
        let wall = wall ?? responseTime
        let dateField = HTTPDate.earliest(of: fields.all("date"), now: wall)
        let age = AgeField.parse(fields) ?? -1
        let lifetime = FreshnessLifetime(
            status: status,
            directives: directives,
            isTargeted: targeted != nil,
            fields: fields,
            date: dateField ?? wall,
            now: wall,
            settings: settings
        )

        var stored = StoredPolicy(
            requestTime: requestTime,
            responseTime: responseTime,
            date: dateField ?? wall
        )
        stored.status = Int64(status)
        stored.ageValue = age
        stored.initialAge = StoredPolicy.initialAge(
            responseDelay: responseTime - requestTime,
            apparentAge: wall - stored.date,
            ageValue: age
        )
        stored.lastModified = lifetime.lastModified ?? -1
        stored.lifetime = lifetime.seconds
        stored.lifetimeSource = lifetime.source
        stored.staleWhileRevalidate = directives.staleWhileRevalidate ?? -1
        stored.staleIfError = directives.staleIfError ?? -1
        stored.flags = Self.flags(directives, fields: fields, isShared: settings.isShared)
        if dateField == nil { stored.flags.insert(.dateAssumed) }
        self.stored = stored
        vary = VaryField(fields)
        isForAgreeing =
            directives.isPrivate || !directives.privateFields.isEmpty || directives.noCache || directives.mustRevalidate
            || directives.proxyRevalidate || lifetime.isOverOnArrival
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
            // A 304 may forbid what is stored already.
            if Self.forbidsReuse(reason) { self.stored.flags.insert(.noStore) }
        }
    }

    /// Whether a response that may not be stored may not be reused either, should it be in the store.
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
        // To a shared cache `s-maxage` says `proxy-revalidate` as well (RFC 9111 §5.2.2.10).
        if isShared, directives.proxyRevalidate || directives.sMaxAge != nil { flags.insert(.mustRevalidate) }
        if directives.immutable { flags.insert(.immutable) }
        return flags
    }

    /// Why the response may not be stored; nil when it may (RFC 9111 §3).
    private func refusal(
        request: RequestFacts,
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
        // RFC 9110 §9.3.3: explicit freshness, and a `Content-Location` that the caller finds equal to the target.
        case "POST" where isExplicit && hasContentLocation && (200...299).contains(status): break
        default: return .method
        }
        if let reason = Self.refusal(ofStatus: status, for: request, settings: settings) { return reason }
        if route.cache == .never { return .neverByRoute }
        if request.directives.noStore { return .requestNoStore }
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
            let isAuthorized = request.hasAuthorization || settings.addsCredential
            if isAuthorized, !directives.permitsAuthorization { return .authorization }
        }
        let isPermitted =
            directives.isPublic || isExplicit || StatusFacts.isHeuristicallyCacheable(status)
            || !settings.isShared && (directives.isPrivate || !directives.privateFields.isEmpty)
            || route.fresh != nil && StatusFacts.takesRouteLifetime(status)
            || route.negative != nil && StatusFacts.isNegative(status)
        return isPermitted ? nil : .notExplicit
    }

    private static func refusal(
        ofStatus status: Int,
        for request: RequestFacts,
        settings: CachePolicySettings
    ) -> Storability.Reason? {
        switch status {
        case ..<200: .interim
        case 206: settings.storesPartialContent ? nil : .partial
        case 304: .notModified
        case _ where StatusFacts.isInvalid(status): .notUnderstood
        default: StatusFacts.isMomentary(status, for: request) ? .askAgain : nil
        }
    }
}
