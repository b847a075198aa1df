import Admin
import EventLoops
import Glibc
import HTTPSemantics
import Logging
import Mapping
import Proxy
import Recording
import Settings
import Store
import Synchronization

/// Everything of the daemon that has no socket, opened and wired.
final class Parts: Sendable {
    let settings: Configuration
    let upstreams: [ProxiedUpstream]
    let store: ObjectStore
    let cache: ResponseCache
    let proxy: ProxyCore
    let modes: ModeSwitch
    let metrics: Metrics
    let changeStreams: ChangeStreams?
    let requests = RequestLog()
    let requestStreams: RequestStreams?
    let token: AdminToken
    let logins: DashboardLogins
    let traffic: TrafficHistory
    /// The admin address that a browser can open, once it is bound.
    let browserAddress = Mutex<String?>(nil)
    let readinessSwitch = ReadinessSwitch()
    let recordingSwitch = RecordingSwitch()

    /// Opens the store, under its lock, and the keys beside it; throws what a person has to fix.
    ///
    /// - Parameter asksUpstreams: whether there is any way to an upstream; without, none of its clients is ever made.
    init(
        _ settings: Configuration,
        workers: Int,
        upstreamLoop: EventLoop,
        adminLoop: EventLoop,
        log: Logger,
        asksUpstreams: Bool = true
    ) throws {
        self.settings = settings
        var compiled: [ProxiedUpstream] = []
        for (index, upstream) in settings.upstreams.enumerated() {
            compiled.append(ProxiedUpstream(index: index, try CompiledUpstream(upstream)))
        }
        upstreams = compiled
        guard let path = settings.store.path else { preconditionFailure("the command line names a store") }
        try StoreFolder.prepare(forStoreAt: path)
        let models = Dictionary(uniqueKeysWithValues: compiled.map { ($0.storeKey, $0.rules.models) })
        var configuration = settings.storeConfiguration(path: path, models: models)
        configuration.notify = { log.log(level: $0.isRelief ? .notice : .warning, "\($0)") }
        let (store, notices) = try ObjectStore.open(configuration)
        for notice in notices { log.warning("\(notice)") }
        self.store = store
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
        let key = try PrincipalKey.open(path: folder + "principal.key")
        let (token, origin) = try AdminToken.prepare(at: AdminToken.path(besideStore: path))
        if case .replaced(let mode) = origin {
            log.warning(
                "other users could read the admin token; a new one was made",
                metadata: ["mode": "\(String(mode, radix: 8))"]
            )
        }
        self.token = token
        logins = DashboardLogins(token: token)

        let memory = MemoryTier<ReadyResponse>(capacity: settings.memory.maximumSize)
        let watch = LiveWatch()
        let principals = Principals(key: key, store: store)
        // What is served comes before those who follow it.
        store.setListener(ChangeListeners(memory, watch, principals))
        cache = ResponseCache(store: store, memory: memory, watch: watch, log: log)
        modes = ModeSwitch(settings.mode)
        // One more for the responses of the upstream loop.
        metrics = Metrics(workers: workers + 1, startTime: ProcessFigures.wallClock())
        traffic = TrafficHistory(metrics)
        changeStreams = ChangeStreams(store: store, loop: adminLoop, metrics: metrics)
        requestStreams = RequestStreams(requests, loop: adminLoop)
        let proxy = ProxyCore(
            loop: upstreamLoop,
            settings: settings,
            upstreams: asksUpstreams ? compiled : [],
            cache: cache,
            principals: principals,
            modes: modes,
            metrics: metrics,
            outcomes: metrics.worker(workers),
            requests: requests,
            log: log
        )
        self.proxy = proxy
        // Ahead of everything else that the loop will do, requests among it.
        upstreamLoop.enqueue { proxy.assumeIsolated { $0.start() } }
    }
}

/// Whether the daemon can answer requests; any thread.
final class ReadinessSwitch: Sendable {
    private let state = Mutex(Readiness.notReady("the daemon is starting"))

    var current: Readiness { state.withLock { $0 } }

    func set(_ readiness: Readiness) {
        state.withLock { $0 = readiness }
    }
}

/// The folder of the store: made at the first start, for its owner alone.
///
/// systemd makes `StateDirectory` itself, with the mode that the unit says.
enum StoreFolder {
    /// Makes what is missing of the folders above a path.
    static func prepare(forStoreAt path: String) throws(StoreFolderError) {
        var folder = ""
        for component in path.split(separator: "/", omittingEmptySubsequences: false).dropLast() {
            folder += component + "/"
            if folder == "/" || mkdir(folder, 0o700) == 0 { continue }
            let code = errno
            guard code == EEXIST else { throw StoreFolderError(folder: folder, reason: SystemCall.message(code)) }
        }
    }
}

/// Why there is no place for the store.
struct StoreFolderError: Error, CustomStringConvertible {
    let folder: String
    let reason: String

    var description: String { "cannot create the store's folder \(folder): \(reason)" }
}

/// What the admin side asks and does.
extension Parts: AdminContext {
    var version: String { Version.text }

    var readiness: Readiness { readinessSwitch.current }

    var replayer: Replayer? { recordingSwitch.current.replayer }

    var recordings: Recordings? { recordingSwitch.current.recordings }

    var copies: StoreCopies? { StoreCopies(proxy: proxy) }

    var models: [String: Models] {
        Dictionary(uniqueKeysWithValues: upstreams.map { ($0.name, $0.rules.models) })
    }

    var origins: [UpstreamOrigin] {
        settings.upstreams.map {
            UpstreamOrigin(name: $0.name, url: $0.url.description, routes: $0.routes.map(\.declaration.path))
        }
    }

    var dashboardURL: String? { browserAddress.withLock { $0 }.map { "http://\($0)/" } }

    func inspect(_ document: DocumentID, in view: View) async throws(StoreError) -> ShownDocument? {
        // The port may be one that the kernel chose; links in bodies are then shown with the one of the config.
        let authority = settings.listen.first.map { "\($0)" } ?? "localhost"
        return try await cache.inspect(document, in: view, of: upstreams, at: authority)
    }

    func figures() async throws(StoreError) -> StoreFigures {
        let count = try await store.count()
        let statistics = store.statistics
        let memory = cache.memory.statistics
        var figures = StoreFigures()
        figures.objects = count.objects
        figures.documents = count.documents
        figures.bytes = Int(count.bytes)
        figures.memoryEntries = memory.responses
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
