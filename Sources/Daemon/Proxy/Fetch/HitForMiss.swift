import Basics
import CachePolicy
import EventLoops
import HTTPSemantics
import Mapping
import Store
import Upstream

/// The documents whose responses recently were not shareable, so that requests for them need not wait for one another.
///
/// Otherwise a request for such a document would wait for the head of an earlier fetch only to learn that its response is of no
/// use to it. A document is remembered for one to two minutes after its last such response. It is forgotten when a storable
/// response comes, or when a write or a clean may have changed the document.
///
/// A value for one thread.
struct HitForMiss {
    private var places: BoundedTable<Digest128, Place>
    /// When the table last began a generation because of its age, in ns of the loop's clock.
    private var turnedAt: UInt64 = 0

    /// How long a generation gathers entries, in ns.
    static let generation: UInt64 = 60_000_000_000

    init(limit: Int = 8_192) { places = BoundedTable(limit: limit) }

    var count: Int { places.count }

    /// Whether each request for the document goes to the upstream by itself.
    mutating func contains(_ digest: Digest128, now: UInt64) -> Bool {
        guard !places.isEmpty else { return false }
        turn(now)
        return places[digest] != nil
    }

    /// Records a response that only its own request can use.
    mutating func record(_ digest: Digest128, of key: CacheKey, now: UInt64) {
        turn(now)
        places[digest] = Place(upstream: key.upstream, path: String(key.url.beforeQuery))
    }

    /// Records a response that may be stored.
    mutating func forget(_ digest: Digest128) { places[digest] = nil }

    mutating func forget(_ invalidation: Invalidation) {
        guard count > 0 else { return }
        places.removeAll { _, place in
            invalidation.covers(place.path, of: place.upstream, shown: [])
        }
    }

    private mutating func turn(_ now: UInt64) {
        guard now >= turnedAt &+ Self.generation else { return }
        // After a long pause both generations have expired.
        if now >= turnedAt &+ 2 &* Self.generation { places.removeAll() }
        places.age()
        turnedAt = now
    }

    private struct Place {
        let upstream: UpstreamKey
        let path: String
    }
}

extension Fetches {
    /// Records whether a response can be used by other requests.
    func recordHitForMiss(after head: UpstreamHead, in fetch: RunningFetch, isStored: Bool) {
        let request = fetch.request
        guard !fetch.isInvalidated, let place = place(of: request) else { return }
        if isStored {
            hitForMiss.forget(place)
        } else if !StatusFacts.isFailure(head.status, head.fields) {
            // Failures are temporary, and separate requests would only add load to a failing upstream.
            hitForMiss.record(place, of: request.key, now: loop.now)
        }
    }
}
