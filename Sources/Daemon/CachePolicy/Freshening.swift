package import HTTPSemantics

/// What a 304, or the response to a HEAD, does to stored responses (RFC 9111 §4.3.3 to §4.3.5).
package enum Freshening {
    /// Which of the stored candidates a 304 confirms, by position; none where it confirms something else.
    ///
    /// A strong tag selects those that have it. A weak tag, or a date, selects the newest that matches. The date counts where
    /// no candidate has a tag to compare. A 304 without any validator, which is more than RFC 9111 §4.3.4 asks to be
    /// believed, is about the one candidate, if there is only one: many servers leave the tag out.
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

    /// What the 200 to a HEAD says of the stored response to a GET.
    package enum HeadOutcome: Sendable, Equatable {
        /// Nothing contradicts it: its fields are renewed by the HEAD's.
        case refresh
        /// It has changed: it is stale from now on.
        case invalidate
    }

    /// Compares every validator that the HEAD brought, and the length.
    ///
    /// - Parameters:
    ///   - stored: the fields of the response to the GET.
    ///   - length: of its body; nil where it is not the one that the upstream would count.
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

    /// The stored fields and the policy of a response that a 304 has freshened (RFC 9111 §4.3.4).
    ///
    /// - Parameters:
    ///   - stored: the response's fields, `status` its own status.
    ///   - update: the fields of the 304, as received.
    package static func freshened(
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
    ) -> Freshened {
        let fields = StoredFields.refreshed(stored, by: update, replaysCookies: replaysCookies)
        // `Age` is no stored field; that of the 304 is the age of what it says.
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
        return Freshened(
            fields: StoredFields.dated(StoredFields.reusable(fields, leavingOut: named), at: wall ?? responseTime),
            withheld: update.lines.filter { line in
                named.contains { FieldSyntax.equalsIgnoringCase(line.name, $0) }
            },
            policy: policy
        )
    }

    /// What a later answer has made of a stored one.
    package struct Freshened {
        /// To be stored.
        package var fields: Fields
        /// Lines of the later answer that are for the one who asked, and not stored (`no-cache="…"`, `private="…"`).
        package var withheld: [Field]
        package var policy: ResponsePolicy
    }
}
