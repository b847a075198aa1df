package import HTTPSemantics

/// How a 304, or the response to a HEAD, updates stored responses (RFC 9111 §4.3.3 to §4.3.5).
package enum Freshening {
    /// The positions of the stored candidates that a 304 confirms; none if it confirms another response.
    ///
    /// A strong tag selects all candidates with that tag. A weak tag, or a date, selects the newest match. The date counts only
    /// if no candidate has a tag to compare.
    ///
    /// In two ways this goes beyond RFC 9111 §4.3.4, because of what many servers do. A 304 without any validator confirms the
    /// candidate if there is only one. A strong tag that no candidate has selects the newest one with its weak form.
    package static func selected(by update: Fields, among candidates: [Validators], now: Int64) -> [Int] {
        func newest(_ matches: (Validators) -> Bool) -> [Int] {
            let matching = candidates.indices.filter { matches(candidates[$0]) }
            return matching.max { (candidates[$0].date ?? .min) < (candidates[$1].date ?? .min) }.map { [$0] } ?? []
        }
        let modified = update[first: "last-modified"].flatMap { HTTPDate.parse($0, now: now) }
        if let tag = update[first: "etag"].flatMap({ EntityTag($0) }),
            modified == nil || candidates.contains(where: { $0.entityTag != nil })
        {
            if tag.isWeak { return newest { $0.entityTag?.matchesWeakly(tag) ?? false } }
            let same = candidates.indices.filter { candidates[$0].entityTag?.matchesStrongly(tag) ?? false }
            return same.isEmpty ? newest { $0.entityTag?.matchesWeakly(tag) ?? false } : same
        }
        if let modified { return newest { $0.lastModified == modified } }
        return candidates.count == 1 ? [0] : []
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
    /// - Parameter length: The length of its body; nil if the upstream would count another one.
    package static func outcome(ofHead head: Fields, stored: Fields, length: Int?) -> HeadOutcome {
        for name in ["etag", "last-modified"] {
            if let new = head[first: name], new != stored[first: name], !isStrongForm(of: stored, in: head) {
                return .invalidate
            }
        }
        for name in ["content-md5", "repr-digest", "digest"] {
            if let new = head[first: name], let old = stored[first: name], new != old { return .invalidate }
        }
        if let new = head.text("content-length"), let length, new != String(length) { return .invalidate }
        return .refresh
    }

    /// The fields and the policy of a stored response after a 304 has freshened it (RFC 9111 §4.3.4).
    package static func freshened(
        _ stored: Fields,
        status: Int,
        by update: Fields,
        request: Request,
        times: ExchangeTimes,
        settings: CachePolicySettings,
        route: CacheOverrides = CacheOverrides(),
        replaysCookies: Bool = false
    ) -> Freshened {
        // Its other fields describe a representation whose bytes may differ from those stored.
        let update = isStrongForm(of: stored, in: update) ? freshness(of: update, targets: settings.targets) : update
        let fields = StoredFields.refreshed(stored, by: update, replaysCookies: replaysCookies)
        // `Age` is not stored; the 304's `Age` is the age of the response that it confirms.
        let aged = Fields(fields.lines + update.lines.filter { $0.isNamed("age") })
        let policy = ResponsePolicy(
            request: request,
            status: status,
            fields: aged,
            times: times,
            settings: settings,
            route: route
        )
        let named = policy.fieldsNotStored + policy.fieldsNotReused
        return Freshened(
            fields: StoredFields.dated(StoredFields.reusable(fields, leavingOut: named), at: times.wall),
            withheld: update.lines.filter { line in named.contains { FieldSyntax.equalsIgnoringCase(line.name, $0) } },
            policy: policy
        )
    }

    /// The fields of a response whose body was stored for another client, and which a 304 has released to this one: those of the
    /// 304, and those stored that describe the body.
    ///
    /// - Parameter isExact: whether the tag covers the stored bytes as they are, so that it may stay strong.
    package static func released(_ stored: Fields, by update: Fields, isExact: Bool) -> Fields {
        let described = ["content-type", "content-language"]
        var fields = update.filter { line in !StoredFields.describesBody(line) }
        fields.append(contentsOf: stored.filter { line in described.contains { line.isNamed($0) } })
        let isWeak = !isExact || stored[first: "etag"].flatMap { EntityTag($0) }?.isWeak ?? true
        for (index, line) in fields.enumerated() where isWeak && line.isNamed(.etag) {
            if !line.value.starts(with: [0x57, 0x2F]) {
                fields.replaceValue(at: index, by: [0x57, 0x2F] + line.value)
            }
        }
        return fields
    }

    private static func isStrongForm(of stored: Fields, in update: Fields) -> Bool {
        guard let new = update[first: "etag"].flatMap({ EntityTag($0) }),
            let old = stored[first: "etag"].flatMap({ EntityTag($0) })
        else { return false }
        return old.isWeak && !new.isWeak && old.matchesWeakly(new)
    }

    /// The fields that say how long a response is fresh.
    private static func freshness(of update: Fields, targets: [String]) -> Fields {
        let names = ["date", "age", "expires", "cache-control"] + targets.map { $0.lowercased() }
        return Fields(update.lines.filter { names.contains($0.lowercasedName) })
    }

    /// The fields and the policy of a stored response that an update has freshened.
    package struct Freshened {
        package var fields: Fields
        /// Lines of the update for the requesting client only, not to be stored (`no-cache="…"`, `private="…"`).
        package var withheld: [Field]
        package var policy: ResponsePolicy
    }
}
