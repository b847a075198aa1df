import GRDB
import Mapping

/// The cleans, invalidations and writes that block responses to requests sent before them.
///
/// They are in memory, because the requests die with the process. The number is bounded: a dropped ban counts as a ban of
/// everything.
struct Bans {
    /// An invalidation of a path.
    private struct PathBan {
        var time: Int64
        /// The last write to the path.
        var written: Write?
    }

    /// A write to a path, and the objects that it was known to concern.
    struct Write {
        let write: CompletedWrite
        let named: Set<BoundObject>
        /// Whether it deleted one of these objects.
        let hasDeleted: Bool
    }

    /// How much of a response is stored.
    enum Verdict {
        /// Its document and its objects.
        case stored
        /// Only its objects, because it was queued before the invalidation.
        case observed
        /// Nothing.
        case dropped
    }

    private static let pathLimit = 16_384
    private static let patternLimit = 256
    private static let cleanLimit = 256

    /// By the hashes of the paths.
    private var paths: [Int64: PathBan] = [:]
    private var patterns: [(pattern: InvalidationPattern, time: Int64)] = []
    private var cleans: [(filter: CleanFilter, time: Int64)] = []
    /// When the last response to a write came from each upstream.
    private var upstreams: [String: Int64] = [:]
    /// Responses to requests sent until this time are blocked.
    private var everything: Int64 = .min

    mutating func invalidated(pathHash: Int64, at time: Int64) {
        if paths.count >= Self.pathLimit {
            everything = max(everything, paths.values.lazy.map(\.time).max() ?? .min)
            paths = [:]
        }
        paths[pathHash] = PathBan(time: time, written: paths[pathHash]?.written)
    }

    /// Adds the write to a path that it invalidated.
    mutating func written(_ written: Write, to pathHash: Int64) { paths[pathHash]?.written = written }

    /// The last write to a response's path, if the response's request was sent before it.
    func write(before document: ReceivedDocument, to pathHash: Int64) -> Write? {
        paths[pathHash]?.written.flatMap { document.sent <= $0.write.time ? $0 : nil }
    }

    /// Adds a write to an upstream, which may have changed every object in an undivided document.
    mutating func written(to upstream: String, at time: Int64) {
        upstreams[upstream] = max(upstreams[upstream] ?? .min, time)
    }

    mutating func invalidated(_ pattern: InvalidationPattern, at time: Int64) {
        patterns.removeAll { $0.pattern == pattern }
        if patterns.count >= Self.patternLimit { everything = max(everything, patterns.removeFirst().time) }
        patterns.append((pattern, time))
    }

    /// Bans everything until a time, because the writes until then are no longer known.
    mutating func forgotten(until time: Int64) { everything = max(everything, time) }

    mutating func cleaned(_ filter: CleanFilter, at time: Int64) {
        if cleans.count >= Self.cleanLimit { everything = max(everything, cleans.removeFirst().time) }
        cleans.append((filter, time))
    }

    /// How much of a response is stored.
    ///
    /// - Parameters:
    ///   - arrival: when it was queued.
    ///   - isUndivided: whether it has too many objects to decompose it.
    func verdict(
        on document: ReceivedDocument,
        queuedAt arrival: Int64,
        pathHash: Int64,
        principal: String,
        objects: [Occurrence],
        isUndivided: Bool
    ) -> Verdict {
        if document.sent <= everything || isCleaned(document, principal, objects) { return .dropped }
        if isUndivided, mayPrecedeWrite(document) { return .dropped }
        guard let time = invalidated(document, pathHash) else { return .stored }
        return arrival <= time ? .observed : .dropped
    }

    /// When a response's path was invalidated after its request was sent, if at all.
    private func invalidated(_ document: ReceivedDocument, _ pathHash: Int64) -> Int64? {
        if let time = paths[pathHash]?.time, document.sent <= time { return time }
        return patterns.first { ban in
            document.sent <= ban.time && ban.pattern.upstream == document.key.upstream
                && ban.pattern.matches(url: document.key.url)
        }?.time
    }

    /// Whether a response may show the state before a write to its upstream.
    private func mayPrecedeWrite(_ document: ReceivedDocument) -> Bool {
        document.upstreamWrittenAt != nil || document.start <= upstreams[document.key.upstream] ?? .min
    }

    private func isCleaned(_ document: ReceivedDocument, _ principal: String, _ objects: [Occurrence]) -> Bool {
        cleans.contains { clean in
            document.sent <= clean.time
                && clean.filter.concerns(document, principal: principal, objects: objects, at: clean.time)
        }
    }
}

extension CleanFilter {
    /// Whether a clean at `time` would have removed a document that arrives late.
    fileprivate func concerns(_ document: ReceivedDocument, principal: String, objects: [Occurrence], at time: Int64)
        -> Bool
    {
        if let upstream, upstream != document.key.upstream { return false }
        if let label = self.principal, label != principal { return false }
        if let url, !url(document.key.url) { return false }
        if let olderThan, document.end >= time - olderThan { return false }
        guard let model else { return true }
        return objects.contains { $0.name.model == model && (identity == nil || $0.name.identity == identity) }
    }
}

extension WriterSession {
    /// Blocks responses to requests sent before now; returns the newest document.
    func ban(_ patterns: [InvalidationPattern]) -> DocumentID {
        let now = clock.now()
        for pattern in patterns { bans.invalidated(pattern, at: now) }
        return numbers.document
    }
}

extension InvalidationPattern {
    /// The documents up to an id that match one of the patterns; reads the URL of every document of their upstreams.
    static func documents(matching patterns: [InvalidationPattern], until last: DocumentID, in database: Database)
        throws -> [DocumentID]
    {
        try Dictionary(grouping: patterns, by: \.upstream).flatMap { upstream, patterns in
            try database.query(
                """
                SELECT id, url FROM _documents WHERE id <= ?1 AND scope IN
                (SELECT s.id FROM _scopes s JOIN _names u ON u.id = s.upstream WHERE u.text = ?2)
                """
            ).all(last, upstream) { row in
                let url = row.string(1)
                return patterns.contains { $0.matches(url: url) } ? row.id(0, as: DocumentID.self) : nil
            }.compactMap(\.self)
        }
    }
}
