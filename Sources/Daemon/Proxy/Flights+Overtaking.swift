import Store

/// What writes and cleanings make of the flights that they overtake (law 10).
extension Flights {
    /// A write was answered, or never will be: flights of its upstream take no more followers, and those for what it
    /// invalidated store nothing.
    ///
    /// - Parameter time: when it was over.
    func writeAnswered(_ invalidation: Invalidation, at time: Int64) {
        for flight in flightsThatMayStore where flight.demand.upstream === invalidation.upstream {
            retire(flight)
            flight.overtakenAt = flight.overtakenAt ?? time
            if invalidation.covers(flight.demand) { flight.storesNothing = true }
        }
        hitForMiss.forget(invalidation)
    }

    /// A write could not be taken in: nobody knows what of that which is in the air is older.
    func distrust(_ upstream: ProxiedUpstream) {
        for flight in flightsThatMayStore where flight.demand.upstream === upstream {
            retire(flight)
            flight.storesNothing = true
        }
    }

    /// The store was cleaned: nothing that is in the air now may bring back what was removed.
    func cleaned() {
        for flight in flightsThatMayStore {
            retire(flight)
            flight.storesNothing = true
        }
        hitForMiss.forgetAll()
        unstored.forgetAll()
    }

    /// All flights whose answers may still be kept.
    private var flightsThatMayStore: [Flight] {
        inAir.values.compactMap { $0 as? Flight } + settling.values
    }
}
