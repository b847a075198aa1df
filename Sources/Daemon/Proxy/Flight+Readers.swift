import EventLoops
import Settings
import Upstream

/// The clients of a flight: slow ones, and those who leave.
extension Flight {
    func takeRelays(where isTaken: (Relay) -> Bool = { _ in true }) -> [Relay] {
        let taken = relays.filter(isTaken)
        relays.removeAll(where: isTaken)
        return taken
    }

    /// Whether even the fastest reader is a window behind.
    var isCongested: Bool {
        guard case .relaying = settlement, let fastest = relays.min(by: { $0.backlog < $1.backlog }) else {
            return false
        }
        guard fastest.backlog > flights.settings.limits.relayWindow else { return false }
        let flight = LoopReference(self, on: flights.loop)
        fastest.reply.onDrain(below: flights.settings.limits.relayWindow / 2) {
            flight.enqueue { $0.transfer?.resume() }
        }
        return true
    }

    func cutLaggards() {
        guard relays.count > 1 else { return }
        let window = flights.settings.limits.relayWindow
        let fastest = relays.map(\.backlog).min() ?? 0
        for relay in takeRelays(where: { $0.backlog > window + fastest }) { relay.abort() }
    }

    func left(_ relay: Relay) {
        guard !isOver, relays.contains(where: { $0 === relay }) else { return }
        relays.removeAll { $0 === relay }
        // It may have been the one that the transfer was paused for.
        transfer?.resume()
        giveUpIfUseless()
    }

    /// Ends a fetch that nobody waits for and that will not be stored.
    func giveUpIfUseless() {
        guard relays.isEmpty, !isWorthFinishing else { return }
        flights.retire(self)
        transfer?.cancel()
    }

    /// A body that will be stored is worth finishing once it has begun to arrive, and a refresh was nobody's from the start.
    var isWorthFinishing: Bool { storing != nil && buffer.isWhole || refreshes != nil && head == nil }

    /// What the body holds of memory is free once the slowest reader has taken it.
    func releaseCharge() {
        guard charge > 0 else { return }
        flights.release(charge, after: relays.map(\.reply))
        charge = 0
    }
}
