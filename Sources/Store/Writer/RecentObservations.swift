import Mapping

/// What other machines have observed of objects that are not known here, for the first response that shows them.
///
/// Such a response may have been requested before; then it shows an earlier state, and what is known elsewhere must not
/// be lost (law 3). It is memory only, and bounded: if there is too much, all is dropped at once, and a ban blocks
/// responses to requests sent until then.
struct RecentObservations {
    /// The name of an object, as all machines know it.
    struct Name: Hashable {
        let upstream: UpstreamKey
        let principal: [UInt8]
        let context: String
        let model: String
        let identity: String
    }

    /// What one response has shown of an object.
    struct Sighting: Equatable {
        /// The payload in which it showed the object, and whether it was embedded there.
        var shown: [SharedObservation.Object]
        var start: Int64
        var end: Int64
        var isList: Bool
        /// As in `SharedObservation`.
        var write: String?
        var url: String
        var dividedBy: Int64?
        /// As in `AppliedValues`.
        var fetch: SharedFetch?

        /// Whether it is what the response of a fetch shows of the object, too: one observation, not two.
        func isSame(as fresh: [Contribution], of fetch: SharedFetch?) -> Bool {
            guard let fetch, fetch == self.fetch, write == nil, shown.count == 1, fresh.count == 1 else { return false }
            let (observation, isEmbedded) = (fresh[0].observation, fresh[0].isEmbedded)
            return shown[0].payload == fresh[0].payload && shown[0].isEmbedded == isEmbedded
                && isList == (observation.kind == .list)
        }
    }

    /// The number of sightings, and of their bytes, at which all are dropped.
    static let (countLimit, byteLimit) = (65_536, 32 << 20)
    /// How many sightings of one object are kept; older ones are dropped as if there were too many of all.
    static let limitOfObject = 16

    private var sightings: [Name: [Sighting]] = [:]
    private var count = 0
    private var bytes = 0
    private var newest: Int64 = .min

    var isEmpty: Bool { sightings.isEmpty }

    /// Adds a sighting, unless it is known.
    ///
    /// - Returns: a time up to which sightings had to be dropped; responses to earlier requests must then be blocked.
    mutating func add(_ sighting: Sighting, of name: Name) -> Int64? {
        var forgotten: Int64?
        if count >= Self.countLimit || bytes >= Self.byteLimit {
            forgotten = newest
            self = RecentObservations()
        }
        var known = sightings[name] ?? []
        if known.contains(sighting) { return forgotten }
        if known.count >= Self.limitOfObject {
            let oldest = known.removeFirst()
            count -= 1
            bytes -= Self.weight(of: oldest)
            forgotten = max(forgotten ?? .min, oldest.end)
        }
        known.append(sighting)
        sightings[name] = known
        count += 1
        bytes += Self.weight(of: sighting)
        newest = max(newest, sighting.end)
        return forgotten
    }

    /// What has been observed of an object, in the order in which it became known here.
    subscript(name: Name) -> [Sighting] { sightings[name] ?? [] }

    private static func weight(of sighting: Sighting) -> Int {
        sighting.shown.reduce(256 + sighting.url.utf8.count) { $0 + $1.payload.count }
    }
}
