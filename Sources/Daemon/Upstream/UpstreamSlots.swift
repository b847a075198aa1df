/// The requests to one upstream that are under way or waiting, and the order in which waiting ones start.
///
/// Uploads have slots of their own, so that clients that send slowly do not block other requests. Each kind has a quarter
/// more slots than one client may have. A free slot goes to the waiting client with the fewest.
///
/// It is a value; `UpstreamClient` acts.
package struct UpstreamSlots {
    typealias ID = ObjectIdentifier

    package enum Kind: CaseIterable {
        /// A request without a body, or with a body that had arrived as a whole when it was made.
        case exchange
        /// A request whose body is still arriving.
        case upload
    }

    /// The client that made a request, as far as clients can be distinguished.
    package struct Client: Hashable, Sendable {
        package var principal: Int64 = 0
        /// The address of the client, or the user at the other end of a Unix socket.
        package var host: [UInt8] = []

        package init(principal: Int64 = 0, host: [UInt8] = []) {
            self.principal = principal
            self.host = host
        }
    }

    /// Reports that requests of a kind start to wait, or that none has waited for some time.
    package struct Change: Equatable {
        package var kind: Kind
        package var isCrowded: Bool
        package var limit: Int
    }

    private struct Pool {
        /// The number of slots that one client may hold; 0 for no limit.
        let limit: Int
        var holders: [ID: Client] = [:]
        var counts: [Client: Int] = [:]
        var waiting: [(id: ID, client: Client)] = []
        /// When a request last waited, in ns of the loop's clock; nil if none has for some time.
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

        /// Gives a slot to the next waiting request, if one is free for it.
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

    /// The time without waiting requests after which a kind no longer counts as crowded.
    static let relief: UInt64 = 10_000_000_000

    /// The number of slots for all clients together, if one may have `limit` of them.
    package static func total(_ limit: Int) -> Int { limit + max(1, limit / 4) }

    /// - Parameters: The number of slots of each kind that one client may have; 0 for no limit.
    init(exchanges: Int, uploads: Int) {
        pools = [.exchange: Pool(limit: exchanges), .upload: Pool(limit: uploads)]
    }

    /// Whether requests wait, or did until a moment ago.
    var isCrowded: Bool { pools.values.contains { $0.lastWaited != nil } }

    /// Requests a slot; the result says whether it is free, or the request must wait.
    ///
    /// - Returns: Also the change for the kind as a whole, if any.
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

    /// Removes a request that is over, or gave up waiting; returns the ids of those to start now.
    mutating func leave(_ id: ID) -> [ID] {
        guard let kind = kinds.removeValue(forKey: id), var pool = pools[kind] else { return [] }
        defer { pools[kind] = pool }
        pool.giveBack(id)
        pool.waiting.removeAll { $0.id == id }
        var started: [ID] = []
        while let next = pool.next() { started.append(next) }
        return started
    }

    /// For each kind with waiting requests: the holders of its slots, and how many wait.
    var contested: [(holders: [ID], waiting: Int)] {
        pools.values.filter { !$0.waiting.isEmpty }.map { (Array($0.holders.keys), $0.waiting.count) }
    }

    /// Updates the state after some time; returns the kinds that are no longer crowded.
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
