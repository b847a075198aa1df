import GRDB
public import Mapping

/// A listing of documents, in the order in which they were stored, or newest first; a condition that is nil holds for
/// all.
///
/// It suits stores of any size: see ``ObjectListing``.
public struct DocumentListing: Sendable {
    /// A part of path and query; the case of ASCII letters is ignored.
    var text: String?
    var covers: (@Sendable (_ url: String) -> Bool)?
    var isDescending: Bool
    /// Its label.
    var upstream: String?
    var principal: String?
    var limit: Int
    /// The `next` of the previous page.
    public var after: Int64?

    /// Creates a listing.
    public init(
        text: String? = nil,
        covers: (@Sendable (_ url: String) -> Bool)? = nil,
        isDescending: Bool = true,
        upstream: String? = nil,
        principal: String? = nil,
        limit: Int = 100,
        after: Int64? = nil
    ) {
        (self.text, self.covers, self.isDescending) = (text, covers, isDescending)
        (self.upstream, self.principal, self.limit, self.after) = (upstream, principal, limit, after)
    }
}

/// A document in a listing; its upstream by name, its principal by label.
public struct DocumentRow: Sendable {
    public var id: DocumentID
    public var upstream: String
    public var principal: String
    public var context: String
    public var url: String
    public var status: Int
    public var objects: Int
    /// The length of the body received, in bytes.
    public var bytes: Int64
    /// When its request was sent, minus `Age`.
    public var start: Int64
    /// When its last byte arrived, minus `Age`.
    public var end: Int64
    /// When it was last used, microseconds of the store's clock (to the second).
    public var used: Int64
}

/// Finds the documents of a listing or a clean, slice by slice.
struct DocumentScan: Sendable {
    let listing: DocumentListing
    private let upstream: UpstreamKey?
    /// Only documents of principals with greater ids.
    var owners = PrincipalID.zero
    var last: DocumentID
    private(set) var position: DocumentID
    private(set) var isAtEnd = false

    init(_ listing: DocumentListing, of upstream: UpstreamKey?) {
        (self.listing, self.upstream) = (listing, upstream)
        last = listing.isDescending ? .zero : .max
        position = listing.after.map { DocumentID(rawValue: $0) } ?? (listing.isDescending ? .max : .zero)
    }

    /// Ends the search, because nothing can be found.
    mutating func end() -> [DocumentID] {
        isAtEnd = true
        return []
    }

    /// The documents of the next slice.
    ///
    /// - Parameter isWanted: a further condition, by id and URL.
    mutating func next(
        _ bounds: SliceBounds,
        in database: Database,
        where isWanted: (DocumentID, _ url: () -> String) throws -> Bool = { _, _ in true }
    ) throws -> [DocumentID] {
        isAtEnd = true
        let scopes = try database.query(
            """
            SELECT s.id FROM _scopes s
            JOIN _names u ON u.id = s.upstream AND (?1 IS NULL OR u.text = ?1)
            JOIN _principals p ON p.id = s.principal AND (?2 IS NULL OR p.label = ?2) AND p.id > ?3
            """
        ).all(upstream, listing.principal, owners) { $0.id(0, as: ScopeID.self) }
        guard !scopes.isEmpty else { return [] }
        let wanted = Set(scopes)
        var (found, bytes, examined) = ([DocumentID](), Int64(0), 0)
        let (after, until, order) = listing.isDescending ? ("<", ">=", "DESC") : (">", "<=", "")
        try database.query(
            """
            SELECT id, scope, length, ?3 IS NULL OR instr(lower(url), lower(?3)), url
            FROM _documents WHERE id \(after) ?1 AND id \(until) ?2 ORDER BY id \(order)
            """
        ).eachWhile(position, last, listing.text) { row in
            position = row.id(0)
            if wanted.contains(row.id(1)), row.integer(3) != 0, try isWanted(position, { row.string(4) }) {
                found.append(position)
                bytes += row.count(2)
            }
            examined += 1
            isAtEnd = !bounds.areReached(found: found.count, bytes: bytes, examined: examined)
            return isAtEnd
        }
        return found
    }
}

/// One document as a look-up finds it, with details for display.
public struct InspectedDocument: Sendable {
    public var row: DocumentRow
    /// The result of a look-up, composed if newer values are known.
    public var stored: StoredDocument
    /// The names of the objects that it shows, in the order of the body, at most ``objectLimit``.
    public var objects: [ObjectName]

    static let objectLimit = 200
}

extension ObjectStore {
    /// A page of documents; it may be short or even empty and still have a `next`.
    public func list(_ listing: DocumentListing, patience: Duration = .milliseconds(500)) async throws(StoreError)
        -> Page<DocumentRow>
    {
        let models = core.models
        let end = ContinuousClock.now + patience
        var page = Page<DocumentRow>(rows: [], next: nil)
        var scan = DocumentScan(listing, of: listing.upstream.map(models.key))
        while page.rows.count < listing.limit, !scan.isAtEnd {
            let wanted = listing.limit - page.rows.count
            page.rows += try await core.advance(&scan, count: wanted) { scan, database, bounds in
                try scan.next(bounds, in: database) { listing.covers?($1()) ?? true }
                    .compactMap { try DocumentRow.read($0, in: database, models) }
            }
            if ContinuousClock.now >= end || Task.isCancelled { break }
        }
        page.next = scan.isAtEnd ? nil : scan.position.rawValue
        return page
    }

    /// The documents whose key has this digest, one for each variant, the latest stored first; twenty at most.
    public func documents(under digest: Digest128) async throws(StoreError) -> [DocumentRow] {
        try await core.read { [models = core.models] database in
            try database.query("SELECT id FROM _documents WHERE low = ? ORDER BY id DESC LIMIT 20").all(digest) {
                $0.id(0, as: DocumentID.self)
            }.compactMap { try DocumentRow.read($0, in: database, models) }
        }
    }

    /// One document; nil if it is gone; its key contains the upstream's `UpstreamKey`, its row the label, as in
    /// listings.
    public func inspect(_ id: DocumentID) async throws(StoreError) -> InspectedDocument? {
        let models = core.models
        return try await core.read { try InspectedDocument(id, in: $0, models: models) }
    }
}

extension InspectedDocument {
    fileprivate init?(_ id: DocumentID, in database: Database, models: [UpstreamKey: UpstreamModels]) throws {
        guard let row = try DocumentRow.read(id, in: database, models),
            let stored = try DocumentReader(database, models: models).document(id)
        else { return nil }
        (self.row, self.stored) = (row, stored)
        let name = try database.query(
            """
            SELECT m.text, o.identity FROM _objects o JOIN _collections c ON c.id = o.collection
            JOIN _names m ON m.id = c.model WHERE o.id = ?
            """
        )
        var (objects, seen): ([ObjectName], Set<ObjectID>) = ([], [])
        for pin in try StoredBody.pins(of: id, in: database) where objects.count < Self.objectLimit {
            guard seen.insert(pin.object).inserted else { continue }
            let found = try name.first(pin.object) {
                ObjectName(model: $0.string(0), identity: StoredIdentity($0, column: 1).text)
            }
            if let found { objects.append(found) }
        }
        self.objects = objects
    }
}

extension DocumentRow {
    static func read(_ id: DocumentID, in database: Database, _ models: [UpstreamKey: UpstreamModels]) throws
        -> DocumentRow?
    {
        try database.query(
            """
            SELECT u.text, p.label, x.text, d.url, d.status, d.length, o.start, o.finish, t.at, b.pins FROM _documents d
            JOIN _scopes s ON s.id = d.scope
            JOIN _names u ON u.id = s.upstream
            JOIN _principals p ON p.id = s.principal
            JOIN _names x ON x.id = s.context
            JOIN _observations o ON o.id = d.observation
            JOIN _bodies b ON b.document = d.id
            LEFT JOIN _used t ON t.document = d.id
            WHERE d.id = ?
            """
        ).first(id) { row in
            DocumentRow(
                id: id,
                upstream: models.label(of: row.upstream(0)),
                principal: row.string(1),
                context: row.string(2),
                url: row.string(3),
                status: Int(row.integer(4)),
                objects: Set(try Pins.decode(row.bytes(9)).map(\.object)).count,
                bytes: row.integer(5),
                start: row.integer(6),
                end: row.integer(7),
                used: min(row.count(8), RowBounds.times.upperBound / 1_000_000) * 1_000_000
            )
        }
    }
}
