import CachePolicy
import HTTPServer
import Logging
import Mapping
import Settings
import Store
import Upstream

/// Retrievals that find nothing: the object is known to be gone (tombstone).
extension Flights {
    /// What a head says is not there, where that is an object that may be known; nil for nothing.
    func absence(in head: UpstreamHead, of flight: Flight) -> ObservedAbsence? {
        let demand = flight.demand
        guard head.status == 404 || head.status == 410, !demand.upstream.rules.models.declarations.isEmpty else {
            return nil
        }
        let bound = demand.upstream.bound(demand)
        guard bound != nil || flight.stored != nil else { return nil }
        let age = policy(of: head, in: flight).answer.knownAge
        var absence = ObservedAbsence(key: demand.key, bound: bound, start: flight.start - age)
        absence.method = demand.request.method
        return absence
    }

    /// Does something here once an absence holds everywhere.
    func note(_ absence: ObservedAbsence, then work: @escaping () -> Void) {
        after(
            { [cache, log] in
                do throws(StoreError) {
                    try await cache.note(absence)
                } catch {
                    log.log(level: error.logLevel, "an absence could not be stored", metadata: ["error": "\(error)"])
                }
            },
            then: work
        )
    }
}
