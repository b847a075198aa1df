package import CachePolicy
import Store
import Synchronization

extension ResponseCache {
    /// Why a request found nothing, as RFC 9211 distinguishes it: nothing under its URL, or other variants only.
    ///
    /// Asks the disk only where something may be under the key, and reads no bodies.
    package func absence(of request: ProxyRequest) async -> CacheStatus.Forward {
        if memory.responses(at: request.digest)?.contains(where: { $0.key == request.key }) == true { return .varyMiss }
        guard store.mayHave(request.digest) else { return .uriMiss }
        let sighting = Sighting()
        do {
            _ = try await store.documents(at: request.key) { _ in
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
