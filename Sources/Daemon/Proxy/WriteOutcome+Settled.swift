import HTTPServer
import Store
import Upstream

extension WriteOutcome {
    /// What the store settles of a write that may have changed something.
    ///
    /// - Parameters:
    ///   - start: when it was sent, on the store's clock.
    ///   - end: when it was over.
    func settled(
        as effect: SettledWrite.Effect,
        of demand: Demand,
        suspect: SuspectID,
        start: Int64,
        end: Int64
    ) -> SettledWrite {
        let (upstream, key) = (demand.upstream, demand.key)
        var write = SettledWrite(
            upstream: upstream.storeKey,
            principal: key.principal,
            context: key.context,
            path: upstream.keyPath(of: demand.target),
            time: end,
            effect: effect,
            bound: upstream.bound(demand),
            suspect: suspect
        )
        write.method = demand.request.method
        write.isCreation = demand.request.method == "POST"
        if effect != .absent {
            let further = upstream.invalidated(by: demand, status: error == nil ? head?.status : nil)
            // How a deletion shows in lists is the models' to say.
            let collections = effect == .deleted ? self.collections(of: demand) : []
            let paths = invalidated(by: demand).filter { !collections.contains($0) } + further.paths
            write.targets = paths.map { InvalidationTarget(upstream: upstream.storeKey, path: $0) }
            write.collections = collections.map { InvalidationTarget(upstream: upstream.storeKey, path: $0) }
            write.patterns = further.patterns
        } else {
            // What is stored at its URL is as good as deleted, whether or not it shows an object.
            write.targets = [
                InvalidationTarget(upstream: upstream.storeKey, path: upstream.keyPath(of: demand.target))
            ]
        }
        if let (rule, body, surroundings) = observed(by: demand) {
            write.observation = ReceivedObservation(
                upstream: upstream.storeKey,
                principal: key.principal,
                context: key.context,
                body: body,
                start: start,
                end: end,
                rule: rule,
                method: demand.request.method,
                url: key.url,
                surroundings: surroundings
            )
        }
        return write
    }
}
