import Mapping
import Store

/// What writes and cleanings have made outdated, in order: the one way to know that something was outdated meanwhile.
///
/// Whoever begins to read the store or to fetch takes a token. Whoever keeps or serves what came of it compares the token.
/// Whether an *object* has changed since a document was composed is another question, which outlives the process: the
/// store's commit sequence answers it.
///
/// A value for the upstream loop. It is bounded: to a token from before the oldest entry, everything is outdated.
struct InvalidationLog {
    /// A point in the order.
    struct Token: Hashable, Sendable {
        /// How many entries there were.
        fileprivate let count: Int
        /// How many responses had been kept under the cache key.
        fileprivate let kept: Int
    }

    /// What has happened to a request's response since a token was taken.
    enum Change: Equatable {
        case none
        /// The first write to its upstream that completed since, in µs of the store's clock: what was asked for before may show
        /// an object as it was.
        case written(at: Int64)
        /// A write to its URL, or a cleaning: what was asked for before is not kept.
        case invalidated
    }

    private enum Entry {
        case write(Invalidation, at: Int64)
        /// Nobody knows what a write has changed at the upstream.
        case upstream(String)
        case everything
    }

    private static let capacity = 8_192
    private var entries: [Entry] = []
    /// How many entries were dropped from the front.
    private var dropped = 0
    /// How many responses were kept, by a part of the cache key.
    ///
    /// Keys that share a place are outdated together, which costs a
    /// look-up.
    private var kept = [Int](repeating: 0, count: 4096)

    /// A token for what is read or fetched from now on under a cache key.
    func token(for digest: Digest128) -> Token {
        Token(count: dropped + entries.count, kept: kept[Self.place(of: digest)])
    }

    /// Notes what a write has made outdated.
    ///
    /// - Parameter time: when it was over, in µs of the store's clock.
    mutating func note(_ invalidation: Invalidation, at time: Int64) { append(.write(invalidation, at: time)) }

    /// Notes that anything of an upstream may be outdated.
    mutating func noteAll(of upstream: ProxiedUpstream) { append(.upstream(upstream.storeKey)) }

    /// Notes that the store is being cleaned.
    mutating func noteCleaning() { append(.everything) }

    /// Notes that a response is kept under a cache key.
    mutating func noteKept(at digest: Digest128) { kept[Self.place(of: digest)] &+= 1 }

    /// Whether nothing at all was outdated since a token was taken.
    func isCurrent(_ token: Token) -> Bool { token.count == dropped + entries.count }

    /// Whether a response was kept under a cache key since its token was taken.
    func hasKept(at digest: Digest128, since token: Token) -> Bool { kept[Self.place(of: digest)] != token.kept }

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
                guard invalidation.upstream === request.upstream else { continue }
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

    private static func place(of digest: Digest128) -> Int { Int(digest.low & 0xFFF) }
}

/// What has become outdated at one upstream, whoever asked for it and with whatever query: paths, and patterns of them.
struct Invalidation {
    let upstream: ProxiedUpstream
    let paths: [String]
    let patterns: [InvalidationPattern]
    private let places: Set<String>

    init(_ paths: [String], matching patterns: [InvalidationPattern] = [], of upstream: ProxiedUpstream) {
        self.upstream = upstream
        self.paths = paths
        self.patterns = patterns
        places = Set(paths)
    }

    /// Whether what a request is answered from is meant.
    func covers(_ request: ProxyRequest) -> Bool {
        request.upstream === upstream && covers(path: request.key.url.beforeQuery)
    }

    /// Whether a path of its upstream, as keys spell it, is meant.
    func covers(path: some StringProtocol) -> Bool {
        places.contains(String(path)) || patterns.contains { $0.matches(url: path) }
    }
}
