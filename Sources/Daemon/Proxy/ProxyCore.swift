import CachePolicy
package import EventLoops
import HTTPSemantics
package import HTTPServer
package import Logging
package import Settings
package import Store
import Synchronization
import Upstream

/// The path of every request that is not a hit in memory.
///
/// ```
/// serve ─ write? ──────────────────────────────────────────► write   (RunningWrite)
///   └─ look up ─ memory, then store
///        └─ decide ─┬─ serve                                → reply
///                   ├─ serve, refresh in the background     → reply, fetch without a client
///                   ├─ ask                                  → join or start a fetch
///                   └─ refuse                               → problem document
/// ```
///
/// `ProxyHandler` serves hits on the worker's own loop. This actor runs on the upstream loop, so that fetches need no locks.
/// Waiting for the store happens here, never on a worker.
package actor ProxyCore {
    package nonisolated let loop: EventLoop
    package nonisolated let cache: ResponseCache
    package nonisolated let principals: PrincipalResolver
    package nonisolated let modes: ModeSwitch
    nonisolated let metrics: Metrics
    package nonisolated let requests: RequestLog
    package nonisolated let configuration: CurrentConfiguration
    /// Whether any upstream may be asked; a replay asks none (law 11).
    let asksUpstreams: Bool
    /// Counts the responses of this loop, as each worker counts its own.
    let outcomes: WorkerMetrics
    let log: Logger
    private var started: Fetches?
    private var followed: LiveDocuments?
    /// Look-ups on disk under way (`Lookup/LookUp.swift`).
    var diskReads: [DiskReadKey: [CheckedContinuation<DiskRead, Never>]] = [:]
    /// The number of writes that could not be stored so far.
    var uncommittedWriteCount = 0

    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.executor.asUnownedSerialExecutor() }

    /// Returns once the loop's current turn is over: a response is kept in the turn in which its client gets the end.
    package func finishTurn() {}

    package init(
        loop: EventLoop,
        configuration: CurrentConfiguration,
        asksUpstreams: Bool,
        cache: ResponseCache,
        principals: PrincipalResolver,
        modes: ModeSwitch,
        metrics: Metrics,
        outcomes: WorkerMetrics,
        requests: RequestLog = RequestLog(),
        log: Logger
    ) {
        self.loop = loop
        (self.configuration, self.asksUpstreams) = (configuration, asksUpstreams)
        self.cache = cache
        (self.principals, self.modes, self.metrics) = (principals, modes, metrics)
        (self.outcomes, self.requests, self.log) = (outcomes, requests, log)
    }

    /// Takes over a request from a worker; any thread.
    package nonisolated func accept(_ incoming: IncomingRequest, _ reply: Reply) {
        Task(executorPreference: loop.taskExecutor) { await self.serve(incoming, reply) }
    }

    package func makeRequest(_ incoming: IncomingRequest, of principal: PrincipalID) -> ProxyRequest {
        let other = principals.otherFields(incoming.otherLines)
        return ProxyRequest(
            incoming,
            principal: principal,
            otherFields: other,
            cache.store.hasher,
            credentialHasher: principals.fieldHasher
        )
    }

    func serve(_ incoming: IncomingRequest, _ reply: Reply) async {
        do {
            let principal = try await principals.identify(incoming)
            let request = makeRequest(incoming, of: principal)
            if case .over = incoming.live {
                reply.endEvents(request)
            } else if let mode = incoming.live {
                follow(request, reply, mode)
            } else if MethodFacts.isCacheable(request.message.method), request.message.body == nil {
                await retrieve(request, reply)
            } else if MethodFacts.isSafe(request.message.method) {
                pass(request, reply)
            } else {
                await write(request, reply)
            }
        } catch {
            log.storeFailed("a principal could not be stored", error)
            // Its principal cannot be stored, so the response is for this request alone.
            let request = makeRequest(incoming, of: .anonymous)
            guard MethodFacts.isSafe(request.message.method), incoming.live == nil
            else { return refuse(.storeFailed(error), reply) }
            pass(request.passed, reply)
        }
    }

    // MARK: Retrievals

    private func retrieve(_ request: ProxyRequest, _ reply: Reply) async {
        // Only the upstream evaluates such a condition, and it does not know Larder's tag.
        if request.message.fields.contains("if-match"), request.conditions.matchesOwnTag, modes.current == .online {
            await expire(request)
            return refuse(.ownTagInCondition, reply)
        }
        // Conditions for the origin are evaluated there; if it cannot be asked, a cache may ignore them (RFC 9110 §13.1.1).
        if request.isForOrigin, modes.current == .online { return pass(request.passed, reply) }
        for repetitionsLeft in (0...Self.repetitionLimit).reversed() {
            let found = await lookUp(request)
            let moment = moment(at: request.digest)
            let absence = found == nil ? await cache.absence(of: request) : .uriMiss
            let decision = Decision(request, found, absence: absence, mode: modes.current, now: now)
            log.decided(decision, on: request, at: now)
            switch decision {
            case .serve(let ready, let cacheUse): return await serveStored(request, reply, ready, cacheUse)
            case .serveAndRefresh(let ready, let cacheUse):
                await serveStored(request, reply, ready, cacheUse)
                return fetches.refresh(request.forWhole.asking(because: .stale), stored: ready)
            case .ask(let reason, let stored):
                let variants = await variants(besides: found, for: request)
                let parts = await lookUpParts(request)
                let inquiry = stored?.inquiryReason(at: now)
                request.note?.asked(because: inquiry)
                let asking = request.asking(because: reason, inquiry)
                guard hasChanged(request, at: request.digest, since: moment) else {
                    if let stored { cache.noteInquiry(about: stored) }
                    return await servePartsOrAsk(asking, reply, parts, stored: stored, variants: variants)
                }
                // What was found may have been removed meanwhile.
                if repetitionsLeft == 0 { return fetches.ask(asking, reply, stored: nil) }
            case .refuse(let problem):
                let parts = await lookUpParts(request)
                if repetitionsLeft == 0 || !hasChanged(request, at: request.digest, since: moment) {
                    return await servePartsOrAsk(request, reply, parts, refusal: problem)
                }
            }
        }
    }

    /// Serves the stored parts if no whole may be served, or asks the upstream.
    private func servePartsOrAsk(
        _ request: ProxyRequest,
        _ reply: Reply,
        _ parts: ReadyResponse?,
        stored: ReadyResponse? = nil,
        variants: [Variant] = [],
        refusal: ProblemDocument? = nil
    ) async {
        let (limit, now) = (request.upstream.daemon.limits.document, now)
        switch PartDecision(request, stored: stored, parts: parts, mode: modes.current, limit: limit, now: now) {
        case .serve(let ready, let cacheUse): await serveStored(request, reply, ready, cacheUse)
        case .ask(let request, let stored, let completing):
            if let refusal { return refuse(refusal, reply) }
            let completes = completing != nil
            fetches.ask(request, reply, stored: stored, variants: variants, parts: parts, completes: completes)
        }
    }

    /// The stored parts of a response: from memory, then from the store; does not wait if neither has any.
    private func lookUpParts(_ request: ProxyRequest) async -> ReadyResponse? {
        guard request.message.method == "GET" else { return nil }
        if let ready = cache.partsInMemory(request) { return ready }
        do {
            let digest = cache.partsDigest(of: request)
            let moment = moment(at: digest)
            let found = try await cache.partsOnDisk(request)
            guard !hasChanged(request, at: digest, since: moment) else { return cache.partsInMemory(request) }
            return cache.admitParts(found, for: request, since: moment.number)
        } catch {
            log.error("parts could not be read", metadata: ["url": "\(request.key.url)", "error": "\(error)"])
            return nil
        }
    }

    /// The stored variants to validate, besides what was found.
    private func variants(besides found: ReadyResponse?, for request: ProxyRequest) async -> [Variant] {
        guard request.asksForItself, cache.mayHaveVariants(besides: found, of: request) else { return [] }
        do {
            return try await cache.variants(besides: request)
        } catch .corrupt {
            // The store has already logged the cause.
        } catch {
            log.error("variants could not be read", metadata: ["url": "\(request.key.url)", "error": "\(error)"])
        }
        return []
    }

    func count(_ outcome: Outcome, for request: ProxyRequest) {
        outcomes.count(outcome)
        request.note?.counted(as: outcome)
    }

    func refuse(_ problem: ProblemDocument, _ reply: Reply) {
        outcomes.count(.error)
        reply.refuse(problem)
    }

    private func serveStored(_ request: ProxyRequest, _ reply: Reply, _ ready: ReadyResponse, _ use: CacheUse) async {
        ready.entry.noteUse()
        count(use.outcome(of: ready), for: request)
        do {
            guard let shown = try await cache.inView(of: request, ready)
            else { return fetches.ask(request.asking(because: .miss), reply, stored: nil) }
            reply.serve(shown, for: request, as: use, now: now)
        } catch {
            refuse(.storeFailed(error), reply)
        }
    }

    // MARK: Requests that are neither cached nor change anything

    private func pass(_ request: ProxyRequest, _ reply: Reply) {
        guard modes.current == .online else { return refuse(.offline(request.message.method), reply) }
        fetches.ask(request.isPassed ? request : request.asking(because: .method), reply, stored: nil)
    }

    /// Starts the fetches, which need the loop's thread.
    package func start() {
        started = Fetches(of: self)
        followed = LiveDocuments(of: self)
        cache.watch.onChange { [self] in loop.enqueue { self.assumeIsolated { $0.liveDocuments.wake() } } }
        modes.onChange { [self] _ in loop.enqueue { self.assumeIsolated { $0.liveDocuments.lookAtAll() } } }
    }

    /// Ends the open streams, so that stopping need not wait for them; any thread.
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

    /// The store's clock in seconds; ages are counted by it.
    package var now: Int64 { cache.seconds }

    /// The wall clock in seconds; dates in messages are compared with it.
    var wall: Int64 { Int64(loop.wallSeconds) }
}

/// Changes to the store as a whole, after which fetches, streams and memory must not keep the former content.
extension ProxyCore {
    /// Removes what a filter selects, durably and everywhere.
    package func clean(_ filter: CleanFilter, dryRun: Bool, progress: @escaping CleanProgress)
        async throws(StoreError) -> CleanResult
    {
        guard !dryRun else { return try await cache.store.clean(filter, dryRun: true, progress: progress) }
        fetches.cleaned()
        liveDocuments.invalidateAll()
        defer { liveDocuments.invalidationsCommitted() }
        await cache.store.flush()
        cache.memory.removeAll()
        let result = try await cache.store.clean(filter, progress: progress)
        fetches.invalidations.noteClean()
        cache.memory.removeAll()
        return result
    }

    /// Replaces the configuration for all requests that begin after this has returned; the store has its models already.
    package func replaceConfiguration(by new: CompiledConfiguration) {
        let former = Dictionary(configuration.value.upstreams.map { ($0.name, $0.storeKey) }) { first, _ in first }
        configuration.replace(with: new)
        fetches.closeConnectionsOfOthers()
        // Under the name of another origin nothing is known yet but the counters.
        for upstream in new.upstreams where former[upstream.name].map({ $0 != upstream.storeKey }) ?? false {
            metrics.upstream(upstream.name).note { $0 = UpstreamHealth() }
        }
    }

    /// Copies the store into a file, with everything received so far.
    ///
    /// - Parameter use: called with the complete file before another copy may be made.
    package func save<Value: Sendable>(to path: String, use: @Sendable () -> Value) async throws(StoreError) -> Value {
        await cache.store.flush()
        return try await cache.store.save(to: path, principalKey: principals.keyDigest, use: use)
    }

    /// Replaces the store's content by that of a copy; fetches under way store nothing.
    package func load(_ path: String, replacing: Bool) async throws(StoreError) -> LoadResult {
        fetches.cleaned()
        liveDocuments.invalidateAll()
        defer { liveDocuments.invalidationsCommitted() }
        await cache.store.flush()
        let (settings, upstreams) = (configuration.value.settings, configuration.value.upstreams)
        let replaysCookies = upstreams.contains { $0.settings.cookies == .replay }
        let result = try await cache.store.load(
            path,
            principalKey: principals.keyDigest,
            replacing: replacing,
            bodyLimit: settings.limits.document
        ) {
            CachedResponse.isServable($0, replaysCookies: replaysCookies)
        }
        fetches.invalidations.noteClean()
        cache.memory.removeAll()
        return result
    }
}

/// Whether the daemon asks its upstreams.
///
/// `online`: ask the upstream if a response is unknown or stale; stale responses replace failed ones. `offline`: never ask; serve
/// stored responses, fresh or stale, and explain missing ones.
package typealias Mode = Configuration.Mode

/// The current mode: read by every request, changed by the operator; any thread; reading costs one relaxed load.
package final class ModeSwitch: Sendable {
    private let isOffline: Atomic<Bool>
    private let listeners = Mutex<[@Sendable (Mode) -> Void]>([])

    package init(_ mode: Mode) { isOffline = Atomic(mode == .offline) }

    package var current: Mode { isOffline.load(ordering: .relaxed) ? .offline : .online }

    /// Changes the mode and notifies the listeners, on the calling thread; returns false if it was the mode already.
    @discardableResult
    package func set(_ mode: Mode) -> Bool {
        // The lock keeps two concurrent changes from being reported in the wrong order.
        listeners.withLock { listeners in
            let wasOffline = isOffline.exchange(mode == .offline, ordering: .relaxed)
            guard wasOffline != (mode == .offline) else { return false }
            for listener in listeners { listener(mode) }
            return true
        }
    }

    /// Calls `listener` after each change from now on; it must be quick and must not change the mode itself.
    func onChange(_ listener: @escaping @Sendable (Mode) -> Void) {
        listeners.withLock { $0.append(listener) }
    }
}
