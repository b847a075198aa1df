/// A write that has been answered and whose invalidations are being committed.
///
/// It tells whether another write, or a cleaning, came to the same target meanwhile: then nobody knows whose answer is the later
/// one, and neither is kept.
struct SettlingWrite {
    private let upstream: String
    private let path: String
    private var timesForgotten = 0

    init(_ demand: Demand) {
        upstream = demand.upstream.name
        path = demand.upstream.keyPath(of: demand.target)
    }

    /// Its own settling forgets the target twice, before the commit and behind it.
    var isAlone: Bool { timesForgotten == 2 }

    mutating func noteForgotten(_ invalidation: Invalidation) {
        if upstream == invalidation.upstream.name, invalidation.covers(path: path) { timesForgotten += 1 }
    }
}
