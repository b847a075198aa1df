import CachePolicy
import EventLoops
import HTTPSemantics
import HTTPServer
import Logging
import Settings
import Store
import Synchronization
import Upstream

/// All requests that are on their way to upstreams, and what may be done with their responses.
///
/// Lives on the upstream loop. One fetch is shared by all clients that ask for the same document (coalescing). What it
/// brings is kept in memory and handed to the store (`Fetches+Storing`).
///
/// Law 10: no request joins a fetch that began before the last write to its upstream completed, and such a fetch stores
/// nothing that the write invalidated. `invalidations` says both.
package final class Fetches {
    let loop: EventLoop
    let settings: Configuration
    let cache: ResponseCache
    private let clients: [UpstreamClient]
    let metrics: Metrics
    /// Where responses of the upstream loop are counted by their outcome.
    let outcomes: WorkerMetrics
    let log: Logger
    /// What writes and cleanings have made outdated.
    var invalidations = InvalidationLog()
    /// Fetches and writes until their end.
    private var running: [ObjectIdentifier: RunningFetch] = [:]
    private var runningWrites: [ObjectIdentifier: RunningWrite] = [:]
    private var joinable: [Digest128: RunningFetch] = [:]
    var hitForMiss: HitForMiss
    /// What was not stored lately, and why.
    package var unstored = UnstoredResponses()
    package var pauses = UpstreamPauses()
    private var refreshes = Refreshes()
    /// What waits for other threads or for a slow reader, by number.
    var waiting: [Int: () -> Void] = [:]
    var waitingCount = 0
    /// Bytes of bodies that fetches keep, and that clients who lag behind a finished one have still to take.
    var held = 0
    /// How many there may be; past it fetches are mere relays, which go at their clients' pace.
    var heldLimit: Int { 8 * settings.limits.document }

    /// - Parameter clients: one per upstream, in their order.
    init(
        loop: EventLoop,
        settings: Configuration,
        clients: [UpstreamClient],
        cache: ResponseCache,
        metrics: Metrics,
        outcomes: WorkerMetrics,
        log: Logger
    ) {
        self.loop = loop
        self.settings = settings
        self.clients = clients
        self.cache = cache
        self.metrics = metrics
        self.outcomes = outcomes
        self.log = log
        hitForMiss = HitForMiss(now: loop.now)
    }

    /// Seconds of the store's clock, by which ages are counted.
    var now: Int64 { cache.seconds }

    /// Seconds of the wall clock, with which dates in messages are compared.
    var wall: Int64 { Int64(loop.wallSeconds) }

    // MARK: Asking

    /// Has a client wait for the fetch of its document; starts one if there is none to join.
    ///
    /// Where the last responses were of use to nobody but who had asked, nobody waits for another's.
    ///
    /// - Parameters:
    ///   - variants: what else is stored under the request's key, for the upstream to say whether it is that.
    ///   - parts: what is stored in parts of it.
    ///   - completes: whether only what is missing in them is asked for.
    func ask(
        _ request: ProxyRequest,
        _ reply: any Recipient,
        stored: ReadyResponse?,
        variants: [Variant] = [],
        parts: ReadyResponse? = nil,
        completes: Bool = false
    ) {
        let place = place(of: request)
        let sharesNothing = place.map { hitForMiss.contains($0, now: loop.now) } ?? true
        if let place, !sharesNothing, let fetch = joinable[place], fetch.isJoinable(by: request),
            request.mayShare(with: fetch.request)
        {
            metrics.upstream(request.upstream.name).coalesced.add()
            fetch.join(request, reply, isLeader: false)
            return
        }
        if isHeldBack(Relay(request, reply, isLeader: true), stored: stored) { return }
        let fetch = start(
            request,
            stored: stored,
            variants: variants,
            isJoinable: !sharesNothing,
            parts: parts,
            completes: completes
        )
        fetch.join(request, reply, isLeader: true)
    }

    /// Fetches for clients who turned out to want something else than the fetch that they waited for brings.
    ///
    /// - Parameter selection: what the response varies by, by which those who want the same are put together; nil where
    ///   nothing of it is for anybody else. A client that was regrouped once without success is fetched for alone.
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
            if isHeldBack(relay, stored: stored) { continue }
            let isJSON = relay.request.wantsJSONOnly
            if let group = groups.first(where: { $0.selection == wanted && $0.isJSON == isJSON }) {
                group.fetch.join(relay.request, relay.reply, isLeader: false, hasMoved: true)
            } else {
                let fetch = start(relay.request, stored: nil, isJoinable: false)
                fetch.join(relay.request, relay.reply, isLeader: true, hasMoved: true)
                groups.append((wanted, isJSON, fetch))
            }
        }
    }

    /// Fetches for one client alone: what it wanted to join turned out not to be for it.
    ///
    /// - Parameter stored: what is served in the place of a response if the upstream must not be asked.
    func askAlone(_ relay: Relay, stored: ReadyResponse? = nil) {
        if isHeldBack(relay, stored: stored) { return }
        start(relay.request, stored: nil, isJoinable: false).join(relay.request, relay.reply, isLeader: true)
    }

    /// Fetches without conditions for clients whom a 304 did not help; together.
    ///
    /// Behind a stale response nobody waits: there the refresh goes on, since a 304 of the same kind would come each time.
    func askAgain(_ relays: [Relay], insteadOf useless: RunningFetch) {
        guard let first = relays.first else {
            guard let subject = useless.refreshes, !useless.isInvalidated else { return }
            useless.refreshes = nil
            start(useless.request, stored: useless.stored, isConditional: false, refreshes: subject)
            return
        }
        let fetch = start(first.request, stored: useless.stored, isConditional: false)
        for relay in relays { fetch.join(relay.request, relay.reply, isLeader: relay.isLeader) }
    }

    /// Fetches a document that was served stale, for the next one who asks; never twice at a time, nor soon after a failure.
    func refresh(_ request: ProxyRequest, stored: ReadyResponse) {
        guard let request = request.ofWhole else { return }
        if let fetch = joinable[request.digest], fetch.isJoinable(by: request) { return }
        if pauses.pause(for: request, now: loop.now) != nil { return }
        let subject = Refreshes.Subject(stored)
        guard refreshes.begin(subject, now: loop.now) else { return }
        start(request, stored: stored, refreshes: subject)
    }

    /// Sends an unsafe request, once.
    func write(_ request: ProxyRequest, _ reply: Reply) -> RunningWrite {
        let write = RunningWrite(request, reply, fetches: self)
        runningWrites[ObjectIdentifier(write)] = write
        metrics.upstream(request.upstream.name).started()
        write.send(request.upstreamRequest(), through: clients[request.upstream.index])
        return write
    }

    @discardableResult
    private func start(
        _ request: ProxyRequest,
        stored: ReadyResponse?,
        variants: [Variant] = [],
        isJoinable: Bool = true,
        isConditional: Bool = true,
        parts: ReadyResponse? = nil,
        completes: Bool = false,
        refreshes: Refreshes.Subject? = nil
    ) -> RunningFetch {
        // What is missing comes with a condition of its own, `If-Range`.
        let validation =
            isConditional && !completes ? Validation(request, stored: stored, variants: variants) : .none
        let fetch = RunningFetch(
            request,
            stored: stored,
            validation: validation,
            parts: parts,
            completes: completes,
            refreshes: refreshes,
            fetches: self
        )
        if isJoinable, let place = place(of: request) { joinable[place] = fetch }
        running[ObjectIdentifier(fetch)] = fetch
        metrics.upstream(request.upstream.name).started()
        let upstreamRequest = request.upstreamRequest(
            validation,
            completing: fetch.completing,
            settlesDoubt: stored?.response.doubts.isEmpty == false
        )
        fetch.send(upstreamRequest, through: clients[request.upstream.index])
        return fetch
    }

    /// Where those are found who may wait for one another's response: by the document, or by the part of it that they ask
    /// for; nil where nobody may.
    func place(of request: ProxyRequest) -> Digest128? {
        request.isShareable ? request.digest : request.partKey.map { cache.store.hasher.digest($0) }
    }

    // MARK: The end

    /// Nobody joins a fetch any more.
    func retire(_ fetch: RunningFetch) {
        guard let place = place(of: fetch.request), joinable[place] === fetch else { return }
        joinable[place] = nil
    }

    /// The objects in a fetched response are committed, or never will be.
    func committed(_ fetch: ObjectIdentifier) { running[fetch]?.handle(.committed) }

    /// A fetch is over, and what it brought is stored.
    func ended(_ fetch: RunningFetch) {
        running[ObjectIdentifier(fetch)] = nil
        guard let subject = fetch.refreshes else { return }
        refreshes.ended(subject, hasSucceeded: fetch.state.hasRefreshed, now: loop.now)
    }

    /// A write is over, and its client has the response.
    func ended(_ write: RunningWrite) { runningWrites[ObjectIdentifier(write)] = nil }

    /// Counts a transfer that is over; returns how it ended, and how long it took in seconds.
    ///
    /// - Parameters:
    ///   - status: of the response; nil where none came.
    ///   - start: when the request was sent, in µs of the store's clock.
    func transferEnded(
        _ request: ProxyRequest,
        _ result: Result<TransferSummary, UpstreamError>,
        status: Int?,
        since start: Int64
    ) -> (Fetch.End, seconds: Double) {
        let seconds = Double(max(0, cache.now - start)) / 1_000_000
        let metrics = metrics.upstream(request.upstream.name)
        note(result, status: status, of: request)
        switch result {
        case .success(let summary):
            metrics.ended(status: status ?? 0, seconds: seconds)
            return (summary.isCodingWhole ? .whole : .cut, seconds)
        case .failure(let error):
            metrics.ended(result: error.label, seconds: seconds)
            return (.failed, seconds)
        }
    }

    // MARK: What becomes outdated

    /// A write has completed, or never will: what it covers is outdated.
    ///
    /// - Parameter time: when it was over, in µs of the store's clock.
    func invalidate(_ invalidation: Invalidation, at time: Int64) {
        invalidations.note(invalidation, at: time)
        hitForMiss.forget(invalidation)
    }

    /// The store is cleaned: nothing that is on its way may bring back what is removed.
    func cleaned() {
        invalidations.noteCleaning()
        hitForMiss.forgetAll()
        unstored.forgetAll()
    }
}

/// Bytes that fetches hold, and what waits for a commit or for a slow reader.
extension Fetches {
    /// Counts bytes of a body that a fetch keeps; false when there are too many, and it has to let go of them.
    func hold(_ bytes: Int) -> Bool {
        held += bytes
        return held <= heldLimit
    }

    /// Counts bytes no longer, once none of these clients has any of them to take.
    func release(_ bytes: Int, after replies: [any Recipient] = []) {
        guard let slow = replies.first(where: { $0.backlog > 0 }) else {
            held -= bytes
            return
        }
        let (number, fetches) = (wait { [self] in release(bytes, after: replies) }, LoopReference(self, on: loop))
        slow.onDrain(below: 1) { fetches.enqueue { $0.resume(number) } }
    }

    /// Does something here once everything that the store was given so far is committed.
    func afterCommits(_ work: @escaping () -> Void) {
        after({ [cache] in await cache.store.flush() }, then: { _ in work() })
    }

    /// Does something here once something else is done on other threads, with what came of that.
    func after<Value: Sendable>(
        _ step: @escaping @Sendable () async -> Value,
        then work: @escaping (Value) -> Void
    ) {
        let result = Locked<Value?>(nil)
        let number = wait { if let value = result.value { work(value) } }
        let fetches = LoopReference(self, on: loop)
        Task {
            result.value = await step()
            fetches.enqueue { $0.resume(number) }
        }
    }

    /// Notes what is to be done here once something on another thread has happened.
    private func wait(_ work: @escaping () -> Void) -> Int {
        defer { waitingCount += 1 }
        waiting[waitingCount] = work
        return waitingCount
    }

    private func resume(_ number: Int) {
        waiting.removeValue(forKey: number)?()
    }
}

/// What clients are given that wait for a fetch.
extension Fetches {
    /// Counts how a client was answered; what Larder asks for itself is no request.
    func count(_ outcome: Outcome, for relay: Relay) {
        guard relay.reply.isRequest else { return }
        outcomes.count(outcome)
        relay.request.note?.counted(as: outcome)
    }

    /// Answers clients from a ready response, each in its own view and for its own address.
    ///
    /// - Parameter cookies: the upstream's `Set-Cookie` lines, and others that are for nobody but the one whose request they
    ///   answer.
    func serve(
        _ ready: ReadyResponse,
        to relays: [Relay],
        as cacheUse: (ProxyRequest) -> CacheUse,
        cookies: [Field] = []
    ) {
        for relay in relays {
            let cacheUse = cacheUse(relay.request)
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

    /// Serves a view that the store has to be read for.
    private func serveLater(_ ready: ReadyResponse, to relay: Relay, as cacheUse: CacheUse, cookies: [Field]) {
        after({ [cache, request = relay.request] in try? await cache.inView(of: request, ready) }) { [self] shown in
            guard let shown else {
                count(.error, for: relay)
                return relay.reply.refuse(.receivedBytesGone, nil)
            }
            serve(shown, to: relay, as: cacheUse, cookies: cookies)
        }
    }

    private func serve(_ shown: ReadyResponse, to relay: Relay, as cacheUse: CacheUse, cookies: [Field]) {
        count(cacheUse.outcome(of: shown), for: relay)
        relay.reply.serve(
            shown,
            for: relay.request,
            as: cacheUse,
            isCollapsed: !relay.isLeader,
            cookies: relay.isLeader ? cookies : [],
            now: now
        )
    }

    /// Serves a response that is whole and not stored.
    func serveUnstored(_ body: [UInt8], of fetch: RunningFetch, to relays: [Relay]) {
        guard let head = fetch.head else { return }
        let request = fetch.request
        let response = CachedResponse(
            key: request.key,
            status: head.status,
            fields: StoredFields.storable(head.fields),
            body: body,
            policy: policy(of: head, in: fetch).stored
        )
        let ready = ReadyResponse(response, for: request)
        serve(ready, to: relays, as: { .unkept($0.reason) }, cookies: head.cookies)
    }
}

/// The fetches behind stale responses: one at a time for each document, and after failures not again at once.
///
/// A value for one thread.
package struct Refreshes {
    /// One document: a key and the variant of it.
    struct Subject: Hashable {
        let digest: Digest128
        let variant: [UInt8]

        init(_ stored: ReadyResponse) {
            digest = stored.residence.digest
            variant = stored.response.selection.bytes
        }
    }

    private struct Failure {
        var count: Int
        /// In ns of the loop's clock.
        var notBefore: UInt64
    }

    private var running: Set<Subject> = []
    private var failures: [Subject: Failure] = [:]
    private static let limit = 4_096

    /// Whether a document may be refreshed now; if so it counts as being refreshed until `ended`.
    mutating func begin(_ subject: Subject, now: UInt64) -> Bool {
        if let failure = failures[subject], now < failure.notBefore { return false }
        return running.insert(subject).inserted
    }

    /// The refresh is over; one that failed is repeated after a pause.
    mutating func ended(_ subject: Subject, hasSucceeded: Bool, now: UInt64) {
        running.remove(subject)
        guard !hasSucceeded else {
            failures[subject] = nil
            return
        }
        if failures.count >= Self.limit { failures = failures.filter { $0.value.notBefore > now } }
        if failures.count >= Self.limit { failures = [:] }
        let count = (failures[subject]?.count ?? 0) + 1
        failures[subject] = Failure(count: count, notBefore: now + Self.pause(after: count))
    }

    /// For how long the upstream is not asked after so many failures in a row, in ns: 1, 2, 4 … and at last 60 seconds.
    static func pause(after failures: Int) -> UInt64 {
        min(60, UInt64(1) << UInt64(min(failures - 1, 6))) * 1_000_000_000
    }
}
