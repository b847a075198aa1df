package import CachePolicy
package import HTTPSemantics
import Settings

/// What is done with a retrieval, once it is known what is known.
///
/// A pure function of the demand, the stored response, the mode and the time.
package enum Decision {
    case answer(ReadyResponse, CacheUse)
    /// Answered from what is stored, while the upstream is asked for the next one.
    case answerAndRefresh(ReadyResponse, CacheUse)
    /// The upstream is asked; `stored` is what a 304 would renew and what may stand in for an error.
    case ask(CacheStatus.Forward, stored: ReadyResponse?)
    case refuse(ProblemDocument)

    /// - Parameter absence: what `Cache-Status` says where nothing was found.
    package init(
        _ demand: Demand,
        _ found: ReadyResponse?,
        absence: CacheStatus.Forward = .uriMiss,
        mode: Mode,
        now: Int64
    ) {
        // Whatever was stored before the route said so.
        let found = demand.overrides.cache == .never ? nil : found
        switch mode {
        case .offline: self = Self.offline(demand, found, now: now)
        case .online: self = Self.online(demand, found, absence, now: now)
        }
    }

    private static func online(
        _ demand: Demand,
        _ found: ReadyResponse?,
        _ absence: CacheStatus.Forward,
        now: Int64
    ) -> Decision {
        guard let found else {
            let reason: CacheStatus.Forward = demand.overrides.cache == .never ? .bypass : absence
            return demand.directives.onlyIfCached ? .refuse(.notCached(demand)) : .ask(reason, stored: nil)
        }
        // Something newer is known than can be shown: only the upstream can give the whole.
        if found.answer.form == .outdated {
            return demand.directives.onlyIfCached ? .refuse(.notCached(demand)) : .ask(.stale, stored: found)
        }
        if found.isDoubtDue(at: now), !demand.directives.onlyIfCached { return .ask(.stale, stored: found) }
        switch found.policy.reuse(at: now, for: demand.directives) {
        case .fresh:
            return .answer(found, .hit(isStale: false))
        case .stale(_, _, let allowed):
            if allowed.contains(.whileRevalidating) { return .answerAndRefresh(found, .hit(isStale: true)) }
            if allowed.contains(.byRequest) { return .answer(found, .hit(isStale: true)) }
            return demand.directives.onlyIfCached ? .refuse(.notCached(demand)) : .ask(.stale, stored: found)
        case .mustValidate(_, let reason, _):
            guard !demand.directives.onlyIfCached else { return .refuse(.notCached(demand)) }
            return .ask(reason.isOfRequest ? .request : .stale, stored: found)
        }
    }

    private static func offline(_ demand: Demand, _ found: ReadyResponse?, now: Int64) -> Decision {
        guard let found else { return .refuse(.unknownOffline(demand)) }
        switch found.policy.reuse(at: now, for: .none) {
        case .fresh:
            return .answer(found, found.answer.form == .outdated ? .offline(isStale: true) : .hit(isStale: false))
        case .stale, .mustValidate:
            // Nobody can be asked, and nobody was promised more than what is known.
            return .answer(found, .offline(isStale: true))
        }
    }
}

extension Reuse.Reason {
    /// Whether the request, rather than the response, wants the upstream asked.
    var isOfRequest: Bool {
        switch self {
        case .requestNoCache, .requestMaxAge, .requestMinFresh: true
        case .noCache, .mustRevalidate, .notReusable: false
        }
    }
}
