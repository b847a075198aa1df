package import HTTPSemantics

/// A request's conditions, evaluated against a stored response (RFC 9110 §13.2.2, RFC 9111 §4.3.2).
package struct Preconditions: Sendable, Equatable {
    var ifMatch: EntityTagCondition?
    var ifNoneMatch: EntityTagCondition?
    /// Unix seconds; nil if the field is absent, or is not a date and therefore ignored.
    var ifModifiedSince: Int64?
    var ifUnmodifiedSince: Int64?

    /// - Parameter now: The time that decides the century of dates with two-digit years (`HTTPDate.parse`).
    package init(fields: Fields, now: Int64) {
        guard fields.contains(oneOf: Self.conditions) else { return }
        ifMatch = EntityTagCondition(lines: fields.all("if-match"))
        ifNoneMatch = EntityTagCondition(lines: fields.all("if-none-match"))
        ifModifiedSince = Self.date(fields.all("if-modified-since"), now: now)
        ifUnmodifiedSince = Self.date(fields.all("if-unmodified-since"), now: now)
    }

    private static let conditions: KnownFields = [.ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince]

    private static func date(_ lines: [[UInt8]], now: Int64) -> Int64? {
        // Two dates would be a list, which is not a date.
        lines.count == 1 ? HTTPDate.parse(lines[0], now: now) : nil
    }

    /// Whether the request has no condition that counts.
    package var isEmpty: Bool {
        ifMatch == nil && ifNoneMatch == nil && ifModifiedSince == nil && ifUnmodifiedSince == nil
    }

    /// Whether only the origin may evaluate a condition (`If-Match`, `If-Unmodified-Since`), so the request must be forwarded
    /// (RFC 9111 §4.3.2).
    ///
    /// A condition with one of Larder's own tags is not forwarded, because the tag means nothing to the origin.
    package var isForOrigin: Bool { (ifMatch != nil || ifUnmodifiedSince != nil) && !matchesOwnTag }

    /// Whether the client has the stored response already, by `If-None-Match` or, without it, `If-Modified-Since`.
    ///
    /// Only a 200 has a 304 in its place (RFC 9110 §15.4.5), and so has a part of one, because a range is selected after the
    /// conditions. Any other response is served unconditionally.
    package func isNotModified(method: String, against stored: Validators) -> Bool {
        guard [200, 206].contains(stored.status), MethodFacts.isCacheable(method) else { return false }
        if let ifNoneMatch { return ifNoneMatch.matchesWeakly(stored.entityTag) }
        return ifModifiedSince.map { (stored.lastModified ?? stored.date ?? .max) <= $0 } ?? false
    }

    /// Whether `If-Match` names one of Larder's own tags, which no upstream can match.
    ///
    /// The response is a 412, and the target becomes stale, so that the next GET fetches the upstream's tag.
    package var matchesOwnTag: Bool { ifMatch?.namesOwn ?? false }

    /// Removes Larder's own tags from the `If-None-Match` of an upstream request, and the field if no tag remains.
    ///
    /// `If-Range` with such a tag is removed along with the ranges: the client's part does not come from the upstream's bytes.
    static func stripOwnValidators(_ fields: inout Fields) {
        guard fields.contains(oneOf: validating) else { return }
        if fields[first: "if-range"].flatMap({ EntityTag($0) })?.isOwn == true {
            fields.remove("if-range")
            fields.remove("range")
        }
        guard let condition = EntityTagCondition(lines: fields.all("if-none-match")), condition.namesOwn else { return }
        fields.remove("if-none-match")
        if let rest = condition.withoutOwn { fields.append("If-None-Match", rest.bytes) }
    }

    private static let validating: KnownFields = [.ifRange, .ifNoneMatch]

    /// The room for the tags of one `If-None-Match` in bytes; many servers refuse heads of more than 8 KiB.
    private static let tagRoom = 4096

    /// The conditional fields that validate stored responses at the upstream (RFC 9111 §4.3.1).
    ///
    /// The tags of all variants stored under the key go into one `If-None-Match`, as far as there is room in a head. The date is
    /// sent only for a single candidate, because a 304 to it could not say which one it confirms.
    ///
    /// Without `Last-Modified` no date is sent. RFC 9110 §13.1.3 lets a cache use `Date`, but an upstream that names no time of
    /// change may compare it with a meaningless one.
    ///
    /// A stored tag is always the upstream's. If it looks like one of Larder's own, the upstream is a Larder.
    package static func validators(of candidates: [Validators]) -> Fields {
        var fields = Fields()
        var tags: [EntityTag] = []
        var room = Self.tagRoom
        for tag in candidates.compactMap(\.entityTag) where !tags.contains(tag) {
            room -= tag.opaque.count + 6
            guard room >= 0 || tags.isEmpty else { break }
            tags.append(tag)
        }
        if !tags.isEmpty { fields.append("If-None-Match", EntityTagCondition.tags(tags).bytes) }
        if candidates.count == 1, let lastModified = candidates[0].lastModified {
            fields.append("If-Modified-Since", HTTPDate.format(lastModified))
        }
        return fields
    }
}
