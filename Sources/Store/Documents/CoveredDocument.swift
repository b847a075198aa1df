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

/// A stored response whose entity tag was shown to cover its body, whoever's it is; without the body.
public struct CoveredDocument: Sendable {
    public var id: DocumentID
    /// The fields, in the caller's own form.
    public var head: [UInt8]
    public var coverage: TagCoverage
}

extension ObjectStore {
    /// How many of the newest documents of a path are searched for one with a given URL, and how many of these are offered.
    static let (searchLimit, offerLimit) = (256, 8)

    /// Offers the latest covered documents with the status 200 of a URL and a context, whoever's they are; returns the
    /// first result of `use`, which runs on a reader's thread.
    ///
    /// The caller must not show anything of them to another principal until the upstream has said that it is that
    /// one's, too. A document that has changed since is offered with the bytes that were received.
    public func firstCovered<Value: Sendable>(
        ofURL url: String,
        context: String,
        upstream: String,
        where use: @escaping @Sendable (_ document: CoveredDocument, _ body: [UInt8]) -> Value?
    ) async throws(StoreError) -> Value? {
        let pathHash = core.hasher.pathHash(upstream: upstream, url: url)
        return try await core.read { database in
            let reader = CoveredDocumentReader(database: database)
            for document in try reader.documents(url, context, upstream, pathHash, limit: Self.offerLimit) {
                if let found = use(document, try reader.body(of: document.id)) { return found }
            }
            return nil
        }
    }

    /// A covered document by its id, with the body as received; nil if it is gone.
    public func covered(_ id: DocumentID) async throws(StoreError) -> (document: CoveredDocument, body: [UInt8])? {
        try await core.read { database in
            let reader = CoveredDocumentReader(database: database)
            return try reader.document(id).map { ($0, try reader.body(of: id)) }
        }
    }
}

private struct CoveredDocumentReader {
    let database: Database

    private static let columns = "d.id, d.head, d.covered"

    func documents(_ url: String, _ context: String, _ upstream: String, _ pathHash: Int64, limit: Int) throws
        -> [CoveredDocument]
    {
        // However many queries of a path and principals there are, the search is short.
        try database.query(
            """
            SELECT \(Self.columns) FROM (SELECT id FROM _documents WHERE place = ?1 ORDER BY id DESC LIMIT ?5) newest
            JOIN _documents d ON d.id = newest.id AND d.url = ?2 AND d.status = 200 AND d.covered IS NOT NULL
            JOIN _scopes s ON s.id = d.scope
            JOIN _names u ON u.id = s.upstream AND u.text = ?4
            JOIN _names x ON x.id = s.context AND \(ObjectContext.isOfKey("x.text", "?3"))
            JOIN _observations o ON o.id = d.observation
            ORDER BY o.finish DESC, d.id DESC LIMIT ?6
            """
        ).all(pathHash, url, context, upstream, ObjectStore.searchLimit, limit, read: document).compactMap(\.self)
    }

    func document(_ id: DocumentID) throws -> CoveredDocument? {
        try database.query("SELECT \(Self.columns) FROM _documents d WHERE d.id = ?").first(id, read: document) ?? nil
    }

    private func document(_ row: QueryRow) -> CoveredDocument? {
        TagCoverage(rawValue: row.integer(2)).map { CoveredDocument(id: row.id(0), head: row.bytes(1), coverage: $0) }
    }

    func body(of id: DocumentID) throws -> [UInt8] {
        let stored = try StoredBody(document: id, in: database)
        return try stored.received(payloads: stored.payloads(in: database))
    }
}
