package import CachePolicy
import HTTPSemantics
import Store
package import Upstream

/// How a stored response came to be served, as `Cache-Status` reports it.
package enum CacheUse: Sendable {
    /// Without the upstream: fresh, or stale and allowed by a directive.
    case hit(isStale: Bool)
    /// Without the upstream, because the mode is offline.
    case offline(isStale: Bool)
    /// Without the upstream, because Larder is backing off: it was asked to, or the rate limit is used up.
    case backedOff(isForLimit: Bool)
    /// Without the upstream, because it cannot be reached.
    case unreachable
    /// While the upstream takes longer than `patience`.
    case meanwhile
    /// Validated by the upstream; it remains stored unless the upstream has forbidden that.
    case revalidated(CacheStatus.Forward, isStored: Bool)
    /// In place of a failed response, with its status or else the error.
    case substituted(CacheStatus.Forward, status: Int?, error: UpstreamError?)
    /// Fetched for this request, and served once it was whole.
    case fetched(CacheStatus.Forward)
    /// Fetched for this request, served once it was whole, and not stored.
    case unkept(CacheStatus.Forward, because: NotStoredReason? = nil)
    /// Parts of it were stored, and the rest was fetched.
    case completed(CacheStatus.Forward)

    func outcome(of ready: ReadyResponse) -> Outcome {
        switch self {
        case .hit(isStale: true), .backedOff, .meanwhile: .stale
        case .hit: ready.response.isComposed ? .composed : .hit
        case .offline: .offline
        case .unreachable, .substituted: .staleIfError
        case .revalidated: .revalidated
        case .fetched, .unkept, .completed: .miss
        }
    }

    /// The member of `Cache-Status`.
    ///
    /// - Parameter sent: the status sent to the client, which may get a part of the fetched response, or a 304.
    func cacheStatus(of ready: ReadyResponse, sent: Int, isCollapsed: Bool, now: Int64) -> CacheStatus {
        var status: CacheStatus
        var detail: String?
        switch self {
        case .hit(let isStale):
            status = .hit()
            if isStale { detail = ready.staleDetail }
        case .offline(let isStale):
            status = .hit()
            if isStale { detail = "offline" }
        case .backedOff(let isForLimit):
            status = .hit()
            detail = isForLimit ? "budget" : "retry-after"
        case .unreachable:
            status = .hit()
            detail = "unreachable"
        case .meanwhile:
            status = .hit()
            detail = "patience"
        case .revalidated(let reason, let isStored): status = .forwarded(reason, status: 304, isStored: isStored)
        case .substituted(let reason, let upstreamStatus, _):
            status = .forwarded(reason, status: upstreamStatus)
            let isFresh = ready.policy.timeToLive(at: now) > 0
            let isForDoubt = isFresh && reason != .request && !ready.response.isOutdated
            if !isForDoubt || ready.response.doubts.isEmpty { detail = ready.staleDetail }
        case .completed(let reason): status = .forwarded(reason, status: 206, isStored: true)
        case .unkept(let reason, let cause):
            detail = cause?.rule
            status = .forwarded(reason, status: sent == ready.response.status ? nil : ready.response.status)
        case .fetched(let reason):
            let fetched = ready.response.status
            status = .forwarded(reason, status: sent == fetched ? nil : fetched, isStored: true)
        }
        if case .unkept = self {} else { status.timeToLive = ready.policy.timeToLive(at: now) }
        status.isCollapsed = isCollapsed
        // Only the last resort is ever assembled.
        status.details = ready.details(ready.response.isAssembled ? nil : detail)
        return status
    }
}

extension ReadyResponse {
    fileprivate var staleDetail: String { policy.flags.contains(.staleByRoute) ? "stale-by-route" : "stale" }

    /// Why the response is served, what it shows, and how its route departs from the upstream's fields.
    func details(_ use: String?) -> [String] { [use].compactMap(\.self) + response.details + overrideDetails }
}

extension StoredPolicy {
    /// How the configuration, already applied, departs from the upstream's fields.
    ///
    /// `forced`, `fresh-by-route`, `negative-by-route`, `fresh-unsaid`, `vary-by-route`; empty if the upstream's fields apply.
    func overrideDetails(of route: CacheOverrides, vary: @autoclosure () -> VaryField) -> [String] {
        var words: [String] = []
        switch lifetimeSource {
        case .route: words.append(route.cache == .force ? "forced" : "fresh-by-route")
        case .negative: words.append("negative-by-route")
        case .unsaid: words.append("fresh-unsaid")
        case .none, .maxAge, .sMaxAge, .expires, .heuristic, .targeted: break
        }
        if !route.vary.ignore.isEmpty, case .fields(let names) = vary(),
            route.vary.ignore.contains(where: { names.contains($0.lowercased()) })
        {
            words.append("vary-by-route")
        }
        return words
    }
}

extension ReadyResponse {
    /// Adds the fields that report a response's age and how it came to be served; returns the latter.
    @discardableResult
    func addAgeAndCacheStatus(
        to fields: inout Fields,
        as cacheUse: CacheUse,
        sent: Int,
        isCollapsed: Bool,
        because inquiry: String? = nil,
        now: Int64
    ) -> CacheStatus {
        fields.append("Age", String(max(0, policy.age(at: now))))
        var status = cacheUse.cacheStatus(of: self, sent: sent, isCollapsed: isCollapsed, now: now)
        // What is served in place of an error says itself what it shows.
        if case .substituted = cacheUse {} else if status.isForwarded { status.add(cause: inquiry) }
        if !status.isForwarded { upstream.newestRateLimit?.renew(&fields, of: key.principal) }
        status.append(to: &fields)
        return status
    }
}
