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
        guard areIn(fields) else { return nil }
        if let name = fields.text("x-ratelimit-resource"), !name.isEmpty { return String(name.prefix(100)) }
        let policies = policies(in: fields)
        if let exhausted = policies.first(where: { $0.remaining == 0 }) { return exhausted.name }
        return policies.count == 1 ? policies[0].name : nil
    }

    /// The state of the limit that the request counted against; nil if the response does not contain it.
    ///
    /// - Parameter now: The time in seconds since 1970; some upstreams send the end of a period, others the seconds until it.
    package static func limit(_ fields: Fields, now: Int64) -> RateLimit? {
        guard areIn(fields) else { return nil }
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
        return RateLimit(limit: tightest.limit, remaining: remaining, reset: reset, resource: tightest.name)
    }

    /// Whether any field describes a limit.
    package static func areIn(_ fields: Fields) -> Bool { fields.contains(oneOf: known) }

    /// Whether a field is one of those that describe limits.
    package static func isOne(_ line: Fields.Line) -> Bool {
        line.isOne(of: known)
            || line.known == nil && prefixes.contains { FieldSyntax.equalsIgnoringCase(line.name.prefix($0.count), $0) }
    }

    private static let prefixes = ["x-ratelimit-", "x-rate-limit-", "ratelimit"].map { Array($0.utf8) }
    private static let known: KnownFields = [
        .xRatelimitLimit, .xRatelimitRemaining, .xRatelimitReset, .xRatelimitResource, .xRatelimitUsed,
        .ratelimit, .ratelimitPolicy, .ratelimitLimit, .ratelimitRemaining, .ratelimitReset,
        .rateLimitLimit, .rateLimitRemaining, .rateLimitReset,
    ]

    /// The time by the clock of the upstream, where the response shows it.
    ///
    /// - Parameter now: The time by the clock of this machine, both in seconds since 1970.
    static func clock(_ fields: Fields, now: Int64) -> Int64 {
        if fields.contains("age") { return now }
        return fields[first: "date"].flatMap { HTTPDate.parse($0, now: now) } ?? now
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

    /// One of the limits in `RateLimit`.
    private struct Policy {
        /// Nil in the form of an early draft, which names none.
        var name: String?
        var limit: Int64?
        var remaining: Int64?
        var seconds: Int64?
    }

    /// The limits in `RateLimit`: a list of named policies, whose sizes are in `RateLimit-Policy`, or a dictionary of one.
    private static func policies(in fields: Fields) -> [Policy] {
        guard let value = fields.combined("ratelimit") else { return [] }
        var parser = StructuredFieldValueParser(Array(value.utf8))
        if let members = try? parser.parseDictionaryFieldValue(), !members.isEmpty {
            func number(_ key: String) -> Int64? {
                guard case .item(let item)? = members[key] else { return nil }
                return integer(item.rfc9651BareItem)
            }
            let policy = Policy(limit: number("limit"), remaining: number("remaining"), seconds: number("reset"))
            if policy.remaining != nil { return [policy] }
        }
        let sizes = named("ratelimit-policy", in: fields)
        return named("ratelimit", in: fields).map { name, parameters in
            Policy(
                name: name,
                limit: sizes.first { $0.name == name }.flatMap { integer($0.parameters["q"]) },
                remaining: integer(parameters["r"]),
                seconds: integer(parameters["t"])
            )
        }
    }

    /// The members of a list whose items are names.
    private static func named(_ field: String, in fields: Fields) -> [(
        name: String, parameters: OrderedMap<String, RFC9651BareItem>
    )] {
        guard let value = fields.combined(field) else { return [] }
        var parser = StructuredFieldValueParser(Array(value.utf8))
        guard let members = try? parser.parseListFieldValue() else { return [] }
        return members.compactMap { member in
            guard case .item(let item) = member else { return nil }
            switch item.rfc9651BareItem {
            case .string(let text), .token(let text): return (String(text.prefix(100)), item.rfc9651Parameters)
            default: return nil
            }
        }
    }

    private static func integer(_ item: RFC9651BareItem?) -> Int64? {
        if case .integer(let number)? = item { number } else { nil }
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
