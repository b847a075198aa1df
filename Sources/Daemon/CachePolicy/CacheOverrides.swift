/// Where a route departs from the upstream's word on caching; nil leaves it.
package struct CacheOverrides: Sendable, Equatable {
    /// Freshness lifetime in place of the upstream's.
    package var fresh: Duration?
    /// How long past freshness a response may be served while it is asked for anew.
    package var stale: Duration?
    package var cache: Cache?
    /// Freshness lifetime of responses such as 404 and 410, where they name none.
    package var negative: Duration?
    package var vary = Vary()
    package var key = Key()

    package init() {}

    /// What becomes of the response's `Vary`.
    package struct Vary: Sendable, Equatable {
        /// Request fields that select no variant, though it names them.
        package var ignore: [String] = []

        package init() {}
    }

    /// Which spellings of a URL are one.
    package struct Key: Sendable, Equatable {
        /// Whether the order of query parameters with different names says nothing.
        package var sort = false
        /// Names of query parameters that say nothing; `*` stands for any text.
        package var ignore: [String] = []

        package init() {}

        package init(sort: Bool, ignore: [String]) {
            (self.sort, self.ignore) = (sort, ignore)
        }
    }

    package enum Cache: String, Sendable, CaseIterable {
        /// Nothing is stored, and nothing that was stored is served.
        case never
        /// Stored and served even where the upstream forbids it; see `StatusFacts.takesRouteLifetime`.
        case force
    }
}
