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
    func follow(_ request: ProxyRequest, _ reply: Reply, _ mode: LiveMode) {
        if let problem = liveDocuments.refusal(of: request) { return refuse(problem, reply) }
        liveDocuments.open(request, reply, mode)
    }

    /// Examines the document with a number, once for all events until then.
    func look(atNumber number: Int) {
        guard liveDocuments[number]?.beginLook() == true else { return }
        Task(executorPreference: loop.taskExecutor) { await self.lookAtNews(ofNumber: number) }
    }

    private func lookAtNews(ofNumber number: Int) async {
        guard let document = liveDocuments[number] else { return }
        while let news = document.takeNews() { await look(at: document, news) }
    }

    private func look(at document: LiveDocument, _ news: (LiveWatch.Causes, LiveInquiry.Conclusion?)) async {
        var (causes, conclusion) = news
        let isBehind = await isBehind(document, afterInquiry: conclusion != nil)
        if conclusion != nil {
            liveDocuments.deliver()
            // Changes caused by its own response need no action.
            causes = []
            document.forgetCauses()
        }
        // The stored response is outdated, though the new one may not be stored in its place.
        if case .received(_, isKept: false) = conclusion, let stored = document.askedAbout,
            !document.request.directives.noStore
        {
            cache.drop(stored)
        }
        // A response too large for memory cannot be found before its commit.
        let isUnfindable = isBehind && cache.inMemory(document.request, now: now)?.isClean != true
        let found = isUnfindable ? nil : await newest(of: document)
        let mode = modes.current
        let asks = mode == .online && !document.request.directives.onlyIfCached
        if !asks { document.asksNobody() }
        let decision = Decision(document.request, found, mode: mode, now: now)
        let stored = await stored(by: decision, found, for: document)
        guard !document.isOver else { return }
        // The inquiry predates a write, so its response may be older than what readers know.
        if document.isInvalid { conclusion = nil }
        let failure = conclusion.flatMap { problem(in: $0, for: document) }
        if let conclusion { document.concluded(failure.map { .failed($0, nil) } ?? conclusion, now: loop.now) }

        let update = update(decision, stored, conclusion, failure: failure, of: document)
        if let update, document.isNew(update) || document.state?.number == nil {
            let number = await number(for: update, of: document)
            guard !document.isOver else { return }
            if document.isNew(update) {
                document.move(to: update, number: number)
            } else if let number {
                document.give(number)
            }
        }
        let opening = opening(of: document, decision, stored, asks: asks)
        document.send(
            update,
            received: conclusion.flatMap { received(in: $0, for: document) },
            problem: failure,
            afterInquiry: conclusion != nil,
            opening: opening,
            now: now
        )
        document.releaseExamined()
        // Its commit triggers another look, which can plan the next inquiry.
        guard !document.isOver, !isUnfindable || document.mustAsk else { return }
        if asks { plan(document, found, need(of: document, decision, causes)) }
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
            let waiting = TimedWait(continuation)
            fetches.afterCommits { waiting.end($0) }
            waiting.timer = loop.after(limit) { waiting.end(false) }
        }
    }

    // MARK: Stored responses

    /// The newest response to a document's request; from here on, every change of it is noticed.
    private func newest(of document: LiveDocument) async -> ReadyResponse? {
        while true {
            let found = await lookUp(document.request)
            guard !document.isOver, let found else { return nil }
            let objects = found.stored?.objects ?? []
            var known: [ObjectID] = []
            if document.request.view == .mapped {
                // Objects that cannot be read are shown by their identities.
                known = (try? await cache.inView(of: document.request, found))?.known ?? []
                guard !document.isOver else { return nil }
            }
            let shown =
                objects + cache.memory.responsesByObject.objects(of: found.entry) + found.response.objects + known
            // Objects read before they were watched may have changed in between.
            if liveDocuments.watchCovers(shown, for: document) { return found }
        }
    }

    /// The stored response in the requested view, if there is one that may be shown.
    private func stored(by decision: Decision, _ found: ReadyResponse?, for document: LiveDocument)
        async -> LiveDocument.StoredResponse?
    {
        guard let found else { return nil }
        found.entry.noteUse()
        let cacheUse: CacheUse
        switch decision {
        case .serve(_, let how), .serveAndRefresh(_, let how): cacheUse = how
        case .ask, .refuse:
            guard found.response.form != .outdated, found.mayBeShown(at: now) else { return nil }
            cacheUse = .hit(isStale: true)
        }
        // What is sent must be committed, so that it can be recognised after a restart.
        if found.stored == nil, document.needsNumbers {
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

    /// The opening of new streams; counts it.
    private func opening(
        of document: LiveDocument,
        _ decision: Decision,
        _ stored: LiveDocument.StoredResponse?,
        asks: Bool
    ) -> LiveDocument.Opening {
        let isOffline = modes.current == .offline
        var refusal: ProblemDocument?
        if !asks {
            refusal =
                switch decision {
                case .refuse(let problem): problem
                case _ where isOffline: .offline(document.request.message.method)
                default: .notCached
                }
        }
        let status: String
        if let stored, refusal != nil {
            let sent = stored.ready.response.status
            status = stored.cacheUse.cacheStatus(of: stored.ready, sent: sent, isCollapsed: false, now: now).text
        } else {
            status = refusal?.cacheStatus ?? CacheStatus.forwarded(stored == nil ? .uriMiss : .request).text
        }
        let outcome = stored.map { $0.cacheUse.outcome(of: $0.ready) } ?? (asks ? .miss : .error)
        for reader in document.joining {
            outcomes.count(outcome)
            reader.note?.counted(as: outcome)
        }
        let retry = document.request.upstream.daemon.live.retry
        return LiveDocument.Opening(cacheStatus: status, refusal: refusal, isOffline: isOffline, retry: retry)
    }

    // MARK: Inquiries

    /// Asks the upstream now, or sets the time of the next inquiry.
    private func plan(_ document: LiveDocument, _ found: ReadyResponse?, _ need: LiveRhythm.Need) {
        if document.mustAsk { return ask(document, found) }
        guard document.inquiry == nil else { return }
        let now = loop.now
        var due = document.rhythm.due(need, now: now)
        if let backOff = fetches.backOffs.backOff(for: document.request, now: now) { due = max(due, backOff.until) }
        // Already due: ask now (a response that became fresh has a later `due`).
        if due <= now {
            document.rhythm.began(need)
            ask(document, found)
        } else {
            document.due = due
        }
    }

    private func need(of document: LiveDocument, _ decision: Decision, _ causes: LiveWatch.Causes) -> LiveRhythm.Need {
        switch decision {
        case .serve(let ready, _):
            if ready.response.form == .outdated { return .displaced }
            return .expiry(min(ready.policy.timeToLive(at: now), ready.doubtDue - now))
        case .serveAndRefresh, .refuse: return .stale
        case .ask(_, let stored):
            guard let stored else { return document.isKept ? .displaced : .stale }
            return stored.response.form == .outdated || stored.isDoubtDue(at: now) || causes.contains(.objects)
                ? .displaced : .stale
        }
    }

    private func ask(_ document: LiveDocument, _ found: ReadyResponse?) {
        let reason: CacheStatus.Forward =
            found.map { $0.policy.timeToLive(at: now) > 0 ? .request : .stale } ?? .uriMiss
        let inquiry = document.ask(fetches, about: found)
        fetches.ask(document.request.asking(because: reason), inquiry, stored: found)
    }
}

extension LiveInquiry.Conclusion {
    /// Whether it is a response that is not stored.
    var isUnkept: Bool {
        switch self {
        case .received(_, let isKept): !isKept
        case .served(_, .unkept, _), .served(_, .revalidated(_, isStored: false), _): true
        case .served, .failed: false
        }
    }
}

/// The updates for the streams of a document.
extension ProxyCore {
    /// The response that a GET would get now, if it is known.
    func update(
        _ decision: Decision,
        _ stored: LiveDocument.StoredResponse?,
        _ conclusion: LiveInquiry.Conclusion?,
        failure: ProblemDocument?,
        of document: LiveDocument
    ) -> LiveDocument.Update? {
        let isFresh = if case .serve = decision { true } else { false }
        if let stored, isFresh || !(conclusion?.isUnkept ?? false) {
            // A response invalidated by a write is not sent, even if it is still stored.
            guard !document.isInvalid else { return nil }
            var update = update(LiveEvent(.changed, stored.ready, as: stored.cacheUse, now: now), stored)
            update.cacheStatus = conclusion.flatMap { cacheStatus(of: $0) }
            return update
        }
        switch conclusion {
        case nil: return nil
        case .failed(let problem, let response): return update(LiveEvent(failure: problem, age: nil, response))
        case .received(let event, let isKept):
            if isKept, isOutdated(document, decision) { return nil }
            return update(received: event, for: document)
        case .served(let ready, let cacheUse, _):
            if let failure { return update(LiveEvent(failure: failure, age: nil)) }
            if conclusion?.isUnkept != true, isOutdated(document, decision) { return nil }
            return update(LiveEvent(.changed, ready, as: cacheUse, now: now))
        }
    }

    /// The upstream's response as it came; nil if it did not come whole, or the view is the models' own.
    func received(in conclusion: LiveInquiry.Conclusion, for document: LiveDocument) -> LiveDocument.Update? {
        guard case .received(let event, _) = conclusion, document.request.view != .mapped else { return nil }
        return update(received: event, for: document)
    }

    private func update(received event: LiveEvent, for document: LiveDocument) -> LiveDocument.Update {
        var event = event
        if document.request.upstream.settings.cookies != .replay { event.fields?.remove("set-cookie") }
        return update(event)
    }

    /// The `Cache-Status` of the upstream's response.
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
    private func isOutdated(_ document: LiveDocument, _ decision: Decision) -> Bool {
        guard document.isOutdated, case .ask(_, let stored?) = decision else { return false }
        return stored.response.form == .outdated
    }

    func update(_ event: LiveEvent, _ stored: LiveDocument.StoredResponse? = nil) -> LiveDocument.Update {
        // The body of an error contains its time and place, which do not make it another error.
        let body = event.problem == nil ? event.body?.pieces ?? [] : []
        return LiveDocument.Update(
            event: event,
            content: cache.store.hasher.digest(event.description, body: body),
            stored: stored
        )
    }

    /// The number for a state; nil if the store can give none, or not yet.
    func number(for update: LiveDocument.Update, of document: LiveDocument) async -> Int64? {
        let store = cache.store
        let digest = document.request.digest
        // Only readers that may come back need one, and it would have to wait for that slow commit.
        let isCommitted = update.stored?.isCommitted ?? false
        guard document.needsNumbers, isCommitted || !cache.isArriving(document.request) else { return nil }
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
    func problem(in conclusion: LiveInquiry.Conclusion, for document: LiveDocument) -> ProblemDocument? {
        switch conclusion {
        case .failed(let problem, _): return problem
        case .served(_, .backedOff, _):
            // The back-off may have ended this very moment.
            let backOff =
                fetches.backOffs.backOff(for: document.request, now: loop.now)
                ?? BackOff(status: 503, scope: .document, until: loop.now)
            let upstream = document.request.upstream.name
            return .backedOff(backOff, seconds: backOff.secondsLeft(at: loop.now), upstream: upstream)
        case .served, .received: return nil
        }
    }
}

extension ReadyResponse {
    /// Whether it may be shown while the upstream is asked; a response that its route never reuses may not.
    package func mayBeShown(at now: Int64) -> Bool {
        if case .mustValidate(_, .notReusable, _) = policy.reuse(at: now, for: .none) { false } else { true }
    }
}

/// A wait for an event, with a time limit; the upstream loop only.
final class TimedWait {
    private var continuation: CheckedContinuation<Bool, Never>?
    var timer: EventTimer?

    init(_ continuation: CheckedContinuation<Bool, Never>) { self.continuation = continuation }

    func end(_ hasHappened: Bool) {
        timer = nil
        continuation?.resume(returning: hasHappened)
        continuation = nil
    }
}
