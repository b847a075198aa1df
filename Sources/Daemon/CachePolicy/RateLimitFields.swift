package import HTTPSemantics
import RawStructuredFieldValues

/// What is left of one of an upstream's rate limits.
package struct RateLimit: Sendable, Equatable {
    /// Requests of a period; nil where the upstream does not say.
    package var limit: Int64?
    /// Those that are left of them.
    package var remaining: Int64
    /// When the period ends, in seconds since 1970; nil where the upstream does not say.
    package var reset: Int64?
    /// The upstream's name for what is limited; nil where it has none.
    package var resource: String?

    package init(limit: Int64? = nil, remaining: Int64, reset: Int64? = nil, resource: String? = nil) {
        (self.limit, self.remaining, self.reset, self.resource) = (limit, remaining, reset, resource)
    }
}

/// What a response says of its upstream's rate limits.
///
/// Read are `X-RateLimit-*`, as GitHub, GitLab and many others send it, and the IETF's `RateLimit` and `RateLimit-Policy`, in the
/// spellings of its drafts: `"default";r=0;t=30`, `limit=100, remaining=0, reset=30`, and `RateLimit-Remaining: 0`.
package enum RateLimitFields {
    /// Whether the response says that it was refused because a rate limit was met: any 429; a 403 if nothing is left of a limit,
    /// or if it has `Retry-After` and names a limit at all.
    ///
    /// A 403 with `Retry-After` alone may be anything, such as a repository that is locked for a while.
    package static func isRefusal(status: Int, _ fields: Fields) -> Bool {
        if status == 429 { return true }
        guard status == 403 else { return false }
        return isExhausted(fields) || fields.contains("retry-after") && names.contains { fields.contains(named: $0) }
    }

    /// Whether nothing is left of a limit.
    static func isExhausted(_ fields: Fields) -> Bool {
        remaining.contains { fields.combined(named: $0) == "0" } || policies(in: fields).contains { $0.remaining == 0 }
    }

    /// The name of what is limited, as the upstream has it; nil where it names none.
    package static func resource(_ fields: Fields) -> String? {
        if let name = fields.text("x-ratelimit-resource"), !name.isEmpty { return String(name.prefix(100)) }
        let policies = policies(in: fields)
        if let exhausted = policies.first(where: { $0.remaining == 0 }) { return exhausted.name }
        return policies.count == 1 ? policies[0].name : nil
    }

    /// What is left of the limit that the request counted against; nil where the response does not say.
    ///
    /// - Parameter now: in seconds since 1970: some upstreams say when a period ends, others in how many seconds.
    package static func limit(_ fields: Fields, now: Int64) -> RateLimit? {
        for prefix in ["x-ratelimit-", "ratelimit-", "x-rate-limit-"] {
            guard let remaining = number(fields, prefix + "remaining") else { continue }
            return RateLimit(
                limit: number(fields, prefix + "limit"),
                remaining: remaining,
                reset: number(fields, prefix + "reset").map { moment($0, now: now) },
                resource: resource(fields)
            )
        }
        let policies = policies(in: fields)
        guard let tightest = policies.min(by: { $0.remaining ?? .max < $1.remaining ?? .max }),
            let remaining = tightest.remaining
        else { return nil }
        return RateLimit(
            remaining: remaining,
            reset: tightest.seconds.map { moment($0, now: now) },
            resource: tightest.name
        )
    }

    /// The first number of a field; `100, 100;w=60` was the spelling of a draft.
    private static func number(_ fields: Fields, _ name: String) -> Int64? {
        guard let text = fields.combined(named: name) else { return nil }
        let digits = text.utf8.prefix { $0 &- 0x30 < 10 }
        return Int64(Substring(digits)).flatMap { $0 <= 1 << 52 ? $0 : nil }
    }

    /// No period lasts for thirty years: a larger number is a time.
    private static func moment(_ number: Int64, now: Int64) -> Int64 { number > 1_000_000_000 ? number : now + number }

    private static let remaining = ["x-ratelimit-remaining", "ratelimit-remaining", "x-rate-limit-remaining"]
    private static let names = remaining + ["x-ratelimit-limit", "ratelimit", "ratelimit-policy", "ratelimit-limit"]

    /// The members of `RateLimit`, a list of named policies.
    private static func policies(in fields: Fields) -> [(name: String, remaining: Int64?, seconds: Int64?)] {
        guard let value = fields.combined("ratelimit") else { return [] }
        var parser = StructuredFieldValueParser(Array(value.utf8))
        guard let members = try? parser.parseListFieldValue() else { return [] }
        return members.compactMap { member in
            guard case .item(let item) = member else { return nil }
            let name: String
            switch item.rfc9651BareItem {
            case .string(let text): name = String(text.prefix(100))
            case .token(let text): name = String(text.prefix(100))
            default: return nil
            }
            var (remaining, seconds): (Int64?, Int64?)
            if case .integer(let rest)? = item.rfc9651Parameters["r"] { remaining = rest }
            if case .integer(let time)? = item.rfc9651Parameters["t"] { seconds = time }
            return (name, remaining, seconds)
        }
    }
}

/// When an upstream wants to be asked again (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// Seconds from `now`; nil when the field is absent or malformed, 0 for a date that has passed.
    package static func seconds(_ fields: Fields, now: Int64) -> Int64? {
        guard let value = fields[first: "retry-after"] else { return nil }
        if let seconds = DeltaSeconds.parse(value) { return seconds }
        return HTTPDate.parse(value, now: now).map { min(max(0, $0 - now), DeltaSeconds.maximum) }
    }
}
