package import HTTPSemantics

/// What a request's conditions are compared with: a response's validators (RFC 9110 §8.8) and what stands in for them.
package struct Validators: Sendable, Equatable {
    var status: Int
    package var entityTag: EntityTag?
    /// Unix seconds.
    package var lastModified: Int64?
    /// The value of `Date`, or the time of arrival; used in place of a missing `Last-Modified`.
    ///
    /// Nil for a response that Larder has changed since, because no date applies to it.
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
            entityTag: fields[.etag].flatMap { EntityTag(Array($0)) },
            lastModified: policy.lastModified >= 0 ? policy.lastModified : nil,
            date: policy.date
        )
    }

    /// The validators of a response that has just arrived.
    package init(status: Int, fields: Fields, now: Int64) {
        self.init(
            status: status,
            entityTag: fields[first: "etag"].flatMap { EntityTag($0) },
            lastModified: fields[first: "last-modified"].flatMap { HTTPDate.parse($0, now: now) },
            date: fields[first: "date"].flatMap { HTTPDate.parse($0, now: now) } ?? now
        )
    }
}
