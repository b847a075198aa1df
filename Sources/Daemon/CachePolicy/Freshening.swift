package import HTTPSemantics

/// How a 304, or the response to a HEAD, updates stored responses (RFC 9111 §4.3.3 to §4.3.5).
package enum Freshening {
    /// The positions of the stored candidates that a 304 confirms; none if it confirms another response.
    ///
    /// A strong tag selects all candidates with that tag. A weak tag, or a date, selects the newest match. The date counts only
    /// if no candidate has a tag to compare. A 304 without any validator confirms the candidate if there is only one.
    /// That goes beyond RFC 9111 §4.3.4, because many servers leave the tag out.
    package static func selected(by update: Fields, among candidates: [Preconditions.Stored], now: Int64) -> [Int] {
        let hasTags = candidates.contains { $0.entityTag != nil }
        let modified = update[first: "last-modified"].flatMap { HTTPDate.parse($0, now: now) }
        if let tag = update[first: "etag"].flatMap({ EntityTag($0) }), hasTags || modified == nil {
            if !tag.isWeak {
                return candidates.indices.filter { candidates[$0].entityTag?.matchesStrongly(tag) ?? false }
            }
            return newest(candidates) { $0.entityTag?.matchesWeakly(tag) ?? false }
        }
        if let modified { return newest(candidates) { $0.lastModified == modified } }
        return candidates.count == 1 ? [0] : []
    }

    private static func newest(
        _ candidates: [Preconditions.Stored],
        where matches: (Preconditions.Stored) -> Bool
    ) -> [Int] {
        candidates.indices.filter { matches(candidates[$0]) }.max {
            (candidates[$0].date ?? .min) < (candidates[$1].date ?? .min)
        }.map {
            [$0]
        }
            ?? []
    }

    /// The effect of a 200 to a HEAD on the stored response to a GET.
    package enum HeadOutcome: Sendable, Equatable {
        /// Nothing differs: the fields of the HEAD response renew the stored ones.
        case refresh
        /// The response has changed: the stored one is stale from now on.
        case invalidate
    }

    /// Compares all validators in the response to the HEAD, and the length.
    ///
    /// - Parameters:
    ///   - stored: The fields of the response to the GET.
    ///   - length: The length of its body; nil if the upstream would count another one.
    package static func outcome(ofHead head: Fields, stored: Fields, length: Int?) -> HeadOutcome {
        let validators: [StaticString] = ["etag", "last-modified"]
        for name in validators {
            if let new = head[first: name], new != stored[first: name] { return .invalidate }
        }
        let digests: [StaticString] = ["content-md5", "repr-digest", "digest"]
        for name in digests {
            if let new = head[first: name], let old = stored[first: name], new != old { return .invalidate }
        }
        if let new = head.text("content-length"), let length, new != String(length) { return .invalidate }
        return .refresh
    }

    /// The fields and the policy of a stored response after a 304 has freshened it (RFC 9111 §4.3.4).
    ///
    /// - Parameters:
    ///   - stored: The fields of the stored response; `status` is its status.
    ///   - update: The fields of the 304, as received.
    package static func updated(
        _ stored: Fields,
        status: Int,
        by update: Fields,
        request: RequestFacts,
        requestTime: Int64,
        responseTime: Int64,
        wall: Int64? = nil,
        settings: CachePolicySettings,
        route: CacheOverrides = CacheOverrides(),
        replaysCookies: Bool = false
    ) -> Updated {
        let fields = StoredFields.refreshed(stored, by: update, replaysCookies: replaysCookies)
        // `Age` is not stored; the 304's `Age` is the age of the response that it confirms.
        let aged = Fields(fields.lines + update.lines.filter { $0.isNamed("age") })
        let policy = ResponsePolicy(
            request: request,
            status: status,
            fields: aged,
            requestTime: requestTime,
            responseTime: responseTime,
            wall: wall,
            settings: settings,
            route: route
        )
        let named = policy.fieldsNotStored + policy.fieldsNotReused
        return Updated(
            fields: StoredFields.dated(StoredFields.reusable(fields, leavingOut: named), at: wall ?? responseTime),
            withheld: update.lines.filter { line in
                named.contains { FieldSyntax.equalsIgnoringCase(line.name, $0) }
            },
            policy: policy
        )
    }

    /// A stored response after an update.
    package struct Updated {
        /// The fields to store.
        package var fields: Fields
        /// Lines of the update for the requesting client only, not to be stored (`no-cache="…"`, `private="…"`).
        package var withheld: [Field]
        package var policy: ResponsePolicy
    }
}
