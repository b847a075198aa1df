import GRDB
public import Mapping

/// What a write, a clean, or the loss of knowledge makes outdated: responses to requests sent until a time.
///
/// Memory, disk, fetches, streams and the writer's queue all obey this value. They ask `covers`, or look its paths up
/// in an index. It contains names alone, no row ids, so that it means the same in any process.
public struct Invalidation: Sendable, Equatable, Codable {
    /// Nil for all upstreams.
    public var upstream: UpstreamKey?
    /// Paths as in cache keys, for every principal and with any query.
    public var paths: Set<String>
    public var patterns: [InvalidationPattern]
    /// Objects that make each response outdated which shows one of them; one without identity stands for all of its model.
    public var objects: [BoundObject]
    /// The labels of the principals concerned, which are made of their HMACs; nil for all principals.
    public var principals: Set<String>?
    /// When its cause was over, in µs of the store's clock.
    public var time: Int64

    /// Describes what is outdated; without paths, patterns and objects it is everything of the upstream.
    public init(
        of upstream: UpstreamKey?,
        paths: Set<String> = [],
        patterns: [InvalidationPattern] = [],
        objects: [BoundObject] = [],
        principals: Set<String>? = nil,
        at time: Int64
    ) {
        (self.upstream, self.paths, self.patterns, self.objects) = (upstream, paths, patterns, objects)
        (self.principals, self.time) = (principals, time)
    }

    public var isOfEverything: Bool { paths.isEmpty && patterns.isEmpty && objects.isEmpty }

    /// Whether it concerns an upstream, and a principal, at all.
    ///
    /// - Parameter principal: the label, which is asked for only if it matters; one that is not known is concerned.
    public func concerns(_ upstream: UpstreamKey, principal: @autoclosure () -> String? = nil) -> Bool {
        guard self.upstream == nil || self.upstream == upstream else { return false }
        guard let principals, let principal = principal() else { return true }
        return principals.contains(principal)
    }

    /// Whether it covers a response, by path and query as in its cache key; a principal's label or shown objects that
    /// are not known count as covered.
    @inlinable
    public func covers(
        _ url: some StringProtocol,
        of upstream: UpstreamKey,
        principal: @autoclosure () -> String? = nil,
        shown: [ObjectName]? = nil
    ) -> Bool {
        guard concerns(upstream, principal: principal()) else { return false }
        return isOfEverything || paths.contains(String(url.beforeQuery)) || patterns.contains { $0.matches(url) }
            || objects.contains { object in
                shown?.contains { $0.model == object.model && (object.identity ?? $0.identity) == $0.identity } ?? true
            }
    }
}

/// A pattern of paths below a base path.
public struct InvalidationPattern: Sendable, Equatable {
    var base: String
    /// Matches what follows the base path; its captures are filled in.
    var pattern: RoutePattern
    /// The beginning of every path that it matches.
    private let start: String

    /// Creates a pattern for paths below a base path.
    public init(base: String, pattern: RoutePattern) {
        (self.base, self.pattern) = (base, pattern)
        start = base + pattern.plainStart
    }

    /// Whether it matches a response's path, with any query.
    public func matches(_ url: some StringProtocol) -> Bool {
        let path = url.beforeQuery.utf8
        // Nearly all other paths begin differently.
        guard path.starts(with: start.utf8) || path.starts(with: "\(base)//".utf8) else { return false }
        return pattern.matches(path: String(decoding: path.dropFirst(base.utf8.count), as: UTF8.self))
    }
}

extension InvalidationPattern: Codable {
    private enum CodingKeys: CodingKey { case base, pattern }

    /// Reads base and pattern, each as text.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        let text = try values.decode(String.self, forKey: .pattern)
        self.init(base: try values.decode(String.self, forKey: .base), pattern: try RoutePattern(text))
    }

    /// Writes base and pattern, each as text.
    public func encode(to encoder: any Encoder) throws {
        var values = encoder.container(keyedBy: CodingKeys.self)
        try values.encode(base, forKey: .base)
        try values.encode(pattern.text, forKey: .pattern)
    }
}

extension Invalidation {
    /// The documents up to an id whose paths match its patterns; it reads the URL of every document of the upstream.
    func documentsOfPatterns(until last: DocumentID, in database: Database) throws -> [DocumentID] {
        guard let upstream, !patterns.isEmpty else { return [] }
        return try database.query(
            """
            SELECT id, url FROM _documents WHERE id <= ?1 AND scope IN
            (SELECT s.id FROM _scopes s JOIN _names u ON u.id = s.upstream WHERE u.text = ?2)
            """
        ).all(last, upstream) { row in
            let url = row.string(1)
            return patterns.contains { $0.matches(url) } ? row.id(0, as: DocumentID.self) : nil
        }.compactMap(\.self)
    }
}
