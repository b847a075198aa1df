import CachePolicy
package import EventLoops
import HTTPSemantics
package import HTTPServer
package import Logging
import Settings
package import Store
import Upstream

/// The path of every request that is not a hit in memory.
///
/// ```
/// serve ─ look up ─ memory, then store
///           └─ plan ─┬─ serve                               → reply
///                    ├─ serve, refresh in the background    → reply, fetch without a client
///                    ├─ ask                                 → join or start a fetch
///                    ├─ write                               → RunningWrite
///                    └─ refuse                              → problem document
/// ```
///
/// `ProxyHandler` serves hits on the worker's own loop. This actor runs on the upstream loop, so that fetches need no locks.
/// Waiting for the store happens here, never on a worker.
package actor ProxyCore {
    nonisolated let loop: EventLoop
    package nonisolated let cache: ResponseCache
    package nonisolated let principals: PrincipalResolver
    nonisolated let modes: ModeSwitch
    nonisolated let metrics: Metrics
    nonisolated let requests: RequestLog
    package nonisolated let configuration: CurrentConfiguration
    /// Whether any upstream may be asked; a replay asks none (law 11).
    let asksUpstreams: Bool
    /// Counts the responses of this loop, as each worker counts its own.
    let outcomes: WorkerMetrics
    package nonisolated let log: Logger
    nonisolated let repeated: RepeatedLines
    nonisolated let persisted = PersistedQueries()
    private var started: Fetches?
    private var followed: LiveDocuments?
    /// What other machines share with this one; nil without a fleet.
    nonisolated let fleet: FleetSharing?
    private var freshnessNotices: FreshnessNotices
    /// Look-ups on disk under way (`Lookup/LookUp.swift`).
    var diskReads: [DiskReadKey: [CheckedContinuation<DiskRead, Never>]] = [:]
    /// The bytes of deliveries to webhooks that are in memory.
    var bufferedDeliveries = 0
    /// Searches for responses of other machines, and the requests that wait for their end (`Share/ProxyCore+Fleet.swift`).
    var fleetSearches: [Digest128: [CheckedContinuation<Void, Never>]] = [:]
    /// The writes of other machines that have not ended yet.
    var suspects = FleetSuspects()
    var isAwaitingSuspects = false

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
        fleet: (any FleetLink)? = nil,
        log: Logger
    ) {
        self.loop = loop
        (self.configuration, self.asksUpstreams) = (configuration, asksUpstreams)
        self.cache = cache
        (self.principals, self.modes, self.metrics) = (principals, modes, metrics)
        (self.outcomes, self.requests, self.log) = (outcomes, requests, log)
        freshnessNotices = FreshnessNotices(since: cache.seconds)
        repeated = RepeatedLines(log)
        self.fleet = fleet.map { FleetSharing($0, log: log) }
        if let sharing = self.fleet { cache.store.showValues(to: sharing) }
    }

    /// Takes over a request from a worker; any thread.
    package nonisolated func accept(_ incoming: IncomingRequest, _ reply: Reply) {
        loop.enqueue { self.assumeIsolated { $0.begin(incoming, reply) } }
    }

    /// Runs work on the loop; any thread.
    nonisolated func enqueue(_ work: @escaping @Sendable (isolated ProxyCore) -> Void) {
        loop.enqueue { self.assumeIsolated(work) }
    }

    /// Serves a request, in this turn of the loop as far as it need not wait; most misses need no task.
    private func begin(_ incoming: IncomingRequest, _ reply: Reply) {
        guard fleet == nil, incoming.upstream.reading(incoming) == nil,
            let principal = principals.recognise(incoming.credentialsDigest)
        else {
            Task.immediate(executorPreference: loop.taskExecutor) { await serve(incoming, reply) }
            return
        }
        incoming.note?.recordPrincipal(principals.label(of: principal))
        let (request, live) = (makeRequest(incoming, of: principal), incoming.live)
        if live == nil, let plan = planAtOnce(request, modes.current), case .ask(let inquiry) = fetches.withHold(plan) {
            log.decided(.ask(inquiry), on: request, at: now)
            return ask(inquiry, for: request, reply)
        }
        Task.immediate(executorPreference: loop.taskExecutor) { await serve(request, live, reply) }
    }

    func makeRequest(_ incoming: IncomingRequest, of principal: PrincipalID) -> ProxyRequest {
        let other = principals.otherFields(incoming.otherLines)
        let (hasher, own) = (cache.store.hasher, principals.fieldHasher)
        let facts = RequestFacts(incoming, principal: principal, otherFields: other, hasher, credentialHasher: own)
        let request = ProxyRequest(facts)
        return fleet.map { shared(request, incoming, $0) } ?? request
    }

    func serve(_ incoming: IncomingRequest, _ reply: Reply) async {
        let wish = fleet.flatMap { positionWish(of: incoming, $0) }
        if wish != nil { hold(reply, of: incoming) }
        var incoming = incoming
        if incoming.upstream.reading(incoming) != nil {
            // A body that does not arrive as a whole was refused by the connection, or its client has left.
            guard let known = try? await knowingBody(of: incoming) else { return reply.abort() }
            incoming = known
        }
        do {
            let known = principals.recognise(incoming.credentialsDigest)
            let principal = if let known { known } else { try await principals.identify(incoming) }
            incoming.note?.recordPrincipal(principals.label(of: principal))
            var request = makeRequest(incoming, of: principal)
            if let wish { request = await reaching(wish, request) }
            await serve(request, incoming.live, reply)
        } catch {
            log.storeFailed("a principal could not be stored", error)
            // Its principal cannot be stored, so the response is for this request alone.
            let request = makeRequest(incoming, of: .anonymous)
            guard MethodFacts.isSafe(request.message.method), incoming.live == nil
            else { return reply.refuse(.storeFailed(error)) }
            await carryOut(await plan(request.passed).plan, request, reply)
        }
    }

    private func serve(_ request: ProxyRequest, _ live: LiveMode?, _ reply: Reply) async {
        if case .over = live { return reply.endEvents(request) }
        if let live { return liveDocuments.open(request, reply, live) }
        var plan = await plan(request).plan
        if fleet != nil, await askWhatIsLeft(before: plan) { plan = await self.plan(request).plan }
        if let pause = plan.pause {
            // Nothing cancels this task.
            try? await Task.sleep(for: pause)
            plan = await self.plan(request).plan
        }
        if request.sharedKey != nil {
            let commit: AwaitedCommit?
            (plan, commit) = await planWithFleet(request, plan)
            if let commit {
                if await carryOut(plan, request, reply, with: commit) { return }
                plan = await self.plan(request).plan
            }
        }
        // Nothing else runs on the loop between the plan and its execution.
        await carryOut(plan, request, reply)
    }

    /// What happens to a request, of what is stored for it now, and of what holds it back.
    ///
    /// - Parameters:
    ///   - mode: nil for the current one.
    ///   - admits: whether what is read from disk is put into memory, as for a request that is served.
    /// - Returns: the plan, and what was looked up for it.
    func plan(_ request: ProxyRequest, mode: Mode? = nil, admits: Bool = true) async
        -> (plan: Plan, found: LookUpResult)
    {
        let (plan, found) = await planWithoutHold(request, mode ?? modes.current, admits: admits)
        return (fetches.withHold(plan, assembled: found.assembled), found)
    }

    private func planWithoutHold(_ request: ProxyRequest, _ mode: Mode, admits: Bool) async -> (
        plan: Plan, found: LookUpResult
    ) {
        if let plan = planAtOnce(request, mode) { return (plan, LookUpResult()) }
        let (decision, isCurrent) = await untilCurrent { _ in await planOnce(request, mode, admits: admits) }
        // What was found may have been removed meanwhile.
        return isCurrent ? decision : (decision.plan.withoutStored, decision.found)
    }

    private func planOnce(_ request: ProxyRequest, _ mode: Mode, admits: Bool) async
        -> Attempt<(plan: Plan, found: LookUpResult)>
    {
        var found = LookUpResult()
        let mayBeKnown = cache.mayKnow(request.digest)
        if mayBeKnown { found.whole = await lookUp(request, admits: admits) }
        let moment = moment(at: request.digest)
        if mayBeKnown, found.whole == nil { found.absence = await cache.absence(of: request) }
        let plan = planWithoutHold(request, found, mode)
        switch plan {
        case .serve, .serveAndRefresh: return ((plan, found), true)
        case .ask, .write, .refuse, .refuseAndExpire, .held: break
        }
        if mayBeKnown { found.variants = await variants(besides: found.whole, for: request) }
        if cache.mayKnow(request.partsDigest) { found.parts = await lookUpParts(request, admits: admits) }
        if mode != .offline { found.across = await across(found, for: request) }
        if found.whole == nil, mode == .offline || fetches.isUnreachable(for: request) {
            found.assembled = await assembled(request)
        }
        guard !hasChanged(request, at: request.digest, since: moment) else { return ((plan, found), false) }
        return ((planWithoutHold(request, found, mode), found), true)
    }

    /// The plan for a request that needs no look-up, because of what it asks, or because nothing is known that concerns it;
    /// nil for others.
    private func planAtOnce(_ request: ProxyRequest, _ mode: Mode) -> Plan? {
        if let plan = Plan(withoutLookUp: request, mode: mode) { return plan }
        guard mode != .offline, !cache.mayKnow(request.digest), !cache.mayKnow(request.partsDigest),
            !fetches.validatesAcross(request.upstream), !fetches.isUnreachable(for: request)
        else { return nil }
        return planWithoutHold(request, LookUpResult(), mode)
    }

    /// The plan as far as the upstream may be asked.
    func planWithoutHold(_ request: ProxyRequest, _ found: LookUpResult, _ mode: Mode) -> Plan {
        Plan(request, found, mode: mode, limit: request.upstream.daemon.limits.document, now: now)
    }

    /// Plans a request that has waited long enough.
    func planAgain(_ request: ProxyRequest, _ number: Int) async {
        let plan = await plan(request).plan
        fetches.planned.removeValue(forKey: number)?(plan)
    }

    private func carryOut(_ plan: Plan, _ request: ProxyRequest, _ reply: Reply) async {
        log.decided(plan, on: request, at: now)
        switch plan {
        case .serve(let ready, let use, _): await serveStored(request, reply, ready, use)
        case .serveAndRefresh(let ready, let use, _, let inquiry):
            await serveStored(request, reply, ready, use)
            if let inquiry { refresh(inquiry) }
        case .ask(let inquiry): ask(inquiry, for: request, reply)
        case .write(let request): await write(request, reply)
        case .refuse(let problem): reply.refuse(problem)
        case .refuseAndExpire(let problem):
            await dropTarget(of: request)
            reply.refuse(problem)
        case .held(_, let wanted, _):
            if let inquiry = wanted.inquiry { notice(inquiry, of: request) }
            fetches.carryOutHold(of: plan, Relay(wanted.sent ?? request, reply, isLeader: true))
        }
    }

    private func ask(_ inquiry: Plan.Inquiry, for request: ProxyRequest, _ reply: Reply) {
        notice(inquiry, of: request)
        fetches.send(inquiry, reply)
    }

    /// Notes for `tail` and the log why what is stored is not used, and whether a line of config would have made this request a hit.
    private func notice(_ inquiry: Plan.Inquiry, of request: ProxyRequest) {
        request.note?.recordAsked(because: inquiry.request.reason)
        guard let remedy = FreshnessNotices.remedy(for: inquiry, now: now) else { return }
        request.note?.recordRemedy(remedy)
        guard let count = freshnessNotices.count(upstream: request.upstream.name, now: now) else { return }
        log.notice(
            "responses say nothing of caching, so each request goes upstream; a line of config makes them hits",
            metadata: ["upstream": "\(request.upstream.name)", "requests": "\(count)", "config": "\(remedy.line)"]
        )
    }

    // MARK: Look-up

    /// The stored parts of a response: from memory, then from the store; does not wait if neither has any.
    private func lookUpParts(_ request: ProxyRequest, admits: Bool) async -> ReadyResponse? {
        guard request.message.method == "GET" else { return nil }
        if let ready = cache.partsInMemory(request) { return ready }
        do {
            let digest = request.partsDigest
            let moment = moment(at: digest)
            let found = try await cache.partsOnDisk(request)
            guard !hasChanged(request, at: digest, since: moment) else { return cache.partsInMemory(request) }
            return cache.admitParts(found, for: request, since: admits ? moment.number : nil)
        } catch {
            unreadable("parts could not be read", error, request)
            return nil
        }
    }

    func unreadable(_ message: Logger.Message, _ error: StoreError, _ request: ProxyRequest) {
        repeated.log(.error, message, about: ["error": "\(error)"], ["url": "\(request.shownURL)"])
    }

    private func variants(besides found: ReadyResponse?, for request: ProxyRequest) async -> [Variant] {
        guard request.asksForItself, cache.mayHaveVariants(besides: found, of: request) else { return [] }
        do {
            return try await cache.variants(besides: request)
        } catch .corrupt {
            // The store has already logged the cause.
        } catch { unreadable("variants could not be read", error, request) }
        return []
    }

    /// The tag of a response stored for another principal, of which a 304 may say that it is this request's, too.
    private func across(_ found: LookUpResult, for request: ProxyRequest) async -> TagAcrossPrincipals? {
        guard request.isShareable, fetches.validatesAcross(request.upstream) else { return nil }
        let isAlone = found.whole == nil && found.variants.isEmpty
        let own = [found.whole?.response.validators].compactMap(\.self) + found.variants.map(\.validators)
        // Beside a response without a tag it would be unclear what a 304 is about.
        guard own.allSatisfy({ $0.entityTag != nil }) else { return nil }
        do {
            guard let (tag, document) = try await cache.latestOfAnyone(for: request),
                !own.contains(where: { $0.entityTag?.matchesWeakly(tag) ?? false })
            else { return nil }
            return fetches.acrossTag(tag, of: document, for: request, isAlone: isAlone)
        } catch .corrupt {
            // The store has already logged the cause.
        } catch { unreadable("the responses of others could not be read", error, request) }
        return nil
    }

    private func serveStored(_ request: ProxyRequest, _ reply: Reply, _ ready: ReadyResponse, _ use: CacheUse) async {
        cache.memory.recordUse(of: ready)
        request.note?.recordOutcome(use.outcome(of: ready))
        do {
            guard let shown = try await cache.inView(of: request, ready)
            else { return fetches.ask(Plan.Inquiry(request.asking(because: .receivedBytesGone)), reply) }
            reply.serve(shown, for: request, as: use, now: now)
        } catch { reply.refuse(.storeFailed(error)) }
    }

    // MARK: Life

    /// Starts the fetches, which need the loop's thread.
    package func start() {
        started = Fetches(of: self)
        followed = LiveDocuments(of: self)
        cache.watch.onChange { [self] in enqueue { $0.liveDocuments.wake() } }
        modes.onChange { [self] _ in enqueue { $0.liveDocuments.lookAtAll() } }
    }

    /// Ends the open streams, so that stopping need not wait for them; any thread.
    package nonisolated func endStreams() { enqueue { $0.liveDocuments.end() } }

    var liveDocuments: LiveDocuments {
        guard let followed else { preconditionFailure("the proxy was not started") }
        return followed
    }

    var fetches: Fetches {
        guard let started else { preconditionFailure("the proxy was not started") }
        return started
    }

    /// The store's clock in seconds; ages are counted by it.
    var now: Int64 { cache.seconds }

    /// The wall clock in seconds; dates in messages are compared with it.
    var wall: Int64 { Int64(loop.wallSeconds) }
}

/// Changes to much of the store, after which fetches, streams and memory must not keep the former content.
extension ProxyCore {
    /// Removes what a filter selects, durably and everywhere.
    package func clean(_ filter: CleanFilter, dryRun: Bool, progress: @escaping CleanProgress)
        async throws(StoreError) -> CleanResult
    {
        guard !dryRun else { return try await cache.store.clean(filter, dryRun: true, progress: progress) }
        // What a response in memory shows is not known by name, so a clean of one object covers the upstream.
        return try await outdating(filter.invalidation(at: cache.now)) { () async throws(StoreError) in
            try await self.cache.store.clean(filter, progress: progress)
        }
    }

    /// Replaces the configuration for all requests that begin after this has returned; the store has its models already.
    package func replaceConfiguration(by new: CompiledConfiguration) {
        let former = Dictionary(configuration.value.upstreams.map { ($0.name, $0.storeKey) }) { first, _ in first }
        configuration.replace(with: new)
        fetches.closeConnectionsOfOthers()
        // Under the name of another origin nothing is known yet but the counters.
        for upstream in new.upstreams where former[upstream.name].map({ $0 != upstream.storeKey }) ?? false {
            metrics.upstream(upstream.name).record { $0 = UpstreamHealth() }
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
        let (settings, upstreams) = (configuration.value.settings, configuration.value.upstreams)
        let replaysCookies = upstreams.contains { $0.settings.cookies == .replay }
        let (key, limit) = (principals.keyDigest, settings.limits.document)
        return try await outdating(Invalidation(of: nil, at: cache.now)) { () async throws(StoreError) in
            try await self.cache.store.load(path, principalKey: key, replacing: replacing, bodyLimit: limit) {
                CachedResponse.isServable($0, replaysCookies: replaysCookies)
            }
        }
    }

    /// Has the store remove what an invalidation covers, or part of it, and lets nothing of that come back.
    private func outdating<Result: Sendable>(
        _ invalidation: Invalidation,
        _ work: () async throws(StoreError) -> Result
    ) async throws(StoreError) -> Result {
        var invalidation = invalidation
        invalidate(invalidation)
        fetches.notStored.forget(invalidation, principals.label(of:))
        defer { liveDocuments.invalidationsCommitted() }
        await cache.store.flush()
        cache.memory.remove(invalidation, principals.label(of:))
        let result = try await work()
        invalidation.time = cache.now
        fetches.invalidations.append(invalidation)
        cache.memory.remove(invalidation, principals.label(of:))
        return result
    }
}
