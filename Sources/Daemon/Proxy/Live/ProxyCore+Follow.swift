import CachePolicy
import EventLoops
import HTTPSemantics
import HTTPServer
import Logging
import Settings
import Store

/// Event streams: how a followed document is examined, and when the upstream is asked about it.
///
/// ```
/// something happens ─► look up ─► what a GET would get now ─► other than sent? ─► number it, send it
///        ▲                                                       └─► stale, gone, awaited? ─► ask, now or later
///        └──────────────────────── the upstream's response ◄───────────────────────────────────────┘
/// ```
extension ProxyCore {
    /// Examines the document with a number, once for all events until then.
    func look(atNumber number: Int) {
        Task(executorPreference: loop.taskExecutor) { await self.examine(documentOfNumber: number) }
    }

    private func examine(documentOfNumber number: Int) async {
        guard let document = liveDocuments[number] else { return }
        var conclusion = document.startLook()
        let isBehind = await isBehind(document, afterInquiry: conclusion != nil)
        if let conclusion { beginExamining(conclusion, of: document) }
        // A response too large for memory cannot be found before its commit.
        let isUnfindable = isBehind && cache.inMemory(document.request, now: now)?.isClean != true
        let found = isUnfindable ? nil : await newest(of: document)
        let mode = modes.current
        let plan = planWithoutHold(document.request, LookUpResult(whole: found), mode)
        let refusal = refusal(of: document.request, plan, mode)
        let stored = await stored(by: plan, found, for: document)
        guard !document.isOver else { return }
        // The inquiry predates a write, so its response may be older than what readers know.
        if document.following.isInvalid { conclusion = nil }
        let failure = conclusion.flatMap { problem(in: $0, for: document) }
        let received = conclusion.flatMap { self.received(in: $0, for: document) }
        let isOutage = fetches.isUnreachable(for: document.request)
        let outcome = conclusion?.outcome(received: received?.content, failure: failure?.status, isOutage: isOutage)
        let update = update(plan, stored, conclusion, failure: failure, of: document)
        var number: Int64?
        if let update, document.following.lacksNumber(update.content) {
            number = await self.number(for: update, of: document)
            guard !document.isOver else { return }
        }
        let inquiry = inquiry(ofStream: document.request, plan, found)
        let finding = Following.Finding(
            content: update?.content,
            isStored: update?.stored != nil,
            isProblem: update?.event.problem != nil,
            number: number,
            outcome: outcome,
            asks: refusal == nil,
            isOffline: mode == .offline,
            // Its commit triggers another look, which can plan the next inquiry.
            freshness: isUnfindable ? nil : plan.freshness(at: now),
            backOff: backOffEnd(of: inquiry),
            now: loop.now
        )
        let news = LiveDocument.News(
            update: update,
            received: received,
            failure: failure,
            refusal: refusal,
            cacheStatus: opening(of: document, stored, refusal),
            now: now
        )
        document.looked(finding, news) {
            log.decided(.ask(inquiry), on: document.request, at: now)
            fetches.ask(inquiry, document.ask(fetches, about: found))
        }
    }

    /// What a stream asks the upstream; it may do so although a plain request would be served.
    func inquiry(ofStream request: ProxyRequest, _ plan: Plan, _ found: ReadyResponse?) -> Plan.Inquiry {
        plan.inquiry ?? Plan.Inquiry(request.asking(because: .forward(.request)), stored: found)
    }

    /// Until when a stream backs off, in ns of the loop's clock, also during an outage, which ends with an event; 0 if it does not.
    private func backOffEnd(of inquiry: Plan.Inquiry) -> UInt64 {
        let urgency = inquiry.urgency(isForClient: false, at: now)
        guard let backOff = fetches.backOffs.backOff(for: inquiry.request, as: urgency, now: loop.now)
        else { return 0 }
        // More may be left of a limit before it is reset.
        return backOff.isForLimit ? min(backOff.until, loop.now + 10_000_000_000) : backOff.until
    }

    private func beginExamining(_ conclusion: LiveInquiry.Conclusion, of document: LiveDocument) {
        liveDocuments.deliver()
        document.handle(.ownChangesReported)
        // The stored response is outdated, though the new one may not be stored in its place.
        if case .received(_, isStored: false) = conclusion, let stored = document.inquiry?.about,
            !document.request.directives.noStore
        {
            cache.drop(stored)
        }
    }

    /// Waits for pending commits of a document, because a client that returns after a crash must find what it was sent.
    ///
    /// Returns true if they take longer than the end of a response may be withheld. What is sent then has no number; the number
    /// follows.
    private func isBehind(_ document: LiveDocument, afterInquiry: Bool) async -> Bool {
        guard afterInquiry || cache.isArriving(document.request) else { return false }
        let limit = document.request.upstream.daemon.store.withhold
        return await !flushes(within: limit) && cache.isArriving(document.request)
    }

    /// Waits until all that the store was given so far is committed, or time is up; returns whether it is committed.
    private func flushes(within limit: Duration) async -> Bool {
        await withCheckedContinuation { continuation in
            var waiting: (continuation: CheckedContinuation<Bool, Never>, timer: EventTimer?)? = (continuation, nil)
            let end = { (isCommitted: Bool) in
                waiting?.continuation.resume(returning: isCommitted)
                waiting = nil
            }
            fetches.afterCommits(end)
            waiting?.timer = loop.after(limit) { end(false) }
        }
    }

    // MARK: Stored responses

    /// The newest response to a document's request; from here on, every change of it is noticed.
    private func newest(of document: LiveDocument) async -> ReadyResponse? {
        await newest { isLast in
            let attempt = await lookUpWatched(document)
            // Then another look finds what changed before it was watched.
            if isLast, !attempt.isCurrent { document.handle(.lookRequested) }
            return attempt
        }
    }

    private func lookUpWatched(_ document: LiveDocument) async -> Attempt<ReadyResponse?> {
        let found = await lookUp(document.request)
        guard !document.isOver, let found else { return (nil, true) }
        let objects = found.stored?.objects ?? []
        var view: ReadyResponse?
        if document.request.view == .mapped {
            // Objects that cannot be read are shown by their identities.
            view = try? await cache.inView(of: document.request, found)
            guard !document.isOver else { return (nil, true) }
        }
        let shown = objects + cache.memory.responsesByObject.objects(of: found.entry) + found.response.objects
        let watched = WatchedObjects(shown + (view?.known ?? []), awaiting: view?.named ?? [])
        // Objects read before they were watched may have changed in between.
        return (found, liveDocuments.watchCovers(watched, for: document))
    }

    /// The stored response in the requested view, if there is one that may be shown.
    private func stored(by plan: Plan, _ found: ReadyResponse?, for document: LiveDocument)
        async -> LiveDocument.StoredResponse?
    {
        guard let found else { return nil }
        cache.memory.recordUse(of: found)
        guard let cacheUse = plan.useByStream(of: found, now: now) else { return nil }
        // What is sent must be committed, so that it can be recognised after a restart.
        if found.stored == nil, document.following.needsNumbers {
            _ = await flushes(within: document.request.upstream.daemon.store.withhold)
        }
        do {
            guard let ready = try await cache.inView(of: document.request, found) else { return nil }
            return .init(ready: ready, cacheUse: cacheUse, isCommitted: found.stored != nil)
        } catch {
            log.error("a followed document could not be read", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// Why a stream does not ask the upstream; nil if it does, as far as the request and the mode decide it.
    func refusal(of request: ProxyRequest, _ plan: Plan, _ mode: Mode) -> ProblemDocument? {
        guard mode == .offline || request.directives.onlyIfCached else { return nil }
        return switch plan {
        case .refuse(let problem): problem
        case _ where mode == .offline: .offline(request.message.method)
        default: .notCached
        }
    }

    /// `Cache-Status` of a stream that begins.
    ///
    /// - Parameter shown: the stored response that it shows, and how; nil if none.
    func openingStatus(_ refusal: ProblemDocument?, _ shown: (ready: ReadyResponse, use: CacheUse)?) -> CacheStatus {
        guard let refusal else { return .forwarded(shown == nil ? .uriMiss : .request) }
        guard let (ready, use) = shown else { return refusal.cacheStatus }
        return use.cacheStatus(of: ready, sent: ready.response.status, isCollapsed: false, now: now)
    }

    /// The `Cache-Status` of new streams; counts these.
    ///
    /// - Parameter refusal: why the upstream is not asked; nil if it is.
    private func opening(
        of document: LiveDocument,
        _ stored: LiveDocument.StoredResponse?,
        _ refusal: ProblemDocument?
    ) -> String {
        let status = openingStatus(refusal, stored.map { ($0.ready, $0.cacheUse) })
        let outcome = stored.map { $0.cacheUse.outcome(of: $0.ready) } ?? (refusal == nil ? .miss : .error)
        for reader in document.readers.values where !reader.isOpen {
            reader.note?.recordOutcome(outcome)
            reader.note?.served(as: status)
        }
        return status.text
    }
}

extension Plan {
    /// Whether the response of a followed document would be served from the store.
    fileprivate func freshness(at now: Int64) -> Following.Freshness {
        switch self {
        case .serve(let ready, _, _):
            if ready.response.isOutdated { return .outdated }
            return .fresh(seconds: min(ready.policy.timeToLive(at: now), ready.doubtDue - now))
        case .serveAndRefresh, .write, .refuse, .refuseAndExpire, .held: return .stale
        case .ask(let inquiry):
            guard let stored = inquiry.stored else { return .missing }
            return stored.response.isOutdated || stored.isDoubtDue(at: now) ? .outdated : .mustValidate
        }
    }
}

extension LiveInquiry.Conclusion {
    /// - Parameters:
    ///   - failure: the status of the problem that it means.
    ///   - isOutage: whether the upstream cannot be reached by now.
    func outcome(received: Digest128?, failure: Int?, isOutage: Bool) -> Following.Outcome {
        guard let failure else { return .response(received: received, isStored: !isUnstored) }
        // Nothing was sent, though the upstream may be back.
        if case .served(_, .unreachable, _) = self { return .failure(status: failure, isOutage: true) }
        return .failure(status: failure, isOutage: isOutage)
    }

    var isUnstored: Bool {
        switch self {
        case .received(_, let isStored): !isStored
        case .served(_, .unkept, _), .served(_, .revalidated(_, isStored: false), _): true
        case .served, .failed: false
        }
    }
}

extension ProxyCore {
    /// The response that a GET would get now, if it is known.
    private func update(
        _ plan: Plan,
        _ stored: LiveDocument.StoredResponse?,
        _ conclusion: LiveInquiry.Conclusion?,
        failure: ProblemDocument?,
        of document: LiveDocument
    ) -> LiveDocument.Update? {
        let isFresh = if case .serve = plan { true } else { false }
        if let stored, isFresh || !(conclusion?.isUnstored ?? false) {
            var update = update(LiveEvent(.changed, stored.ready, as: stored.cacheUse, now: now), stored)
            update.cacheStatus = conclusion.flatMap { cacheStatus(of: $0) }
            return update
        }
        switch conclusion {
        case nil: return nil
        case .failed(let problem, let response): return update(LiveEvent(failure: problem, age: nil, response))
        case .received(let event, let isStored):
            if isStored, isOutdated(document, plan) { return nil }
            return update(received: event, for: document)
        case .served(let ready, let cacheUse, _):
            if let failure { return update(LiveEvent(failure: failure, age: nil)) }
            if conclusion?.isUnstored != true, isOutdated(document, plan) { return nil }
            return update(LiveEvent(.changed, ready, as: cacheUse, now: now))
        }
    }

    /// The upstream's response as it came; nil if it did not come whole, or the view is the models' own.
    private func received(in conclusion: LiveInquiry.Conclusion, for document: LiveDocument) -> LiveDocument.Update? {
        guard case .received(let event, _) = conclusion, document.request.view != .mapped else { return nil }
        return update(received: event, for: document)
    }

    private func update(received event: LiveEvent, for document: LiveDocument) -> LiveDocument.Update {
        var event = event
        if document.request.upstream.settings.cookies != .replay { event.fields?.remove("set-cookie") }
        return update(event)
    }

    private func cacheStatus(of conclusion: LiveInquiry.Conclusion) -> String? {
        switch conclusion {
        case .received(let event, _): event.fields?.combined("cache-status")
        case .served(let ready, let cacheUse, let isCollapsed):
            LiveEvent(.fresh, ready, as: cacheUse, isCollapsed: isCollapsed, now: now).fields?.combined("cache-status")
        case .failed: nil
        }
    }

    /// Whether something newer is known than the upstream's response, so that a GET now would be sent upstream.
    ///
    /// Changes before the inquiry do not count: a GET gets the inquiry's response, even if newer values of its objects are known
    /// but it cannot be composed from them.
    private func isOutdated(_ document: LiveDocument, _ plan: Plan) -> Bool {
        guard document.following.validity != .current, case .ask(let inquiry) = plan else { return false }
        return inquiry.stored?.response.isOutdated ?? false
    }

    private func update(_ event: LiveEvent, _ stored: LiveDocument.StoredResponse? = nil) -> LiveDocument.Update {
        // The body of an error contains its time and place, which do not make it another error.
        let body = event.problem == nil ? event.body?.pieces ?? [] : []
        return LiveDocument.Update(
            event: event,
            content: cache.store.hasher.digest(event.contentBeforeBody, body: body),
            stored: stored
        )
    }

    /// The number for a state; nil if the store can give none, or not yet.
    private func number(for update: LiveDocument.Update, of document: LiveDocument) async -> Int64? {
        let store = cache.store
        let digest = document.request.digest
        // Only readers that may come back need one, and it would have to wait for that slow commit.
        let isCommitted = update.stored?.isCommitted ?? false
        guard document.following.needsNumbers, isCommitted || !cache.isArriving(document.request) else { return nil }
        var subject = Array("\(digest.low) \(digest.high) \(document.request.view) ".utf8)
        subject += update.stored?.ready.response.selection.bytes ?? []
        do {
            let sequence = try await store.recordSent(
                store.hasher.digest(subject),
                // If the store does not keep the response, it keeps no trace of it either.
                content: isCommitted ? update.content : nil
            )
            return store.publicSequence(sequence)
        } catch {
            log.error("an event could not be numbered", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// Why an inquiry brought no response of the upstream.
    private func problem(in conclusion: LiveInquiry.Conclusion, for document: LiveDocument) -> ProblemDocument? {
        switch conclusion {
        case .failed(let problem, _): return problem
        case .served(_, .backedOff, _):
            // The back-off may have ended this very moment.
            let backOff =
                fetches.backOffs.backOff(for: document.request, as: .background, now: loop.now)
                ?? BackOff(status: 503, scope: .document, until: loop.now)
            let upstream = document.request.upstream.name
            return .backedOff(backOff, seconds: backOff.secondsLeft(at: loop.now), upstream: upstream)
        case .served(_, .unreachable, _):
            // The same problem as when it was asked last: nothing has changed since.
            return .upstreamFailed(fetches.lastError(for: document.request), upstream: document.request.upstream.name)
        case .served, .received: return nil
        }
    }
}

extension ReadyResponse {
    /// Whether it may be shown while the upstream is asked; a response that its route never reuses may not.
    func mayBeShown(at now: Int64) -> Bool {
        if case .mustValidate(_, .notReusable, _) = policy.reuse(at: now, for: .none) { false } else { true }
    }
}
