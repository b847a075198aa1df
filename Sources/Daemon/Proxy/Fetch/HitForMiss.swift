import Mapping
import Store

/// Which documents were lately found not to be shareable, so that those who ask for them need not wait for one another.
///
/// Without it, a request for such a document would wait for the head of the fetch before it only to learn that its response is
/// of no use to it. A document is remembered for one to two minutes after its last response of that kind, and forgotten when an
/// answer comes that may be stored, or when a write or a cleaning may have changed what there is to say.
///
/// A value for one thread. Two generations of entries take turns, so that nothing has to be sorted or searched for expiry.
struct HitForMiss {
    private var young: [Digest128: Place] = [:]
    private var old: [Digest128: Place] = [:]
    /// When the generations last took turns, in ns of the loop's clock.
    private var turnedAt: UInt64
    private let generationLimit: Int

    /// How long a generation takes notes, in ns.
    static let generation: UInt64 = 60_000_000_000

    init(now: UInt64, limit: Int = 8_192) {
        turnedAt = now
        generationLimit = limit / 2
    }

    var count: Int { young.count + old.count }

    /// Whether requests for the document go to the upstream each by itself.
    mutating func contains(_ digest: Digest128, now: UInt64) -> Bool {
        guard !young.isEmpty || !old.isEmpty else { return false }
        turn(now)
        return young[digest] != nil || old[digest] != nil
    }

    /// A response came that is good for its own request only.
    mutating func note(_ digest: Digest128, of key: DocumentKey, now: UInt64) {
        turn(now)
        if young.count >= generationLimit { turnOver(now) }
        young[digest] = Place(upstream: key.upstream, path: key.url.beforeQuery)
    }

    /// A response came that may be stored.
    mutating func forget(_ digest: Digest128) {
        young[digest] = nil
        old[digest] = nil
    }

    /// A write has invalidated something.
    ///
    /// Only the numbers of paths are known here: with patterns, all of the upstream is forgotten.
    mutating func forget(_ invalidation: Invalidation) {
        guard count > 0 else { return }
        let upstream = invalidation.upstream.storeKey
        let places = Set(invalidation.paths.map { Place(upstream: upstream, path: $0[...]) })
        let forgetsAll = !invalidation.patterns.isEmpty
        func isKept(_ entry: (key: Digest128, value: Place)) -> Bool {
            !places.contains(entry.value) && !(forgetsAll && entry.value.upstream == upstream.hashValue)
        }
        young = young.filter(isKept)
        old = old.filter(isKept)
    }

    mutating func forgetAll() {
        young = [:]
        old = [:]
    }

    private mutating func turn(_ now: UInt64) {
        guard now >= turnedAt &+ Self.generation else { return }
        // After a long silence both are out of date.
        if now >= turnedAt &+ 2 &* Self.generation { young = [:] }
        turnOver(now)
    }

    private mutating func turnOver(_ now: UInt64) {
        old = young
        young = [:]
        turnedAt = now
    }

    /// Numbers for an upstream and a path; two that share theirs are forgotten together, which does no harm.
    private struct Place: Hashable {
        let upstream: Int
        let path: Int

        init(upstream: String, path: Substring) {
            self.upstream = upstream.hashValue
            self.path = path.hashValue
        }
    }
}
