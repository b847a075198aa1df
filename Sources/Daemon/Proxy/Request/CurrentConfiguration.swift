package import Mapping
package import Settings
import Synchronization

/// A configuration as the daemon serves by it: the settings, and the upstreams that are compiled from them.
///
/// Immutable. A worker takes the current one when a request begins. Through its `ProxiedUpstream` the request keeps the part that concerns it,
/// to its end, and so does what the request starts: fetches, writes, streams.
package final class CompiledConfiguration: Sendable {
    package let settings: Configuration
    /// In the order of the file.
    package let upstreams: [ProxiedUpstream]

    /// Compiles a configuration; throws if its models contradict each other.
    ///
    /// - Parameter former: the configuration before it. Upstreams for which nothing has changed are taken from there, so that what
    ///   memory has of them stays valid.
    package init(_ settings: Configuration, replacing former: CompiledConfiguration? = nil) throws(MappingError) {
        self.settings = settings
        // Only what requests read: if anything else has changed, such as the log's level, what memory has stays valid.
        var daemon = Configuration()
        (daemon.limits, daemon.live, daemon.slowRequests) = (settings.limits, settings.live, settings.slowRequests)
        daemon.store.withhold = settings.store.withhold
        let known = Dictionary((former?.upstreams ?? []).map { ($0.name, $0) }) { first, _ in first }
        upstreams = try settings.upstreams.map { upstream throws(MappingError) in
            if let same = known[upstream.name], same.settings == upstream, same.daemon == daemon { return same }
            return ProxiedUpstream(try CompiledUpstream(upstream), of: daemon)
        }
    }
}

/// The configuration that requests begin with; any thread.
package final class CurrentConfiguration: Sendable {
    private let state: Mutex<CompiledConfiguration>
    private let count = Atomic(0)

    package init(_ configuration: CompiledConfiguration) { state = Mutex(configuration) }

    /// The current value; takes a lock, so it is not for the hit path.
    package var value: CompiledConfiguration { state.withLock { $0 } }

    /// How often it was replaced.
    ///
    /// A worker compares it at each request, which costs one load, and takes `value` if it has grown.
    var replacements: Int { count.load(ordering: .acquiring) }

    /// Replaces it for all requests that begin after this has returned.
    func replace(with configuration: CompiledConfiguration) {
        state.withLock { $0 = configuration }
        count.add(1, ordering: .releasing)
    }
}
