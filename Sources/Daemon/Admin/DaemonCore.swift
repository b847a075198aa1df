package import EventLoops
package import Fleet
import Glibc
package import HTTPSemantics
package import Logging
import Mapping
package import Proxy
package import Recording
package import Settings
package import Store
import Synchronization

/// The daemon without its sockets, opened and wired; the admin side reads and controls it.
package final class DaemonCore: Sendable {
    let version: String
    package let store: ObjectStore
    package let proxy: ProxyCore
    let modes: ModeSwitch
    /// Nil if a mode that is set at run time ends with the daemon.
    let rememberedMode: RememberedMode?
    package let metrics: Metrics
    package let requests = RequestLog()
    package let changeStreams: ChangeStreams
    package let requestStreams: RequestStreams
    package let token: AdminToken
    let logins: DashboardLogins
    package let traffic: TrafficHistory
    let storeTrouble: StoreTrouble
    /// Nil without a fleet, and in a replay.
    package let fleet: FleetMember?
    private let stateNow = Mutex(State())
    /// Whether a configuration is replacing the current one.
    let isReplacing = Atomic(false)

    package struct State: Sendable {
        /// Why it cannot serve requests yet, or no longer, as a sentence; nil if it can.
        package var unreadiness: String? = "the daemon is starting"
        package var replayer: Replayer?
        /// The recordings that are started and stopped while it runs; nil if it is for one recording.
        package var recordings: Recordings?
        /// Where the config comes from; nil if it is not read again, as in a replay.
        package var configSource: ConfigSource?
        /// The keys of the config that take effect at a restart only, as of the last reload.
        var keysForRestart: [String] = []
        /// When and why the last reload failed, in Unix seconds; nil if it did not.
        var failedReload: (time: Double, error: ConfigurationReplacementError)?
        /// Why the credentials of these upstreams are no longer current; a sentence for each.
        package var staleCredentials: [String: String] = [:]
        /// By webhook, why its secret cannot be read again.
        package var staleWebhooks: [String: String] = [:]
        /// Why the admin token is no longer the one in its file; a sentence.
        var staleToken: String?
        package var addresses: (data: [Address], admin: [Address]) = ([], [])
        /// Host and port of the admin side for a browser; nil if it has no such address.
        package var browserAddress: String?
    }

    var state: State { stateNow.withLock { $0 } }

    package func setState(_ change: (inout sending State) -> Void) { stateNow.withLock { change(&$0) } }

    /// Opens the store, under its lock, and the keys beside it; throws errors that the operator must fix.
    ///
    /// - Parameters:
    ///   - asksUpstreams: whether upstreams may be asked; otherwise no client for them is ever created.
    ///   - remembersMode: whether a mode that is set at run time survives a restart.
    ///   - adminToken: a token that counts as much as the one beside the store.
    package init(
        _ settings: Configuration,
        version: String,
        workers: Int,
        upstreamLoop: EventLoop,
        adminLoop: EventLoop,
        log: Logger,
        asksUpstreams: Bool = true,
        remembersMode: Bool = false,
        adminToken: String? = nil
    ) throws {
        self.version = version
        let compiled = try CompiledConfiguration(settings)
        guard let path = settings.store.path else { preconditionFailure("the command line names a store") }
        // At the first start, for its owner only. systemd creates `StateDirectory` itself, with the mode in the unit.
        let folder = pathBeside(path, "")
        if let failed = makeFolders(String(folder.dropLast())) {
            throw StoreFolderError(failed.folder + "/", code: failed.code)
        }
        var configuration = StoreConfiguration(settings, path: path, compiled.upstreams)
        let storeTrouble = StoreTrouble()
        self.storeTrouble = storeTrouble
        configuration.notify = { notice in
            storeTrouble.record(notice)
            log.log(level: notice.isRelief ? .notice : .warning, "\(notice)")
        }
        configuration.committed = { log.committed($0) }
        let (store, notices) = try ObjectStore.open(configuration)
        for notice in notices { log.warning("\(notice)") }
        self.store = store
        let fleet = asksUpstreams ? FleetMember(compiled, beside: store, log: log) : nil
        self.fleet = fleet
        let key = try Self.principalKey(settings, fleet, path: pathBeside(path, "principal.key"), log)
        let (token, origin) = try AdminToken.prepare(at: AdminToken.path(besideStore: path))
        if case .replaced(let mode) = origin {
            log.warning(
                "other users could read the admin token; a new one was made",
                metadata: ["mode": "\(String(mode, radix: 8))"]
            )
        }
        if let adminToken { try token.accept(adminToken) }
        self.token = token
        logins = DashboardLogins(token: token)

        let memory = MemoryTier<ReadyResponse>(capacity: settings.memory.maximumSize)
        let watch = LiveWatch()
        let principals = PrincipalResolver(key: key, store: store)
        // Memory is updated before the streams that follow it.
        store.setListener(ChangeListeners(memory, watch, principals))
        rememberedMode = remembersMode ? RememberedMode(besideStore: path) : nil
        let mode = rememberedMode?.mode(configured: settings.mode) ?? settings.mode
        if mode != settings.mode {
            log.notice("the mode is \(mode.rawValue), as it was set before the restart; `larder mode` changes it")
        }
        modes = ModeSwitch(mode)
        // One more for the responses of the upstream loop.
        metrics = Metrics(workers: workers + 1, startTime: ProcessFigures.wallClock())
        traffic = TrafficHistory(metrics)
        changeStreams = ChangeStreams(store: store, loop: adminLoop, metrics: metrics)
        requestStreams = RequestStreams(requests, loop: adminLoop)
        let proxy = ProxyCore(
            loop: upstreamLoop,
            configuration: CurrentConfiguration(compiled),
            asksUpstreams: asksUpstreams,
            cache: ResponseCache(store: store, memory: memory, watch: watch, log: log),
            principals: principals,
            modes: modes,
            metrics: metrics,
            outcomes: metrics.worker(workers),
            requests: requests,
            fleet: fleet,
            log: log
        )
        self.proxy = proxy
        // This runs on the loop before everything else, including requests.
        upstreamLoop.enqueue { proxy.assumeIsolated { $0.start() } }
        fleet?.start(proxy)
    }

    /// The key that makes principals: the store's own, or that of all machines of a fleet.
    ///
    /// What the store has of principals by another key stays, but no request finds it until that key is used again.
    private static func principalKey(_ settings: Configuration, _ fleet: FleetMember?, path: String, _ log: Logger)
        throws -> PrincipalKey
    {
        guard let fleet, let wanted = settings.fleet else { return try PrincipalKey.open(path: path) }
        if fleet.isNew(hasOwnKey: access(path, F_OK) == 0) {
            log.notice(
                "principals are made with the fleet's key now: private responses that were stored before are not found any more"
            )
        }
        return FleetMember.principalKey(wanted)
    }

    /// Reads the admin token again, which may have been replaced in its file; blocks for the reading of a small file.
    package func renewToken() {
        var failure: String?
        do throws(SecretFileError) {
            if try token.renew() {
                logins.endAll()
                proxy.log.notice(
                    "the admin token was replaced in its file; the former one and all logins no longer count"
                )
            }
        } catch { failure = error.description }
        let isNews = stateNow.withLock { state in
            defer { state.staleToken = failure }
            return state.staleToken != failure
        }
        if isNews, let failure { proxy.log.warning("the admin token is the former one: \(failure)") }
    }

    package var settings: Configuration { proxy.configuration.value.settings }
    package var upstreams: [ProxiedUpstream] { proxy.configuration.value.upstreams }
    var models: [String: Models] { Dictionary(uniqueKeysWithValues: upstreams.map { ($0.name, $0.rules.models) }) }
    var dashboardURL: String? { state.browserAddress.map { "http://\($0)/" } }

    var upstreamStates: [UpstreamsResponse.Upstream] {
        let now = Int64(ProcessFigures.wallClock() * 1_000_000)
        let known = Dictionary(metrics.allUpstreams.map { ($0.name, $0.metrics.health) }) { first, _ in first }
        return settings.upstreams.map {
            .init(name: $0.name, origin: "\($0.url)", known[$0.name] ?? UpstreamHealth(), at: now)
        }
    }

    /// A stored document in one view; nil if it is gone.
    func inspect(_ document: DocumentID, in view: View) async throws(StoreError) -> DocumentView? {
        // The kernel may have chosen the port; links in bodies then show the config's.
        let authority = settings.listen.first.map { "\($0)" } ?? "localhost"
        return try await proxy.cache.inspect(document, in: view, of: upstreams, at: authority)
    }

    /// The routes with this path in the config as conditions on documents, one for each upstream with it; fails if there is none.
    func routes(spelled path: String, of wanted: String? = nil) throws -> [RouteFilter] {
        let found = upstreams.filter { wanted == nil || $0.name == wanted }.compactMap { upstream -> RouteFilter? in
            let routes = upstream.settings.routes
            let indices = routes.indices.filter { routes[$0].declaration.path == path }
            guard !indices.isEmpty else { return nil }
            return RouteFilter(upstream: upstream.name) { url in
                let (path, query) = (upstream.route(ofURL: url), ProxiedUpstream.query(ofURL: url))
                let match = upstream.rules.route(
                    method: CacheKey.method(ofURL: url),
                    path: path,
                    query: query,
                    status: nil
                )
                return match.map { indices.contains($0.index) } ?? false
            }
        }
        guard !found.isEmpty else {
            let known = upstreams.filter { wanted == nil || $0.name == wanted }.flatMap { upstream in
                upstream.settings.routes.map(\.declaration.path)
            }
            throw ProblemDocument.badRequest(
                Self.complaint("the config has no route", path, Set(known).sorted(), under: wanted)
            )
        }
        return found
    }

    /// The route with this path, of one upstream.
    func route(spelled path: String, of wanted: String?) throws -> RouteFilter {
        let found = try routes(spelled: path, of: wanted)
        guard found.count == 1 else {
            let names = found.map(\.upstream).joined(separator: ", ")
            throw ProblemDocument.badRequest(
                "several upstreams have the route \(path): \(names); name one of them, too"
            )
        }
        return found[0]
    }

    private static func complaint(_ what: String, _ path: String, _ known: [String], under upstream: String?) -> String
    {
        let meant = Suggestion.nearest(to: path, among: known).map { "; did you mean \($0)?" } ?? ""
        return "\(what) \(path)" + (upstream.map { " under \($0)" } ?? "")
            + (known.isEmpty ? ", nor any other" : ": it has \(known.firstTwenty)\(meant)")
    }
}

extension [String] {
    /// A list for a sentence, which is cut where it is long.
    var firstTwenty: String { prefix(20).joined(separator: ", ") + (count > 20 ? " and \(count - 20) more" : "") }
}

extension FleetMember {
    fileprivate convenience init?(_ compiled: CompiledConfiguration, beside store: ObjectStore, log: Logger) {
        guard let settings = compiled.settings.fleet else { return nil }
        self.init(
            settings,
            upstreams: compiled.upstreams.filter { settings.shares(upstreamNamed: $0.name) }.map(\.storeKey),
            besideStore: compiled.settings.store.path ?? "",
            now: { store.clock.now() },
            log: log
        )
    }
}

struct RouteFilter: Sendable {
    let upstream: String
    /// Whether the route covers this path and query, as the store spells them.
    let covers: @Sendable (String) -> Bool
}

package struct StoreFolderError: Error, CustomStringConvertible {
    package let description: String

    package init(_ folder: String, code: Int32) {
        description = "cannot create the store's folder \(folder): \(systemMessage(code))"
    }
}
