package import HTTPSemantics
package import Mapping
package import Settings
package import Store

/// What each room of the daemon gets of the settings.
extension Configuration {
    /// How requests are sent to one upstream: the daemon's `limits:`, and the upstream's own keys.
    package func options(for upstream: Configuration.Upstream) -> UpstreamOptions {
        var options = limits.upstream
        (options.caFile, options.proxy, options.http2) = (upstream.caFile, upstream.proxy, upstream.http2)
        return options
    }

    /// - Parameters:
    ///   - path: The path of the store's file.
    ///   - models: The models of each upstream, by its `storeKey`.
    package func storeConfiguration(path: String, models: [String: Models]) -> StoreConfiguration {
        var configuration = StoreConfiguration(
            path: path,
            maximumFileBytes: Int64(store.maximumSize),
            batchDelay: store.batchDelay,
            queueBytes: store.queueSize,
            objectLimit: limits.objects,
            readers: store.readers,
            lag: ResponseLag().stored,
            changes: Int64(store.changes),
            models: models
        )
        configuration.group = store.group
        for upstream in upstreams { configuration.lags[upstream.storeKey] = upstream.lag.stored }
        return configuration
    }
}

extension Configuration.Upstream {
    /// How the store names it.
    var storeKey: String { UpstreamKey.make(name: name, url: url.canonical) }
}
