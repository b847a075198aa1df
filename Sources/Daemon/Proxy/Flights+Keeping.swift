import CachePolicy
import EventLoops
import Settings
import Store
import Upstream

/// Answers that have come whole: kept, and ended for their clients once what they tell holds everywhere.
///
/// Who has the last byte of an answer has been told of its objects, and must not find another answer that shows them as
/// they were. So the end of an answer that tells of objects is withheld until its commit has flipped what it changes, as a
/// write's is (law 10); only so long, though, as `store.withhold` says.
extension Flights {
    /// Whether an answer whose head has come will tell of objects.
    func tells(_ head: UpstreamHead, in flight: Flight) -> Bool {
        let demand = flight.demand
        guard demand.upstream.isJSON(head.fields) else { return false }
        return demand.upstream.reading(demand, status: head.status, fields: head.fields).rule != nil
    }

    /// Makes an answer that has come whole ready, and keeps it unless a write or a cleaning overtook it.
    ///
    /// What is to happen once it may be ended is said by `onceTold`.
    ///
    /// - Parameter isAwaited: whether a client waits for its end.
    func keep(_ answer: CachedResponse, from flight: Flight, isAwaited: Bool) -> ReadyResponse {
        let demand = flight.demand
        let ready = ReadyResponse(answer, digest: demand.digest, upstream: demand.upstream, base: demand.base)
        guard !flight.storesNothing else {
            unstored.note(.invalidated, status: answer.status, of: demand, at: now)
            return ready
        }
        unstored.forget(demand.key)
        let reading = demand.upstream.reading(demand, status: answer.status, fields: answer.fields)
        let age = answer.policy.knownAge
        cache.forgetParts(of: demand)
        supersede(flight, by: ready)
        let (flights, number) = (LoopReference(self, on: loop), ObjectIdentifier(flight))
        let tells = cache.keep(
            ready,
            sent: flight.start,
            age: age,
            reading: reading,
            overtakenAt: flight.overtakenAt,
            isSecret: demand.isRepeated(in: answer.body, answer.fields),
            isAwaited: isAwaited
        ) { flights.enqueue { $0.told(number) } }
        if tells { withhold(ready, flight) }
        return ready
    }

    /// What a flight's request had been answered before is no longer what there is.
    ///
    /// - Parameter ready: what is kept in its place, which is none if it says something else of `Vary`; nil: nothing is.
    func supersede(_ flight: Flight, by ready: ReadyResponse?) {
        guard !flight.storesNothing, let stored = flight.stored, !stored.isPartial else { return }
        // One of the same variant takes its place with its commit.
        if stored.variant != ready?.variant { cache.drop(stored) }
    }

    /// Does something once what a flight has brought holds everywhere, or takes too long to; at once where it tells nothing.
    func onceTold(by flight: Flight, _ work: @escaping () -> Void) {
        guard let response = withheld[ObjectIdentifier(flight)], !response.isReleased else { return work() }
        response.work.append(work)
    }

    private func withhold(_ ready: ReadyResponse, _ flight: Flight) {
        let number = ObjectIdentifier(flight)
        settling[number] = flight
        let response = WithheldResponse(flight, ready)
        withheld[number] = response
        response.timer = loop.after(settings.store.withhold) { [unowned self, unowned response] in takesLong(response) }
    }

    /// It is committed, or will not be.
    private func told(_ number: ObjectIdentifier) {
        guard let response = withheld.removeValue(forKey: number) else { return }
        settling[number] = nil
        response.release()
        refreshed(response.flight)
    }

    private func takesLong(_ response: WithheldResponse) {
        // What a write has overtaken may be older than what is known: its commit tells.
        if !response.flight.storesNothing, response.flight.overtakenAt == nil { cache.show(response.ready) }
        response.release()
    }

    /// An answer that tells of objects, until its commit.
    final class WithheldResponse {
        let flight: Flight
        let ready: ReadyResponse
        /// What waits for it.
        fileprivate var work: [() -> Void] = []
        fileprivate var timer: EventTimer?
        fileprivate private(set) var isReleased = false

        init(_ flight: Flight, _ ready: ReadyResponse) {
            self.flight = flight
            self.ready = ready
        }

        fileprivate func release() {
            isReleased = true
            timer = nil
            let waiting = work
            work = []
            for work in waiting { work() }
        }
    }
}
