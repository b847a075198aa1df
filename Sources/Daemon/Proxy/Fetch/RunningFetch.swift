import CachePolicy
import EventLoops
import HTTPSemantics
import HTTPServer
import Mapping
import Settings
import Store
import Upstream

/// A fetch under way: performs its `Fetch`'s actions and sends it the events.
///
/// It lives on the upstream loop until `Fetch.Action.end`.
final class RunningFetch: TransferDelegate {
    /// The request of the client that started the fetch, and what is stored that the response may concern.
    private(set) var inquiry: Plan.Inquiry
    let validation: Validation
    /// When the request was sent, in µs of the store's clock.
    let start: Int64
    /// The same in seconds.
    let requestTime: Int64
    /// Shows what writes and cleans have invalidated since the request was sent.
    private let token: InvalidationLog.Token
    /// The number in memory at that time, for what arrives under the key.
    let number: Int
    /// What the request has reserved of a rate limit.
    var reservation: BackOffs.Reservation?
    /// Shares the response with other machines; nil if they do not share it.
    let fleetFetch: FleetFetch?
    /// The document that this fetch refreshes in the background.
    var refreshes: Refreshes.Subject?
    /// Another principal's document that a 304 has released, and that the whole response is compared with.
    var released: DocumentID?

    private(set) var state: Fetch
    private(set) var head: UpstreamHead?
    private var absence: ObservedAbsence?
    /// The response to store when its body is whole, if it is to be stored; still without the body.
    ///
    /// With the status 206 it is a part of the document.
    private var storing: CachedResponse?
    /// Whether that contains objects, so that its end waits for their commit.
    private var containsObjects = false
    private unowned let fetches: Fetches
    private var transfer: Transfer?
    private var relays: [(id: Int, relay: Relay)] = []
    private var error: UpstreamError?
    /// Whether it was not sent after all, because the upstream has said meanwhile that it would be refused.
    private var isHeldBack = false
    /// Why a complete response is not shown to be whole.
    private var defect: UpstreamError?
    /// The response that was kept or freshened.
    private var served: ServedResponse?
    /// The stored response for a client that lost patience.
    private var meanwhile: (ready: ReadyResponse, use: CacheUse)?
    /// When the head or the latest piece of the body came, in ns of the loop's clock.
    private var lastPiece: UInt64?
    /// Bytes of the body that count in `Fetches.bufferedBytes`.
    private var charge = 0
    /// Limits the wait for the commit.
    private var timer: EventTimer?

    /// The response for clients that waited for the whole.
    struct ServedResponse {
        let ready: ReadyResponse
        /// How it came about, for `Cache-Status`.
        let use: (ProxyRequest) -> CacheUse
        /// Cookies and other lines for the one client whose request was sent.
        var cookies: [Field] = []
        /// Whether followers that asked for another variant fetch it for themselves.
        var isForVariantOnly = false
    }

    var request: ProxyRequest { inquiry.request }
    var stored: ReadyResponse? { inquiry.stored }
    var parts: ReadyResponse? { inquiry.parts }
    var completing: ReadyResponse? { inquiry.completing }

    init(_ inquiry: Plan.Inquiry, refreshes: Refreshes.Subject?, fetches: Fetches) {
        self.inquiry = inquiry
        validation = inquiry.validation
        self.refreshes = refreshes
        self.fetches = fetches
        start = fetches.cache.now
        requestTime = fetches.now
        fleetFetch = inquiry.fleetFetch ?? fetches.fleetFetch(of: inquiry.request)
        token = fetches.invalidations.token
        number = fetches.cache.memory.number(at: inquiry.stored?.entry.digest ?? inquiry.request.digest)
        state = Fetch(isRefresh: refreshes != nil, limit: inquiry.request.upstream.daemon.limits.document)
    }

    /// Whether the request went upstream with a `Range`.
    var asksForRange: Bool { request.isForParts || completing != nil }

    /// How writes and cleans have affected the response since the request was sent.
    var change: InvalidationLog.Change { fetches.invalidations.change(since: token, for: request) }

    /// Whether a write or a clean has invalidated the response, so that it is passed on but not kept.
    var isInvalidated: Bool { change == .invalidated }

    var isAwaited: Bool { !state.clients.isEmpty }

    /// Whether a head says that what is stored is current, or so it seems.
    ///
    /// To conditions in a POST the standard wants 412 in place of 304 (RFC 9110 §13.1.2); the whole is fetched then.
    func isUnmodified(_ head: UpstreamHead) -> Bool {
        !validation.isEmpty && (head.status == 304 || request.read != nil && head.status == 412)
    }

    /// Notes that the upstream allows less use of the stored response than it did, although it confirms it no more.
    func restrictStored(by policy: StoredPolicy) {
        inquiry.stored = stored.map { fetches.cache.restrict($0, by: policy) }
    }

    // MARK: Clients

    /// Whether another client may still join: it will get the whole body, of the variant that it asked for.
    ///
    /// None may after a write to the upstream (law 10).
    func isJoinable(by request: ProxyRequest) -> Bool {
        guard request.upstream === self.request.upstream, change == .none, !state.isTransferred,
            !hasStalled(for: request)
        else { return false }
        return switch state.phase {
        // After a 304 or a failure the stored response would be served, which is of one variant.
        case .asking, .noting: stored?.matches(request) ?? true
        // A client that insists on a new response must not get one that has already begun.
        case .relaying: state.body.isWhole && matches(request) && !request.insistsOnAsking && !request.wantsRendering
        case .gathering: state.body.isWhole && matches(request) && !request.insistsOnAsking
        case .freshening, .committing, .over: false
        }
    }

    /// Whether the response has begun, and has stopped for longer than a client waits that may get a stale one.
    private func hasStalled(for request: ProxyRequest) -> Bool {
        guard let lastPiece, request.reason.allowsImpatience else { return false }
        let patience = max(.seconds(1), request.upstream.waiting(for: request).patience)
        return patience < .forever && fetches.loop.now > lastPiece + patience.nanoseconds
    }

    /// Adds a client, and sends it what has arrived so far.
    func join(_ request: ProxyRequest, _ reply: any Recipient, isLeader: Bool, hasMoved: Bool = false) {
        let relay = Relay(request, reply, isLeader: isLeader)
        relay.hasMoved = hasMoved
        let id = fetches.newClientNumber()
        relays.append((id, relay))
        let (proxy, number) = (fetches.proxy, ObjectIdentifier(self))
        reply.onDisconnect { proxy.enqueue { $0.fetches.left(id, number) } }
        var client = Fetch.Client(id: id, isLeader: isLeader, wantsRendering: request.wantsRendering)
        client.wantsCut = request.isForWhole
        handle(.joined(client))
        beginPatience(of: relay, id)
    }

    /// Serves a client the stored response if the upstream takes longer than the client's patience.
    private func beginPatience(of relay: Relay, _ id: Int) {
        let request = relay.request
        guard relay.reply.isRequest, request.reason.allowsImpatience else { return }
        let (patience, start) = (fetches.patience(with: request), fetches.cache.now)
        guard patience < .forever else { return }
        relay.patience = fetches.loop.after(patience) { [weak self, unowned fetches] in
            fetches.planAgain(request) { self?.lostPatience(id, request, $0, since: start) }
        }
    }

    private func lostPatience(_ id: Int, _ request: ProxyRequest, _ plan: Plan, since start: Int64) {
        // The bytes as received may be gone from the store; the upstream has them.
        guard let stored = plan.inPlaceOfSlowResponse, !stored.ready.needsReceivedBytes(in: request.view)
        else { return }
        if head == nil, error == nil, relay(id) != nil { fetches.recordLostPatience(with: request, since: start) }
        meanwhile = stored
        handle(.lostPatience(id))
        meanwhile = nil
    }

    func left(_ id: Int) {
        _ = take([id])
        handle(.left(id))
    }

    func send(_ request: UpstreamRequest, through client: UpstreamClient) { transfer = client.start(request, self) }

    // MARK: Transfer events

    func isStillWanted() -> Bool {
        (isHeldBack, reservation) = fetches.reserveAgain(for: request, isRefresh: refreshes != nil, reservation)
        return !isHeldBack
    }

    func informational(status: Int, fields: Fields) {
        for (_, relay) in relays { relay.inform(status: status, fields: fields) }
    }

    func received(head: UpstreamHead) {
        (self.head, lastPiece) = (head, fetches.loop.now)
        fetches.recordResponse(to: request)
        fetches.recordRetryAfter(of: head, to: request, reservation)
        absence = fetches.absence(in: head, of: self)
        if absence == nil { proceed() } else { handle(.absence) }
    }

    func received(body bytes: UnsafeRawBufferPointer) -> Flow {
        lastPiece = fetches.loop.now
        switch state.phase {
        case .noting: return .pause
        case .relaying, .gathering: break
        default: return .proceed
        }
        if !state.body.isWhole, isCongested { return .pause }
        let isCharged = state.body.hasRoom(for: bytes.count)
        if isCharged { charge += bytes.count }
        handle(.body([UInt8](bytes), fits: !isCharged || fetches.reserve(bytes.count)))
        if !state.body.isWhole {
            releaseCharge()
            cutLaggards()
        }
        return .proceed
    }

    func completed(_ result: Result<TransferSummary, UpstreamError>) {
        transfer = nil
        switch result {
        case .success(let summary): defect = summary.defect
        case .failure(let error): self.error = error
        }
        let (end, seconds) = fetches.transferEnded(request, result, status: head?.status, since: start, reservation)
        for (_, relay) in relays { relay.request.note?.upstreamTook(seconds) }
        handle(.ended(end))
    }

    /// Interprets the head and continues with the result.
    private func proceed() {
        guard let head else { return }
        var meaning: Fetch.Head
        (meaning, storing, containsObjects) = fetches.meaning(of: head, in: self)
        if isInvalidated { recordKnown(false) }
        if let fleetFetch, meaning.kind == .ordinary, storing == nil, !StatusFacts.isServerError(head.status),
            !isInvalidated
        {
            fleetFetch.refuse()
        }
        if let stored, StatusFacts.isFailure(head.status, head.fields) {
            let able = relays.filter { stored.maySubstitute(at: fetches.now, for: $0.relay.request) }
            meaning.canHaveStale = Set(able.map(\.id))
        }
        for (id, relay) in relays where !relay.isLeader && !matches(relay.request) { meaning.others.insert(id) }
        // Events come at any time, so a silent stream has not stalled.
        if head.isEventStream { transfer?.setStallTimeout(nil) }
        handle(.head(meaning))
    }

    /// Notes for the clients whether this machine knows what the response shows.
    private func recordKnown(_ isKnown: Bool) {
        guard fetches.fleet != nil else { return }
        for (_, relay) in relays { relay.request.note?.recordKnown(isKnown) }
    }

    /// Whether the arriving response is of the variant that a client asks for; always false if it will not be stored.
    private func matches(_ request: ProxyRequest) -> Bool {
        guard let storing else { return false }
        return request.selects(storing.selection, isJSON: request.upstream.isJSON(storing.fields))
    }

    // MARK: Actions

    /// Sends the state machine an event and performs its actions.
    func handle(_ event: Fetch.Event) {
        for action in state.handle(event) { perform(action) }
        if state.isTransferred, state.clients.isEmpty { releaseCharge() }
    }

    private func perform(_ action: Fetch.Action) {
        switch action {
        case .commitAbsence: if let absence { fetches.commit(absence) { [self] in proceed() } }
        case .stopJoining: fetches.retire(self)
        case .resume: transfer?.resume()
        case .cancel: transfer?.cancel()
        case .begin(let id, let pieces): begin(id, pieces)
        case .write(let piece):
            for client in state.clients { relay(client.id)?.write(piece) }
        case .keptNoLonger(let id): relay(id)?.keptNoLonger()
        case .finish(let id): relay(id)?.finish()
        case .abort(let id): relay(id)?.abort()
        case .serve(let ids): serve(take(ids))
        case .serveUnstored(let ids): fetches.serveUnstored(state.body.joined(), of: self, to: take(ids))
        case .serveStale(let ids):
            if let stored { fetches.substitute(stored, forStatus: head?.status, to: take(ids)) }
        case .serveMeanwhile(let id):
            guard let meanwhile else { return }
            fetches.serve(meanwhile.ready, to: take([id]), as: { _ in meanwhile.use })
        case .fail(let ids) where isHeldBack:
            for relay in take(ids) { fetches.askAlone(relay, stored: stored) }
        case .fail(let ids): fetches.failed(error ?? .cancelled, self, relays: take(ids))
        case .fetchApart(let ids): fetches.askApart(take(ids), by: storing?.selection, stored: stored)
        case .fetchWhole(let ids): fetches.askForWhole(take(ids), insteadOf: self)
        case .fetchUnconditionally(let ids): fetches.refetch(for: take(ids), insteadOf: self)
        case .supersede: fetches.supersede(self, by: nil)
        case .explainLoss(.tooLarge):
            fetches.record(.tooLarge(limit: request.upstream.daemon.limits.document), in: self)
        case .explainLoss(.truncated): fetches.record(.truncated(defect), in: self)
        case .explainLoss(.odd): fetches.record(.odd, in: self)
        case .admit:
            // Storing takes time that clients need not wait for; if many fetches run, fewer and larger turns are faster.
            if fetches.runsOne {
                for (_, relay) in relays { relay.reply.flush() }
                fetches.loop.sendDeferredWakes()
            }
            handle(.admitted(admit()))
        case .freshen: fetches.applyNotModified(to: self)
        case .end: fetches.ended(self)
        }
    }

    private func begin(_ id: Int, _ pieces: [[UInt8]]) {
        guard let head, let relay = relay(id) else { return }
        relay.recordOutcome(request.isShareable || request.isForParts ? .miss : .bypass)
        relay.begin(
            head,
            storing: storing,
            isKept: fetches.cache.hasPlace(for: head.fields.contentLength, withObjects: containsObjects),
            withholdsEnd: containsObjects,
            now: fetches.now
        )
        for piece in pieces { relay.write(piece) }
    }

    private func admit() -> Fetch.Admission {
        guard let head, var response = storing else { return .unusable }
        response.body = state.body.joined()
        if request.read?.kind == .graphQL, !JSONBody.isGraphQLResult(response.body) {
            fetches.record(.graphQLErrors, in: self)
            return .unusable
        }
        let isPart = response.status == 206
        let admitted =
            isPart
            ? fetches.admitPart(response, from: self) : fetches.admit(response, from: self, isAwaited: isAwaited)
        guard let (ready, isWithheld) = admitted else { return .unusable }
        let (isValid, size, cache) = (!isInvalidated, response.body.count, fetches.cache)
        // Its objects are known with their commit.
        recordKnown(!isInvalidated && !containsObjects)
        if !cache.hasPlace(for: size, withObjects: isWithheld) { fetches.record(.unwritable, in: self) }
        served = ServedResponse(
            ready: ready,
            use: { request in
                let reason = request.reason.forward
                guard isValid else { return .unkept(reason) }
                guard cache.hasPlace(for: size, withObjects: isWithheld) else {
                    return .unkept(reason, because: .unwritable)
                }
                return isPart ? .completed(reason) : .fetched(reason)
            },
            cookies: head.cookies
        )
        return isWithheld ? awaitCommit() : .ready
    }

    /// Continues after a 304; nil means that it helps no client.
    func endFreshening(_ served: ServedResponse?, isWithheld: Bool = false) {
        self.served = served
        recordKnown(!isWithheld)
        handle(.freshened(served == nil ? .unusable : isWithheld ? awaitCommit() : .ready))
    }

    private func awaitCommit() -> Fetch.Admission {
        timer = fetches.loop.after(request.upstream.daemon.store.withhold) { [unowned self] in handle(.commitIsLate) }
        return .withheld
    }

    /// Goes on after the commit of the response's objects.
    func committed(isKnown: Bool) {
        if isKnown { recordKnown(true) }
        handle(.committed)
    }

    private func serve(_ relays: [Relay]) {
        guard let served else { return }
        let isServed = { (relay: Relay) in
            !served.isForVariantOnly || relay.isLeader || served.ready.matches(relay.request)
        }
        fetches.serve(served.ready, to: relays.filter(isServed), as: served.use, cookies: served.cookies)
        for relay in relays where !isServed(relay) { fetches.askAlone(relay) }
    }

    private func relay(_ id: Int) -> Relay? { relays.first { $0.id == id }?.relay }

    private func take(_ ids: [Int]) -> [Relay] {
        let taken = relays.filter { ids.contains($0.id) }.map(\.relay)
        relays.removeAll { ids.contains($0.id) }
        return taken
    }

    // MARK: Slow clients

    private var waiting: [(id: Int, relay: Relay)] {
        relays.filter { entry in state.clients.contains { $0.id == entry.id } }
    }

    /// Whether even the fastest client is a window behind.
    private var isCongested: Bool {
        guard state.phase == .relaying, let fastest = waiting.min(by: { $0.relay.backlog < $1.relay.backlog })?.relay
        else { return false }
        let window = request.upstream.daemon.limits.relayWindow
        guard fastest.backlog > window else { return false }
        let fetch = LoopReference(self, on: fetches.loop)
        fastest.reply.onDrain(below: window / 2) { fetch.enqueue { $0.transfer?.resume() } }
        return true
    }

    private func cutLaggards() {
        guard state.phase == .relaying, state.clients.count > 1 else { return }
        let waiting = waiting
        let limit = request.upstream.daemon.limits.relayWindow + (waiting.map(\.relay.backlog).min() ?? 0)
        let laggards = waiting.filter { $0.relay.backlog > limit }
        if !laggards.isEmpty { handle(.lagging(laggards.map(\.id))) }
    }

    /// Stops counting the body as buffered once the slowest client has taken it.
    private func releaseCharge() { fetches.release(&charge, after: relays.map(\.relay.reply)) }
}
