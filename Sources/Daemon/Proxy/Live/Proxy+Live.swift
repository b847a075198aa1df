import Store

extension Proxy {
    /// Answers a request with `Larder-Live: once`: what is stored, whatever its age, then what the upstream says of it.
    ///
    /// The upstream is asked however fresh the stored answer is, unless the mode or the request forbids it.
    func live(_ demand: Demand, _ reply: Reply) async {
        let found = await lookUp(demand)
        var shown: ReadyAnswer?
        do {
            if let found, found.mayBeShown(at: now) { shown = try await inView(of: demand, found) }
        } catch {
            return refuse(.storeFailed(error), reply)
        }
        let exchange = LiveExchange(demand, reply, flights: runningFlights, exchanges: liveExchanges)
        let isOffline = modes.current == .offline
        let isAsked = !isOffline && !demand.directives.onlyIfCached
        let problem: ProblemDocument? =
            if isOffline {
                shown == nil ? .unknownOffline(demand) : .offline(demand.request.method)
            } else if !isAsked, shown == nil {
                .notCached(demand)
            } else {
                nil
            }
        guard let shown else {
            exchange.open(problem?.cacheStatus ?? CacheStatus.forwarded(.uriMiss).text)
            return conclude(exchange, demand, stored: found, reason: .uriMiss, problem)
        }
        shown.residence.noteUse()
        let isStale = !shown.isFresh(at: now)
        let manner = isOffline ? Manner.offline(isStale: isStale) : .hit(isStale: isStale)
        let status =
            isAsked
            ? CacheStatus.forwarded(.request)
            : manner.cacheStatus(of: shown, sent: shown.answer.status, isCollapsed: false, now: now)
        exchange.open(status.text)
        exchange.show(shown, as: manner)
        if !isAsked { outcomes.count(manner.outcome(of: shown)) }
        conclude(exchange, demand, stored: found, reason: .request, problem, isAsked: isAsked)
    }

    /// Has the upstream say its word, or ends the stream without it.
    private func conclude(
        _ exchange: LiveExchange,
        _ demand: Demand,
        stored: ReadyAnswer?,
        reason: CacheStatus.Forward,
        _ problem: ProblemDocument?,
        isAsked: Bool = true
    ) {
        if let problem {
            exchange.refuse(problem)
        } else if isAsked {
            runningFlights.ask(demand.asking(because: reason), exchange, stored: stored)
        } else {
            exchange.end()
        }
    }
}

extension ReadyAnswer {
    /// Whether it may be shown while the upstream is asked about it: what a route never reuses may not.
    func mayBeShown(at now: Int64) -> Bool {
        if case .mustValidate(_, .notReusable, _) = policy.reuse(at: now, for: .none) { false } else { true }
    }

    /// Whether it might be served without asking.
    fileprivate func isFresh(at now: Int64) -> Bool {
        if case .fresh = policy.reuse(at: now, for: .none) { true } else { false }
    }
}
