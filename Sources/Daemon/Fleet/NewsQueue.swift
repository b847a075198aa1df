import Basics
import Proxy
import Store

/// News that are to be announced, in order, and those that were lately; a value.
///
/// It is bounded: where a server is away so long that too many wait, one that makes everything outdated takes their place.
struct NewsQueue: Sendable {
    struct Item: Sendable {
        let number: UInt64
        let upstream: UpstreamKey
        let news: FleetNews
        /// Who waits until the server has it.
        var waiters: [Awaited<FleetPosition>] = []
        /// Whether the file beside the store has it.
        var isFiled = false
    }

    /// How many may wait, of all upstreams.
    static let capacity = 10_000
    /// How long what was announced is kept, in µs, to be announced again in a new epoch.
    static let memory: Int64 = 600_000_000

    private(set) var waiting: [Item] = []
    /// In the order of their announcement, with the local time of that.
    private var announced = RecentList<(time: Int64, item: Item)>(limit: 4096)
    private var lastNumber: UInt64 = 0
    /// Whether items have been replaced, so that the file has to be written anew.
    var isCondensed = false

    mutating func append(
        _ news: FleetNews,
        in upstream: UpstreamKey,
        waiter: Awaited<FleetPosition>? = nil,
        isFiled: Bool = false
    ) {
        if waiting.count >= Self.capacity { condense(upstream, at: news.end) }
        lastNumber += 1
        let waiters = waiter.map { [$0] } ?? []
        waiting.append(Item(number: lastNumber, upstream: upstream, news: news, waiters: waiters, isFiled: isFiled))
    }

    private mutating func condense(_ upstream: UpstreamKey, at time: Int64) {
        let all = Set(waiting.map(\.upstream)).union([upstream])
        for item in waiting { item.waiters.forEach { $0.give(nil) } }
        waiting = []
        for upstream in all.sorted() {
            append(FleetNews(.invalidated(Invalidation(of: upstream, at: time)), start: 0, end: time), in: upstream)
        }
        isCondensed = true
    }

    /// Has somebody wait for the last news of an upstream; false if there are none.
    mutating func wait(for upstream: UpstreamKey, _ waiter: Awaited<FleetPosition>) -> Bool {
        guard let index = waiting.lastIndex(where: { $0.upstream == upstream }) else { return false }
        waiting[index].waiters.append(waiter)
        return true
    }

    /// The first news, without those of some upstreams.
    func next(_ count: Int, without held: Set<UpstreamKey>) -> [Item] {
        Array(waiting.lazy.filter { !held.contains($0.upstream) }.prefix(count))
    }

    mutating func wereAnnounced(_ positions: [UInt64: FleetPosition], at time: Int64) {
        guard !positions.isEmpty else { return }
        for item in waiting {
            guard let position = positions[item.number] else { continue }
            item.waiters.forEach { $0.give(position) }
            if item.news.event.isInvalidating {
                announced.append((time, Item(number: item.number, upstream: item.upstream, news: item.news)))
            }
        }
        waiting.removeAll { positions[$0.number] != nil }
        announced.removeAll { $0.time < time - Self.memory }
    }

    /// Has what was announced lately announced again, before what waits, because a new epoch has begun.
    mutating func repeatAnnounced(in upstream: UpstreamKey, at time: Int64) {
        var again = announced.filter { $0.item.upstream == upstream && $0.time >= time - Self.memory }.map(\.item)
        announced.removeAll { $0.item.upstream == upstream }
        let ended = Set((again + waiting).compactMap(\.news.event.endedWrite))
        again.removeAll { $0.news.event.begunWrite.map(ended.contains) ?? false }
        waiting.insert(contentsOf: again, at: 0)
    }

    /// Notes that the file gets all that waits.
    ///
    /// - Returns: what it does not have yet.
    mutating func file() -> [Item] {
        let new = waiting.filter { !$0.isFiled }
        for index in waiting.indices { waiting[index].isFiled = true }
        return new
    }

    /// Lets those go on who wait for what the file has, as the server is away.
    mutating func stopWaiting() {
        for index in waiting.indices where waiting[index].isFiled {
            exchange(&waiting[index].waiters, with: []).forEach { $0.give(nil) }
        }
    }
}

extension FleetNews.Event {
    /// Whether it is announced again in a new epoch.
    fileprivate var isInvalidating: Bool { if case .observed = self { false } else { true } }

    // Not inlined: the optimiser (6.3.1) aborts in `repeatAnnounced` if it is.
    @inline(never)
    fileprivate var begunWrite: UInt64? { if case .suspect(let number, _) = self { number } else { nil } }

    fileprivate var endedWrite: UInt64? {
        switch self {
        case .wrote(let number, _, _), .withdrawn(let number): number
        default: nil
        }
    }
}
