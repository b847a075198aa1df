import Mapping
import Store

/// The documents whose responses recently were not shareable, so that requests for them need not wait for one another.
///
/// Otherwise a request for such a document would wait for the head of an earlier fetch only to learn that its response is of no
/// use to it. A document is remembered for one to two minutes after its last such response. It is forgotten when a storable
/// response comes, or when a write or a clean may have changed the document.
///
/// A value for one thread. It has two generations of entries, so that nothing need be sorted or searched for expiry.
struct HitForMiss {
    private var young: [Digest128: Place] = [:]
    private var old: [Digest128: Place] = [:]
    /// When the young generation began, in ns of the loop's clock.
    private var turnedAt: UInt64 = 0
    private let generationLimit: Int

    /// How long a generation gathers entries, in ns.
    static let generation: UInt64 = 60_000_000_000

    init(limit: Int = 8_192) { generationLimit = limit / 2 }

    var count: Int { young.count + old.count }

    /// Whether each request for the document goes to the upstream by itself.
    mutating func contains(_ digest: Digest128, now: UInt64) -> Bool {
        guard !young.isEmpty || !old.isEmpty else { return false }
        turn(now)
        return young[digest] != nil || old[digest] != nil
    }

    /// Records a response that only its own request can use.
    mutating func record(_ digest: Digest128, of key: CacheKey, now: UInt64) {
        turn(now)
        if young.count >= generationLimit { turnOver(now) }
        young[digest] = Place(upstream: key.upstream, path: String(key.url.beforeQuery))
    }

    /// Records a response that may be stored.
    mutating func forget(_ digest: Digest128) {
        young[digest] = nil
        old[digest] = nil
    }

    /// Forgets the documents that a write or a clean has invalidated.
    mutating func forget(_ invalidation: Invalidation) {
        guard count > 0 else { return }
        func isKept(_ entry: (key: Digest128, value: Place)) -> Bool {
            !invalidation.covers(entry.value.path, of: entry.value.upstream)
        }
        young = young.filter(isKept)
        old = old.filter(isKept)
    }

    private mutating func turn(_ now: UInt64) {
        guard now >= turnedAt &+ Self.generation else { return }
        // After a long pause both generations have expired.
        if now >= turnedAt &+ 2 &* Self.generation { young = [:] }
        turnOver(now)
    }

    private mutating func turnOver(_ now: UInt64) {
        old = young
        young = [:]
        turnedAt = now
    }

    private struct Place {
        let upstream: String
        let path: String
    }
}
