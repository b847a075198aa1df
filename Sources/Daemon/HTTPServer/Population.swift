import Synchronization

/// How many connections a server has, over all its workers, and the numbers they are known by.
final class Population: Sendable {
    private let connections = Atomic<Int>(0)

    /// Numbers are unique within the process, so that a late call of a reply cannot meet another server's connection.
    private static let lastID = Atomic<UInt64>(0)

    var count: Int { connections.load(ordering: .relaxed) }

    /// Counts one more; gives the number with it.
    func joined() -> Int { connections.add(1, ordering: .relaxed).newValue }

    func left() { connections.subtract(1, ordering: .relaxed) }

    func makeID() -> UInt64 { Self.lastID.add(1, ordering: .relaxed).newValue }
}
