package import HTTPSemantics

/// When an upstream wants to be asked again (RFC 9110 §10.2.3).
package enum RetryAfter {
    /// Seconds from `now`; nil when the field is absent or malformed, 0 for a date that has passed.
    package static func seconds(_ fields: Fields, now: Int64) -> Int64? {
        guard let value = fields[first: "retry-after"] else { return nil }
        if let seconds = DeltaSeconds.parse(value) { return seconds }
        return HTTPDate.parse(value, now: now).map { min(max(0, $0 - now), DeltaSeconds.maximum) }
    }
}
