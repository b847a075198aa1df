import CachePolicy
import HTTPSemantics
import HTTPServer
import Settings
import Store

/// One request with `Larder-Live: once`: what was shown, and what the upstream's response makes of it.
///
/// The upstream loop only; `LiveExchanges` keeps it until its stream is over.
final class LiveExchange {
    private let request: ProxyRequest
    private let fetches: Fetches
    private let stream: LiveStream
    /// The event that showed what is stored, with what its age is reckoned from later.
    private var shown: (event: LiveEvent, ready: ReadyResponse)?
    private var inquiry: LiveInquiry?
    private var isSettled = false

    init(_ request: ProxyRequest, _ reply: Reply, fetches: Fetches, exchanges: LiveExchanges) {
        self.request = request
        self.fetches = fetches
        stream = LiveStream(reply, loop: fetches.loop, window: fetches.settings.limits.relayWindow)
        exchanges.insert(self)
        stream.whenOver { [unowned self, unowned exchanges] in
            isSettled = true
            inquiry?.release()
            exchanges.remove(self)
        }
    }

    /// Begins the stream; its head says what is done, each event how its response came about.
    func open(_ cacheStatus: String) {
        var fields = Fields()
        fields.append("Cache-Status", cacheStatus)
        fields.vary(by: request.upstream.variesBy)
        request.upstream.addCORS(to: &fields, for: request.message.fields)
        stream.open(fields)
    }

    /// Tells what is stored.
    func show(_ ready: ReadyResponse, as cacheUse: CacheUse, isLast: Bool) {
        var event = LiveEvent(.cached, ready, as: cacheUse, now: fetches.now)
        if isLast { event.id = LiveMode.endID }
        shown = (event, ready)
        stream.send(event)
    }

    /// What asks the upstream, and has its response sent.
    func ask() -> LiveInquiry {
        let inquiry = LiveInquiry(request.upstream, fetches: fetches, isRequest: true) { [unowned self] in
            concluded($0)
        }
        self.inquiry = inquiry
        // The client may have left already.
        if isSettled { inquiry.release() }
        return inquiry
    }

    /// Ends the stream without the upstream's word.
    func end() {
        isSettled = true
        stream.end()
    }

    /// Tells why the upstream is not asked.
    func refuse(_ problem: ProblemDocument) {
        fail(problem)
    }

    // MARK: -

    private func concluded(_ outcome: LiveInquiry.Outcome) {
        switch outcome {
        case .answered(let answer, _):
            settle(answer)
        case .served(let ready, let cacheUse, let isCollapsed, let cookies):
            let own = request.upstream.settings.cookies == .replay ? [] : cookies
            settle(LiveEvent(.fresh, ready, as: cacheUse, isCollapsed: isCollapsed, cookies: own, now: fetches.now))
        case .failed(let problem, let answer):
            fail(problem, with: answer)
        }
    }

    /// Gives the upstream's response, if it is another than was shown.
    private func settle(_ answer: LiveEvent) {
        var answer = answer
        if let shown, answer.says(sameAs: shown.event) {
            answer.kind = .unchanged
            answer.body = nil
            inquiry?.release()
        }
        conclude(answer)
    }

    /// Sends why there is no response, and how old what was shown has become.
    private func fail(_ problem: ProblemDocument, with answer: LiveEvent? = nil) {
        if answer == nil { inquiry?.release() }
        let age = shown.map { max(0, $0.ready.policy.age(at: fetches.now)) }
        conclude(LiveEvent(failure: problem, age: age, answer))
    }

    private func conclude(_ event: LiveEvent) {
        guard !isSettled else { return }
        isSettled = true
        var event = event
        event.id = LiveMode.endID
        stream.send(event)
        stream.end()
    }
}

/// All streams of events that are open; keeps each until it is over.
///
/// The upstream loop only.
final class LiveExchanges {
    private var open: [ObjectIdentifier: LiveExchange] = [:]

    func insert(_ exchange: LiveExchange) {
        open[ObjectIdentifier(exchange)] = exchange
    }

    func remove(_ exchange: LiveExchange) {
        open[ObjectIdentifier(exchange)] = nil
    }
}

extension ProxyCore {
    /// Answers a request with `Larder-Live: once`: what is stored, whatever its age, then what the upstream says of it.
    func live(_ request: ProxyRequest, _ reply: Reply) async {
        let found = await lookUp(request)
        var shown: ReadyResponse?
        do {
            if let found, found.mayBeShown(at: now) { shown = try await cache.inView(of: request, found) }
        } catch {
            return refuse(.storeFailed(error), reply)
        }
        let isStale = shown.map { !$0.isFresh(at: now) } ?? false
        let mode = modes.current
        let cacheUse = mode == .offline ? CacheUse.offline(isStale: isStale) : .hit(isStale: isStale)
        let course = LiveCourse(request, shown, mode: mode)
        let exchange = LiveExchange(request, reply, fetches: fetches, exchanges: liveExchanges)
        exchange.open(course.cacheStatus(shown, cacheUse, now: now))
        if let shown {
            shown.residence.noteUse()
            exchange.show(shown, as: cacheUse, isLast: course.isOver)
        }
        switch course {
        case .ask(let reason):
            // Counted by the fetch.
            return fetches.ask(request.asking(because: reason), exchange.ask(), stored: found)
        case .end: exchange.end()
        case .refuse(let problem): exchange.refuse(problem)
        }
        outcomes.count(shown.map { cacheUse.outcome(of: $0) } ?? .error)
    }
}

/// What follows once what is stored was shown.
private enum LiveCourse {
    /// The upstream is asked, however fresh what was shown is.
    case ask(CacheStatus.Forward)
    case end
    case refuse(ProblemDocument)

    init(_ request: ProxyRequest, _ shown: ReadyResponse?, mode: Mode) {
        switch mode {
        case .offline:
            self = .refuse(shown == nil ? .unknownOffline(request) : .offline(request.message.method))
        case .online where !request.directives.onlyIfCached:
            self = .ask(shown == nil ? .uriMiss : .request)
        case .online:
            self = shown == nil ? .refuse(.notCached(request)) : .end
        }
    }

    /// Whether nothing follows.
    var isOver: Bool { if case .end = self { true } else { false } }

    /// What the head of the stream says; each event says how its own response came about.
    func cacheStatus(_ shown: ReadyResponse?, _ cacheUse: CacheUse, now: Int64) -> String {
        switch (self, shown) {
        case (.ask(let reason), _): CacheStatus.forwarded(reason).text
        case (_, let shown?):
            cacheUse.cacheStatus(of: shown, sent: shown.answer.status, isCollapsed: false, now: now).text
        case (.refuse(let problem), nil): problem.cacheStatus
        case (.end, nil): CacheStatus.hit().text
        }
    }
}

extension ReadyResponse {
    /// Whether it may be shown while the upstream is asked about it: what a route never reuses may not.
    package func mayBeShown(at now: Int64) -> Bool {
        if case .mustValidate(_, .notReusable, _) = policy.reuse(at: now, for: .none) { false } else { true }
    }

    /// Whether it might be served without asking.
    fileprivate func isFresh(at now: Int64) -> Bool {
        if case .fresh = policy.reuse(at: now, for: .none) { true } else { false }
    }
}
