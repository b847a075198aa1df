import Synchronization

/// The number of a server's connections, over all its workers, and their ids.
final class ConnectionCounter: Sendable {
    private let connections = Atomic<Int>(0)
    /// How many of them were refused, and are open only until their client has read so.
    private let refused = Atomic<Int>(0)

    /// The last id; ids are unique within the process, so that a late call of a reply cannot reach another server's connection.
    private static let lastID = Atomic<UInt64>(0)

    var count: Int { connections.load(ordering: .relaxed) }
    var served: Int { count - refused.load(ordering: .relaxed) }

    func opened() { connections.add(1, ordering: .relaxed) }
    func refusedOne() { refused.add(1, ordering: .relaxed) }
    func closed(wasRefused: Bool = false) {
        connections.subtract(1, ordering: .relaxed)
        if wasRefused { refused.subtract(1, ordering: .relaxed) }
    }
    func makeID() -> UInt64 { Self.lastID.add(1, ordering: .relaxed).newValue }
}
