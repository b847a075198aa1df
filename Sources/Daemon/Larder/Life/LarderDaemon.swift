import Admin
import EventLoops
import Fleet
import Glibc
import HTTPSemantics
import HTTPServer
import Logging
import Proxy
import Recording
import Settings
import Store
import Synchronization
import Upstream

/// The whole daemon: loops, store, proxy, and the servers for data and administration.
///
/// Its life:
/// 1. `init`: opens everything that can fail, the store's lock before any socket;
/// 2. `run`: serves until a signal stops it;
/// 3. drain: accepts no new connections, finishes responses in flight, flushes and closes the store. A second signal ends the
///    process at once.
///
/// It belongs to the thread that runs it: that thread's loop has the signals and the watchdog, and otherwise sleeps.
final class LarderDaemon {
    private let settings: Configuration
    private let role: RecordingRole
    private let log: Logger
    private let notifier: SystemdNotifier
    private let loops: Loops
    private let core: DaemonCore
    private let data: Server
    private let admin: Server
    private var signals: [EventSignal] = []
    private var timers: [EventTimer] = []
    private var isStopping = false
    private let accessLog: CurrentAccessLog
    private let listeners: Listeners
    private let recordings: RecordingParts
    /// Receives signals first; returns true for those that are not for the daemon.
    var takesSignal: (Int32) -> Bool = { _ in false }
    var addresses: (data: [Address], admin: [Address]) { listeners.addresses }

    /// The event loops, each with a thread of its own except `main`.
    private struct Loops {
        let main: EventLoop
        let workers: [EventLoop]
        let upstream: EventLoop
        let admin: EventLoop

        var all: [EventLoop] { [main] + threaded }
        /// Those that have a thread of their own.
        var threaded: [EventLoop] { [admin] + workers + (upstream === workers.first ? [] : [upstream]) }

        init(workers count: Int) throws(LoopError) {
            main = try EventLoop(name: "larder")
            admin = try EventLoop(name: "admin")
            workers = try (0..<count).map { index throws(LoopError) in try EventLoop(name: "worker-\(index)") }
            // A single worker is also the upstream's loop: then no miss changes threads.
            upstream = count == 1 ? workers[0] : try EventLoop(name: "upstream")
        }
    }

    init(
        _ settings: Configuration,
        environment: [String: String],
        role: RecordingRole = .none,
        source: ConfigSource? = nil,
        remembersMode: Bool = false,
        logForm: LogForm
    ) throws {
        (self.settings, self.role) = (settings, role)
        log = Logger(label: "larder")
        notifier = SystemdNotifier(environment: environment)
        if role.asksUpstreams { try CredentialKeeper.obtain(for: settings) }
        let inherited = try ListenDescriptors.take(environment: environment)
        loops = try Loops(workers: settings.workers ?? min(4, max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))))
        core = try DaemonCore(
            settings,
            version: Version.text,
            workers: loops.workers.count,
            upstreamLoop: loops.upstream,
            adminLoop: loops.admin,
            log: log,
            asksUpstreams: role.asksUpstreams,
            remembersMode: remembersMode,
            adminToken: environment["LARDER_ADMIN_TOKEN"].flatMap { $0.isEmpty ? nil : $0 }
        )
        recordings = try RecordingParts(role, core, log: log)
        let (core, loops, log, recordings) = (core, loops, log, recordings)
        core.setState { ($0.replayer, $0.recordings) = (recordings.replayer, recordings.made) }
        accessLog = CurrentAccessLog(settings.accessLog, of: core, form: logForm, log: log)
        let notice: @Sendable (HTTPNotice) -> Void = { notice in
            let details = notice.details.reduce(into: Logger.Metadata()) { $0[$1.key] = "\($1.value)" }
            log.error("\(notice.message)", metadata: details)
        }
        let meters = loops.workers.indices.map { core.metrics.worker($0) }
        let descriptors = DescriptorLimit.raised()
        let limits = DescriptorLimit.clientLimits(of: settings, within: descriptors, log)
        data = Server(loops: loops.workers, limits: limits, notice: notice, meters: meters) { index in
            ProxyHandler(
                proxy: core.proxy,
                loop: loops.workers[index],
                metrics: core.metrics.worker(index),
                interceptor: recordings.interceptor
            )
        }
        let service = AdminService(core)
        // A copy of a store may be as large as the store; the admin side itself limits other bodies.
        var adminLimits = HTTPLimits()
        adminLimits.maxBody = 1 << 42
        adminLimits.maxConnections = DescriptorLimit.adminConnections(within: descriptors)
        // Whoever has no token must not keep those out who have one.
        adminLimits.idleBeforeClosing = .zero
        admin = Server(loops: [loops.admin], limits: adminLimits, notice: notice) { _ in
            AdminHandler(service: service)
        }
        for loop in loops.threaded { loop.start() }
        listeners = Listeners(data: data, admin: admin, log: log)
        introduce()
        do {
            try listeners.open(settings, inherited)
        } catch {
            recordings.close()
            throw error
        }
        Self.announceAddresses(core, listeners)
        follow(source, within: descriptors)
    }

    /// Says where it listens: to the admin side, and to those who find the store locked.
    private static func announceAddresses(_ core: DaemonCore, _ listeners: Listeners) {
        let addresses = listeners.addresses
        let admins = addresses.admin
        if let first = admins.first { core.store.announce(admin: "\(first)") }
        let browserAddress = admins.lazy.compactMap(\.forBrowsers).first
        core.setState { ($0.addresses, $0.browserAddress) = (addresses, browserAddress) }
    }

    /// Has credentials, sockets, limits and logs follow the config when it is read again.
    private func follow(_ source: ConfigSource?, within descriptors: Int) {
        let (core, data, listeners, accessLog) = (core, data, listeners, accessLog)
        let (log, notifier) = (log, notifier)
        var source = source
        source?.prepare = { settings in
            try CredentialKeeper.obtain(for: settings)
            let change = try listeners.change(to: settings)
            return (
                commit: {
                    change.commit()
                    Self.announceAddresses(core, listeners)
                    data.setLimits(DescriptorLimit.clientLimits(of: settings, within: descriptors, log))
                    LogSetup.level = Logger.Level(settings.log.level)
                    accessLog.apply(settings.accessLog)
                    notifier.send(.serving(settings))
                },
                abandon: change.abandon
            )
        }
        core.setState { [source] in $0.configSource = source }
    }

    private func introduce() {
        log.info(
            "larder \(Version.text)",
            metadata: [
                "libcurl": "\(CurlLibrary.version)", "sqlite": "\(ObjectStore.libraryVersion)",
                "libevent": "\(EventSystem.version)", "workers": "\(loops.workers.count)",
                "mode": "\(settings.mode.rawValue)",
            ]
        )
        for upstream in settings.upstreams {
            var metadata: Logger.Metadata = [
                "name": "\(upstream.name)", "url": "\(upstream.url)", "models": "\(upstream.models.count)",
                "routes": "\(upstream.routes.count)",
            ]
            if !upstream.prefix.isEmpty { metadata["prefix"] = "\(upstream.prefix)" }
            log.info("upstream", metadata: metadata)
        }
        let (store, path, log) = (core.store, settings.store.path ?? "", log)
        Task {
            guard let count = try? await store.count() else { return }
            log.info(
                "store",
                metadata: [
                    "path": "\(path)", "size": "\(HumanText.bytes(Int(count.bytes)))", "objects": "\(count.objects)",
                    "documents": "\(count.documents)",
                ]
            )
        }
    }

    var summary: RecordingSummary? { recordings.summary }
    /// The requests that a replay did not find, and the recorded ones that were not requested; nil if nothing is replayed.
    var report: (missing: [Replayer.Miss], unused: [String])? { recordings.replayer?.report }
    var adminToken: String { core.token.string }

    /// Serves until a signal; `begun` is called once signals are handled.
    func run(begun: (LarderDaemon) -> Void) {
        // The loop does not run yet, so this thread may put work on it.
        begin()
        begun(self)
        loops.main.run()
    }

    private func begin() {
        for number in [SIGTERM, SIGINT] {
            signals.append(loops.main.onSignal(number) { [unowned self] in self.stop(number) })
        }
        for number in HarmlessSignals.handled {
            signals.append(loops.main.onSignal(number) { [unowned self] in self.handle(number) })
        }
        HarmlessSignals.release()
        let cache = core.proxy.cache
        timers.append(loops.main.every(.seconds(10)) { cache.reportUse() })
        if role.asksUpstreams {
            let keeper = CredentialKeeper(core, log)
            timers.append(loops.main.every(CredentialKeeper.interval) { keeper.renew() })
        }
        timers.append(loops.main.every(CredentialKeeper.interval) { [core] in core.renewToken() })
        let traffic = core.traffic
        timers.append(loops.main.every(TrafficHistory.interval) { traffic.turn() })
        let watchdog = Watchdog(notifier: notifier, members: loops.all.map { Watchdog.Member($0) })
        if let watchdog {
            let log = log
            timers.append(
                watchdog.start(on: loops.main) {
                    log.error(
                        "event loops hang; systemd restarts the daemon if this lasts",
                        metadata: ["loops": "\($0)"]
                    )
                }
            )
        }
        recordings.begin(core)
        core.setState { $0.unreadiness = nil }
        notifier.send(.ready, .serving(settings))
    }

    /// Reads the config again, or reopens the file of the access log.
    private func handle(_ signal: Int32) {
        if takesSignal(signal) { return }
        switch signal {
        case SIGHUP:
            // Its terminal is closed: it ends with it, like every job of the shell.
            HarmlessSignals.hasLostTerminal ? stop(signal) : reload()
        case SIGUSR1:
            guard let file = accessLog.reopen() else { return ignore(signal) }
            log.notice("the access log is reopened", metadata: ["file": "\(file)"])
        default: ignore(signal)
        }
    }

    private func ignore(_ signal: Int32) {
        log.notice("signal ignored", metadata: ["signal": "\(HarmlessSignals.name(of: signal))"])
    }

    private func reload() {
        let (core, log, notifier) = (core, log, notifier)
        notifier.send(.reloading)
        Task {
            defer { notifier.send(.ready) }
            while true {
                do throws(ConfigurationReplacementError) {
                    _ = try await core.reload()
                    return
                } catch .underWay {
                    // It may have read the config before its last change.
                    try? await Task.sleep(for: .milliseconds(100))
                } catch .noSource {
                    let reason = ConfigurationReplacementError.noSource
                    log.notice("signal ignored: \(reason)", metadata: ["signal": "SIGHUP"])
                    return
                } catch {
                    // It is in the log.
                    return
                }
            }
        }
    }

    private func stop(_ signal: Int32) {
        if takesSignal(signal) { return }
        guard !isStopping else {
            log.notice("second signal: stopping at once")
            _exit(128 + signal)
        }
        stop()
    }

    /// Stops it from any thread, as a signal would; valid while it runs.
    var stopper: @Sendable () -> Void {
        let daemon = LoopReference(self, on: loops.main)
        return { daemon.enqueue { if !$0.isStopping { $0.stop() } } }
    }

    private func stop() {
        isStopping = true
        log.notice("stopping: finishing requests in flight; a second signal stops at once")
        core.setState { $0.unreadiness = "the daemon is stopping" }
        notifier.send(.stopping)
        core.proxy.endStreams()
        let (data, admin, core, loops, recordings) = (data, admin, core, loops, recordings)
        let (limit, log, accessLog) = (core.settings.limits.drain, log, accessLog)
        let deadline = ContinuousClock.now + limit
        Task {
            await data.drain(within: limit)
            // The last client has its response; the cache may get it a moment later.
            await core.proxy.finishTurn()
            recordings.close()
            await core.fleet?.stop(within: .milliseconds(200))
            // Clients resume from the last number they saw, and get the last commits then.
            core.changeStreams.close()
            core.requestStreams.close()
            core.proxy.cache.reportUse()
            // The store has been committing meanwhile; if clients took all the time, it gets some more.
            let rest = max(deadline - .now, limit / 10)
            let lost = await core.store.close(within: rest)
            // The responses of a replay are in the recording anyway.
            if lost > 0, recordings.replayer == nil {
                log.warning(
                    "responses were not stored: there was no time left; a longer timeouts.drain allows more",
                    metadata: ["responses": "\(lost)"]
                )
            }
            await accessLog.flush(within: .seconds(1))
            await admin.drain(within: .milliseconds(200))
            log.notice("stopped")
            loops.main.stop()
        }
    }
}

/// Runs the daemon until a signal stops it; throws what prevents it from starting.
///
/// - Parameters:
///   - source: where the config is read again; nil if it is not.
///   - begun: called once it listens and handles signals.
///   - ended: called when it has stopped.
func runDaemon(
    _ settings: Configuration,
    role: RecordingRole = .none,
    source: ConfigSource? = nil,
    remembersMode: Bool = false,
    logForm: LogForm = .suitable(for: Environment.variables),
    begun: (LarderDaemon) -> Void = { _ in },
    ended: (LarderDaemon) -> Void = { _ in }
) throws {
    // A client that disconnects must not end the process; neither libevent nor libcurl prevents that.
    signal(SIGPIPE, SIG_IGN)
    // A file at the limit on its size (`LimitFSIZE`, `ulimit -f`) is like a full disk: the write fails, and that is handled.
    signal(SIGXFSZ, SIG_IGN)
    let daemon = try LarderDaemon(
        settings,
        environment: Environment.variables,
        role: role,
        source: source,
        remembersMode: remembersMode,
        logForm: logForm
    )
    daemon.run(begun: begun)
    ended(daemon)
    // Never released: objects on the loops may only be destroyed on their threads, which end with the process.
    _ = Unmanaged.passRetained(daemon)
}

extension Address {
    /// Host and port as a browser on this machine opens them; nil if none can.
    var forBrowsers: String? {
        switch self {
        case .unix: nil
        case .tcp("0.0.0.0", let port), .tcp("::", let port): "127.0.0.1:\(port)"
        case .tcp: "\(self)"
        }
    }
}

/// Signals that end a process by default; daemons reload their config or reopen their logs at them.
enum HarmlessSignals {
    /// The signals that the daemon handles; those ignored at its start, for example by `nohup`, stay ignored.
    static let handled = [SIGHUP, SIGUSR1, SIGUSR2].filter { number in
        var action = sigaction()
        guard sigaction(number, nil, &action) == 0 else { return true }
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            != unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Whether it started with a terminal that could end the daemon by closing.
    private static let hadTerminal = hasTerminal

    private static var hasTerminal: Bool {
        let descriptor = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        close(descriptor)
        return true
    }

    /// Whether the daemon's terminal has been closed since its start.
    static var hasLostTerminal: Bool { hadTerminal && !hasTerminal }

    /// Lets them wait until the daemon can handle them; called before any other thread starts, as threads inherit this.
    static func hold() {
        _ = hadTerminal
        mask(SIG_BLOCK)
    }

    /// Delivers to this thread those that waited, and all that follow.
    static func release() { mask(SIG_UNBLOCK) }

    private static func mask(_ how: Int32) {
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in handled { sigaddset(&signals, number) }
        pthread_sigmask(how, &signals, nil)
    }

    static func name(of signal: Int32) -> String {
        [SIGHUP: "SIGHUP", SIGUSR1: "SIGUSR1"][signal] ?? "SIGUSR2"
    }
}

/// The descriptors 0, 1 and 2, which may be closed when the daemon is started.
enum StandardDescriptors {
    /// Opens closed ones on `/dev/null`: otherwise the next socket would become 2, and log lines would go to a client.
    static func open() {
        for number in Int32(0)...2 where fcntl(number, F_GETFD) < 0 {
            // This opens the lowest free number, which is this one.
            _ = Glibc.open("/dev/null", number == 0 ? O_RDONLY : O_WRONLY)
        }
    }
}

/// The limit on open descriptors: clients' connections must leave enough for the store and the upstreams.
enum DescriptorLimit {
    /// Raises the limit as far as the process may; returns it.
    static func raised() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return .max }
        if limit.rlim_cur < limit.rlim_max {
            var raised = limit
            raised.rlim_cur = limit.rlim_max
            if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &raised) == 0 { limit = raised }
        }
        return Int(clamping: limit.rlim_cur)
    }

    /// The number of connections to the admin side: clients of the upstreams cannot take its place.
    static func adminConnections(within limit: Int) -> Int { max(1, min(4_096, limit / 8)) }

    /// The limits of clients in a config, with as many connections as fit within a limit on descriptors.
    static func clientLimits(of settings: Configuration, within limit: Int, _ log: Logger) -> HTTPLimits {
        var limits = settings.limits.http
        let upstream = settings.limits.upstream
        let perUpstream = UpstreamSlots.total(upstream.maxConnectionsPerHost) + UpstreamSlots.total(upstream.maxUploads)
        limits.maxSurplus = min(1_024, limit / 8)
        // Loops, listeners, the store's files and its readers take some fifty descriptors.
        let others = 64 + limits.maxSurplus + adminConnections(within: limit) + settings.upstreams.count * perUpstream
        limits.maxConnections = max(1, min(limits.maxConnections, max(limit - others, limit / 8)))
        if limits.maxConnections < settings.limits.http.maxConnections {
            log.warning(
                "fewer client connections than configured: the limit of open files is too low; raise LimitNOFILE or ulimit -n",
                metadata: ["connections": "\(limits.maxConnections)", "descriptors": "\(limit)"]
            )
        }
        return limits
    }
}
