import CachePolicy
import HTTPSemantics
import HTTPServer
import Settings
import Store

extension ProxyCore {
    /// Answers a request with `Larder-Live: once`: what is stored, whatever its age, then what the upstream says of it.
    func live(_ demand: Demand, _ reply: Reply) async {
        let found = await lookUp(demand)
        var shown: ReadyResponse?
        do {
            if let found, found.mayBeShown(at: now) { shown = try await cache.inView(of: demand, found) }
        } catch {
            return refuse(.storeFailed(error), reply)
        }
        let isStale = shown.map { !$0.isFresh(at: now) } ?? false
        let mode = modes.current
        let cacheUse = mode == .offline ? CacheUse.offline(isStale: isStale) : .hit(isStale: isStale)
        let course = LiveCourse(demand, shown, mode: mode)
        let exchange = LiveExchange(demand, reply, fetches: fetches, exchanges: liveExchanges)
        exchange.open(course.cacheStatus(shown, cacheUse, now: now))
        if let shown {
            shown.residence.noteUse()
            exchange.show(shown, as: cacheUse, isLast: course.isOver)
        }
        switch course {
        case .ask(let reason):
            // Counted by the fetch.
            return fetches.ask(demand.asking(because: reason), exchange.ask(), stored: found)
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

    init(_ demand: Demand, _ shown: ReadyResponse?, mode: Mode) {
        switch mode {
        case .offline:
            self = .refuse(shown == nil ? .unknownOffline(demand) : .offline(demand.request.method))
        case .online where !demand.directives.onlyIfCached:
            self = .ask(shown == nil ? .uriMiss : .request)
        case .online:
            self = shown == nil ? .refuse(.notCached(demand)) : .end
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
