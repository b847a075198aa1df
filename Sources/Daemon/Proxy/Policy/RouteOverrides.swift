/// What a route's configuration says instead of the upstream.
struct RouteOverrides: Sendable, Equatable {
    enum Caching: UInt8, Sendable {
        /// The upstream's word holds.
        case standard
        /// Nothing is stored, nothing reused.
        case never
        /// Everything is stored and reused, whatever the response says.
        case force
    }

    /// `fresh:` in seconds: the lifetime, in the place of the upstream's and of its `no-cache`.
    var fresh: Int64?
    /// `stale:` in seconds: how long past its lifetime an answer may be served while it is refreshed, or when that fails.
    var stale: Int64?
    /// `negative:` in seconds: the lifetime of 404, 405, 410, 414 and 501 that name none.
    var negative: Int64?
    var caching = Caching.standard
    /// `vary: ignore`: lower-case field names that select no variant.
    var ignoredVary: Set<String> = []

    init() {}

    static let none = RouteOverrides()
}
