package import CachePolicy
package import Settings

/// What to write into the config so that requests are hits which the upstream's fields, or their absence, make misses.
package enum FreshnessRemedy: Sendable, Equatable {
    /// `fresh_unsaid` for the upstream of this name.
    case freshUnsaid(upstream: String)
    /// A route for this path; `force` if the upstream forbids storing.
    ///
    /// `reading` is what the POST reads by, if it is one.
    case route(String, reading: ReadingPost?, cache: CacheOverrides.Cache?)

    /// The remedy for a stored response; nil if its fields give it a lifetime, or the config does.
    ///
    /// - Parameters:
    ///   - route: the path for matching routes.
    ///   - reading: what the POST reads by, if it is one.
    package init?(for ready: ReadyResponse, route: String, reading: ReadingPost?) {
        let (upstream, word) = (ready.upstream, ready.response.policy)
        guard StatusFacts.takesRouteLifetime(Int(word.status)) else { return nil }
        switch ready.policy.lifetimeSource {
        case .route, .negative, .unsaid: return nil
        case .none, .maxAge, .sMaxAge, .expires, .heuristic, .targeted: break
        }
        guard ready.policy.lifetime == 0 || ready.policy.flags.contains(.noCache) else { return nil }
        self =
            word.takesUnsaidLifetime && upstream.settings.freshUnsaid == nil
            ? .freshUnsaid(upstream: upstream.name) : .route(route, reading: reading, cache: nil)
    }

    /// The key and where it belongs in the config, as YAML on one line.
    package var line: String {
        switch self {
        case .freshUnsaid(let upstream): "upstreams: { \(upstream): { fresh_unsaid: 60s } }"
        case .route(let path, let reading, let cache):
            "routes: [{ path: \"\(Self.pattern(path))\", "
                + (reading.map { "method: POST, read: \($0.rawValue), " } ?? "")
                + (cache.map { "cache: \($0.rawValue), " } ?? "") + "fresh: 60s }]"
        }
    }

    /// The line of config, with the reason.
    package var sentence: String {
        switch self {
        case .freshUnsaid:
            "The response says nothing of caching. Write \(line), or start with `larder serve --fresh 60s`."
        case .route(_, _, nil): "The response gives itself no lifetime. If you know better, write \(line)."
        case .route: "The response forbids storing. If you know better, write \(line)."
        }
    }

    /// A pattern of a path, as routes have them: without the first slash.
    private static func pattern(_ path: String) -> String { String(path.drop { $0 == "/" }) }
}

/// Notices in the log, once for each upstream, that its responses say nothing of caching.
///
/// Only in the daemon's first hour, when somebody still looks whether it is set up well.
struct FreshnessNotices {
    /// How many requests must have gone upstream in vain.
    static let threshold = 20
    private static let hour: Int64 = 3_600
    /// How long ago a response must have been fetched at most, so that `fresh_unsaid: 60s` had made the request a hit.
    private static let minute: Int64 = 60

    private let start: Int64
    private var counts: [String: Int] = [:]

    /// - Parameter start: when the daemon started, in seconds of the store's clock, as all times here.
    init(since start: Int64) { self.start = start }

    /// The remedy for a request that asks the upstream though a response was fetched within the last minute; nil if there is none.
    static func remedy(for inquiry: Plan.Inquiry, now: Int64) -> FreshnessRemedy? {
        guard case .policy(.stale) = inquiry.request.reason, let stored = inquiry.stored,
            stored.response.policy.takesUnsaidLifetime, stored.policy.age(at: now) < minute,
            let remedy = FreshnessRemedy(
                for: stored,
                route: inquiry.request.route,
                reading: inquiry.request.read?.kind
            )
        else { return nil }
        return remedy
    }

    /// Counts such a request; returns the number of them if it is to be logged now.
    mutating func count(upstream: String, now: Int64) -> Int? {
        guard now - start < Self.hour else { return nil }
        let count = (counts[upstream] ?? 0) + 1
        counts[upstream] = count
        return count == Self.threshold ? count : nil
    }
}
