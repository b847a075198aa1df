import CachePolicy
import EventLoops
import HTTPSemantics
import HTTPServer
import Settings
import Upstream

/// An upstream that cannot be reached, so that requests are held back.
package struct Outage: Sendable, Equatable {
    /// Why the last request got no response.
    var error: UpstreamError
    /// The time until Larder tries again, in whole seconds.
    var secondsLeft: Int64
}

/// Why a request is not sent although the plan says that the upstream is asked.
package enum Hold: Sendable, Equatable {
    /// - Parameter at: when it was asked for, in ns of the loop's clock.
    case backOff(BackOff, at: UInt64)
    case outage(Outage)

    /// Whether a request that would be sent is held back.
    ///
    /// That the upstream wants none concerns retrievals; whether to try a write is the client's decision. But a write that counts
    /// against a limit of which nothing is left is certain to be refused, if the upstream has named what is limited.
    func concerns(_ request: ProxyRequest) -> Bool {
        switch self {
        case .backOff(let backOff, _):
            MethodFacts.isCacheable(request.message.method) || backOff.isForLimit && backOff.scope.isNamed
        case .outage: true
        }
    }

    /// How a stored response is served in place of the upstream's.
    var use: CacheUse {
        switch self {
        case .backOff(let backOff, _): .backedOff(isForLimit: backOff.isForLimit)
        case .outage: .unreachable
        }
    }

    func problem(_ request: ProxyRequest) -> ProblemDocument {
        let upstream = request.upstream.name
        return switch self {
        case .backOff(let backOff, let now):
            .backedOff(backOff, seconds: backOff.secondsLeft(at: now), upstream: upstream)
        case .outage(let outage): .unreachable(outage, request.message.method, upstream: upstream)
        }
    }
}

/// Holding requests back: because the upstream wants none (`Retry-After`), or because it cannot be reached.
extension Fetches {
    /// A plan as it is carried out now: what it would send may join a fetch under way, be held back, or be put off.
    ///
    /// - Parameter assembled: the mapped view of the request's object, if it is known.
    func withHold(_ plan: Plan, assembled: ReadyResponse? = nil) -> Plan {
        switch plan {
        case .ask(var inquiry):
            inquiry.isCollapsed = joined(by: inquiry.request) != nil
            let hold = inquiry.isCollapsed ? nil : hold(on: inquiry)
            return Plan.ask(inquiry).held(by: hold, assembled: assembled, now: now)
        case .write(let request): return plan.held(by: hold(onWrite: request), now: now)
        case .serveAndRefresh(let ready, let use, let reason, let inquiry?) where !mayRefresh(inquiry):
            return .serveAndRefresh(ready, use, reason, nil)
        case .serve, .serveAndRefresh, .refuse, .refuseAndExpire, .held: return plan
        }
    }

    /// Why an inquiry would not be sent now.
    ///
    /// - Parameter isForClient: whether a client waits for the response, and not a stream.
    func hold(on inquiry: Plan.Inquiry, isForClient: Bool = true) -> Hold? {
        hold(on: inquiry.request, as: inquiry.urgency(isForClient: isForClient, at: now))
    }

    /// Why a request would not be sent now.
    func hold(on request: ProxyRequest, as urgency: Budget.Urgency) -> Hold? {
        if let outage = circuit(for: request)?.outage { return .outage(outage) }
        // Most requests are held back by nothing.
        if backOffs.areNone { return nil }
        return backOffs.backOff(for: request, as: urgency, now: loop.now).map { .backOff($0, at: loop.now) }
    }

    /// Why a write is not sent; nil if it is.
    private func hold(onWrite request: ProxyRequest) -> Hold? {
        // While no connection can be made, it could not be sent. Half open, it is sent: the client decides.
        if let circuit = circuit(for: request), circuit.state.state == .open, let outage = circuit.outage {
            return .outage(outage)
        }
        return backOffs.limit(on: request, as: .needed, now: loop.now).map { .backOff($0, at: loop.now) }
    }

    /// Carries a plan out if it is held back; returns false if it is not.
    @discardableResult
    func carryOutHold(of plan: Plan, _ relay: Relay) -> Bool {
        guard case .held(let hold, let wanted, let instead) = plan else { return false }
        heldBack(by: hold, relay.request)
        if relay.reply.isRequest, let stored = wanted.inquiry?.stored { cache.postponeInquiry(about: stored) }
        switch instead {
        case .serve(let stored, let use, _): serve(stored, to: [relay], as: { _ in use })
        case .refuse(let problem): refuse(relay, problem, nil)
        case .serveAndRefresh, .ask, .write, .refuseAndExpire, .held: preconditionFailure("it serves or refuses")
        }
        return true
    }

    /// Serves a client without the upstream if that is held back, though its request was to be sent; returns false if it may be.
    ///
    /// - Parameter stored: the response that may be served in place of the upstream's.
    func serveIfHeldBack(_ relay: Relay, stored: ReadyResponse?) -> Bool {
        let inquiry = Plan.Inquiry(relay.request, stored: stored)
        let plan = Plan.ask(inquiry).held(by: hold(on: inquiry, isForClient: relay.reply.isRequest), now: now)
        guard case .held(let hold, _, instead: .refuse(let problem)) = plan, case .outage = hold, stored == nil,
            relay.reply.isRequest, Assembly(relay.request) != nil
        else { return carryOutHold(of: plan, relay) }
        heldBack(by: hold, relay.request)
        assemble(for: relay, as: hold.use, problem, nil)
        return true
    }

    /// The circuit that decides whether a request is sent; nil if none does.
    private func circuit(for request: ProxyRequest) -> RunningCircuit? {
        modes.current == .auto ? circuits[request.upstream.storeKey] : nil
    }

    func isUnreachable(for request: ProxyRequest) -> Bool { circuit(for: request)?.outage != nil }

    /// Why a request to its upstream got no response last.
    func lastError(for request: ProxyRequest) -> UpstreamError { circuit(for: request)?.error ?? .cancelled }

    /// Counts a request that is about to be sent as a trial, if its circuit is half open; returns false if it must not be sent.
    @discardableResult
    func countTrial(_ request: ProxyRequest) -> Bool { circuit(for: request)?.countTrial() ?? true }

    func forgetCircuit(of upstream: ProxiedUpstream) {
        circuits[upstream.storeKey] = nil
        metrics.upstream(upstream.name).record { $0.recordCircuit(.closed, at: RequestClock.wall) }
    }

    /// Records that an upstream has responded.
    func recordResponse(to request: ProxyRequest) { circuits[request.upstream.storeKey]?.handle(.response) }

    /// Records that a request got no response.
    ///
    /// - Parameter start: when it was sent, in µs of the store's clock.
    func recordNoResponse(_ error: UpstreamError, to request: ProxyRequest, since start: Int64) {
        guard error.isAboutUpstream, modes.current == .auto else { return }
        let circuit = runningCircuit(for: request)
        circuit.error = error
        circuit.handle(.noResponse(isTimeout: error.isTimeout, since: start))
    }

    /// Records that a client was served a stale response, because the upstream has sent nothing so far.
    ///
    /// - Parameter start: when the client began to wait, in µs of the store's clock.
    func recordLostPatience(with request: ProxyRequest, since start: Int64) {
        guard modes.current == .auto else { return }
        runningCircuit(for: request).handle(.lostPatience(since: start))
    }

    private func runningCircuit(for request: ProxyRequest) -> RunningCircuit {
        let circuit = circuits[request.upstream.storeKey] ?? RunningCircuit(of: request.upstream, fetches: self)
        circuits[request.upstream.storeKey] = circuit
        circuit.upstream = request.upstream
        return circuit
    }

    /// How long a client waits that may get a stale response.
    func patience(with request: ProxyRequest) -> Duration {
        circuit(for: request)?.state.state == .slow ? .zero : request.upstream.waiting(for: request).patience
    }
}
