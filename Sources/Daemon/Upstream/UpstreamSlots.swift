/// Which requests to one upstream are under way, which wait, and whose turn is next.
///
/// Uploads have slots of their own, so that clients that send slowly keep nobody from asking. Of each kind there are a quarter
/// more than one client may have; when a slot gets free, the client that has the fewest is next.
///
/// A value; `UpstreamClient` acts.
package struct UpstreamSlots {
    typealias ID = ObjectIdentifier

    package enum Kind: CaseIterable {
        /// A request without a body, or whose body was there as a whole when it was made.
        case exchange
        /// A request whose body is still arriving.
        case upload
    }

    /// Whose request it is, as far as clients can be distinguished.
    package struct Client: Hashable, Sendable {
        package var principal: Int64 = 0
        /// The address that it came from, or the user at the other end of a Unix socket.
        package var host: [UInt8] = []

        package init(principal: Int64 = 0, host: [UInt8] = []) {
            self.principal = principal
            self.host = host
        }
    }

    /// Requests of a kind begin to have to wait, or none had to for some time.
    package struct Change: Equatable {
        package var kind: Kind
        package var isCrowded: Bool
        package var limit: Int
    }

    private struct Pool {
        /// What one client may hold; 0 for no limit.
        let limit: Int
        var holders: [ID: Client] = [:]
        var counts: [Client: Int] = [:]
        var waiting: [(id: ID, client: Client)] = []
        /// When somebody waited last, in ns of the loop's clock; nil when nobody has for long.
        var lastWaited: UInt64?

        func isFree(for client: Client) -> Bool {
            limit == 0 || holders.count < UpstreamSlots.total(limit) && counts[client, default: 0] < limit
        }

        mutating func take(_ id: ID, _ client: Client) {
            holders[id] = client
            counts[client, default: 0] += 1
        }

        mutating func giveBack(_ id: ID) {
            guard let client = holders.removeValue(forKey: id) else { return }
            let rest = counts[client, default: 1] - 1
            counts[client] = rest == 0 ? nil : rest
        }

        /// The one whose turn it is, if there is a slot for it.
        mutating func next() -> ID? {
            let eligible = waiting.indices.filter { isFree(for: waiting[$0].client) }
            let fewest = eligible.min {
                counts[waiting[$0].client, default: 0] < counts[waiting[$1].client, default: 0]
            }
            guard let fewest else { return nil }
            let (id, client) = waiting.remove(at: fewest)
            take(id, client)
            return id
        }
    }

    private var pools: [Kind: Pool]
    private var kinds: [ID: Kind] = [:]

    /// The time without anybody waiting after which a kind counts as crowded no longer.
    static let relief: UInt64 = 10_000_000_000

    /// How many slots there are for all clients together, where one may have `limit` of them.
    package static func total(_ limit: Int) -> Int { limit + max(1, limit / 4) }

    /// - Parameters: how many one client may have of each kind; 0 for no limit.
    init(exchanges: Int, uploads: Int) {
        pools = [.exchange: Pool(limit: exchanges), .upload: Pool(limit: uploads)]
    }

    /// Whether somebody waits, or has until a moment ago.
    var isCrowded: Bool { pools.values.contains { $0.lastWaited != nil } }

    /// A request wants a slot; whether it has one, or has to wait.
    ///
    /// - Returns: also what has changed in general.
    mutating func enter(_ id: ID, _ kind: Kind, of client: Client, now: UInt64) -> (isFree: Bool, change: Change?) {
        guard var pool = pools[kind] else { return (true, nil) }
        defer { pools[kind] = pool }
        kinds[id] = kind
        if pool.isFree(for: client) {
            pool.take(id, client)
            return (true, nil)
        }
        let wasCrowded = pool.lastWaited != nil
        pool.waiting.append((id, client))
        pool.lastWaited = now
        return (false, wasCrowded ? nil : Change(kind: kind, isCrowded: true, limit: pool.limit))
    }

    /// A request is over, or gave up waiting; gives those whose turn it is now.
    mutating func leave(_ id: ID) -> [ID] {
        guard let kind = kinds.removeValue(forKey: id), var pool = pools[kind] else { return [] }
        defer { pools[kind] = pool }
        pool.giveBack(id)
        pool.waiting.removeAll { $0.id == id }
        var started: [ID] = []
        while let next = pool.next() { started.append(next) }
        return started
    }

    /// For each kind of which requests wait: who has its slots, and how many wait.
    var contested: [(holders: [ID], waiting: Int)] {
        pools.values.filter { !$0.waiting.isEmpty }.map { (Array($0.holders.keys), $0.waiting.count) }
    }

    /// Some time has passed; gives the kinds that are crowded no longer.
    mutating func tick(now: UInt64) -> [Change] {
        var changes: [Change] = []
        for kind in Kind.allCases {
            guard var pool = pools[kind], let last = pool.lastWaited else { continue }
            if !pool.waiting.isEmpty {
                pool.lastWaited = now
            } else if now >= last + Self.relief {
                pool.lastWaited = nil
                changes.append(Change(kind: kind, isCrowded: false, limit: pool.limit))
            }
            pools[kind] = pool
        }
        return changes
    }
}
