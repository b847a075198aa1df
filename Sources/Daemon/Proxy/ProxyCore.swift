import CachePolicy
package import EventLoops
import HTTPSemantics
package import HTTPServer
package import Logging
package import Settings
package import Store
import Synchronization
import Upstream

/// The path of every request that memory alone could not answer.
///
/// ```
/// serve ─ write? ──────────────────────────────────────────► write   (RunningWrite, law 10)
///   └─ look up ─ memory, then store
///        └─ decide ─┬─ answer                               → reply
///                   ├─ answer, refresh behind it            → reply, fetch without a client
///                   ├─ ask                                  → join or start a fetch
///                   └─ refuse                               → problem document
/// ```
///
/// The hit itself never comes here: `ProxyHandler` answers it on the worker's own loop.
/// An actor on the upstream loop, so that fetches need no locks; whatever waits for the store waits here, never on a worker.
package actor ProxyCore {
    package nonisolated let loop: EventLoop
    package nonisolated let cache: ResponseCache
    package nonisolated let principals: PrincipalResolver
    package nonisolated let modes: ModeSwitch
    nonisolated let metrics: Metrics
    package nonisolated let requests: RequestLog
    package nonisolated let settings: Configuration
    private let upstreams: [ProxiedUpstream]
    /// Counts what is answered here, as a worker's counts what is answered there.
    let outcomes: WorkerMetrics
    let log: Logger
    private var started: Fetches?
    private var followed: LiveDocuments?
    /// Look-ups on disk that are under way (`Proxy+LookUp`).
    var lookUps: [LookUp: [CheckedContinuation<DiskFinding, Never>]] = [:]
    /// How many writes could not be stored so far.
    var unsettledCount = 0

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.executor.asUnownedSerialExecutor() }

    /// Returns once the loop is done with what it was at: a response whose end its client has is kept in the same turn.
    package func finishTurn() {}

    package init(
        loop: EventLoop,
        settings: Configuration,
        upstreams: [ProxiedUpstream],
        cache: ResponseCache,
        principals: PrincipalResolver,
        modes: ModeSwitch,
        metrics: Metrics,
        outcomes: WorkerMetrics,
        requests: RequestLog = RequestLog(),
        log: Logger
    ) {
        self.loop = loop
        self.requests = requests
        self.settings = settings
        self.upstreams = upstreams
        self.cache = cache
        self.principals = principals
        self.modes = modes
        self.metrics = metrics
        self.outcomes = outcomes
        self.log = log
    }

    /// Takes over a request from a worker; any thread.
    package nonisolated func accept(_ exchange: Exchange, _ incoming: IncomingRequest) {
        Task(executorPreference: loop.taskExecutor) { await self.serve(exchange, incoming) }
    }

    /// Answers one request.
    func serve(_ exchange: Exchange, _ incoming: IncomingRequest) async {
        let hasher = cache.store.hasher
        let otherFields = principals.otherFields(of: incoming)
        do {
            let principal = try await principals.identify(
                incoming.parts.credentials,
                quick: incoming.quickDigest,
                of: incoming.upstream
            )
            let message = exchange.request.asking(incoming.live)
            let request = ProxyRequest(
                message,
                incoming,
                principal: principal,
                otherFields: otherFields,
                hasher: hasher
            )
            if case .over = incoming.live {
                exchange.reply.endEvents(request)
            } else if let mode = incoming.live {
                follow(request, exchange.reply, mode)
            } else if MethodFacts.isAnswerable(request.message.method), request.message.body == nil {
                await retrieve(request, exchange.reply)
            } else if MethodFacts.isSafe(request.message.method) {
                pass(request, exchange.reply)
            } else {
                await write(request, exchange.reply)
            }
        } catch {
            log.log(level: error.logLevel, "a principal could not be stored", metadata: ["error": "\(error)"])
            // Whose data it is cannot be noted: it is fetched for this request alone.
            let request = ProxyRequest(
                exchange.request,
                incoming,
                principal: PrincipalID.anonymous,
                otherFields: otherFields,
                hasher: hasher
            )
            guard MethodFacts.isSafe(request.message.method), incoming.live == nil else {
                return refuse(.storeFailed(error), exchange.reply)
            }
            pass(request.passed, exchange.reply)
        }
    }

    // MARK: Retrievals

    private func retrieve(_ request: ProxyRequest, _ reply: Reply) async {
        // The upstream, which alone evaluates such a condition, would say so of a tag that it does not know.
        if request.message.fields.contains("if-match"), request.conditions.matchesOwnTag, modes.current == .online {
            await expire(request)
            return refuse(.ownTagInCondition, reply)
        }
        // An origin's own conditions are the origin's to evaluate; where it cannot be asked, a cache may ignore them
        // (RFC 9110 §13.1.1).
        if request.isForOrigin, modes.current == .online { return pass(request.passed, reply) }
        let (decision, variants) = await decide(request)
        switch decision {
        case .serve(let ready, let cacheUse):
            await answer(request, reply, ready, cacheUse)
        case .serveAndRefresh(let ready, let cacheUse):
            await answer(request, reply, ready, cacheUse)
            fetches.refresh(request.forWhole.asking(because: .stale), stored: ready)
        case .ask(let reason, let stored):
            if let stored { cache.noteInquiry(about: stored) }
            await resort(to: request.asking(because: reason), reply, stored: stored, variants: variants, refusal: nil)
        case .refuse(let problem):
            await resort(to: request, reply, stored: nil, variants: [], refusal: problem)
        }
    }

    /// Looks whether parts are stored where no whole may be served, before the upstream is asked.
    ///
    /// - Parameter refusal: what is answered instead of asking, where the upstream must not be asked.
    private func resort(
        to request: ProxyRequest,
        _ reply: Reply,
        stored: ReadyResponse?,
        variants: [Variant],
        refusal: ProblemDocument?
    ) async {
        let token = fetches.invalidations.token(for: request.digest)
        let parts = await lookUpParts(request)
        // What was found whole may be gone as well.
        guard fetches.invalidations.isCurrent(token) else { return await retrieve(request, reply) }
        let decision = PartDecision(
            request,
            stored: stored,
            parts: parts,
            mode: modes.current,
            limit: settings.limits.document,
            now: now
        )
        switch decision {
        case .serve(let ready, let cacheUse):
            await answer(request, reply, ready, cacheUse)
        case .ask(let request, let stored, let completing):
            if let refusal { return refuse(refusal, reply) }
            let completes = completing != nil
            fetches.ask(request, reply, stored: stored, variants: variants, parts: parts, completes: completes)
        }
    }

    /// Parts that are stored of a response: memory, then the store, without waiting where neither has any.
    private func lookUpParts(_ request: ProxyRequest) async -> ReadyResponse? {
        guard request.message.method == "GET" else { return nil }
        if let ready = cache.partsInMemory(request) { return ready }
        do {
            let token = fetches.invalidations.token(for: request.digest)
            let found = try await cache.partsOnDisk(request)
            return fetches.invalidations.isCurrent(token) ? cache.admitParts(found, for: request) : nil
        } catch {
            log.error("parts could not be read", metadata: ["url": "\(request.key.url)", "error": "\(error)"])
            return nil
        }
    }

    /// Counts how a request was answered.
    func count(_ outcome: Outcome, for request: ProxyRequest) {
        outcomes.count(outcome)
        request.note?.counted(as: outcome)
    }

    func refuse(_ problem: ProblemDocument, _ reply: Reply) {
        outcomes.count(.error)
        reply.refuse(problem)
    }

    private func answer(_ request: ProxyRequest, _ reply: Reply, _ ready: ReadyResponse, _ cacheUse: CacheUse) async {
        ready.residence.noteUse()
        count(cacheUse.outcome(of: ready), for: request)
        do {
            guard let shown = try await cache.inView(of: request, ready) else {
                return fetches.ask(request.asking(because: .miss), reply, stored: nil)
            }
            reply.serve(shown, for: request, as: cacheUse, now: now)
        } catch {
            refuse(.storeFailed(error), reply)
        }
    }

    /// What is done, and, where the upstream is asked, what else is stored that it may be asked about.
    private func decide(_ request: ProxyRequest) async -> (Decision, variants: [Variant]) {
        while true {
            let found = await lookUp(request)
            let token = fetches.invalidations.token(for: request.digest)
            let absence = found == nil ? await cache.absence(of: request) : .uriMiss
            let decision = Decision(request, found, absence: absence, mode: modes.current, now: now)
            guard case .ask = decision, request.asksForItself, cache.mayHaveVariants(besides: found, of: request) else {
                return (decision, [])
            }
            var variants: [Variant] = []
            do {
                variants = try await cache.variants(besides: request)
            } catch .corrupt {
                // The store has said it once.
            } catch {
                log.error("variants could not be read", metadata: ["url": "\(request.key.url)", "error": "\(error)"])
            }
            // What was found first may be gone by now.
            if fetches.invalidations.isCurrent(token) { return (decision, variants) }
        }
    }

    // MARK: Requests that are neither cached nor change anything

    private func pass(_ request: ProxyRequest, _ reply: Reply) {
        guard modes.current == .online else { return refuse(.offline(request.message.method), reply) }
        fetches.ask(request.isPassed ? request : request.asking(because: .method), reply, stored: nil)
    }

    /// Starts to work: the fetches need the loop's thread.
    package func start() {
        started = Fetches(
            loop: loop,
            settings: settings,
            clients: upstreams.map { makeClient(for: $0) },
            cache: cache,
            metrics: metrics,
            outcomes: outcomes,
            log: log
        )
        followed = LiveDocuments(
            settings: settings,
            loop: loop,
            watch: cache.watch,
            metrics: metrics.live,
            proxy: self
        )
        cache.watch.onChange { [self] in loop.enqueue { self.assumeIsolated { $0.liveDocuments.wake() } } }
        modes.onChange { [self] _ in loop.enqueue { self.assumeIsolated { $0.liveDocuments.lookAtAll() } } }
    }

    private func makeClient(for upstream: ProxiedUpstream) -> UpstreamClient {
        let client = UpstreamClient(loop: loop, options: settings.options(for: upstream.settings))
        let (log, name) = (log, upstream.name)
        client.crowdChanged = { change in
            let key = change.kind == .upload ? "limits.upstream_uploads" : "limits.upstream_connections"
            let metadata: Logger.Metadata = ["upstream": "\(name)", "\(key)": "\(change.limit)"]
            if change.isCrowded {
                log.warning("requests wait for their turn: too many are under way", metadata: metadata)
            } else {
                log.notice("requests wait no longer", metadata: metadata)
            }
        }
        return client
    }

    /// Ends the streams that are open, so that nobody waits for their end; any thread.
    package nonisolated func endStreams() {
        loop.enqueue { self.assumeIsolated { $0.liveDocuments.end() } }
    }

    var liveDocuments: LiveDocuments {
        guard let followed else { preconditionFailure("the proxy was not started") }
        return followed
    }

    package var fetches: Fetches {
        guard let started else { preconditionFailure("the proxy was not started") }
        return started
    }

    /// Seconds of the store's clock, by which ages are counted.
    package var now: Int64 { cache.seconds }

    /// Seconds of the wall clock, with which dates in messages are compared.
    var wall: Int64 { Int64(loop.wallSeconds) }
}

/// What changes the store as a whole: the fetches, the streams and the memory must not keep what was there before.
extension ProxyCore {
    /// Removes what a filter names, durably, and everywhere.
    package func clean(
        _ filter: CleanFilter,
        dryRun: Bool,
        progress: @escaping CleanProgress
    ) async throws(StoreError) -> CleanResult {
        guard !dryRun else { return try await cache.store.clean(filter, dryRun: true, progress: progress) }
        fetches.cleaned()
        liveDocuments.invalidateAll()
        defer { liveDocuments.invalidationsCommitted() }
        await cache.store.flush()
        cache.memory.removeAll()
        let result = try await cache.store.clean(filter, progress: progress)
        fetches.invalidations.noteCleaning()
        cache.memory.removeAll()
        return result
    }

    /// Copies the store into a file, with everything that has come by now.
    ///
    /// - Parameter use: what is done with the complete file before another copy may be made.
    package func save<Value: Sendable>(to path: String, use: @Sendable () -> Value) async throws(StoreError) -> Value {
        await cache.store.flush()
        return try await cache.store.save(to: path, principalKey: principals.keyDigest, use: use)
    }

    /// Puts the content of a copy in the place of the store's, everywhere; fetches that have begun store nothing.
    package func load(_ path: String, replacing: Bool) async throws(StoreError) -> LoadResult {
        fetches.cleaned()
        liveDocuments.invalidateAll()
        defer { liveDocuments.invalidationsCommitted() }
        await cache.store.flush()
        let result = try await cache.store.load(path, principalKey: principals.keyDigest, replacing: replacing)
        fetches.invalidations.noteCleaning()
        cache.memory.removeAll()
        return result
    }

    /// Adds the content of a copy to what the store knows, while it serves; no response that was kept goes.
    package func merge(_ path: String) async throws(StoreError) -> LoadResult {
        await cache.store.flush()
        return try await cache.store.merge(path, principalKey: principals.keyDigest) { policy in
            StoredPolicy(bytes: policy)?.aged(at: 0, knownSince: .max).bytes ?? policy
        }
    }
}
