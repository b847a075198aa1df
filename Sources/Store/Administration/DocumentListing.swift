import GRDB
import Mapping

/// A listing of documents, in the order in which they were stored, or newest first.
///
/// It suits stores of any size: see ``ObjectListing``.
public struct DocumentListing: Sendable {
    /// Only documents whose path and query contain this text, ignoring the case of ASCII letters; nil: all.
    public var text: String?
    /// Only documents whose path and query begin with this; nil: all.
    public var prefix: String?
    /// Whether the newest come first.
    public var isDescending: Bool
    /// An upstream's name; nil: all.
    public var upstream: String?
    /// A principal's label; nil: all.
    public var principal: String?
    /// The page size.
    public var limit: Int
    /// The `next` of the previous page.
    public var after: Int64?

    /// Creates a listing.
    public init(
        text: String? = nil,
        prefix: String? = nil,
        isDescending: Bool = true,
        upstream: String? = nil,
        principal: String? = nil,
        limit: Int = 100,
        after: Int64? = nil
    ) {
        (self.text, self.prefix, self.isDescending) = (text, prefix, isDescending)
        (self.upstream, self.principal) = (upstream, principal)
        (self.limit, self.after) = (limit, after)
    }
}

/// Scans the documents in slices.
private struct DocumentScan: Sendable {
    let listing: DocumentListing
    private(set) var position: DocumentID
    private(set) var isAtEnd = false

    private static let stride = 64

    init(_ listing: DocumentListing) {
        self.listing = listing
        position = listing.after.map { DocumentID(rawValue: $0) } ?? (listing.isDescending ? .max : .zero)
    }

    /// The next documents, at most `limit`; stops at the deadline.
    mutating func next(_ limit: Int, until deadline: ContinuousClock.Instant, in database: Database) throws
        -> [DocumentID]
    {
        let scopes = try Query(
            database,
            """
            SELECT s.id FROM _scopes s
            JOIN _names u ON u.id = s.upstream AND (?1 IS NULL OR u.text = ?1)
            JOIN _principals p ON p.id = s.principal AND (?2 IS NULL OR p.label = ?2)
            """
        ).all(SQLValue(listing.upstream), SQLValue(listing.principal)) { $0.integer(0) }
        var (found, looks, isStopped): ([DocumentID], Int, Bool) = ([], 0, scopes.isEmpty)
        let wanted = Set(scopes)
        var last = position
        if !isStopped {
            try Query(
                database,
                """
                SELECT id, scope, (?1 IS NULL OR instr(lower(url), lower(?1)))
                    AND (?3 IS NULL OR substr(url, 1, length(?3)) = ?3)
                FROM _documents WHERE id \(listing.isDescending ? "<" : ">") ?2
                ORDER BY id \(listing.isDescending ? "DESC" : "")
                """
            ).eachWhile(SQLValue(listing.text), .id(position), SQLValue(listing.prefix)) { row in
                last = row.id(0)
                if row.integer(2) != 0, wanted.contains(row.integer(1)) { found.append(last) }
                looks += 1
                isStopped = found.count >= limit || looks % Self.stride == 0 && ContinuousClock.now >= deadline
                return !isStopped
            }
        }
        position = last
        isAtEnd = !isStopped || scopes.isEmpty
        return found
    }
}

/// One document as a look-up finds it, with details for display.
public struct InspectedDocument: Sendable {
    /// Its row in listings.
    public var row: DocumentRow
    /// The result of a look-up, composed if newer values are known.
    public var stored: StoredDocument
    /// The names of the objects that it shows, in the order of the body, at most ``objectLimit``.
    public var objects: [(model: String, identity: String)]

    /// The maximum number of named objects.
    public static let objectLimit = 200
}

extension ObjectStore {
    /// A page of documents; it may be short or even empty and still have a `next`.
    public func list(_ listing: DocumentListing, patience: Duration = .milliseconds(500)) async throws(StoreError)
        -> Page<DocumentRow>
    {
        var listing = listing
        listing.upstream = core.upstream(labelled: listing.upstream)
        let end = ContinuousClock.now + patience
        var page = Page<DocumentRow>(rows: [], next: nil)
        var scan = DocumentScan(listing)
        while page.rows.count < listing.limit, !scan.isAtEnd {
            let (begun, wanted) = (scan, listing.limit - page.rows.count)
            let (next, rows) = try await core.scan { database, deadline in
                var scan = begun
                let found = try scan.next(wanted, until: deadline, in: database)
                return (scan, try found.compactMap { try DocumentRow($0, in: database) })
            }
            scan = next
            page.rows += rows
            if ContinuousClock.now >= end || Task.isCancelled { break }
        }
        page.next = scan.isAtEnd ? nil : scan.position.rawValue
        for index in page.rows.indices { page.rows[index].upstream = core.label(ofUpstream: page.rows[index].upstream) }
        return page
    }

    /// One document; nil if it is gone.
    ///
    /// Its key contains the upstream's `UpstreamKey`; its row contains the label, as in listings.
    public func inspect(_ id: DocumentID) async throws(StoreError) -> InspectedDocument? {
        let models = core.models
        var found = try await core.read { try InspectedDocument(id, in: $0, models: models) }
        if let row = found?.row { found?.row.upstream = core.label(ofUpstream: row.upstream) }
        return found
    }
}

extension DocumentRow {
    /// Reads one document's row; nil if it is gone.
    fileprivate init?(_ id: DocumentID, in database: Database) throws {
        let row = try Query(database, "SELECT \(Self.columns) FROM \(Self.tables) WHERE d.id = ?").first(.id(id)) {
            DocumentRow($0, pins: try DocumentRow.pins($0))
        }
        guard let row else { return nil }
        self = row
    }
}

extension InspectedDocument {
    fileprivate init?(_ id: DocumentID, in database: Database, models: [String: UpstreamModels]) throws {
        guard let row = try DocumentRow(id, in: database),
            let stored = try DocumentReader(database, models: models).document(id)
        else { return nil }
        (self.row, self.stored) = (row, stored)
        let name = try Query(
            database,
            """
            SELECT m.text, o.identity FROM _objects o JOIN _collections c ON c.id = o.collection
            JOIN _names m ON m.id = c.model WHERE o.id = ?
            """
        )
        var (objects, seen): ([(model: String, identity: String)], Set<ObjectID>) = ([], [])
        for pin in try StoredBody.pins(of: id, in: database) where objects.count < Self.objectLimit {
            guard seen.insert(pin.object).inserted else { continue }
            let found = try name.first(.id(pin.object)) {
                (model: $0.string(0), identity: Identity($0, column: 1).text)
            }
            if let found { objects.append(found) }
        }
        self.objects = objects
    }
}
