import TestSupport

/// The upstream of the reference model, served by a real ``Origin``.
final class ReferenceOrigin: Sendable {
    struct State {
        /// What there is now, by principal.
        var holdings: [String: Holdings] = [:]
        /// What there was before each change, and when that ended.
        var past: [String: [(holdings: Holdings, end: ContinuousClock.Instant)]] = [:]
        var plans: [Int: (plan: ResponsePlan, edit: Edit?)] = [:]
        var gates: [Int: Gate] = [:]
        var exchanges: [ReferenceExchange] = []
        /// The event that is going on.
        var now = 0
        let isDated: Bool
        let lag: Setting.Lag

        /// Notes that what is on its way to some paths counts for nothing any more, but perhaps what was asked for since.
        ///
        /// - Parameter last: the number of the last exchange that is certain to be concerned.
        mutating func invalidate(upTo last: Int, where isMeant: (Key) -> Bool) {
            for index in exchanges.indices where !exchanges[index].isOver && isMeant(exchanges[index].key) {
                if index <= last {
                    exchanges[index].invalidation = .certain
                } else if exchanges[index].invalidation == .none {
                    exchanges[index].invalidation = .perhaps
                }
            }
        }
    }

    let state: Monitor<State>
    let origin: Origin

    init(_ setting: Setting) throws {
        let state = Monitor(State(isDated: setting.isDated, lag: setting.lag))
        for principal in Scope.principals {
            state.withLock { $0.holdings[principal] = Holdings(of: principal, bulk: setting.bulk) }
        }
        self.state = state
        origin = try Origin { Self.answer($0, state) }
    }

    /// Changes something behind Larder's back.
    func change(_ principal: String, _ edit: Edit) { state.withLock { $0.apply(edit, principal) } }

    /// Lets the answer to a request go, now or when it is asked for.
    func letGo(_ step: Int) { state.withLock { $0.gates.removeValue(forKey: step) }?.open() }

    private static func answer(_ request: Origin.Request, _ state: Monitor<State>) -> OriginResponse {
        let scope = Scope(principal: request["Authorization"] ?? "", language: request["Accept-Language"] ?? "")
        guard let step = request["X-Request-Id"].flatMap({ Int($0) }),
            let page = state.withLock({ $0.page(request.target, of: scope.principal) })
        else { return .empty(204) }
        let (number, plan, gate) = state.withLock { state in
            state.exchanges.append(
                ReferenceExchange(
                    step: step,
                    method: request.method,
                    key: Key(page: page, scope: scope),
                    arrival: state.now,
                    revision: state.revision(of: scope.principal),
                    client: request["X-Client"] ?? "",
                    hasOwnTag: ["If-None-Match", "If-Range", "If-Match"].contains {
                        request[$0]?.contains("\"larder-") == true
                    }
                )
            )
            return (state.exchanges.count - 1, state.plans[step]?.plan ?? ResponsePlan(), state.gates[step])
        }
        var made = plan.isMadeLate ? nil : state.withLock { $0.make(number, request, plan) }
        if plan.isHeld { gate?.wait() }
        made = made ?? state.withLock { $0.make(number, request, plan) }
        return made ?? .reset
    }
}
