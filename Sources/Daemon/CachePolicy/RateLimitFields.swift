package import HTTPSemantics
import RawStructuredFieldValues

/// The state of one of an upstream's rate limits.
package struct RateLimit: Sendable, Equatable {
    /// The number of requests allowed per period; nil if unknown.
    package var limit: Int64?
    /// The number of requests left in the period.
    package var remaining: Int64
    /// The end of the period, in seconds since 1970; nil if unknown.
    package var reset: Int64?
    /// The upstream's name for the limited resource; nil if there is none.
    package var resource: String?
}

/// Reads an upstream's rate limits from response fields.
///
/// Supported are `X-RateLimit-*`, as sent by GitHub, GitLab and many others, and the IETF's `RateLimit` and
/// `RateLimit-Policy`, in the spellings of its drafts: `"default";r=0;t=30`, `limit=100, remaining=0, reset=30`, and
/// `RateLimit-Remaining: 0`.
package enum RateLimitFields {
    /// Whether a rate limit caused the response: any 429, or a 403 with an exhausted limit, or with `Retry-After` and any limit.
    ///
    /// A 403 with `Retry-After` alone may have other causes, such as a repository that is locked for a while.
    package static func isRefusal(status: Int, _ fields: Fields) -> Bool {
        if status == 429 { return true }
        guard status == 403 else { return false }
        return isExhausted(fields) || fields.contains("retry-after") && names.contains { fields.contains($0) }
    }

    /// Whether a limit is exhausted, in any of the spellings in use.
    static func isExhausted(_ fields: Fields) -> Bool {
        remaining.contains { fields.text($0) == "0" } || policies(in: fields).contains { $0.remaining == 0 }
    }

    /// The upstream's name for the limited resource; nil if it names none.
    package static func resource(_ fields: Fields) -> String? {
        if let name = fields.text("x-ratelimit-resource"), !name.isEmpty { return String(name.prefix(100)) }
        let policies = policies(in: fields)
        if let exhausted = policies.first(where: { $0.remaining == 0 }) { return exhausted.name }
        return policies.count == 1 ? policies[0].name : nil
    }

    /// The state of the limit that the request counted against; nil if the response does not contain it.
    ///
    /// - Parameter now: The time in seconds since 1970; some upstreams send the end of a period, others the seconds until it.
    package static func limit(_ fields: Fields, now: Int64) -> RateLimit? {
        for (name, prefix) in zip(remaining, ["x-ratelimit-", "ratelimit-", "x-rate-limit-"]) {
            guard let remaining = number(fields, name) else { continue }
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
        let reset = tightest.seconds.map { moment($0, now: now) }
        return RateLimit(remaining: remaining, reset: reset, resource: tightest.name)
    }

    /// The seconds for which a limit of which nothing is left refuses further requests; nil if something is left, or if its end is
    /// not known.
    ///
    /// A time is compared with the upstream's own clock, where the response shows it.
    package static func secondsUntilReset(_ fields: Fields, now: Int64) -> Int64? {
        let sent = fields.contains("age") ? nil : fields[first: "date"].flatMap { HTTPDate.parse($0, now: now) }
        let now = sent ?? now
        guard let limit = limit(fields, now: now), limit.remaining == 0, limit.limit != 0, let reset = limit.reset
        else {
            return nil
        }
        return max(0, reset - now)
    }

    /// The first number of a field; a draft spelled it `100, 100;w=60`.
    private static func number(_ fields: Fields, _ name: String) -> Int64? {
        guard let text = fields.combined(name) else { return nil }
        let digits = text.utf8.prefix { $0 &- 0x30 < 10 }
        return Int64(Substring(digits)).flatMap { $0 <= 1 << 52 ? $0 : nil }
    }

    /// Converts a reset value to a time: no period lasts thirty years, so a larger number is already a time.
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
            case .string(let text), .token(let text): name = String(text.prefix(100))
            default: return nil
            }
            var (remaining, seconds): (Int64?, Int64?)
            if case .integer(let rest)? = item.rfc9651Parameters["r"] { remaining = rest }
            if case .integer(let time)? = item.rfc9651Parameters["t"] { seconds = time }
            return (name, remaining, seconds)
        }
    }
}

/// When an upstream allows the next request (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// The seconds from `now`; nil if the field is absent or malformed, 0 for a date in the past.
    package static func seconds(_ fields: Fields, now: Int64) -> Int64? {
        guard let value = fields[first: "retry-after"] else { return nil }
        if let seconds = DeltaSeconds.parse(value) { return seconds }
        return HTTPDate.parse(value, now: now).map { min(max(0, $0 - now), DeltaSeconds.maximum) }
    }
}
