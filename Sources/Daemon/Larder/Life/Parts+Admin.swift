import Admin
import Mapping
import Proxy
import Settings
import Store

/// What the admin side asks and does.
extension Parts: AdminContext {
    var version: String { Version.text }

    var readiness: Readiness { readinessSwitch.current }

    var models: [String: Models] {
        Dictionary(uniqueKeysWithValues: upstreams.map { ($0.name, $0.rules.models) })
    }

    func figures() async throws(StoreError) -> StoreFigures {
        let count = try await store.count()
        let statistics = store.statistics
        let memory = cache.memory.statistics
        var figures = StoreFigures()
        figures.objects = count.objects
        figures.documents = count.documents
        figures.bytes = Int(count.bytes)
        figures.memoryEntries = memory.answers
        figures.memoryBytes = memory.bytes
        figures.damaged = UInt64(statistics.damaged)
        figures.evictions = UInt64(statistics.evicted) + UInt64(memory.evictions)
        figures.ingestQueue = statistics.queued
        return figures
    }

    func routes(spelled path: String) -> [RouteFilter] {
        upstreams.compactMap { upstream in
            let indices = upstream.settings.routes.indices.filter {
                upstream.settings.routes[$0].declaration.path == path
            }
            guard !indices.isEmpty else { return nil }
            return RouteFilter(upstream: upstream.name) { url in
                let route = upstream.route(ofURL: url)
                return upstream.rules.route(method: "GET", path: route, status: nil).map { indices.contains($0.index) }
                    ?? false
            }
        }
    }

    func clean(
        _ filter: CleanFilter,
        dryRun: Bool,
        progress: @escaping CleanProgress
    ) async throws(StoreError) -> CleanResult {
        try await proxy.clean(filter, dryRun: dryRun, progress: progress)
    }
}
