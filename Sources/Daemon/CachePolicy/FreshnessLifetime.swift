package import HTTPSemantics

/// How long a response is fresh, and what decides that (RFC 9111 §4.2.1, §4.2.2).
struct FreshnessLifetime: Sendable, Equatable {
    var seconds: Int64
    var source: StoredPolicy.LifetimeSource
    /// The value of `Last-Modified`, where it is a date; the latest of several.
    var lastModified: Int64?

    /// Whether the upstream says that it is stale from the start.
    var isOverOnArrival: Bool {
        switch source {
        case .none, .heuristic, .route, .negative: false
        case .maxAge, .sMaxAge, .expires, .targeted: seconds <= 0
        }
    }

    /// The first that is there counts: `s-maxage` (shared reading), `max-age`, `Expires`, the heuristic.
    ///
    /// A directive that is there but cannot be read is not passed over: it is 0. Several `Expires` lines count as the
    /// earliest of them; one that is no date has expired already (§5.3). The heuristic is for responses whose status allows it
    /// or that say `public`, with a `Last-Modified` before their `Date`, and regardless of a query in the URL (§4.2.2).
    /// `Pragma` in a response means nothing (§5.4), and so does `Warning` (§5.5).
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
            seconds = sMaxAge
            source = isTargeted ? .targeted : .sMaxAge
        } else if let maxAge = directives.maxAge {
            seconds = maxAge
            source = isTargeted ? .targeted : .maxAge
        } else if !isTargeted, let expires = Self.expires(fields, date: date, now: now) {
            seconds = expires
            source = .expires
        } else if let lastModified, directives.isPublic || StatusFacts.isHeuristicallyCacheable(status),
            let guess = Self.heuristic(lastModified: lastModified, date: date, settings)
        {
            seconds = guess
            source = .heuristic
        } else {
            seconds = 0
            source = .none
        }
    }

    private static func expires(_ fields: Fields, date: Int64, now: Int64) -> Int64? {
        fields.all("expires").map { value in
            HTTPDate.parse(value, now: now).map { min(max(0, $0 - date), DeltaSeconds.maximum) } ?? 0
        }.min()
    }

    private static func heuristic(
        lastModified: Int64,
        date: Int64,
        _ settings: CachePolicySettings
    ) -> Int64? {
        guard lastModified < date else { return nil }
        return min((date - lastModified) * CachePolicySettings.heuristicPercent / 100, settings.heuristicMaximum)
    }
}

/// The `Age` of a response (RFC 9111 §5.1).
package enum AgeField {
    /// The age in seconds; nil when the field is absent or cannot be read, in which case it counts as absent.
    ///
    /// It holds one number, but lists of them occur: then the first member counts, empty ones aside, whether they stand in
    /// one line or in several. A sign, a fraction, a parameter, quotes or text make that member invalid, and an invalid one
    /// is ignored, not replaced by a later one; both are the section's own words. A huge number is 2^31.
    static func parse(lines: [[UInt8]]) -> Int64? {
        for line in lines {
            for part in line.split(separator: 0x2C) {
                let member = FieldSyntax.trimmed(part)
                if !member.isEmpty { return DeltaSeconds.parse(member) }
            }
        }
        return nil
    }

    package static func parse(_ fields: Fields) -> Int64? { parse(lines: fields.all("age")) }
}
