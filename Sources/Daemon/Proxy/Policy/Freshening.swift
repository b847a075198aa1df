/// What a 304, or the answer to a HEAD, does to stored answers (RFC 9111 §4.3.3 to §4.3.5).
enum Freshening {
    /// Which of the stored candidates a 304 speaks of, by position.
    ///
    /// A strong tag selects those that have it. A weak tag, or a date, selects the newest that matches. A 304 without any
    /// validator speaks of the one candidate, if there is only one.
    static func selected(by update: Fields, among candidates: [Preconditions.Stored], now: Int64) -> [Int] {
        if let tag = update[first: "etag"].flatMap({ EntityTag($0) }) {
            if !tag.isWeak {
                return candidates.indices.filter { candidates[$0].entityTag?.matchesStrongly(tag) ?? false }
            }
            return newest(candidates) { $0.entityTag?.matchesWeakly(tag) ?? false }
        }
        if let date = update[first: "last-modified"].flatMap({ HTTPDate.parse($0, now: now) }) {
            return newest(candidates) { $0.lastModified == date }
        }
        return candidates.count == 1 ? [0] : []
    }

    private static func newest(
        _ candidates: [Preconditions.Stored],
        where matches: (Preconditions.Stored) -> Bool
    ) -> [Int] {
        candidates.indices.filter { matches(candidates[$0]) }.max { candidates[$0].date < candidates[$1].date }.map {
            [$0]
        }
            ?? []
    }

    /// What the 200 to a HEAD says of the stored answer to a GET.
    enum HeadOutcome: Sendable, Equatable {
        /// Nothing contradicts it: its fields are renewed by the HEAD's.
        case refresh
        /// It has changed: it is stale from now on.
        case invalidate
    }

    static func outcome(ofHead head: Fields, stored: Fields) -> HeadOutcome {
        let names: [StaticString] = ["etag", "last-modified", "content-length"]
        for name in names {
            guard let new = head[first: name], let old = stored[first: name], new != old else { continue }
            return .invalidate
        }
        return .refresh
    }

    /// The stored fields and the policy of an answer that a 304 has renewed.
    ///
    /// - Parameters:
    ///   - stored: the answer's fields, `status` its own status.
    ///   - update: the fields of the 304, as received.
    static func renewed(
        _ stored: Fields,
        status: Int,
        by update: Fields,
        request: RequestFacts,
        requestTime: Int64,
        responseTime: Int64,
        settings: CachePolicySettings,
        route: Settings.Overrides = Settings.Overrides(),
        replaysCookies: Bool = false
    ) -> (fields: Fields, policy: ResponsePolicy) {
        let fields = StoredFields.refreshed(stored, by: update, replaysCookies: replaysCookies)
        // `Age` is no stored field; that of the 304 is the age of what it says.
        let aged = Fields(fields.lines + update.lines.filter { $0.isNamed("age") })
        let policy = ResponsePolicy(
            request: request,
            status: status,
            fields: aged,
            requestTime: requestTime,
            responseTime: responseTime,
            settings: settings,
            route: route
        )
        return (fields, policy)
    }
}
