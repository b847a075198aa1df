package import CachePolicy
package import HTTPSemantics
import Settings

/// What to do with a retrieval after the look-up.
///
/// A pure function of the request, the stored response, the mode and the time.
package enum Decision {
    case serve(ReadyResponse, CacheUse)
    case serveAndRefresh(ReadyResponse, CacheUse)
    /// Ask the upstream; `stored` is what a 304 would freshen and what may replace an error.
    case ask(CacheStatus.Forward, stored: ReadyResponse?)
    case refuse(ProblemDocument)

    /// - Parameter absence: the reason for `Cache-Status` if nothing was found.
    package init(
        _ request: ProxyRequest,
        _ found: ReadyResponse?,
        absence: CacheStatus.Forward = .uriMiss,
        mode: Mode,
        now: Int64
    ) {
        // This ignores responses stored before the route had the setting.
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
            request.directives.onlyIfCached ? .refuse(.notCached) : .ask(reason, stored: found)
        }
        guard let found else { return ask(request.overrides.cache == .never ? .bypass : absence) }
        // Newer values are known but cannot be composed: only the upstream has the whole.
        if found.response.form == .outdated { return ask(.stale) }
        if found.isDoubtDue(at: now), !request.directives.onlyIfCached { return ask(.stale) }
        switch found.policy.reuse(at: now, for: request.directives) {
        case .fresh: return .serve(found, .hit(isStale: false))
        case .stale(_, _, let allowed):
            if allowed.contains(.whileRevalidating) { return .serveAndRefresh(found, .hit(isStale: true)) }
            if allowed.contains(.byRequest) { return .serve(found, .hit(isStale: true)) }
            return ask(.stale)
        case .mustValidate(_, let reason, _): return ask(reason.isOfRequest ? .request : .stale)
        }
    }

    private static func offline(_ request: ProxyRequest, _ found: ReadyResponse?, now: Int64) -> Decision {
        guard let found else { return .refuse(.unknownOffline) }
        switch found.policy.reuse(at: now, for: .none) {
        case .fresh:
            return .serve(found, found.response.form == .outdated ? .offline(isStale: true) : .hit(isStale: false))
        case .stale, .mustValidate:
            // No upstream can be asked, so the known response must do.
            return .serve(found, .offline(isStale: true))
        }
    }
}

extension Reuse.Reason {
    /// Whether the request, rather than the response, demands validation.
    var isOfRequest: Bool {
        switch self {
        case .requestNoCache, .requestMaxAge, .requestMinFresh: true
        case .noCache, .mustRevalidate, .notReusable: false
        }
    }
}

/// What to do with a retrieval that no stored whole can serve, given the stored parts.
///
/// A pure function, like `Decision`.
package enum PartDecision {
    case serve(ReadyResponse, CacheUse)
    /// Ask the upstream: `stored` is what a 304 would freshen and what may replace an error; of `completing`, only the gap is
    /// requested.
    case ask(ProxyRequest, stored: ReadyResponse?, completing: ReadyResponse?)

    /// - Parameters:
    ///   - stored: the stored whole, which may not be served without validation.
    ///   - parts: the stored parts of the requested variant.
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
        // The newer of the whole and the parts counts.
        let parts = parts.flatMap { parts in
            stored.map { $0.policy.responseTime > parts.policy.responseTime } ?? false ? nil : parts
        }
        if let parts, request.mayBeServed(parts: parts), ServedContent(of: parts, for: request.message, now: now) != nil
        {
            return held(parts, request, mode: mode, now: now)
        }
        // A part beside an older whole would contradict it: the whole is renewed, and the range cut from it.
        if let stored, request.isStorable { return .ask(request.forWhole, stored: stored, completing: nil) }
        return .ask(parts == nil ? request : request.asking(because: .partial), stored: stored, completing: nil)
    }

    /// What to do if the parts hold the requested range; depends on their freshness.
    private static func held(_ parts: ReadyResponse, _ request: ProxyRequest, mode: Mode, now: Int64) -> PartDecision {
        switch (mode, parts.policy.reuse(at: now, for: mode == .offline ? .none : request.directives)) {
        case (_, .fresh): return .serve(parts, .hit(isStale: false))
        case (.offline, _): return .serve(parts, .offline(isStale: true))
        case (.online, .stale(_, _, let allowed)) where allowed.contains(.byRequest):
            return .serve(parts, .hit(isStale: true))
        case (.online, .mustValidate(_, let reason, _)) where reason.isOfRequest:
            return .ask(request.asking(because: .request), stored: parts, completing: nil)
        case (.online, _):
            return .ask(request.asking(because: .stale, parts.inquiryReason(at: now)), stored: parts, completing: nil)
        }
    }
}
