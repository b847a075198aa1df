import GRDB
import Mapping

/// A listing of a model's objects; a condition that is nil holds for all.
///
/// It suits stores of any size: every page is read through indexes, and a search stops after a while and returns where
/// to continue.
public struct ObjectListing: Sendable {
    /// The order of the rows.
    public enum Order: Sendable, Equatable {
        /// By principal and context, then by identity: integers by value, before texts.
        case identity
        case stored
    }

    var model: String
    /// A part of the identity or of the JSON; the case of ASCII letters is ignored.
    var text: String?
    var order: Order
    var isDescending: Bool
    /// Its label.
    var upstream: String?
    var principal: String?
    var limit: Int
    var view: ObjectQuery.View
    fileprivate var start: ObjectScan.Position = .start

    /// Creates a listing.
    ///
    /// - Parameter after: the `next` of the previous page. The result is nil if it does not fit this order.
    public init?(
        model: String,
        text: String? = nil,
        order: Order,
        isDescending: Bool = false,
        upstream: String? = nil,
        principal: String? = nil,
        limit: Int = 100,
        view: ObjectQuery.View = .wire,
        after: String? = nil
    ) {
        (self.model, self.text, self.order, self.isDescending) = (model, text, order, isDescending)
        (self.upstream, self.principal, self.limit, self.view) = (upstream, principal, limit, view)
        guard let after else { return }
        guard let position = ObjectScan.Position(after, order) else { return nil }
        start = position
    }
}

/// One page of a listing; it may be short or even empty and still have a `next`.
public struct ObjectListingPage: Sendable {
    /// The objects; those whose identity or key is the searched text come first.
    public var rows: [ObjectRow] = []
    /// The cursor of the next page; nil at the end.
    public var next: String?
    public var examined = 0
}

/// Scans the objects of a model in slices.
///
/// By identity, it follows the index of each collection in turn. Otherwise it reads the rows of all objects, among
/// which those of the model may be few.
struct ObjectScan: Sendable {
    enum Position: Sendable, Equatable {
        case start
        case identity(collection: CollectionID, StoredIdentity?)
        case row(ObjectID)

        /// Parses the text from `text`; nil for anything else.
        init?(_ text: String, _ order: ObjectListing.Order) {
            switch order {
            case .stored:
                guard let row = Int64(text) else { return nil }
                self = .row(ObjectID(rawValue: row))
            case .identity:
                let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
                guard parts.count == 2, let collection = Int64(parts[0]).map(CollectionID.init) else { return nil }
                self = .identity(collection: collection, parts[1].isEmpty ? nil : StoredIdentity(String(parts[1])))
            }
        }

        var text: String? {
            switch self {
            case .start: nil
            case .identity(let collection, let identity): "\(collection).\(identity?.text ?? "")"
            case .row(let row): "\(row)"
            }
        }
    }

    let listing: ObjectListing
    private(set) var position: Position
    private(set) var isAtEnd = false
    private(set) var examined = 0

    /// An SQL expression for whether an object is wanted; `lower` affects ASCII only.
    private static let isWanted = """
        o.deleted IS NULL AND (?1 IS NULL OR instr(lower(o.identity), lower(?1)) OR instr(lower(
            coalesce(o.merged, (SELECT payload FROM _versions WHERE id = o.version), '')), lower(?1)))
        """

    init(_ listing: ObjectListing) {
        self.listing = listing
        position = listing.start
    }

    mutating func next(_ bounds: SliceBounds, in database: Database, models: [UpstreamKey: UpstreamModels]) throws
        -> [ObjectID]
    {
        let collections: [CollectionID] = try database.query(
            """
            SELECT c.id FROM _collections c
            JOIN _names m ON m.id = c.model AND (m.text = ?1 OR m.text = ?2)
            JOIN _scopes s ON s.id = c.scope
            JOIN _names u ON u.id = s.upstream AND (?3 IS NULL OR u.text = ?3)
            JOIN _principals p ON p.id = s.principal AND (?4 IS NULL OR p.label = ?4)
            ORDER BY c.id
            """
        ).all(
            listing.model,
            Inventory.base(of: listing.model, models),
            listing.upstream.map(models.key),
            listing.principal
        ) {
            $0.id(0)
        }
        return switch listing.order {
        case .identity: try byIdentity(collections, bounds, in: database)
        case .stored: try byRow(collections, bounds, in: database)
        }
    }

    private mutating func byIdentity(_ collections: [CollectionID], _ bounds: SliceBounds, in database: Database)
        throws -> [ObjectID]
    {
        let isDescending = listing.isDescending
        var (found, first): ([ObjectID], StoredIdentity?) = ([], nil)
        var rest = isDescending ? collections.reversed()[...] : collections[...]
        if case .identity(let collection, let identity) = position {
            rest = rest.drop { isDescending ? $0 > collection : $0 < collection }
            if rest.first == collection { first = identity }
        }
        while let collection = rest.popFirst() {
            let bound = first == nil ? "AND ?3 IS NULL" : "AND o.identity \(isDescending ? "<" : ">") ?3"
            var (last, isStopped) = (first, false)
            try database.query(
                """
                SELECT o.id, \(Self.isWanted), o.identity FROM _objects o
                WHERE o.collection = ?2 \(bound) ORDER BY o.identity \(isDescending ? "DESC" : "")
                """
            ).eachWhile(listing.text, collection, first) { row in
                last = StoredIdentity(row, column: 2)
                if row.integer(1) != 0 { found.append(row.id(0)) }
                isStopped = isFull(bounds, found)
                return !isStopped
            }
            position = .identity(collection: collection, last)
            if isStopped { return found }
            first = nil
        }
        isAtEnd = true
        return found
    }

    private mutating func byRow(_ collections: [CollectionID], _ bounds: SliceBounds, in database: Database) throws
        -> [ObjectID]
    {
        let isDescending = listing.isDescending
        var found: [ObjectID] = []
        var last = isDescending ? ObjectID.max : .zero
        if case .row(let row) = position { last = row }
        var isStopped = collections.isEmpty
        if !isStopped {
            try database.query(
                """
                SELECT o.id, CASE WHEN o.collection IN (SELECT value FROM json_each(?3)) THEN \(Self.isWanted) END
                FROM _objects o WHERE o.id \(isDescending ? "<" : ">") ?2 ORDER BY o.id \(isDescending ? "DESC" : "")
                """
            ).eachWhile(listing.text, last, "\(collections.map(\.rawValue))") { row in
                last = row.id(0)
                if row.integer(1) != 0 { found.append(row.id(0)) }
                isStopped = isFull(bounds, found)
                return !isStopped
            }
        }
        position = .row(last)
        isAtEnd = !isStopped || collections.isEmpty
        return found
    }

    private mutating func isFull(_ bounds: SliceBounds, _ found: [ObjectID]) -> Bool {
        examined += 1
        return bounds.areReached(found: found.count, examined: examined)
    }
}

extension Inventory {
    /// Rows for object ids, in this order; objects that are gone are left out.
    func objects(_ ids: [ObjectID], view: ObjectQuery.View) throws -> [ObjectRow] {
        let sql = "SELECT \(FoundObject.columns) FROM _objects o \(FoundObject.joins) WHERE o.id = ?"
        let query = try database.query(sql)
        return try rows(of: ids.compactMap { try query.first($0) { try FoundObject($0) } }, view: view)
    }

    /// The objects whose identity or key equals the text of a listing, found by index.
    func named(_ listing: ObjectListing) throws -> [ObjectRow] {
        guard let text = listing.text else { return [] }
        var query = ObjectQuery(model: listing.model, identity: text, upstream: listing.upstream, limit: listing.limit)
        (query.principal, query.view) = (listing.principal, listing.view)
        var found = try objects(query).rows
        (query.identity, query.key) = (nil, text)
        let known = Set(found.map(\.id))
        found += try objects(query).rows.filter { !known.contains($0.id) }
        return Array(found.prefix(listing.limit))
    }
}

extension ObjectStore {
    /// A page of a model's objects; the search stops after `patience`, holds no snapshot for long, and waits for other
    /// searches.
    public func list(_ listing: ObjectListing, patience: Duration = .milliseconds(500)) async throws(StoreError)
        -> ObjectListingPage
    {
        let core = core
        let models = core.models
        let end = ContinuousClock.now + patience
        var page = ObjectListingPage()
        var scan = ObjectScan(listing)
        let named = try await core.read { try Inventory($0, of: core).named(listing) }
        let namedIDs = Set(named.map(\.id))
        if scan.position == .start { page.rows = named }
        while page.rows.count < listing.limit, !scan.isAtEnd {
            let wanted = listing.limit - page.rows.count
            let rows = try await core.advance(&scan, count: wanted) { scan, database, bounds in
                let found = try scan.next(bounds, in: database, models: models)
                return try Inventory(database, of: core).objects(found, view: listing.view)
            }
            page.rows += rows.filter { row in
                // The objects of a cluster are stored together; the members of each show its concrete model.
                !namedIDs.contains(row.id)
                    && models[row.upstreamKey]?.models.isObject(row.json, of: listing.model) ?? true
            }
            if ContinuousClock.now >= end || Task.isCancelled { break }
        }
        page.examined = scan.examined
        page.next = scan.isAtEnd ? nil : scan.position.text
        return page
    }
}
