package import CachePolicy
import Store
import Synchronization

extension ResponseCache {
    /// Why a demand found nothing, as RFC 9211 distinguishes it: nothing under its URL, or other variants only.
    ///
    /// Asks the disk only where something may be under the key, and reads no bodies.
    package func absence(of demand: Demand) async -> CacheStatus.Forward {
        if memory.responses(at: demand.digest)?.contains(where: { $0.key == demand.key }) == true { return .varyMiss }
        guard store.mayHave(demand.digest) else { return .uriMiss }
        let sighting = Sighting()
        do {
            _ = try await store.documents(at: demand.key) { _ in
                sighting.isMade.store(true, ordering: .relaxed)
                return false
            }
        } catch {
            return .miss
        }
        return sighting.isMade.load(ordering: .relaxed) ? .varyMiss : .uriMiss
    }

    private final class Sighting: Sendable {
        let isMade = Atomic(false)
    }
}
