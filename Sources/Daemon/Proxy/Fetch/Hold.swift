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
    case backOff(BackOff, secondsLeft: Int64)
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
        case .backOff(let backOff, let seconds): .backedOff(backOff, seconds: seconds, upstream: upstream)
        case .outage(let outage): .unreachable(outage, request.message.method, upstream: upstream)
        }
    }
}

/// Holding requests back: because the upstream wants none (`Retry-After`), or because it cannot be reached.
extension Fetches {
    /// Why a request would not be sent now.
    func hold(on request: ProxyRequest, as urgency: Budget.Urgency = .needed) -> Hold? {
        if let outage = circuit(for: request)?.outage { return .outage(outage) }
        // Most requests are held back by nothing.
        if backOffs.areNone { return nil }
        return backOffs.backOff(for: request, as: urgency, now: loop.now).map {
            .backOff($0, secondsLeft: $0.secondsLeft(at: loop.now))
        }
    }

    /// Why a write is not sent; nil if it is.
    func hold(onWrite request: ProxyRequest) -> Hold? {
        if let outage = outage(for: request) { return .outage(outage) }
        return backOffs.limit(on: request, as: .needed, now: loop.now)
            .map { Hold.backOff($0, secondsLeft: $0.secondsLeft(at: loop.now)) }
            .flatMap { $0.concerns(request) ? $0 : nil }
    }

    /// How long a request waits for a used-up limit that is about to be reset, because nothing stored may be served; nil if it
    /// does not wait.
    func pause(before plan: Plan) -> Duration? {
        // Most requests are held back by nothing.
        if backOffs.areNone { return nil }
        let (request, hold): (ProxyRequest, Hold?)
        switch plan {
        case .ask(let inquiry):
            guard underWay(for: inquiry.request) == nil else { return nil }
            (request, hold) = (inquiry.request, self.hold(on: inquiry.request))
        case .write(let write): (request, hold) = (write, self.hold(onWrite: write))
        case .serve, .serveAndRefresh, .refuse, .refuseAndExpire: return nil
        }
        guard case .backOff(let backOff, _)? = hold, backOff.isForLimit, backOff.until > loop.now,
            case .refuse? = hold.map({ plan.heldBack(by: $0, now: now) })
        else { return nil }
        let pause = Duration.nanoseconds(Int64(backOff.until - loop.now))
        // The loop's clock is coarse.
        return pause <= request.upstream.settings.budget.wait ? pause + .milliseconds(20) : nil
    }

    /// Serves a request without the upstream while that is held back; returns false if the request may be sent.
    func serveIfHeldBack(_ relay: Relay, stored: ReadyResponse?) -> Bool {
        let (request, inquiry) = (relay.request, Plan.Inquiry(relay.request, stored: stored))
        let urgency = inquiry.urgency(isForClient: relay.reply.isRequest, at: now)
        guard let hold = hold(on: request, as: urgency), hold.concerns(request) else {
            _ = circuit(for: request)?.countTrial()
            return false
        }
        heldBack(by: hold, request)
        switch Plan.ask(inquiry).heldBack(by: hold, now: now) {
        case .serve(let stored, let use, _): serve(stored, to: [relay], as: { _ in use })
        case .refuse(let problem):
            if case .outage = hold, stored == nil, relay.reply.isRequest, Assembly(request) != nil {
                assemble(for: relay, as: hold.use, problem, nil)
            } else {
                refuse(relay, problem, nil)
            }
        case .serveAndRefresh, .ask, .write, .refuseAndExpire: preconditionFailure("it is held back")
        }
        return true
    }

    /// The circuit that decides whether a request is sent; nil if none does.
    private func circuit(for request: ProxyRequest) -> RunningCircuit? {
        modes.current == .auto ? circuits[request.upstream.storeKey] : nil
    }

    func isUnreachable(for request: ProxyRequest) -> Bool { circuit(for: request)?.outage != nil }

    /// Why a request to its upstream got no response last.
    func lastError(for request: ProxyRequest) -> UpstreamError { circuit(for: request)?.error ?? .cancelled }

    /// Whether a request may be sent for which no client waits; if so, it counts as a trial.
    func admitsRefresh(_ request: ProxyRequest) -> Bool { circuit(for: request)?.countTrial() ?? true }

    /// Why a write is refused at once: no connection can be made, so it could not be sent.
    ///
    /// Half open, it is sent: the client decides.
    func outage(for write: ProxyRequest) -> Outage? {
        guard let circuit = circuit(for: write), circuit.state.state == .open else { return nil }
        return circuit.outage
    }

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
