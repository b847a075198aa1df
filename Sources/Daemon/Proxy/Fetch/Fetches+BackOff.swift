import EventLoops
import HTTPSemantics
import HTTPServer
import Logging
import Store
import Upstream

/// What responses say about asking again: when the upstream may be asked (`Retry-After`), and whether waiting for another's
/// response is of use.
extension Fetches {
    /// Responds to a retrieval while the upstream wants no requests (`Retry-After`); false where the request may go.
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

    /// Notes how long a response asks Larder to back off.
    func heedRetryAfter(of head: UpstreamHead, to demand: Demand) {
        guard let pause = pauses.note(head, for: demand, now: loop.now, wall: wall) else { return }
        metrics.upstream(demand.upstream.name).backOffs.add()
        log.info(
            "the upstream wants no requests for a while",
            metadata: [
                "upstream": "\(demand.upstream.name)", "status": "\(head.status)",
                "seconds": "\(pause.secondsLeft(at: loop.now))", "holds_for": "\(pause.scope.description)",
            ]
        )
    }

    /// Notes whether the response to a fetch may be shared.
    func noteSharing(of head: UpstreamHead, in fetch: RunningFetch, isStored: Bool) {
        let demand = fetch.demand
        guard !fetch.isInvalidated, let place = place(of: demand) else { return }
        if isStored {
            hitForMiss.forget(place)
        } else if !demand.upstream.isFailure(status: head.status, fields: head.fields) {
            // Failures pass; a crowd on a failing upstream would not help it.
            hitForMiss.note(place, of: demand.key, now: loop.now)
        }
    }
}
