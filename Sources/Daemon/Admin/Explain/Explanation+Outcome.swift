import CachePolicy
import HTTPSemantics
import Proxy
import Upstream

extension Explanation.Outcome {
    /// A decision's outcome for the client.
    ///
    /// - Parameter shortfall: why the stored response cannot show the newest values, if that is known.
    init(_ decision: Decision, _ request: ProxyRequest, shortfall: String?, now: Int64) {
        switch decision {
        case .serve(let ready, let cacheUse): self.init("serve", ready, cacheUse, request, now: now)
        case .serveAndRefresh(let ready, let cacheUse):
            self.init("serve-and-refresh", ready, cacheUse, request, now: now)
        case .ask(let reason, let stored):
            var status = CacheStatus.forwarded(reason)
            if request.overrides.cache == .never { status.detail = "never-by-route" }
            self.init(
                action: "fetch",
                cacheStatus: status.text,
                reason: stored.map { Self.reason(toAskAbout: $0, request, shortfall: shortfall, now: now) }
                    ?? Self.reason(reason)
            )
        case .refuse(let problem): self.init(problem)
        }
    }

    /// A refusal.
    init(_ problem: ProblemDocument) {
        self.init(
            action: "refuse",
            status: problem.status,
            cacheStatus: problem.cacheStatus,
            reason: problem.detail ?? problem.title
        )
    }

    /// A retrieval with conditions that only the origin may evaluate.
    static let forOrigin = Explanation.Outcome(
        action: "pass",
        cacheStatus: CacheStatus.forwarded(.bypass).text,
        reason: "If-Match and If-Unmodified-Since are the origin's to evaluate"
    )

    /// A retrieval while Larder is backing off.
    ///
    /// - Parameter stored: the response served meanwhile.
    static func backedOff(
        _ pause: BackOff,
        of request: ProxyRequest,
        stored: ReadyResponse?,
        seconds: Int64,
        now: Int64
    ) -> Explanation.Outcome {
        guard let stored else { return .init(.backedOff(pause, seconds: seconds, upstream: request.upstream.name)) }
        var outcome = Explanation.Outcome("serve", stored, .backedOff, request, now: now)
        outcome.reason =
            "the upstream responded with \(pause.status) and Retry-After, which applies to \(pause.scope.description); "
            + "Larder asks it again in \(seconds) s"
        return outcome
    }

    /// A stream of events (`Larder-Live`).
    static func events(isShown: Bool, isAsked: Bool) -> Explanation.Outcome {
        let shown = isShown ? "`cached` with what is stored" : ""
        let asked = isAsked ? (isShown ? "then what the upstream says" : "what the upstream says") : "then the end"
        return .init(
            action: "events",
            status: 200,
            cacheStatus: isAsked ? CacheStatus.forwarded(isShown ? .request : .uriMiss).text : "",
            reason: isShown
                ? "\(shown), \(asked)" : isAsked ? asked : "`error`: nothing is stored, and the upstream is not asked"
        )
    }

    private init(_ action: String, _ ready: ReadyResponse, _ cacheUse: CacheUse, _ request: ProxyRequest, now: Int64) {
        let content = ServedContent(of: ready.shown(to: request), for: request.message, now: now)
        let sent = content?.status(of: ready) ?? ready.response.status
        self.init(
            action: action,
            status: sent,
            cacheStatus: cacheUse.cacheStatus(of: ready, sent: sent, isCollapsed: false, now: now).text,
            reason: Self.reason(toServe: ready, cacheUse, request, now: now)
        )
    }

    // MARK: Reasons

    private static func reason(toServe ready: ReadyResponse, _ cacheUse: CacheUse, _ request: ProxyRequest, now: Int64)
        -> String
    {
        let nobody = if case .offline = cacheUse { "; the upstream is not asked" } else { "" }
        switch ready.policy.reuse(at: now, for: request.directives) {
        case .fresh(_, let timeToLive): return "it is fresh for \(timeToLive) s more" + nobody
        case .mustValidate(_, let reason, _): return reason.sentence + nobody
        case .stale(_, let staleness, let allowed):
            let since = "it has been stale for \(staleness) s"
            guard nobody.isEmpty else { return since + nobody }
            if allowed.contains(.whileRevalidating) {
                let word = ready.policy.flags.contains(.staleByRoute) ? "the route's stale" : "stale-while-revalidate"
                return since + ", which \(word) allows while it is fetched again"
            }
            return since + ", which the request's max-stale allows"
        }
    }

    private static func reason(
        toAskAbout stored: ReadyResponse,
        _ request: ProxyRequest,
        shortfall: String?,
        now: Int64
    ) -> String {
        if stored.response.form == .outdated {
            return shortfall.map { "newer values are known, but cannot be put in: \($0)" }
                ?? "newer values are known, but not all of them"
        }
        switch stored.policy.reuse(at: now, for: request.directives) {
        case .fresh: return "it is fresh, but does not contain what the request asks for"
        case .stale(_, let staleness, _): return "it has been stale for \(staleness) s"
        case .mustValidate(_, let reason, _): return reason.sentence
        }
    }

    private static func reason(_ absence: CacheStatus.Forward) -> String {
        switch absence {
        case .bypass: "the route says cache: never"
        case .varyMiss: "other variants are stored, but none that this request selects"
        case .miss: "the store could not be read"
        case .partial: "parts of it are stored, but not all that the request asks for"
        case .uriMiss, .method, .request, .stale:
            "nothing is stored under this cache key for this principal and context"
        }
    }
}

extension Reuse.Reason {
    /// Why the upstream must be asked before the response is used, in words.
    fileprivate var sentence: String {
        switch self {
        case .noCache: "the response said no-cache"
        case .mustRevalidate: "it is stale, and said must-revalidate"
        case .notReusable: "it may not be reused"
        case .requestNoCache: "the request says no-cache"
        case .requestMaxAge: "it is older than the request's max-age"
        case .requestMinFresh: "it will not be fresh for the request's min-fresh"
        }
    }
}

extension Explanation.Expectations {
    /// - Parameters:
    ///   - stored: what a 304 would renew, and what may replace an error.
    ///   - variants: the other responses that would be validated.
    init(_ request: ProxyRequest, stored: ReadyResponse?, variants: [Variant], now: Int64) {
        let validation = Validation(request, stored: stored, variants: variants)
        let sent = request.upstreamRequest(validation).fields
        let names = ["if-none-match", "if-modified-since", "if-match", "if-unmodified-since", "if-range", "range"]
        conditions = sent.lines.filter { names.contains($0.lowercasedName) }.map {
            "\(String(decoding: $0.name, as: UTF8.self)): \($0.text)"
        }
        if validation.chosen == nil, !validation.isEmpty {
            notModified = "the stored variant that its ETag names is renewed, and serves this request, too"
        } else if !validation.isEmpty, let stored {
            notModified =
                "renews what is stored, lifetime \(stored.policy.lifetime) s unless it says otherwise, and that is served"
        }
        if let refusal = NotStoredReason.refusal(of: request) { storing = "is not stored: \(refusal.text)" }
        failure =
            stored?.maySubstitute(at: now, for: request) == true
            ? "what is stored is served in its place" : "it is passed on"
    }
}
