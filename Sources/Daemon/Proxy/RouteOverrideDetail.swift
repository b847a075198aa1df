import CachePolicy

/// In what the route of a response departs from what the upstream said: `detail` of `Cache-Status` says so.
struct RouteOverrideDetail: Sendable, Equatable {
    /// `forced`, `fresh-by-route`, `negative-by-route`, `vary-by-route`, or several of them joined by `+`.
    let detail: String

    /// Nil where the upstream's word holds.
    ///
    /// - Parameters:
    ///   - policy: the response's, with the route laid over it.
    ///   - vary: the response's `Vary`.
    init?(_ route: CacheOverrides, _ policy: StoredPolicy, vary: VaryField) {
        var words: [String] = []
        switch policy.lifetimeSource {
        case .route: words.append(route.cache == .force ? "forced" : "fresh-by-route")
        case .negative: words.append("negative-by-route")
        case .none, .maxAge, .sMaxAge, .expires, .heuristic, .targeted: break
        }
        if !route.vary.ignore.isEmpty, case .fields(let names) = vary,
            route.vary.ignore.contains(where: { names.contains($0.lowercased()) })
        {
            words.append("vary-by-route")
        }
        guard !words.isEmpty else { return nil }
        detail = words.joined(separator: "+")
    }

    /// What `detail` says of a response: how it came about, or how it is served, and in what its route departs.
    static func detail(_ own: String?, _ overrides: RouteOverrideDetail?) -> String? {
        guard let overrides else { return own }
        return own.map { "\($0)+\(overrides.detail)" } ?? overrides.detail
    }
}
