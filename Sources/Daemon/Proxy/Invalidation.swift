import Mapping
import Store

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

    /// Whether what a demand is answered from is meant.
    func covers(_ demand: Demand) -> Bool {
        demand.upstream === upstream && covers(path: demand.key.url.beforeQuery)
    }

    /// Whether a path of its upstream, as keys spell it, is meant.
    func covers(path: some StringProtocol) -> Bool {
        places.contains(String(path)) || patterns.contains { $0.matches(url: path) }
    }
}
