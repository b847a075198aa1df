import HTTPSemantics
import Logging
import Synchronization
import Upstream

/// What clients are given that wait for a flight.
extension Flights {
    /// Counts how a client was answered; what Larder asks for itself is no request.
    func count(_ outcome: Outcome, for relay: Relay) {
        if relay.reply.isRequest { outcomes.count(outcome) }
    }

    /// Answers clients from a ready answer, each in its own view and for its own address.
    ///
    /// - Parameter cookies: the upstream's `Set-Cookie` lines, and others that are for nobody but the one whose request they
    ///   answer.
    func serve(
        _ ready: ReadyResponse,
        to relays: [Relay],
        as manner: (Demand) -> CacheUse,
        cookies: [Field] = []
    ) {
        for relay in relays {
            let manner = manner(relay.demand)
            if !ready.needsReceivedBytes(in: relay.demand.view) {
                let shown = cache.shown(ready, to: relay.demand)
                if shown.named.isEmpty {
                    serve(shown, to: relay, as: manner, cookies: cookies)
                    continue
                }
            }
            serveLater(ready, to: relay, as: manner, cookies: cookies)
        }
    }

    /// Serves a view that the store has to be read for.
    private func serveLater(_ ready: ReadyResponse, to relay: Relay, as manner: CacheUse, cookies: [Field]) {
        let received = Received()
        after(
            { [cache, demand = relay.demand] in
                let shown = try? await cache.inView(of: demand, ready)
                received.response.withLock { $0 = shown }
            },
            then: { [self] in
                guard let shown = received.response.withLock({ $0 }) else {
                    count(.error, for: relay)
                    return relay.reply.refuse(.receivedBytesGone, nil)
                }
                serve(shown, to: relay, as: manner, cookies: cookies)
            }
        )
    }

    private func serve(_ shown: ReadyResponse, to relay: Relay, as manner: CacheUse, cookies: [Field]) {
        count(manner.outcome(of: shown), for: relay)
        relay.reply.serve(
            shown,
            for: relay.demand,
            as: manner,
            isCollapsed: !relay.isLeader,
            cookies: relay.isLeader ? cookies : [],
            now: now
        )
    }

    /// A response read from the store, on its way back to the loop.
    private final class Received: Sendable {
        let response = Mutex<ReadyResponse?>(nil)
    }
}
