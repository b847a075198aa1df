import EventLoops
import HTTPSemantics
import HTTPServer
import Logging
import Store
import Upstream

/// What flights learn from answers about whom to ask, and when: neither a crowd nor an upstream in need is made to wait, or to
/// work, for nothing.
extension Flights {
    /// Answers a retrieval that the upstream has asked to be spared; false where it may go.
    func isHeldBack(_ relay: Relay, stored: ReadyResponse?) -> Bool {
        let demand = relay.demand
        guard MethodFacts.isAnswerable(demand.request.method), let pause = pauses.pause(for: demand, now: loop.now)
        else { return false }
        metrics.upstream(demand.upstream.name).heldBack.add()
        if let stored, stored.maySubstitute(at: now, for: demand) {
            serve(stored, to: [relay], as: { _ in .heldBack })
        } else {
            count(.error, for: relay)
            let seconds = pause.secondsLeft(at: loop.now)
            let problem = ProblemDocument.heldBack(pause, seconds: seconds, upstream: demand.upstream.name)
            relay.reply.refuse(problem, nil)
        }
        return true
    }

    /// Takes note of how long an answer asks its upstream to be spared.
    func heedRetryAfter(of head: UpstreamHead, to demand: Demand) {
        guard let pause = pauses.note(head, for: demand, now: loop.now, wall: wall) else { return }
        metrics.upstream(demand.upstream.name).backOffs.add()
        log.info(
            "the upstream asks not to be asked for a while",
            metadata: [
                "upstream": "\(demand.upstream.name)", "status": "\(head.status)",
                "seconds": "\(pause.secondsLeft(at: loop.now))", "holds_for": "\(pause.scope.description)",
            ]
        )
    }

    /// Takes note of whether the answer to a flight may be shared.
    func noteSharing(of head: UpstreamHead, in flight: Flight, isStored: Bool) {
        let demand = flight.demand
        guard !flight.storesNothing, let place = place(of: demand) else { return }
        if isStored {
            hitForMiss.forget(place)
        } else if !demand.upstream.isFailure(status: head.status, fields: head.fields) {
            // Failures pass; a crowd on a failing upstream would not help it.
            hitForMiss.note(place, of: demand.key, now: loop.now)
        }
    }

    /// Whether an answer is an error that something older may stand in for.
    func isFailure(_ head: UpstreamHead, in flight: Flight) -> Bool {
        flight.demand.upstream.isFailure(status: head.status, fields: head.fields)
    }
}
