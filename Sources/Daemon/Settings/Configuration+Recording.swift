import CachePolicy
import Mapping

extension Configuration {
    /// The same for a daemon that records: every request is asked, nothing is held back, and nothing that was stored counts.
    package var asksAlways: Configuration {
        var settings = self
        settings.mode = .online
        for index in settings.upstreams.indices { settings.upstreams[index].askAlways() }
        return settings
    }
}

extension Configuration.Upstream {
    fileprivate mutating func askAlways() {
        backOff = .never
        var rest = Configuration.Route()
        rest.declaration.path = "**"
        if !routes.contains(where: { $0.declaration == rest.declaration }) { routes.append(rest) }
        for index in routes.indices {
            routes[index].overrides = CacheOverrides()
            routes[index].overrides.cache = .never
            // Whatever method or status a rule names, the last one holds for the rest.
            if routes[index].declaration != rest.declaration { routes[index].declaration.fallsThrough = true }
        }
    }
}
