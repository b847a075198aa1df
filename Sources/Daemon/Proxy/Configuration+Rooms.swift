package import HTTPSemantics
package import HTTPServer
package import Mapping
package import Settings
package import Store
package import Upstream

/// What each room of the daemon gets of the settings.
extension Configuration {
    package var httpLimits: HTTPLimits {
        var limits = HTTPLimits()
        limits.maxTarget = self.limits.target
        limits.maxHead = self.limits.head
        limits.maxFields = self.limits.fields
        limits.maxBody = self.limits.body
        limits.maxConnections = self.limits.connections
        limits.headTimeout = timeouts.requestHead
        limits.bodyIdle = timeouts.requestBody
        limits.idle = timeouts.idle
        limits.writeStall = timeouts.writeStall
        return limits
    }

    package func options(for upstream: Configuration.Upstream) -> UpstreamOptions {
        var options = UpstreamOptions()
        options.timeouts.connect = timeouts.connect
        options.timeouts.firstByte = timeouts.firstByte
        options.timeouts.stall = timeouts.stall
        options.maxHeadBytes = limits.upstreamHead
        options.maxConnectionsPerHost = limits.upstreamConnections
        options.maxUploads = limits.upstreamUploads
        options.minimumRate = limits.minimumRate
        options.caFile = upstream.caFile
        options.http2 = upstream.http2
        options.proxy =
            switch upstream.proxy {
            case .environment: .environment
            case .none: .none
            case .url(let url): .url(url)
            }
        return options
    }

    package func storeConfiguration(path: String, models: [String: Models]) -> StoreConfiguration {
        let size = Int64(store.maximumSize)
        var configuration = StoreConfiguration(path: path, maximumFileBytes: size, models: models)
        configuration.batchDelay = store.batchDelay
        configuration.queueBytes = store.queueSize
        configuration.readers = store.readers
        configuration.group = store.group
        configuration.changes = Int64(store.changes)
        configuration.objectLimit = limits.objects
        for upstream in upstreams { configuration.lags[upstream.storeKey] = upstream.lag.stored }
        return configuration
    }
}

extension Configuration.Upstream {
    /// How the store names it.
    var storeKey: String { UpstreamKey.make(name: name, url: url.canonical) }
}

extension ListenAddress {
    package init(_ address: Address) {
        switch address {
        case .tcp(let host, let port): self = .tcp(host: host, port: port)
        case .unix(let path, let mode, let group):
            self = .unix(path: path, mode: mode.map(UInt32.init) ?? 0o600, group: group)
        }
    }
}
