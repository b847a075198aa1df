package import HTTPSemantics

/// A request's conditions, evaluated against a stored response (RFC 9110 §13.2.2, RFC 9111 §4.3.2).
package struct Preconditions: Sendable, Equatable {
    var ifMatch: EntityTagCondition?
    var ifNoneMatch: EntityTagCondition?
    /// Unix seconds; nil also where the field is no date, which is then ignored.
    var ifModifiedSince: Int64?
    var ifUnmodifiedSince: Int64?

    /// The validators of a stored response.
    package struct Stored: Sendable, Equatable {
        var status: Int
        package var entityTag: EntityTag?
        /// Unix seconds.
        package var lastModified: Int64?
        /// The value of `Date`, or the time of arrival: it stands in for a missing `Last-Modified`.
        ///
        /// Nil for what has changed since by Larder's own work: no date is about that.
        package var date: Int64?

        init(status: Int, entityTag: EntityTag?, lastModified: Int64?, date: Int64?) {
            self.status = status
            self.entityTag = entityTag
            self.lastModified = lastModified
            self.date = date
        }

        package init(fields: Fields, policy: StoredPolicy) {
            self.init(
                status: Int(policy.status),
                entityTag: fields[first: "etag"].flatMap { EntityTag($0) },
                lastModified: policy.lastModified >= 0 ? policy.lastModified : nil,
                date: policy.date
            )
        }

        /// Of a response that has just arrived.
        package init(status: Int, fields: Fields, now: Int64) {
            self.init(
                status: status,
                entityTag: fields[first: "etag"].flatMap { EntityTag($0) },
                lastModified: fields[first: "last-modified"].flatMap { HTTPDate.parse($0, now: now) },
                date: fields[first: "date"].flatMap { HTTPDate.parse($0, now: now) } ?? now
            )
        }
    }

    package enum Outcome: Sendable, Equatable {
        /// Answer as if there were no conditions.
        case proceed
        /// 304
        case notModified
        /// 412
        case failed
    }

    package init(fields: Fields, now: Int64) {
        ifMatch = EntityTagCondition(lines: fields.all("if-match"))
        ifNoneMatch = EntityTagCondition(lines: fields.all("if-none-match"))
        ifModifiedSince = Self.date(fields.all("if-modified-since"), now: now)
        ifUnmodifiedSince = Self.date(fields.all("if-unmodified-since"), now: now)
    }

    private static func date(_ lines: [[UInt8]], now: Int64) -> Int64? {
        // Two dates would be a list, which is no date.
        lines.count == 1 ? HTTPDate.parse(lines[0], now: now) : nil
    }

    package var isEmpty: Bool {
        ifMatch == nil && ifNoneMatch == nil && ifModifiedSince == nil && ifUnmodifiedSince == nil
    }

    /// Whether there is a condition that only the origin may evaluate, so that the request has to go there: `If-Match`
    /// and `If-Unmodified-Since` (RFC 9111 §4.3.2).
    ///
    /// One of Larder's own tags in it would mean nothing there.
    package var isForOrigin: Bool { (ifMatch != nil || ifUnmodifiedSince != nil) && !matchesOwnTag }

    /// Evaluates `If-None-Match` and, only without it, `If-Modified-Since`: what a cache may answer by itself.
    ///
    /// A stored response other than a 2xx is given as it is (RFC 9110 §13.2.1).
    package func evaluateForCache(method: String, against stored: Stored) -> Outcome {
        guard (200...299).contains(stored.status) else { return .proceed }
        let isRead = MethodFacts.isAnswerable(method)
        if let ifNoneMatch {
            guard ifNoneMatch.matchesWeakly(stored.entityTag) else { return .proceed }
            return isRead ? .notModified : .failed
        }
        guard isRead, let ifModifiedSince else { return .proceed }
        return (stored.lastModified ?? stored.date ?? .max) <= ifModifiedSince ? .notModified : .proceed
    }

    /// Whether `If-Match` names a tag of Larder's own, which no upstream can match: answered 412, and the target goes
    /// stale, so that the next GET brings the upstream's tag.
    package var matchesOwnTag: Bool { ifMatch?.namesOwn ?? false }

    /// Takes Larder's own tags out of the `If-None-Match` of a request that goes upstream; the field goes if none is left.
    ///
    /// `If-Range` with such a tag goes, and the ranges with it: the upstream's bytes are not those that the client has a part of.
    static func stripOwnValidators(_ fields: inout Fields) {
        if fields[first: "if-range"].flatMap({ EntityTag($0) })?.isOwn == true {
            fields.remove("if-range")
            fields.remove("range")
        }
        guard let condition = EntityTagCondition(lines: fields.all("if-none-match")), condition.namesOwn else { return }
        fields.remove("if-none-match")
        if let rest = condition.withoutOwn {
            fields.lines.append(Field(name: Array("If-None-Match".utf8), value: rest.bytes))
        }
    }

    /// How many bytes the tags of one `If-None-Match` may take; many servers refuse heads of more than 8 KiB.
    private static let tagRoom = 4096

    /// The fields that ask the upstream whether what is stored still holds (RFC 9111 §4.3.1).
    ///
    /// All the tags of the variants stored under the key go into one `If-None-Match`, as far as there is room in a head;
    /// the date only where there is one candidate, since a 304 to it could not say which it means.
    ///
    /// Without `Last-Modified` no date is asked with: RFC 9110 §13.1.3 lets a cache take that of `Date`, but an upstream
    /// that names no time of change may well compare it with one that means nothing.
    ///
    /// A stored tag is the upstream's, also where it looks like one of Larder's own: then the upstream is a Larder.
    package static func validators(of candidates: [Stored]) -> Fields {
        var fields = Fields()
        var tags: [EntityTag] = []
        var room = Self.tagRoom
        for tag in candidates.compactMap(\.entityTag) where !tags.contains(tag) {
            room -= tag.opaque.count + 6
            guard room >= 0 || tags.isEmpty else { break }
            tags.append(tag)
        }
        if !tags.isEmpty {
            fields.lines.append(
                Field(name: Array("If-None-Match".utf8), value: EntityTagCondition.tags(tags).bytes)
            )
        }
        if candidates.count == 1, let lastModified = candidates[0].lastModified {
            fields.lines.append(Field(name: Array("If-Modified-Since".utf8), value: HTTPDate.format(lastModified)))
        }
        return fields
    }
}
