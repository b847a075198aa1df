import GRDB

/// Whose data the store has, by the names that people use.
public struct OwnerNames: Sendable, Equatable {
    /// The names of the upstreams, sorted.
    public var upstreams: [String]
    /// The labels of principals, the oldest first: not all where there are many.
    public var principals: [String]
    /// Whether these are all principals.
    public var areAllPrincipals: Bool

    private static let limit = 10

    init(_ database: Database) throws {
        (upstreams, principals, areAllPrincipals) = ([], [], true)
        try Query(
            database,
            "SELECT DISTINCT u.text FROM _scopes s JOIN _names u ON u.id = s.upstream ORDER BY u.text"
        ).each { upstreams.append($0.string(0)) }
        try Query(database, "SELECT label FROM _principals ORDER BY id LIMIT \(Self.limit + 1)")
            .each { principals.append($0.string(0)) }
        areAllPrincipals = principals.count <= Self.limit
        principals = Array(principals.prefix(Self.limit))
    }
}

extension ObjectStore {
    /// Whose data the store has.
    public func ownerNames() async throws(StoreError) -> OwnerNames {
        var names = try await core.read { try OwnerNames($0) }
        names.upstreams = names.upstreams.map { core.label(ofUpstream: $0) }.sorted()
        return names
    }

    /// Whether some principal has this label.
    public func hasPrincipal(_ label: String) async throws(StoreError) -> Bool {
        try await core.read {
            try Query($0, "SELECT 1 FROM _principals WHERE label = ?").first(.string(label)) { _ in true } ?? false
        }
    }
}
