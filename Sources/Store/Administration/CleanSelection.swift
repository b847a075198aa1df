import GRDB
import Mapping

/// Selects a part of the store; all conditions must hold.
public struct CleanFilter: Sendable {
    /// Objects of this model, and documents that show them.
    var model: String?
    /// The object's identity; has an effect only with `model`.
    public var identity: String?
    public var upstream: UpstreamKey?
    public var principal: String?
    /// Documents whose path and query this accepts, such as a route's.
    public var url: (@Sendable (String) -> Bool)?
    /// Only what was last observed more than this many microseconds ago.
    var olderThan: Int64?
    /// Only what belongs to a principal.
    var isPrivate = false
    /// Only what belongs to principals with greater ids.
    var owners: PrincipalID { isPrivate ? .anonymous : .zero }

    /// Creates a filter; without a condition it selects everything.
    public init(
        model: String? = nil,
        identity: String? = nil,
        upstream: UpstreamKey? = nil,
        principal: String? = nil,
        url: (@Sendable (String) -> Bool)? = nil,
        olderThan: Int64? = nil
    ) {
        (self.model, self.identity, self.upstream) = (model, identity, upstream)
        (self.principal, self.url, self.olderThan) = (principal, url, olderThan)
    }

    /// What the clean makes outdated of all that was requested before it, or more: where the filter names a URL or an age, too.
    ///
    /// - Parameter model: the filter's model, or the base of its cluster; nil where it is not known what a response shows.
    public func invalidation(of model: String? = nil, at time: Int64) -> Invalidation {
        let objects = model.map { [BoundObject(model: $0, identity: identity)] } ?? []
        return Invalidation(of: upstream, objects: objects, principals: principal.map { [$0] }, at: time)
    }
}

/// The documents and objects that a filter selects, in the order of their ids, one slice at a time.
///
/// It asks the filter, not the filter's `Invalidation`: that covers more than what is to be deleted.
struct CleanSelection {
    let database: Database
    let filter: CleanFilter
    /// The time before which the last observation must lie; nil: any.
    private let before: Int64?
    let collections: [CollectionID]
    let identity: StoredIdentity?
    private let concrete: ConcreteModel?
    /// The base of the filter's model, if that is a concrete model of a cluster.
    var base: String? { concrete?.base }
    /// Whether it selects by URL; objects are then selected only as parts of documents.
    var isOfURLs: Bool { filter.url != nil }

    struct Slice: Sendable {
        var found: [ObjectID] = []
        /// The last object that was examined.
        var position = ObjectID.zero
        var isAtEnd = false
    }

    /// - Parameter now: when the clean was requested.
    init(_ filter: CleanFilter, in database: Database, now: Int64, of core: StoreCore) throws {
        (self.database, self.filter) = (database, filter)
        concrete = filter.model.flatMap { ConcreteModel(of: $0, core.models) }
        before = filter.olderThan.map { now - $0 }
        identity = filter.identity.map { StoredIdentity($0) }
        collections = try database.query(
            """
            SELECT c.id FROM _collections c
            JOIN _scopes s ON s.id = c.scope
            JOIN _names m ON m.id = c.model AND (?1 IS NULL OR m.text = ?1 OR m.text = ?4)
            JOIN _names u ON u.id = s.upstream AND (?2 IS NULL OR u.text = ?2)
            JOIN _principals p ON p.id = s.principal AND (?3 IS NULL OR p.label = ?3) AND p.id > ?5
            """
        ).all(filter.model, filter.upstream, filter.principal, concrete?.base, filter.owners) { $0.id(0) }
    }

    // MARK: Documents

    /// The documents of the next slice of a scan.
    ///
    /// With a model, those that show an object of it: for lack of an index, it reads the pins of every document.
    func documents(of scan: inout DocumentScan, _ bounds: SliceBounds) throws -> [DocumentID] {
        guard filter.model == nil || !collections.isEmpty else { return scan.end() }
        var known: [ObjectID: Bool] = [:]
        return try scan.next(bounds, in: database) { document, url in
            guard filter.url?(url()) ?? true, try isSelected(document) else { return false }
            return try filter.model == nil || shows(document, &known)
        }
    }

    /// Whether a document is old enough; one that was found a moment ago may have been freshened since.
    func isSelected(_ document: DocumentID) throws -> Bool {
        guard let before else { return true }
        let end = "SELECT o.finish FROM _documents d JOIN _observations o ON o.id = d.observation WHERE d.id = ?"
        return try database.query(end).first(document) { $0.integer(0) < before } ?? false
    }

    private func shows(_ document: DocumentID, _ isSelected: inout [ObjectID: Bool]) throws -> Bool {
        try StoredBody.pins(of: document, in: database).contains { pin in
            let isOne = try isSelected[pin.object] ?? selects(pin.object)
            isSelected[pin.object] = isOne
            return isOne
        }
    }

    /// Whether an object itself is selected; a filter without a model selects every object of the removed documents.
    func selects(_ object: ObjectID) throws -> Bool {
        guard filter.model != nil else { return true }
        let isOfCollection = try database.query("SELECT collection, identity FROM _objects WHERE id = ?")
            .first(object) { row in
                collections.contains(row.id(0)) && (identity == nil || StoredIdentity(row, column: 1) == identity)
            }
        return try isOfCollection == true && isOfModel(object)
    }

    // MARK: Objects

    private static let orphans =
        "SELECT r.object, o.collection, o.identity, o.state FROM _orphans r JOIN _objects o ON o.id = r.object"

    /// Objects after an id that no document shows; none for a filter by URL: other objects go with the documents that
    /// show them.
    func orphans(after: ObjectID, _ bounds: SliceBounds) throws -> Slice {
        var slice = Slice(position: after, isAtEnd: true)
        guard !isOfURLs, !collections.isEmpty else { return slice }
        let wanted = Set(collections)
        var examined = 0
        try database.query("\(Self.orphans) WHERE r.object > ? ORDER BY r.object").eachWhile(after) { row in
            slice.position = row.id(0)
            if try isSelected(row, in: wanted) { slice.found.append(row.id(0)) }
            examined += 1
            slice.isAtEnd = !bounds.areReached(found: slice.found.count, examined: examined)
            return slice.isAtEnd
        }
        return slice
    }

    /// Whether an object found a moment ago is still selected, and was not observed after `time`.
    func isOrphan(_ object: ObjectID, knownBefore time: Int64) throws -> Bool {
        try database.query("\(Self.orphans) WHERE r.object = ?").first(object) { row in
            let isKnown = try lastSeen(row.bytes(3)) <= time
            return try isKnown && isSelected(row, in: Set(collections))
        } ?? false
    }

    private func isSelected(_ row: QueryRow, in collections: Set<CollectionID>) throws -> Bool {
        guard collections.contains(row.id(1)) else { return false }
        if let identity, StoredIdentity(row, column: 2) != identity { return false }
        if let before, try lastSeen(row.bytes(3)) >= before { return false }
        return try isOfModel(row.id(0))
    }

    /// Whether an object of the base belongs to the filter's concrete model.
    private func isOfModel(_ object: ObjectID) throws -> Bool { try concrete?.includes(object, in: database) ?? true }

    private func lastSeen(_ state: [UInt8]) throws -> Int64 {
        let query = try database.query("SELECT finish FROM _observations WHERE id = ?")
        return try ObjectRecord.decode(state).filter { $0.observation != .zero }
            .map { try query.integer($0.observation) ?? .min }.max() ?? .min
    }
}

/// A concrete model of a cluster; its objects are stored under the cluster's base, and recognised by their members.
private struct ConcreteModel {
    let model: String
    let base: String
    let models: [UpstreamKey: UpstreamModels]

    init?(of model: String, _ models: [UpstreamKey: UpstreamModels]) {
        guard let base = Inventory.base(of: model, models) else { return nil }
        (self.model, self.base, self.models) = (model, base, models)
    }

    func includes(_ object: ObjectID, in database: Database) throws -> Bool {
        guard let found = try StoredState.named(object, in: database), let declared = models[found.upstream] else {
            return false
        }
        guard found.model != model else { return true }
        let state = try found.state.state(of: found.model, declared.models, in: database)
        return state.newestPayload(model: found.model, models: declared.models)
            .map { declared.models.isObject($0, of: model) } ?? false
    }
}
