import CachePolicy
import HTTPSemantics
import HTTPServer
import Logging
import Mapping
import Settings
import Store

/// Requests, and the responses of other machines.
extension ProxyCore {
    /// A request whose response machines share, if they do.
    nonisolated func shared(_ request: ProxyRequest, _ incoming: IncomingRequest, _ fleet: FleetSharing) -> ProxyRequest
    {
        let key = request.key
        guard request.isShareable, fleet.link.shares(key.upstream) else { return request }
        let shared = SharedKey(
            upstream: key.upstream,
            context: key.context,
            url: key.url,
            credentials: incoming.credentials
        )
        return request.shared(under: shared)
    }

    /// Has a response refreshed in the background, unless another machine has done so.
    func refresh(_ inquiry: Plan.Inquiry) {
        let request = inquiry.request
        guard request.sharedKey != nil else { return fetches.refresh(inquiry) }
        guard fleetSearches[request.digest] == nil, fetches.mayRefresh(inquiry) else { return }
        Task {
            if let inquiry = await planWithFleet(request, .ask(inquiry)).plan.inquiry { fetches.refresh(inquiry) }
        }
    }

    /// What other machines are asked for before a plan's inquiry is sent; nil if they are not.
    func search(for request: ProxyRequest, _ plan: Plan) -> (FleetSharing, SharedKey, Plan.Inquiry)? {
        guard let fleet, let key = request.sharedKey, case .ask(let inquiry) = plan.unheld, !request.insistsOnAsking,
            inquiry.completing == nil, fetches.underWay(for: request) == nil
        else { return nil }
        return (fleet, key, inquiry)
    }

    /// Looks for another machine's response before the upstream is asked, and plans again.
    ///
    /// Nothing else runs on the loop between the end and the execution of the plan. Other requests for the same response wait for
    /// the search, and then join the fetch that follows, or wait for the commit of what was found.
    ///
    /// - Returns: the plan, and the commit that it is to be carried out with (`carryOut(_:_:_:with:)`); nil for none.
    func planWithFleet(_ request: ProxyRequest, _ plan: Plan) async -> (plan: Plan, commit: AwaitedCommit?) {
        guard let (fleet, key, inquiry) = search(for: request, plan) else { return (plan, nil) }
        guard fleetSearches[request.digest] == nil else {
            await withCheckedContinuation { fleetSearches[request.digest]?.append($0) }
            return (await self.plan(request).plan, nil)
        }
        fleetSearches[request.digest] = []
        let moment = moment(at: request.digest)
        var fleetFetch: FleetFetch?
        var found: (plan: Plan, commit: AwaitedCommit)?
        switch await fleet.link.find(key) {
        case .document(let document):
            found = await admit(document, for: request, insteadOf: inquiry.stored, since: moment)
        case .mine: fleetFetch = FleetFetch(fleet, key, isAwaited: true)
        case .alone: break
        }
        let plan = if let found { found.plan } else { await self.plan(request).plan.taking(fleetFetch) }
        for waiter in fleetSearches.removeValue(forKey: request.digest) ?? [] { waiter.resume() }
        return (plan, found?.commit)
    }

    /// Stores another machine's response as if it had been received here, unless it is of no use for the request.
    ///
    /// - Returns: the plan for serving it with its commit, which has begun; nil if the request has to be planned again.
    private func admit(
        _ document: SharedDocument,
        for request: ProxyRequest,
        insteadOf stored: ReadyResponse?,
        since moment: LookUpMoment
    ) async -> (plan: Plan, commit: AwaitedCommit)? {
        guard let response = CachedResponse(document, to: request, now: now, wall: wall),
            !hasChanged(request, at: request.digest, since: moment)
        else { return nil }
        let ready = ReadyResponse(response, for: request)
        // What this machine has stored itself is as good, unless it is older.
        if let stored, stored.policy.responseTime >= ready.policy.responseTime, !stored.response.isOutdated {
            return nil
        }
        guard case .whole(let head) = DiskShare(of: response, to: request) else { return nil }
        let match = request.upstream.bodyMatch(request, status: response.status, fields: response.fields)
        // Whoever is served it has seen what its publisher has announced, also if that is not read here yet.
        if let announced = document.announced { fleet?.applies(announced, in: request.key.upstream) }
        let isOnly = !cache.mayKnow(request.digest)
        // One of which nothing else is known, and that nothing has invalidated since it was requested, is as good as an arrival.
        let isCertain = isOnly && !fetches.invalidations.mayCover(request, requestedAt: document.sent)
        // A commit that fails would leave its client with half a response.
        let isBegun = isOnly && cache.hasRoom(for: response.body.count)
        let commit = AwaitedCommit()
        let arrival = Arrival(
            ready: ready,
            sent: document.sent,
            age: response.policy.knownAge,
            match: match,
            number: moment.number,
            share: .whole(head: head),
            isAwaited: true,
            shared: document,
            needsCommit: !isCertain
        )
        let containsObjects = cache.admit(
            arrival,
            foreseen: isBegun ? commit.foresee : nil,
            stored: { _ in commit.succeed() },
            done: { _ in commit.finish() }
        )
        // The look-up waits for the commit of one without objects, as for every arrival.
        guard containsObjects else { return nil }
        // The writer works meanwhile.
        if isBegun, let plan = planToServe(ready, to: request) { return (plan, commit) }
        _ = await commit.isStored()
        return nil
    }

    /// Serves a response with its commit.
    ///
    /// Writes and cleans that end before the commit is foreseen are the store's to know; those that end later overlap the request.
    ///
    /// - Returns: false if the commit is not foreseen: then it is over, and the request has to be planned again.
    func carryOut(_ plan: Plan, _ request: ProxyRequest, _ reply: Reply, with commit: AwaitedCommit) async -> Bool {
        guard case .serve(let ready, let use, _) = plan else { preconditionFailure("only what is served has a commit") }
        log.decided(plan, on: request, at: now)
        cache.memory.recordUse(of: ready)
        request.note?.recordOutcome(use.outcome(of: ready))
        return await reply.serve(ready, for: request, as: use, with: commit, now: now)
    }

    /// The plan for a request to which a response is the only one, and is served whole and as it is; nil if it is not.
    private func planToServe(_ ready: ReadyResponse, to request: ProxyRequest) -> Plan? {
        let mode = modes.current
        guard request.message.method == "GET", !request.hasConditions, request.range == nil, !ready.body.isEmpty,
            !ready.needsRendering(for: request), Plan(withoutLookUp: request, mode: mode) == nil,
            case .serve(let served, let use, let reason) = planWithoutHold(request, LookUpResult(whole: ready), mode),
            served === ready
        else { return nil }
        return .serve(served, use, reason)
    }
}

/// What a client has seen through other machines.
extension ProxyCore {
    /// What a request says of positions; nil without a field, or if its upstream is not shared.
    nonisolated func positionWish(of incoming: IncomingRequest, _ fleet: FleetSharing) -> PositionField.Wish? {
        guard incoming.live == nil, fleet.link.shares(incoming.upstream.storeKey) else { return nil }
        return PositionField.wish(incoming.message.fields, of: incoming.upstream.name)
    }

    /// Holds a response back until its position is known.
    nonisolated func hold(_ reply: Reply, of incoming: IncomingRequest) {
        guard let fleet else { return }
        let (upstream, name, note) = (incoming.upstream.storeKey, incoming.upstream.name, incoming.note)
        reply.buffer(upTo: incoming.upstream.daemon.limits.relayWindow / 2) { response in
            Task {
                let position = await fleet.announcedPosition(in: upstream)
                response.release { fields in
                    // Otherwise other machines will not know what it shows.
                    if note?.isKnown != false { PositionField.add(position, to: &fields, of: name) }
                }
            }
        }
    }

    /// Waits until this machine has read what its client may have seen; otherwise the upstream will be asked.
    func reaching(_ wish: PositionField.Wish, _ request: ProxyRequest) async -> ProxyRequest {
        guard let fleet, MethodFacts.isSafe(request.message.method) else { return request }
        switch wish {
        case .position: return request
        case .unreadable: return request.afterPosition(maximumAge: 0)
        case .from(let position):
            guard await fleet.link.reach(position, in: request.key.upstream),
                let since = fleet.link.followedSince(request.key.upstream)
            else { return request.afterPosition(maximumAge: 0) }
            // The position says nothing of what was announced before its epoch, and may be lost. Ages are counted in whole seconds.
            return request.afterPosition(maximumAge: max(0, (cache.now - since) / 1_000_000 - 1))
        }
    }
}

extension Plan {
    /// The plan with this machine's fetch for the fleet, if it fetches it.
    fileprivate func taking(_ fleetFetch: FleetFetch?) -> Plan {
        switch self {
        case .ask(var inquiry):
            inquiry.fleetFetch = fleetFetch
            return .ask(inquiry)
        case .serveAndRefresh(let ready, let use, let reason, var inquiry):
            inquiry?.fleetFetch = fleetFetch
            return .serveAndRefresh(ready, use, reason, inquiry)
        case .serve, .write, .refuse, .refuseAndExpire, .held: return self
        }
    }
}

extension CachedResponse {
    /// A response that another machine has received, by the rules of this one; nil if it may not be stored for the request, or
    /// was selected by other fields.
    ///
    /// - Parameters:
    ///   - now: in seconds of the store's clock.
    ///   - wall: the same of the wall clock.
    init?(_ document: SharedDocument, to request: ProxyRequest, now: Int64, wall: Int64) {
        let fields = Fields(encoded: document.head)
        let arrival = document.completed / 1_000_000
        let times = ExchangeTimes(
            request: document.sent / 1_000_000,
            response: arrival,
            wall: wall - max(0, now - arrival)
        )
        guard document.sent <= document.completed, document.status >= 200,
            !StatusFacts.isServerError(document.status), ![206, 304].contains(document.status),
            document.body.count <= request.upstream.daemon.limits.document,
            NotStoredReason.refusal(of: request) == nil
        else { return nil }
        let policy = request.policy(status: document.status, fields: fields, times: times)
        guard policy.storability == .yes,
            let selection = request.selection(policy, isJSON: request.upstream.isJSON(fields)),
            selection.bytes == document.variant
        else { return nil }
        self.init(
            key: request.key,
            status: document.status,
            fields: request.storable(fields, policy, at: times.wall),
            body: document.body,
            policy: policy.stored
        )
        self.selection = selection
    }
}

extension Fetches {
    /// A fetch for a response that is shared if it can be, although no other machine waits for it.
    func fleetFetch(of request: ProxyRequest) -> FleetFetch? {
        guard let fleet, let key = request.sharedKey else { return nil }
        return FleetFetch(fleet, key, isAwaited: false)
    }

    /// What shares a response once it is stored; nil if it may not be shared.
    func sharing(_ ready: ReadyResponse, _ share: DiskShare, of fetch: RunningFetch, _ fleetFetch: FleetFetch)
        -> (@Sendable ([ObjectName]) -> Void)?
    {
        let (response, lifetime) = (ready.response, ready.policy.timeToLive(at: now))
        guard case .whole(let head) = share, var fields = FieldsOnDisk.withoutDigests(head), lifetime > 0,
            response.status != 206, response.body.count <= SharedDocument.bodyByteLimit, response.form == .asReceived,
            !response.selection.hasFixedCoding, !ready.policy.flags.contains(.noCache)
        else {
            fleetFetch.refuse()
            return nil
        }
        // It is not stored, but the reader's policy is made of the response as it was received.
        if response.policy.ageValue >= 0 { fields.append("Age", String(response.policy.ageValue)) }
        let document = SharedDocument(
            status: response.status,
            head: fields.encoded,
            body: response.body,
            variant: response.selection.bytes,
            sent: fetch.start,
            completed: cache.now,
            lifetime: lifetime,
            objects: []
        )
        return { names in
            var document = document
            document.objects = names
            Task { [document] in await fleetFetch.share(document) }
        }
    }
}

extension SharedDocument {
    /// The largest body that is shared.
    package static let bodyByteLimit = 512 << 10
}
