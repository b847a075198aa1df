/// A route's changes to the upstream's caching rules; nil keeps the upstream's rule.
package struct CacheOverrides: Sendable, Equatable {
    /// The freshness lifetime that replaces the upstream's.
    package var fresh: Duration?
    /// How long a stale response may be served while it is revalidated.
    package var stale: Duration?
    /// Whether to store at all; nil leaves that to the response's directives.
    package var cache: Cache?
    /// The freshness lifetime of responses such as 404 and 410 that name none.
    package var negative: Duration?
    package var vary = Vary()
    package var key = Key()

    package init() {}

    /// How the response's `Vary` is changed.
    package struct Vary: Sendable, Equatable {
        /// Request fields that select no variant, even if `Vary` names them.
        package var ignore: [String] = []

        package init() {}
    }

    /// Which URLs are treated as equal.
    package struct Key: Sendable, Equatable {
        /// Whether the order of query parameters with different names is ignored.
        package var sort = false
        /// Names of query parameters to ignore; `*` matches any text.
        package var ignore: [String] = []

        package init() {}
        init(sort: Bool, ignore: [String]) { (self.sort, self.ignore) = (sort, ignore) }
    }

    package enum Cache: String, Sendable, CaseIterable {
        /// Nothing is stored, and no stored response is served.
        case never
        /// Responses are stored and served even if the upstream forbids it; see `StatusFacts.takesRouteLifetime`.
        case force
    }
}
