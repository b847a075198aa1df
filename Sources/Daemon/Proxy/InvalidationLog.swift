import Mapping
import Store

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

    private enum Entry {
        case write(Invalidation, at: Int64)
        /// A write's effects at this upstream are unknown.
        case upstream(String)
        case everything
    }

    private static let capacity = 8_192
    private var entries: [Entry] = []
    /// The number of entries dropped from the front.
    private var dropped = 0

    /// A token for a read or fetch that begins now.
    var token: Token { Token(count: dropped + entries.count) }

    /// Notes what a write has invalidated, and when it was over, in µs of the store's clock.
    mutating func note(_ invalidation: Invalidation, at time: Int64) { append(.write(invalidation, at: time)) }

    /// Notes that anything of an upstream may be outdated.
    mutating func noteAll(of upstream: ProxiedUpstream) { append(.upstream(upstream.storeKey)) }
    mutating func noteClean() { append(.everything) }

    /// What has happened to a request's response since a token was taken.
    func change(since token: Token, for request: ProxyRequest) -> Change {
        guard token.count >= dropped else { return .invalidated }
        var change = Change.none
        for entry in entries[(token.count - dropped)...] {
            switch entry {
            case .everything: return .invalidated
            case .upstream(let key):
                if key == request.upstream.storeKey { return .invalidated }
            case .write(let invalidation, let time):
                guard invalidation.upstream.storeKey == request.upstream.storeKey else { continue }
                if invalidation.covers(request) { return .invalidated }
                if change == .none { change = .written(at: time) }
            }
        }
        return change
    }

    private mutating func append(_ entry: Entry) {
        if entries.count >= Self.capacity {
            entries.removeFirst(Self.capacity / 2)
            dropped += Self.capacity / 2
        }
        entries.append(entry)
    }
}

/// Paths and patterns at one upstream whose responses are invalid, for every principal and with any query.
struct Invalidation {
    let upstream: ProxiedUpstream
    let paths: [String]
    let patterns: [InvalidationPattern]
    private let places: Set<String>

    init(_ paths: [String], matching patterns: [InvalidationPattern] = [], of upstream: ProxiedUpstream) {
        (self.upstream, self.paths, self.patterns) = (upstream, paths, patterns)
        places = Set(paths)
    }

    /// Whether it covers a request's response.
    func covers(_ request: ProxyRequest) -> Bool {
        request.upstream.storeKey == upstream.storeKey && covers(path: request.key.url.beforeQuery)
    }

    /// Whether it covers a path of its upstream, spelled as in cache keys.
    func covers(path: some StringProtocol) -> Bool {
        places.contains(String(path)) || patterns.contains { $0.matches(url: path) }
    }
}
