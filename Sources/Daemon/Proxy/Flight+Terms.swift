import CachePolicy

extension Flight {
    /// On what terms an answer will be stored, as `Cache-Status` tells those who get it first.
    struct Terms {
        let timeToLive: Int64
        let departure: RouteOverrideDetail?

        init(_ storing: Storing, _ demand: Demand, now: Int64) {
            let policy = demand.upstream.applying(storing.policy, demand.overrides)
            timeToLive = policy.timeToLive(at: now)
            departure =
                demand.overrides == CacheOverrides()
                ? nil : RouteOverrideDetail(demand.overrides, policy, vary: VaryField(storing.fields))
        }
    }
}
