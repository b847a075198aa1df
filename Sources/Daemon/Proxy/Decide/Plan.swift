import CachePolicy
package import HTTPSemantics
import Settings
package import Upstream

/// What happens to a request, and why: the one answer that serving, streams and explanations share.
///
/// A pure function of the request, what is stored, the mode and the time makes it; then `Fetches.withHold` adds what holds the
/// upstream's requests back, in this one place.
package enum Plan: Sendable {
    case serve(ReadyResponse, CacheUse, Reason)
    /// Serve, then fetch in the background; without an inquiry that does not happen now.
    case serveAndRefresh(ReadyResponse, CacheUse, Reason, Inquiry?)
    case ask(Inquiry)
    case write(ProxyRequest)
    case refuse(ProblemDocument)
    /// Refuse, and drop what is stored of the target, so that the next GET brings the upstream's tag.
    case refuseAndExpire(ProblemDocument)
    /// What the plan would send is held back; `instead` happens, which serves or refuses.
    indirect case held(Hold, Plan, instead: Plan)

    /// The plan for a request for which nothing is looked up; nil for any other.
    init?(withoutLookUp request: ProxyRequest, mode: Mode) {
        let method = request.message.method
        let isRetrieval = MethodFacts.isCacheable(method) && request.message.body == nil && !request.isPassed
        switch mode {
        case .offline:
            // If the origin cannot evaluate a condition, a cache may ignore it (RFC 9110 §13.1.1).
            if isRetrieval { return nil }
            self = .refuse(.offline(method))
        case .auto where isRetrieval, .online where isRetrieval:
            // Only the upstream evaluates such a condition, and it does not know Larder's tag.
            if request.message.fields.contains(.ifMatch), request.conditions.matchesOwnTag {
                self = .refuseAndExpire(.ownTagInCondition)
            } else if request.isForOrigin {
                self = .ask(Inquiry(request.passed))
            } else {
                return nil
            }
        case .auto where MethodFacts.isSafe(method), .online where MethodFacts.isSafe(method):
            self = .ask(Inquiry(request.isPassed ? request : request.asking(because: .forward(.method))))
        case .auto, .online:
            guard let problem = request.upstream.refusesWrite(request) else {
                self = .write(request.asking(because: .forward(.method)))
                return
            }
            self = request.conditions.matchesOwnTag ? .refuseAndExpire(problem) : .refuse(problem)
        }
    }

    /// The plan for a retrieval, unless Larder backs off.
    ///
    /// The parts and variants found matter only if no stored whole may be served.
    ///
    /// - Parameters:
    ///   - limit: the maximum length of a whole that is stored.
    ///   - now: in seconds of the store's clock.
    init(_ request: ProxyRequest, _ found: LookUpResult, mode: Mode, limit: Int, now: Int64) {
        var found = found
        // This ignores responses stored before the route had the setting.
        if request.overrides.cache == .never { (found.whole, found.absence) = (nil, .bypass) }
        let plan = mode == .offline ? Self.offline(request, found, now: now) : Self.online(request, found, now: now)
        self = plan.considering(found, for: request, mode: mode, limit: limit, now: now)
    }

    private static func online(_ request: ProxyRequest, _ found: LookUpResult, now: Int64) -> Plan {
        func ask(_ reason: Reason) -> Plan {
            request.directives.onlyIfCached
                ? .refuse(.notCached) : .ask(Inquiry(request.asking(because: reason), stored: found.whole))
        }
        guard let stored = found.whole else { return ask(.forward(found.absence)) }
        // Newer values are known but cannot be composed: only the upstream has the whole.
        if let shortfall = stored.response.shortfall { return ask(.outdated(shortfall)) }
        if stored.isDoubtDue(at: now), !request.directives.onlyIfCached { return ask(.doubt) }
        let reuse = stored.policy.reuse(at: now, for: request.directives)
        switch reuse {
        case .fresh: return .serve(stored, .hit(isStale: false), .policy(reuse))
        case .stale(_, _, let allowed) where allowed.contains(.whileRevalidating):
            let refresh = request.forWhole.ofWhole.map { Inquiry($0.asking(because: .policy(reuse)), stored: stored) }
            return .serveAndRefresh(stored, .hit(isStale: true), .policy(reuse), refresh)
        case .stale(_, _, let allowed) where allowed.contains(.byRequest):
            return .serve(stored, .hit(isStale: true), .policy(reuse))
        case .stale, .mustValidate: return ask(.policy(reuse))
        }
    }

    /// No upstream can be asked, so the known response must do.
    private static func offline(_ request: ProxyRequest, _ found: LookUpResult, now: Int64) -> Plan {
        guard let stored = found.whole else {
            guard let assembled = found.assembled else { return .refuse(.unknownOffline) }
            guard request.view == .mapped else { return .refuse(.unknownOffline.namingMappedView) }
            return .serve(assembled, .offline(isStale: true), .assembled)
        }
        let reuse = stored.policy.reuse(at: now, for: .none)
        if let shortfall = stored.response.shortfall {
            return .serve(stored, .offline(isStale: true), .outdated(shortfall))
        }
        if case .fresh = reuse { return .serve(stored, .hit(isStale: false), .policy(reuse)) }
        return .serve(stored, .offline(isStale: true), .policy(reuse))
    }

    /// The plan given the stored parts and variants, if no stored whole may be served.
    private func considering(_ found: LookUpResult, for request: ProxyRequest, mode: Mode, limit: Int, now: Int64)
        -> Plan
    {
        var inquiry: Inquiry
        switch self {
        case .serve, .serveAndRefresh, .write, .refuseAndExpire, .held: return self
        case .refuse: inquiry = Inquiry(request)
        case .ask(let asked): inquiry = asked
        }
        (inquiry.parts, inquiry.variants, inquiry.across) = (found.parts, found.variants, found.across)
        // The newer of the whole and the parts counts.
        let parts = found.parts.flatMap { parts in
            inquiry.stored.map { $0.policy.responseTime > parts.policy.responseTime } ?? false ? nil : parts
        }
        if request.range != nil, let parts, request.mayBeServed(parts: parts),
            ServedContent(of: parts, for: request.message, now: now) != nil
        {
            let reuse = parts.policy.reuse(at: now, for: mode == .offline ? .none : request.directives)
            switch (mode, reuse) {
            case (_, .fresh): return .serve(parts, .hit(isStale: false), .policy(reuse))
            case (.offline, _): return .serve(parts, .offline(isStale: true), .policy(reuse))
            case (_, .stale(_, _, let allowed)) where allowed.contains(.byRequest):
                return .serve(parts, .hit(isStale: true), .policy(reuse))
            case (.auto, _), (.online, _):
                (inquiry.request, inquiry.stored) = (request.asking(because: .policy(reuse)), parts)
            }
        } else if request.range != nil, inquiry.stored != nil, request.isStorable {
            // A part beside an older whole would contradict it: the whole is renewed, and the range cut from it.
            inquiry.request = inquiry.request.forWhole
        } else if let parts, request.range != nil || inquiry.stored == nil {
            inquiry.request = request.asking(because: .forward(.partial))
            inquiry.completes = request.isShareable && parts.isCompletable(limit: limit)
        }
        // A refused request is not sent to validate parts either.
        if case .refuse = self { return self }
        return .ask(inquiry)
    }
}

extension Plan {
    /// A request to the upstream, and what is stored that its response may concern.
    package struct Inquiry: Sendable {
        package internal(set) var request: ProxyRequest
        /// What a 304 would freshen, and what may replace an error.
        package internal(set) var stored: ReadyResponse?
        /// Other responses stored under the request's key; the upstream may select one of them.
        var variants: [Variant] = []
        /// The tag of a response that is stored for another principal.
        var across: TagAcrossPrincipals?
        var parts: ReadyResponse?
        /// Whether only the bytes that `parts` lacks are requested.
        var completes = false
        var isConditional = true
        /// Whether it joins a fetch under way.
        var isCollapsed = false
        /// This machine's fetch of the response for all machines; nil without one.
        var fleetFetch: FleetFetch?

        init(_ request: ProxyRequest, stored: ReadyResponse? = nil) {
            (self.request, self.stored) = (request, stored)
        }

        package var validation: Validation {
            // A request for the missing bytes has its own condition, `If-Range`.
            guard isConditional, !completes else { return .none }
            return Validation(request, stored: stored, variants: variants, across: across)
        }

        /// How much it needs the upstream while little is left of a rate limit.
        ///
        /// What a write or the client itself sends upstream is needed, as is what nothing stored can replace.
        ///
        /// - Parameter isForClient: whether a client waits for the response, and not a stream.
        func urgency(isForClient: Bool = true, at now: Int64) -> Budget.Urgency {
            guard let stored, stored.response.shortfall == nil, stored.maySubstitute(at: now, for: request)
            else { return .needed }
            if !isForClient || request.reason == .doubt { return .background }
            return request.reason.allowsImpatience ? .replaceable : .needed
        }

        /// The stored parts, if only the bytes that they lack are requested.
        var completing: ReadyResponse? { completes ? parts : nil }

        package var upstreamRequest: UpstreamRequest {
            let resolvesDoubt = stored?.response.doubts.isEmpty == false
            return request.upstreamRequest(validation, completing: completing, resolvesDoubt: resolvesDoubt)
        }

        /// The inquiry for the whole on behalf of another request, after validation was of no use.
        func unconditional(_ request: ProxyRequest) -> Inquiry {
            var inquiry = Inquiry(request, stored: stored)
            inquiry.isConditional = false
            return inquiry
        }
    }

    /// The request that goes upstream, now or in the background.
    var inquiry: Inquiry? {
        switch self {
        case .ask(let inquiry), .serveAndRefresh(_, _, _, let inquiry?): inquiry
        case .serve, .serveAndRefresh, .write, .refuse, .refuseAndExpire, .held: nil
        }
    }

    /// The request that a client waits for the upstream with.
    var sent: ProxyRequest? {
        switch self {
        case .ask(let inquiry): inquiry.request
        case .write(let request): request
        case .serve, .serveAndRefresh, .refuse, .refuseAndExpire, .held: nil
        }
    }

    /// The plan if nothing were held back.
    var unheld: Plan { if case .held(_, let plan, _) = self { plan } else { self } }

    /// The plan, or what happens instead.
    package var outcome: Plan { if case .held(_, _, let instead) = self { instead } else { self } }

    /// How long its request waits first for a used-up limit that is about to be reset, because nothing stored may be served; nil
    /// if it does not wait.
    var pause: Duration? {
        guard case .held(.backOff(let backOff, let now), let plan, instead: .refuse) = self, let request = plan.sent,
            backOff.isForLimit, backOff.until > now
        else { return nil }
        let pause = Duration.nanoseconds(Int64(backOff.until - now))
        // The loop's clock is coarse.
        return pause <= request.upstream.settings.budget.wait ? pause + .milliseconds(20) : nil
    }

    /// What a client gets that has waited long enough for the upstream: what is stored, if it is fresh by now, or merely stale and
    /// may be served stale; nil if it must go on waiting.
    var inPlaceOfSlowResponse: (ready: ReadyResponse, use: CacheUse)? {
        switch self {
        case .serve(let ready, let use, _), .serveAndRefresh(let ready, let use, _, _): return (ready, use)
        case .ask(let inquiry):
            guard inquiry.request.reason.allowsImpatience, let stored = inquiry.stored,
                !StatusFacts.isFailureByStatus(stored.response.status)
            else { return nil }
            return (stored, .meanwhile)
        // Its request was sent before.
        case .held(_, let plan, _): return plan.inPlaceOfSlowResponse
        case .write, .refuse, .refuseAndExpire: return nil
        }
    }

    /// The same plan if what is stored may have been removed.
    var withoutStored: Plan { if case .ask(let inquiry) = self { .ask(Inquiry(inquiry.request)) } else { self } }

    /// The plan while the upstream is not asked: instead happens what the request would get after a failure.
    ///
    /// - Parameter assembled: the mapped view of the request's object, if it is known.
    func held(by hold: Hold?, assembled: ReadyResponse? = nil, now: Int64) -> Plan {
        guard let hold, let request = sent, hold.concerns(request) else { return self }
        if let stored = inquiry?.stored, stored.maySubstitute(at: now, for: request) {
            return .held(hold, self, instead: .serve(stored, hold.use, .held(hold)))
        }
        let problem = hold.problem(request)
        guard case .outage = hold, inquiry?.stored == nil, let assembled,
            assembled.maySubstitute(at: now, for: request)
        else { return .held(hold, self, instead: .refuse(problem)) }
        let isShown = request.view == .mapped
        let instead: Plan = isShown ? .serve(assembled, hold.use, .held(hold)) : .refuse(problem.namingMappedView)
        return .held(hold, self, instead: instead)
    }

    /// How a stream shows a stored response until it has a newer one; nil if it may not be shown.
    func useByStream(of found: ReadyResponse, now: Int64) -> CacheUse? {
        switch self {
        case .serve(_, let use, _), .serveAndRefresh(_, let use, _, _): use
        case .ask, .write, .refuse, .refuseAndExpire, .held:
            !found.response.isOutdated && found.mayBeShown(at: now) ? .hit(isStale: true) : nil
        }
    }
}
