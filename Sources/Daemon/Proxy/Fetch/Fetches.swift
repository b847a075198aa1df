import Basics
import CachePolicy
import EventLoops
import HTTPSemantics
import HTTPServer
import Logging
import Settings
import Store
import Synchronization
import Upstream

/// All fetches and writes under way, and what becomes of their responses.
///
/// It lives on the upstream loop. All clients that ask for the same document share one fetch (coalescing). Its response is kept
/// in memory and handed to the store (`Fetches+Storing`).
///
/// Law 10: no request joins a fetch that began before the last write to its upstream completed, and such a fetch stores nothing
/// that the write invalidated. `invalidations` decides both.
final class Fetches {
    let loop: EventLoop
    unowned let proxy: ProxyCore
    private let configuration: CurrentConfiguration
    let cache: ResponseCache
    private let asksUpstreams: Bool
    /// The connections to each upstream, by its key.
    private var clients: [UpstreamKey: UpstreamClient] = [:]
    /// The client that was asked for last.
    private var latestClient: (upstream: ProxiedUpstream, client: UpstreamClient)?
    /// Clients whose options are no longer those of their upstream, until their requests are over.
    private var retiredClients: [UpstreamClient] = []
    let metrics: Metrics
    /// The counters that were used last.
    private var latestMetrics: (upstream: ProxiedUpstream, counters: UpstreamMetrics)?
    /// Counts the responses of the upstream loop by outcome.
    let log: Logger
    let repeated: RepeatedLines
    let principals: PrincipalResolver
    let fleet: FleetSharing?
    /// The writes and cleans that have made responses outdated.
    var invalidations: InvalidationLog
    /// Fetches and writes until they end.
    private var running: [ObjectIdentifier: RunningFetch] = [:]
    /// Whether only one fetch is under way.
    var runsOne: Bool { running.count == 1 }
    private var runningWrites: [ObjectIdentifier: RunningWrite] = [:]
    private var joinable: [Digest128: RunningFetch] = [:]
    private var latestClientNumber = 0
    var hitForMiss = HitForMiss()
    var notStored = NotStoredReasons()
    var backOffs: BackOffs
    var spending = Spending()
    let modes: ModeSwitch
    /// The circuits of upstreams that have failed to respond, by their keys.
    var circuits: [UpstreamKey: RunningCircuit] = [:]
    /// What was found out on validating the responses of upstreams across principals, by the upstreams' keys.
    var acrossTrust: [UpstreamKey: TrustAcrossPrincipals] = [:]
    private var refreshes = Refreshes()
    /// Work that waits for other threads, by number.
    var waiting: [Int: () -> Void] = [:]
    var waitingCount = 0
    /// What becomes of the requests that are being planned again, by number.
    var planned: [Int: (Plan) -> Void] = [:]
    /// Counts the bytes of bodies that fetches buffer, or that slow clients of a finished fetch have yet to take.
    let bufferedBytes = BufferedBytes()
    /// The maximum of `bufferedBytes`; past it fetches only relay, at the pace of their clients.
    var bufferLimit: Int { 8 * configuration.value.settings.limits.document }

    init(of proxy: ProxyCore) {
        (self.proxy, loop) = (proxy, proxy.loop)
        (configuration, asksUpstreams) = (proxy.configuration, proxy.asksUpstreams)
        (cache, modes) = (proxy.cache, proxy.modes)
        metrics = proxy.metrics
        (log, repeated) = (proxy.log, proxy.repeated)
        (principals, fleet) = (proxy.principals, proxy.fleet)
        backOffs = BackOffs(isInFleet: proxy.fleet != nil)
        invalidations = InvalidationLog(since: proxy.cache.now, label: proxy.principals.label(of:))
    }

    /// The store's clock in seconds; ages are counted by it.
    var now: Int64 { cache.seconds }

    /// The wall clock in seconds; dates in messages are compared with it.
    var wall: Int64 { Int64(loop.wallSeconds) }

    // MARK: Requests

    /// Has a client join the fetch of its document, or starts a fetch if there is none to join; unless it is held back.
    func ask(_ inquiry: Plan.Inquiry, _ reply: any Recipient) {
        let relay = Relay(inquiry.request, reply, isLeader: true)
        if joined(by: relay.request) != nil || !serveIfHeldBack(relay, stored: inquiry.stored) { send(inquiry, reply) }
    }

    /// The same by a plan that is settled.
    ///
    /// If the latest responses were not shareable, each client gets a fetch of its own.
    func send(_ inquiry: Plan.Inquiry, _ reply: any Recipient) {
        let request = inquiry.request
        if reply.isRequest, let stored = inquiry.stored { cache.recordInquiry(about: stored) }
        if let fetch = joined(by: request) {
            counters(of: request.upstream).coalesced.add()
            return fetch.join(request, reply, isLeader: false)
        }
        countTrial(request)
        start(inquiry, isJoinable: sharedPlace(of: request) != nil).join(request, reply, isLeader: true)
    }

    /// The fetch that a request joins; one under way from an upstream that cannot be reached is not worth waiting for.
    func joined(by request: ProxyRequest) -> RunningFetch? {
        underWay(for: request).flatMap { isUnreachable(for: request) ? nil : $0 }
    }

    func underWay(for request: ProxyRequest) -> RunningFetch? {
        guard !request.isAfterPosition, let place = sharedPlace(of: request), let fetch = joinable[place],
            fetch.isJoinable(by: request),
            request.mayShare(with: fetch.request)
        else { return nil }
        return fetch
    }

    /// The key under which requests share a fetch, unless the latest responses were not shareable.
    private func sharedPlace(of request: ProxyRequest) -> Digest128? {
        guard let place = place(of: request), !hitForMiss.contains(place, now: loop.now) else { return nil }
        return place
    }

    /// Starts other fetches for clients whose fetch turned out to bring another variant than theirs.
    ///
    /// - Parameter selection: the fields that the response varies by, by which clients are grouped; nil if its response is for
    ///   one client only. A client that was already regrouped gets a fetch of its own.
    func askApart(_ relays: [Relay], by selection: VarySelection?, stored: ReadyResponse?) {
        let names = selection?.lines.map(\.name) ?? []
        var groups: [(selection: VarySelection, isJSON: Bool, fetch: RunningFetch)] = []
        for relay in relays {
            guard selection != nil, !relay.hasMoved,
                let wanted = VarySelection(.fields(names), request: relay.request.message.fields)
            else {
                askAlone(relay, stored: stored)
                continue
            }
            if serveIfHeldBack(relay, stored: stored) { continue }
            let isJSON = relay.request.wantsJSONOnly
            if let group = groups.first(where: { $0.selection == wanted && $0.isJSON == isJSON }) {
                group.fetch.join(relay.request, relay.reply, isLeader: false, hasMoved: true)
            } else {
                countTrial(relay.request)
                let fetch = start(Plan.Inquiry(relay.request), isJoinable: false)
                fetch.join(relay.request, relay.reply, isLeader: true, hasMoved: true)
                groups.append((wanted, isJSON, fetch))
            }
        }
    }

    /// Starts a fetch for one client alone, because the one it had joined was not for it.
    ///
    /// - Parameter stored: the response to serve if the upstream wants no requests.
    func askAlone(_ relay: Relay, stored: ReadyResponse? = nil) {
        if serveIfHeldBack(relay, stored: stored) { return }
        countTrial(relay.request)
        start(Plan.Inquiry(relay.request), isJoinable: false).join(relay.request, relay.reply, isLeader: true)
    }

    /// Fetches once without conditions for all clients whom a 304 did not help.
    ///
    /// A background refresh has no clients. It continues all the same, because every further refresh would get the same 304.
    func refetch(for relays: [Relay], insteadOf useless: RunningFetch) {
        guard let first = relays.first else {
            guard let subject = useless.refreshes, !useless.isInvalidated else { return }
            useless.refreshes = nil
            start(useless.inquiry.unconditional(useless.request), refreshes: subject)
            return
        }
        let fetch = start(useless.inquiry.unconditional(first.request))
        fetch.released = useless.released
        for relay in relays { fetch.join(relay.request, relay.reply, isLeader: relay.isLeader) }
    }

    /// Refreshes a document in the background after it was served stale; never twice at a time, nor soon after a failure.
    func refresh(_ inquiry: Plan.Inquiry) {
        guard mayRefresh(inquiry), countTrial(inquiry.request), let stored = inquiry.stored else { return }
        let subject = Refreshes.Subject(stored)
        refreshes.began(subject)
        start(inquiry, refreshes: subject)
    }

    func mayRefresh(_ inquiry: Plan.Inquiry) -> Bool {
        let request = inquiry.request
        if let fetch = joinable[request.digest], fetch.isJoinable(by: request) { return false }
        return hold(on: request, as: .background) == nil
            && inquiry.stored.map { refreshes.mayStart(Refreshes.Subject($0), now: loop.now) } ?? false
    }

    /// Sends an unsafe request, once.
    func write(_ request: ProxyRequest, _ reply: Reply) -> RunningWrite {
        let write = RunningWrite(request, reply, fetches: self)
        write.reservation = backOffs.reserve(for: request)
        shareSpending(of: request)
        runningWrites[ObjectIdentifier(write)] = write
        counters(of: request.upstream).started()
        write.send(request.upstreamRequest(), through: client(for: request.upstream))
        return write
    }

    @discardableResult
    private func start(_ inquiry: Plan.Inquiry, isJoinable: Bool = true, refreshes: Refreshes.Subject? = nil)
        -> RunningFetch
    {
        let request = inquiry.request
        let fetch = RunningFetch(inquiry, refreshes: refreshes, fetches: self)
        fetch.reservation = backOffs.reserve(for: request)
        shareSpending(of: request)
        if isJoinable, let place = place(of: request) { joinable[place] = fetch }
        running[ObjectIdentifier(fetch)] = fetch
        counters(of: request.upstream).started()
        fetch.send(inquiry.upstreamRequest, through: client(for: request.upstream))
        return fetch
    }

    /// The key under which requests may share a fetch: the document, or the requested part of it; nil if the request shares with
    /// none.
    func place(of request: ProxyRequest) -> Digest128? {
        request.isShareable ? request.digest : request.partKey.map { cache.store.hasher.digest($0) }
    }

    // MARK: The end

    /// Lets no more clients join a fetch.
    func retire(_ fetch: RunningFetch) {
        guard let place = place(of: fetch.request), joinable[place] === fetch else { return }
        joinable[place] = nil
    }

    /// A new number for a client, unique among the clients of all fetches.
    func newClientNumber() -> Int {
        latestClientNumber += 1
        return latestClientNumber
    }

    /// Removes a client that is gone from its fetch, if the fetch is still under way.
    func left(_ client: Int, _ fetch: ObjectIdentifier) { running[fetch]?.left(client) }

    /// Handles the commit of a fetched response's objects, also if it failed or they are not known because of a write or a clean.
    func committed(_ fetch: ObjectIdentifier, isKnown: Bool) { running[fetch]?.committed(isKnown: isKnown) }

    /// Removes a fetch that is over and whose response is stored.
    func ended(_ fetch: RunningFetch) {
        running[ObjectIdentifier(fetch)] = nil
        guard let subject = fetch.refreshes else { return }
        refreshes.ended(subject, hasSucceeded: fetch.state.hasRefreshed, now: loop.now)
    }

    /// Removes a write that is over and whose client has the response.
    func ended(_ write: RunningWrite) { runningWrites[ObjectIdentifier(write)] = nil }

    /// Counts a transfer that is over; returns how it ended, and its duration in seconds.
    ///
    /// - Parameters:
    ///   - start: when the request was sent, in µs of the store's clock.
    ///   - reservation: what it has reserved; a response has ended that.
    func transferEnded(
        _ request: ProxyRequest,
        _ result: Result<TransferSummary, UpstreamError>,
        status: Int?,
        since start: Int64,
        _ reservation: BackOffs.Reservation?
    ) -> (Fetch.End, seconds: Double) {
        let seconds = Double(max(0, cache.now - start)) / 1_000_000
        let metrics = counters(of: request.upstream)
        if case .failure(let error) = result, status == nil {
            recordNoResponse(error, to: request, since: start)
            if let reservation { backOffs.end(reservation, isCounted: error.requestMayHaveBeenProcessed) }
            shareSpending(of: request)
        }
        record(result, status: status, of: request)
        closeIdleClients()
        switch result {
        case .success(let summary):
            metrics.ended(status: status ?? 0, seconds: seconds)
            return (summary.defect != nil ? .cut : summary.isOdd ? .odd : .whole, seconds)
        case .failure(let error):
            metrics.ended(result: error.label, seconds: seconds)
            return (.failed, seconds)
        }
    }

    /// The counters of an upstream.
    func counters(of upstream: ProxiedUpstream) -> UpstreamMetrics {
        if let latestMetrics, latestMetrics.upstream === upstream { return latestMetrics.counters }
        let counters = metrics.upstream(upstream.name)
        latestMetrics = (upstream, counters)
        return counters
    }

    // MARK: Connections

    /// The connections for an upstream's requests; those with other options are given up, once the requests on them are over.
    private func client(for upstream: ProxiedUpstream) -> UpstreamClient {
        precondition(asksUpstreams, "a replay asks no upstream")
        if let latestClient, latestClient.upstream === upstream { return latestClient.client }
        let options = upstream.daemon.options(for: upstream.settings)
        if let known = clients[upstream.storeKey], known.options == options {
            latestClient = (upstream, known)
            return known
        }
        retireClients { $0 == upstream.storeKey }
        let client = UpstreamClient(loop: loop, options: options)
        let (log, name) = (log, upstream.name)
        client.crowdChanged = { change in
            let key =
                change.isForCredential
                ? "budget.at_once"
                : change.kind == .upload ? "limits.upstream_uploads" : "limits.upstream_connections"
            let metadata: Logger.Metadata = ["upstream": "\(name)", "\(key)": "\(change.limit)"]
            if change.isCrowded {
                log.warning("requests wait for their turn: too many are under way", metadata: metadata)
            } else {
                log.notice("requests wait no longer", metadata: metadata)
            }
        }
        clients[upstream.storeKey] = client
        return client
    }

    /// Gives up the connections to upstreams that are not in the current configuration.
    func closeConnectionsOfOthers() {
        let current = Set(configuration.value.upstreams.map(\.storeKey))
        retireClients { !current.contains($0) }
        circuits = circuits.filter { current.contains($0.key) }
        acrossTrust = acrossTrust.filter { current.contains($0.key) }
    }

    /// Gives up the connections to an upstream; its next requests make new ones.
    func retireConnections(to upstream: ProxiedUpstream) { retireClients { $0 == upstream.storeKey } }

    private func retireClients(of isGone: (UpstreamKey) -> Bool) {
        latestClient = nil
        retiredClients += clients.filter { isGone($0.key) }.map(\.value)
        clients = clients.filter { !isGone($0.key) }
        closeIdleClients()
    }

    /// Closes retired connections that are idle, in a turn of their own: a client may call this one.
    private func closeIdleClients() {
        guard !retiredClients.isEmpty else { return }
        proxy.enqueue { $0.fetches.retiredClients.removeAll { $0.active.isEmpty } }
    }

    // MARK: Invalidation

    /// Keeps responses under way from bringing back what a write or a clean has made outdated.
    func invalidate(_ invalidation: Invalidation) {
        invalidations.append(invalidation)
        hitForMiss.forget(invalidation)
    }
}

/// A count of bytes in memory; any thread.
final class BufferedBytes: Sendable {
    let count = Atomic<Int>(0)

    /// Some of the bytes, which count until the last reference to this value is gone.
    final class Share: Sendable {
        private let bytes: Int
        private let bytesInAll: BufferedBytes

        init(_ bytes: Int, of bytesInAll: BufferedBytes) { (self.bytes, self.bytesInAll) = (bytes, bytesInAll) }

        deinit { bytesInAll.count.subtract(bytes, ordering: .relaxed) }
    }
}

/// The bytes that fetches hold, and work that waits for a commit.
extension Fetches {
    /// Counts buffered bytes of a body; returns false if there are too many, so that the fetch must drop them.
    func reserve(_ bytes: Int) -> Bool {
        bufferedBytes.count.add(bytes, ordering: .relaxed).newValue <= bufferLimit
    }

    /// Stops counting bytes once none of these clients has any of them left to take; the charge is 0 then.
    func release(_ charge: inout Int, after replies: @autoclosure () -> [any Recipient] = []) {
        guard charge > 0 else { return }
        let share = BufferedBytes.Share(charge, of: bufferedBytes)
        charge = 0
        // The last callback that holds the share ends it, on the thread of its worker: this loop need not wake up for it.
        for reply in replies() where reply.backlog > 0 { reply.onDrain(below: 1) { withExtendedLifetime(share) {} } }
    }

    /// Runs `work` on this loop once everything handed to the store so far is committed, or while another process holds that up.
    func afterCommits(_ work: @escaping (_ areCommitted: Bool) -> Void) {
        after({ [cache] in await cache.store.flushUnlessBlocked() }, then: work)
    }

    /// Runs `step` on other threads, then `work` on this loop with its result.
    func after<Value: Sendable>(_ step: @escaping @Sendable () async -> Value, then work: @escaping (Value) -> Void) {
        let result = Locked<Value?>(nil)
        let number = wait { if let value = result.value { work(value) } }
        Task { [proxy] in
            result.value = await step()
            proxy.enqueue { $0.fetches.resume(number) }
        }
    }

    /// Looks a request up and plans it again, as if it came now; nothing else runs on this loop between the plan and `work`.
    func planAgain(_ request: ProxyRequest, then work: @escaping (Plan) -> Void) {
        let number = waitingCount
        waitingCount += 1
        planned[number] = work
        Task(executorPreference: loop.taskExecutor) { [proxy] in await proxy.planAgain(request, number) }
    }

    /// Registers work to be run on this loop after an event on another thread.
    private func wait(_ work: @escaping () -> Void) -> Int {
        defer { waitingCount += 1 }
        waiting[waitingCount] = work
        return waitingCount
    }

    private func resume(_ number: Int) { waiting.removeValue(forKey: number)?() }
}

extension Fetches {
    /// Serves a ready response to clients, to each in its own view and with links for its own address.
    ///
    /// - Parameter cookies: the upstream's `Set-Cookie` and other lines, which only the client gets whose request was sent.
    func serve(_ ready: ReadyResponse, to relays: [Relay], as use: (ProxyRequest) -> CacheUse, cookies: [Field] = []) {
        for relay in relays {
            let cacheUse = use(relay.request)
            if !ready.needsReceivedBytes(in: relay.request.view) {
                let shown = cache.shown(ready, to: relay.request)
                if shown.named.isEmpty {
                    serve(shown, to: relay, as: cacheUse, cookies: cookies)
                    continue
                }
            }
            serveLater(ready, to: relay, as: cacheUse, cookies: cookies)
        }
    }

    /// Serves a view that needs the received bytes from the store.
    private func serveLater(_ ready: ReadyResponse, to relay: Relay, as cacheUse: CacheUse, cookies: [Field]) {
        after({ [cache, request = relay.request] in try? await cache.inView(of: request, ready) }) { [self] shown in
            guard let shown else { return relay.reply.refuse(.receivedBytesGone, nil) }
            serve(shown, to: relay, as: cacheUse, cookies: cookies)
        }
    }

    private func serve(_ shown: ReadyResponse, to relay: Relay, as cacheUse: CacheUse, cookies: [Field]) {
        relay.recordOutcome(cacheUse.outcome(of: shown))
        let (isLeader, request) = (relay.isLeader, relay.request)
        let own = isLeader ? cookies : []
        relay.reply.serve(shown, for: request, as: cacheUse, isCollapsed: !isLeader, cookies: own, now: now)
    }

    /// Serves a response that is whole and not stored.
    func serveUnstored(_ body: [UInt8], of fetch: RunningFetch, to relays: [Relay]) {
        guard let head = fetch.head else { return }
        let request = fetch.request
        let (fields, policy) = (StoredFields.storable(head.fields), policy(of: head, in: fetch).stored)
        let response = CachedResponse(key: request.key, status: head.status, fields: fields, body: body, policy: policy)
        let ready = ReadyResponse(response, for: request)
        serve(ready, to: relays, as: { .unkept($0.reason.forward) }, cookies: head.cookies)
    }
}
