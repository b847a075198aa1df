import GRDB
import Mapping

/// The cleans, invalidations and writes that block responses to requests sent before them.
///
/// They are in memory, because the requests die with the process. Their number is bounded: a dropped ban counts as a
/// ban of everything.
struct Bans {
    private struct PathBan {
        var time: Int64
        /// When it became known here; what was queued before is not lost but for its document.
        var known: Int64
        var written: PathWrite?
    }

    /// A write to a path, and the objects that it was known to concern.
    struct PathWrite {
        let write: CompletedWrite
        let named: Set<BoundObject>
        /// Whether it deleted one of these objects.
        let hasDeleted: Bool
    }

    enum Verdict {
        case stored
        /// Only its objects, because it was queued before the invalidation.
        case observed
        case dropped
    }

    private static let pathLimit = 16_384
    private static let maximumBans = 256

    /// By the hashes of the paths.
    private var paths: [Int64: PathBan] = [:]
    private var patterns: [(ban: Invalidation, known: Int64)] = []
    private var cleans: [Invalidation] = []
    /// When the last response to a write came from each upstream.
    private var upstreams: [UpstreamKey: Int64] = [:]
    /// Responses to requests sent until this time are blocked.
    private var everything: Int64 = .min

    /// - Parameter now: when it is known; of a write on another machine that is later.
    mutating func banPath(_ pathHash: Int64, at time: Int64, knownAt now: Int64) {
        if paths.count >= Self.pathLimit {
            banEverything(until: paths.values.lazy.map(\.time).max() ?? .min)
            paths = [:]
        }
        // News of other machines may come late.
        let known = paths[pathHash]
        paths[pathHash] = PathBan(time: max(time, known?.time ?? .min), known: max(time, now), written: known?.written)
    }

    mutating func written(_ written: PathWrite, to pathHash: Int64) { paths[pathHash]?.written = written }

    /// The last write to a response's path, if the response's request was sent before it.
    func write(before document: ReceivedDocument, to pathHash: Int64) -> PathWrite? {
        paths[pathHash]?.written.flatMap { document.sent <= $0.write.time ? $0 : nil }
    }

    /// Adds a write to an upstream, which may have changed every object in an undivided document.
    mutating func written(to upstream: UpstreamKey, at time: Int64) {
        upstreams[upstream] = max(upstreams[upstream] ?? .min, time)
    }

    /// Adds the patterns of an invalidation; its paths are added by `banPath`.
    ///
    /// - Parameter now: as for `banPath`.
    mutating func banPatterns(of invalidation: Invalidation, knownAt now: Int64) {
        var ban = Invalidation(of: invalidation.upstream, patterns: invalidation.patterns, at: invalidation.time)
        let index = patterns.firstIndex { $0.ban.patterns == ban.patterns && $0.ban.upstream == ban.upstream }
        if let index { ban.time = max(ban.time, patterns.remove(at: index).ban.time) }
        if patterns.count >= Self.maximumBans { banEverything(until: patterns.removeFirst().ban.time) }
        patterns.append((ban, max(ban.time, now)))
    }

    /// Bans everything until a time, because the writes until then are no longer known.
    mutating func banEverything(until time: Int64) { everything = max(everything, time) }

    mutating func cleaned(_ invalidation: Invalidation) {
        if cleans.count >= Self.maximumBans { banEverything(until: cleans.removeFirst().time) }
        cleans.append(invalidation)
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
        let (url, upstream) = (document.key.url, document.key.upstream)
        let later = cleans.filter { document.sent <= $0.time }
        let shown = later.isEmpty ? [] : objects.map(\.name)
        let isCleaned = later.contains { $0.covers(url, of: upstream, principal: principal, shown: shown) }
        if document.sent <= everything || isCleaned { return .dropped }
        if isUndivided, mayPrecedeWrite(document) { return .dropped }
        guard let known = knownSince(banOf: document, pathHash) else { return .stored }
        return arrival <= known ? .observed : .dropped
    }

    /// When it became known that a response's path was invalidated after its request was sent, if at all.
    private func knownSince(banOf document: ReceivedDocument, _ pathHash: Int64) -> Int64? {
        if let ban = paths[pathHash], document.sent <= ban.time { return ban.known }
        return patterns.first {
            document.sent <= $0.ban.time && $0.ban.covers(document.key.url, of: document.key.upstream)
        }?.known
    }

    /// Whether a response may show the state before a write to its upstream.
    private func mayPrecedeWrite(_ document: ReceivedDocument) -> Bool {
        document.upstreamWrittenAt != nil || document.start <= upstreams[document.key.upstream] ?? .min
    }
}
