import HTTPSemantics

/// The freshness lifetime of a response, and its source (RFC 9111 §4.2.1, §4.2.2).
struct FreshnessLifetime: Sendable, Equatable {
    var seconds: Int64
    var source: StoredPolicy.LifetimeSource
    /// The value of `Last-Modified`, if it is a date; the latest of several.
    var lastModified: Int64?

    /// Whether the upstream declares the response stale from the start.
    var isOverOnArrival: Bool {
        switch source {
        case .none, .heuristic, .route, .negative, .unsaid: false
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
        lastModified = fields.contains(.lastModified) ? HTTPDate.latest(of: fields.all("last-modified"), now: now) : nil
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
        fields.all(.expires).map { value in
            HTTPDate.parse(value, now: now).map { min(max(0, $0 - date), DeltaSeconds.maximum) } ?? 0
        }.min()
    }
}
