package import CachePolicy
package import HTTPSemantics
import Settings

/// What is done with a retrieval, once it is known what is known.
///
/// A pure function of the request, the stored response, the mode and the time.
package enum Decision {
    case serve(ReadyResponse, CacheUse)
    /// Answered from what is stored, while the upstream is asked for the next one.
    case serveAndRefresh(ReadyResponse, CacheUse)
    /// The upstream is asked; `stored` is what a 304 would freshen and what may stand in for an error.
    case ask(CacheStatus.Forward, stored: ReadyResponse?)
    case refuse(ProblemDocument)

    /// - Parameter absence: what `Cache-Status` says where nothing was found.
    package init(
        _ request: ProxyRequest,
        _ found: ReadyResponse?,
        absence: CacheStatus.Forward = .uriMiss,
        mode: Mode,
        now: Int64
    ) {
        // Whatever was stored before the route said so.
        let found = request.overrides.cache == .never ? nil : found
        switch mode {
        case .offline: self = Self.offline(request, found, now: now)
        case .online: self = Self.online(request, found, absence, now: now)
        }
    }

    private static func online(
        _ request: ProxyRequest,
        _ found: ReadyResponse?,
        _ absence: CacheStatus.Forward,
        now: Int64
    ) -> Decision {
        func ask(_ reason: CacheStatus.Forward) -> Decision {
            request.directives.onlyIfCached ? .refuse(.notCached(request)) : .ask(reason, stored: found)
        }
        guard let found else { return ask(request.overrides.cache == .never ? .bypass : absence) }
        // Something newer is known than can be shown: only the upstream can give the whole.
        if found.response.form == .outdated { return ask(.stale) }
        if found.isDoubtDue(at: now), !request.directives.onlyIfCached { return ask(.stale) }
        switch found.policy.reuse(at: now, for: request.directives) {
        case .fresh:
            return .serve(found, .hit(isStale: false))
        case .stale(_, _, let allowed):
            if allowed.contains(.whileRevalidating) { return .serveAndRefresh(found, .hit(isStale: true)) }
            if allowed.contains(.byRequest) { return .serve(found, .hit(isStale: true)) }
            return ask(.stale)
        case .mustValidate(_, let reason, _):
            return ask(reason.isOfRequest ? .request : .stale)
        }
    }

    private static func offline(_ request: ProxyRequest, _ found: ReadyResponse?, now: Int64) -> Decision {
        guard let found else { return .refuse(.unknownOffline(request)) }
        switch found.policy.reuse(at: now, for: .none) {
        case .fresh:
            return .serve(found, found.response.form == .outdated ? .offline(isStale: true) : .hit(isStale: false))
        case .stale, .mustValidate:
            // Nobody can be asked, and nobody was promised more than what is known.
            return .serve(found, .offline(isStale: true))
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

/// What is done with a retrieval that no stored whole answers, once it is known what is stored in parts.
///
/// A pure function, as `Decision` is.
package enum PartDecision {
    case serve(ReadyResponse, CacheUse)
    /// The upstream is asked: `stored` is what a 304 would freshen and what may stand in for an error, and `completing` the
    /// parts of which only the gap is asked for.
    case ask(ProxyRequest, stored: ReadyResponse?, completing: ReadyResponse?)

    /// - Parameters:
    ///   - stored: the whole that is stored, but may not be served without asking.
    ///   - parts: what is stored in parts and is of the variant asked for.
    ///   - limit: the length of the largest document that is stored.
    package init(
        _ request: ProxyRequest,
        stored: ReadyResponse?,
        parts: ReadyResponse?,
        mode: Mode,
        limit: Int,
        now: Int64
    ) {
        if request.range != nil {
            self = Self.ranges(request, stored: stored, parts: parts, mode: mode, now: now)
        } else if let parts, stored == nil {
            let request = request.asking(because: .partial)
            let isCompletable = request.isShareable && parts.isCompletable(limit: limit)
            self = .ask(request, stored: nil, completing: isCompletable ? parts : nil)
        } else {
            self = .ask(request, stored: stored, completing: nil)
        }
    }

    private static func ranges(
        _ request: ProxyRequest,
        stored: ReadyResponse?,
        parts: ReadyResponse?,
        mode: Mode,
        now: Int64
    ) -> PartDecision {
        // The newest counts, be it the whole or not.
        let parts = parts.flatMap { parts in
            stored.map { $0.policy.responseTime > parts.policy.responseTime } ?? false ? nil : parts
        }
        if let parts, request.mayBeServed(parts: parts), SelectedPart(of: parts, for: request.message, now: now) != nil
        {
            return held(parts, request, mode: mode, now: now)
        }
        // A part beside an older whole would be two truths about one document: the whole is renewed, and the range cut from it.
        if let stored, request.isStorable {
            return .ask(request.forWhole, stored: stored, completing: nil)
        }
        return .ask(parts == nil ? request : request.asking(because: .partial), stored: stored, completing: nil)
    }

    /// What is done where all that is asked for is stored in parts, as their freshness has it.
    private static func held(_ parts: ReadyResponse, _ request: ProxyRequest, mode: Mode, now: Int64) -> PartDecision {
        switch (mode, parts.policy.reuse(at: now, for: mode == .offline ? .none : request.directives)) {
        case (_, .fresh):
            return .serve(parts, .hit(isStale: false))
        case (.offline, _):
            return .serve(parts, .offline(isStale: true))
        case (.online, .stale(_, _, let allowed)) where allowed.contains(.byRequest):
            return .serve(parts, .hit(isStale: true))
        case (.online, .mustValidate(_, let reason, _)) where reason.isOfRequest:
            return .ask(request.asking(because: .request), stored: parts, completing: nil)
        case (.online, _):
            return .ask(request.asking(because: .stale), stored: parts, completing: nil)
        }
    }
}
