import Mapping
package import Store

/// The invalidations by writes and cleans, in order; the only way to learn that one has happened since a point in time.
///
/// A read of the store or a fetch takes a token when it begins. Before its result is kept or served, the token is compared.
/// Whether an *object* has changed since a document was composed is a separate question, which outlives the process: the store's
/// commit sequence decides it.
///
/// A value for the upstream loop. It is bounded: for a token older than the oldest entry, everything counts as invalidated.
struct InvalidationLog {
    /// A point in the order.
    struct Token: Hashable, Sendable {
        /// The number of entries so far.
        fileprivate let count: Int
    }

    /// What has happened to a request's response since a token was taken.
    enum Change: Equatable {
        case none
        /// Writes to its upstream have completed, the first at this time, in µs of the store's clock.
        ///
        /// A response requested before that may show an object's former state.
        case written(at: Int64)
        /// A write to its URL, or a clean: a response requested before is not kept.
        case invalidated
    }

    private static let capacity = 8_192
    private var entries: [Invalidation] = []
    private var dropped = 0
    /// What was invalidated up to this time is not known any more.
    private var forgotten: Int64
    private let label: PrincipalLabels

    /// - Parameter start: the time from which on all will be appended, in µs of the store's clock.
    init(since start: Int64 = .min, label: @escaping PrincipalLabels = { _ in nil }) {
        (forgotten, self.label) = (start, label)
    }

    /// A token for a read or fetch that begins now.
    var token: Token { Token(count: dropped + entries.count) }

    mutating func append(_ invalidation: Invalidation) {
        if entries.count >= Self.capacity {
            forgotten = max(forgotten, entries.prefix(Self.capacity / 2).map(\.time).max() ?? .min)
            entries.removeFirst(Self.capacity / 2)
            dropped += Self.capacity / 2
        }
        entries.append(invalidation)
    }

    /// Whether a response may be outdated by its URL that was requested at a time, in µs of the store's clock, perhaps on another
    /// machine.
    func mayCover(_ request: ProxyRequest, requestedAt time: Int64) -> Bool {
        time <= forgotten || entries.contains { $0.time >= time && $0.covers(request.key, label) }
    }

    /// What has happened to a request's response since a token was taken.
    func change(since token: Token, for request: ProxyRequest) -> Change {
        guard token.count >= dropped else { return .invalidated }
        var change = Change.none
        let key = request.key
        for entry in entries[(token.count - dropped)...]
        where entry.concerns(key.upstream, principal: label(key.principal)) {
            if entry.covers(key, label) { return .invalidated }
            if change == .none { change = .written(at: entry.time) }
        }
        return change
    }
}

/// The labels of principals; nil for one that is not known.
package typealias PrincipalLabels = @Sendable (PrincipalID) -> String?

extension Invalidation {
    /// Whether it covers the responses under a key, by URL and principal.
    ///
    /// Which objects a response shows is known when the store takes it apart. The store's marks decide on those.
    func covers(_ key: CacheKey, _ label: PrincipalLabels) -> Bool {
        covers(key.url, of: key.upstream, principal: label(key.principal), shown: [])
    }
}
