import GRDB

/// What an entity tag covers.
public enum TagCoverage: RawRepresentable, Sendable, Equatable {
    /// The bytes as received, as was shown by the upstream's recipe.
    case received
    /// The JSON without the white space between its tokens, as was shown by the recipe.
    case minified
    /// The content, whoever asks for it, as the configuration says; among the principals of a group, from 0 to `maximumGroup`.
    case content(group: Int64)

    /// The largest number of a group.
    static let maximumGroup: Int64 = 0xFFFF_FFFF
    /// The number of the first group, on disk.
    private static let firstGroup: Int64 = 16
    static let rawValues = 1...firstGroup + maximumGroup

    /// Reads what the store has; nil for a number that Larder never writes.
    public init?(rawValue: Int64) {
        switch rawValue {
        case 1: self = .received
        case 2: self = .minified
        case Self.firstGroup...Self.rawValues.upperBound: self = .content(group: rawValue - Self.firstGroup)
        default: return nil
        }
    }

    public var rawValue: Int64 {
        switch self {
        case .received: 1
        case .minified: 2
        case .content(let group): Self.firstGroup + group
        }
    }
}

/// A stored response whose entity tag was shown to cover its body, whoever's it is.
public struct CoveredDocument: Sendable {
    /// With the bytes that were received, whatever has changed since.
    public var stored: StoredDocument
    public var coverage: TagCoverage
}

extension ObjectStore {
    /// How many of the newest documents of a path are searched for one with a given URL, and how many of these are offered.
    static let (searchLimit, offerLimit) = (256, 8)

    /// Offers the latest covered documents with the status 200 of a URL and a context, whoever's they are; returns the
    /// first result of `use`, which runs on a reader's thread.
    ///
    /// The caller must not show anything of them to another principal until the upstream has said that it is that
    /// one's, too.
    public func firstCovered<Value: Sendable>(
        ofURL url: String,
        context: String,
        upstream: UpstreamKey,
        where use: @escaping @Sendable (CoveredDocument) -> Value?
    ) async throws(StoreError) -> Value? {
        let pathHash = core.hasher.pathHash(upstream: upstream, url: url)
        return try await core.read { database in
            let reader = try DocumentReader(database, models: [:])
            for id in try reader.covered(url, context, upstream, pathHash, limit: Self.offerLimit) {
                if let document = try reader.covered(id), let found = use(document) { return found }
            }
            return nil
        }
    }

    /// A covered document by its id; nil if it is gone.
    public func covered(_ id: DocumentID) async throws(StoreError) -> CoveredDocument? {
        try await core.read { try DocumentReader($0, models: [:]).covered(id) }
    }
}

extension DocumentReader {
    fileprivate func covered(_ url: String, _ context: String, _ upstream: UpstreamKey, _ pathHash: Int64, limit: Int)
        throws
        -> [DocumentID]
    {
        // However many queries of a path and principals there are, the search is short.
        try database.query(
            """
            SELECT d.id FROM (SELECT id FROM _documents WHERE place = ?1 ORDER BY id DESC LIMIT ?5) newest
            JOIN _documents d ON d.id = newest.id AND d.url = ?2 AND d.status = 200 AND d.covered IS NOT NULL
            JOIN _scopes s ON s.id = d.scope
            JOIN _names u ON u.id = s.upstream AND u.text = ?4
            JOIN _names x ON x.id = s.context AND \(ObjectContext.isOfKey("x.text", "?3"))
            JOIN _observations o ON o.id = d.observation
            ORDER BY o.finish DESC, d.id DESC LIMIT ?6
            """
        ).all(pathHash, url, context, upstream, ObjectStore.searchLimit, limit) { $0.id(0) }
    }

    /// Without models nothing is composed.
    fileprivate func covered(_ id: DocumentID) throws -> CoveredDocument? {
        let number = try database.query("SELECT covered FROM _documents WHERE id = ?").integer(id)
        guard let coverage = number.flatMap({ TagCoverage(rawValue: $0) }), let stored = try document(id)
        else { return nil }
        return CoveredDocument(stored: stored, coverage: coverage)
    }
}
