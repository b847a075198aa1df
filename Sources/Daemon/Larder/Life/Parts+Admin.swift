import Admin
import HTTPSemantics
import Mapping
import Proxy
import Recording
import Settings
import Store

/// What the admin side asks and does.
extension Parts: AdminContext {
    var version: String { Version.text }

    var replayer: Replayer? { replay.current }

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

// MARK: Explain

extension Parts {
    func explain(_ question: ExplainQuestion) async throws(ProblemDocument) -> Explanation {
        let imagined = try imagine(question)
        do {
            return try await proxy.explain(imagined)
        } catch {
            throw ProblemDocument(error)
        }
    }

    /// The request that is asked about.
    private func imagine(_ question: ExplainQuestion) throws(ProblemDocument) -> ImaginedRequest {
        let url: AskedURL
        do {
            url = try AskedURL(question.url, of: upstreams, at: settings.listen, named: question.upstream)
        } catch {
            throw .badRequest(error.description)
        }
        do {
            return try ImaginedRequest(
                question.method,
                url,
                fields: question.fields,
                limits: settings.httpLimits,
                listen: settings.listen
            )
        } catch {
            throw error.problem
        }
    }
}

extension ImaginedRequestError {
    fileprivate var problem: ProblemDocument {
        switch self {
        case .unreadable: .badRequest(description)
        case .refused: ProblemDocument(422, description)
        }
    }
}
