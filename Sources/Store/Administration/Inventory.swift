import GRDB
import Mapping

/// Counts and lists the contents of the store, in one read snapshot.
struct Inventory {
    let database: Database
    private let models: [UpstreamKey: UpstreamModels]
    private let keyHasher: KeyHasher

    init(_ database: Database, of core: StoreCore) {
        (self.database, models, keyHasher) = (database, core.models, core.keyHasher)
    }

    func count() throws -> StoreCount {
        var count = StoreCount(bytes: try FileBudget.used(in: database))
        count.documents = Int(try database.query("SELECT count(*) FROM _documents").integer() ?? 0)
        try database.query(
            """
            SELECT m.text, n FROM _names m JOIN (
                SELECT c.model, sum(n) AS n FROM (SELECT collection, count(*) AS n FROM _objects GROUP BY collection)
                JOIN _collections c ON c.id = collection GROUP BY c.model
            ) ON model = m.id
            """
        ).each { row in
            count.models[row.string(0)] = Int(row.integer(1))
            count.objects += Int(row.integer(1))
        }
        // Deleted objects keep a row, but are not counted.
        try database.query(
            """
            SELECT m.text, count(*) FROM _objects o JOIN _collections c ON c.id = o.collection
            JOIN _names m ON m.id = c.model WHERE o.deleted IS NOT NULL GROUP BY m.text
            """
        ).each { row in
            let left = (count.models[row.string(0)] ?? 0) - Int(row.integer(1))
            count.models[row.string(0)] = left > 0 ? left : nil
            count.objects -= Int(row.integer(1))
        }
        return count
    }

    func objects(_ query: ObjectQuery) throws -> Page<ObjectRow> {
        precondition(
            query.identity != nil || query.key != nil || query.areDeleted,
            "all objects of a model are listed by ObjectListing, which reads them through an index"
        )
        let limit = max(query.limit, 1)
        // SQLite reads the first table of the query first: collections, then an identity in the index of each; or a key in its
        // index; or the deleted objects of each collection. The plus keeps it from reading all objects in the order of their ids.
        let key = "LEFT JOIN _keys k ON k.object = o.id AND k.value = ?8"
        let source =
            if query.identity != nil {
                "_collections c CROSS JOIN _objects o ON o.collection = c.id \(key)"
            } else if query.key != nil {
                "_keys k CROSS JOIN _objects o ON o.id = k.object AND k.value = ?8 JOIN _collections c ON c.id = o.collection"
            } else {
                "_collections c CROSS JOIN _objects o INDEXED BY _objects_deleted ON o.collection = c.id \(key)"
            }
        // The objects of a cluster are stored under the name of its base.
        let base = query.model.flatMap { Self.base(of: $0, models) }
        let found = try database.query(
            """
            SELECT \(FoundObject.columns), k.bound
            FROM \(source)
            JOIN _scopes s ON s.id = c.scope
            JOIN _names m ON m.id = c.model AND (?1 IS NULL OR m.text = ?1 OR m.text = ?7)
            JOIN _names u ON u.id = s.upstream AND (?3 IS NULL OR u.text = ?3)
            JOIN _principals p ON p.id = s.principal AND (?4 IS NULL OR p.label = ?4)
            JOIN _names x ON x.id = s.context
            WHERE +o.id > ?5 AND o.deleted IS \(query.areDeleted ? "NOT NULL" : "NULL") \(query.identity == nil ? "AND ?2 IS NULL" : "AND o.identity = ?2")
            ORDER BY +o.id LIMIT ?6
            """
        ).all(
            query.model,
            query.identity.map { StoredIdentity($0) },
            query.upstream.map(models.key),
            query.principal,
            query.after ?? 0,
            Int64(limit) + 1,
            base,
            query.key.map { keyHasher.keyHash($0) }
        ) { row in
            var object = try FoundObject(row)
            object.row.isBound = row.integer(FoundObject.columnCount) == 1
            return object
        }
        let next = found.count > limit ? found[limit - 1].row.id.rawValue : nil
        let rows = try rows(of: found.prefix(limit), view: query.view, areDeleted: query.areDeleted)
        return Page(rows: rows.filter { isWanted($0, by: query) }, next: next)
    }

    /// The base name under which a concrete model's objects are stored; nil if they are stored under its own name.
    static func base(of model: String, _ models: [UpstreamKey: UpstreamModels]) -> String? {
        models.values.lazy.map { $0.models.objectName(of: model) }.first { $0 != model }
    }

    func rows(of found: some Sequence<FoundObject>, view: ObjectQuery.View, areDeleted: Bool = false) throws
        -> [ObjectRow]
    {
        let reader = try DocumentReader(database, models: models)
        return try found.map { entry in
            var row = entry.row
            row.upstream = models.label(of: row.upstreamKey)
            let known = models[row.upstreamKey]
            let state = try entry.state.state(of: row.model, known?.models, in: database)
            if !areDeleted, state.isOutdated(lag: known?.lag ?? Lag(lists: 0)) { row.unknownSince = state.mark?.time }
            row.observed = state.lastSeen ?? 0
            row.json = state.plainJSON(model: row.model, models: known?.models ?? .none) ?? []
            if case .mapped(let members) = view, let models = known?.models {
                let payload = state.newestPayload(model: row.model, models: models) ?? row.json
                let (mapper, identity) = (DocumentMapper(models: models), row.identity)
                row.mapped = mapper.mapObject(payload, model: row.model, identity: identity, members: members) { name in
                    // An object that cannot be read is shown by its identity, like an unknown one.
                    guard let state = try? reader.state(of: name, scope: entry.scope),
                        !state.isDeleted(model: name.model, models: models)
                    else { return nil }
                    return state.newestPayload(model: name.model, models: models)
                }
            }
            return row
        }
    }

    /// Whether a row matches the query: it belongs to the concrete model, and its key still has that value.
    private func isWanted(_ row: ObjectRow, by query: ObjectQuery) -> Bool {
        guard let models = models[row.upstreamKey]?.models else { return query.key == nil }
        if let model = query.model, !models.isObject(row.json, of: model) { return false }
        guard let key = query.key, !row.isBound else { return true }
        return models.keys(in: row.json, of: row.model).contains { $0.value.utf8.elementsEqual(key.utf8) }
    }

    /// A page of warnings, latest first; `after` is the number to skip: there are few, and their order changes.
    func warnings(limit: Int, after: Int64?) throws -> Page<StoredWarning> {
        let limit = max(limit, 1)
        let offset = after ?? 0
        let rows = try database.query(
            """
            SELECT kind, subject, message, count, first, last, url, pointer FROM _warnings
            ORDER BY last DESC, kind, subject LIMIT ? OFFSET ?
            """
        ).all(Int64(limit) + 1, offset) { row in
            StoredWarning(
                kind: row.string(0),
                subject: row.string(1),
                message: row.string(2),
                url: row.string(6),
                pointer: row.string(7),
                count: Int(row.integer(3)),
                first: row.integer(4),
                last: row.integer(5)
            )
        }
        let next = rows.count > limit ? offset + Int64(limit) : nil
        return Page(rows: Array(rows.prefix(limit)), next: next)
    }
}

/// An object's row in a listing, without its values.
struct FoundObject {
    /// The columns that `init` reads; a query selects them first, with these letters for the tables.
    static let columns = """
        o.id, u.text, p.label, x.text, m.text, o.identity, c.scope, \(StoredState.columns)
        """
    /// The tables of these columns, besides that of the object.
    static let joins = """
        JOIN _collections c ON c.id = o.collection JOIN _scopes s ON s.id = c.scope JOIN _names m ON m.id = c.model
        JOIN _names u ON u.id = s.upstream JOIN _names x ON x.id = s.context JOIN _principals p ON p.id = s.principal
        """
    static let columnCount: Int32 = 14

    var row: ObjectRow
    let state: StoredState
    let scope: ScopeID

    init(_ row: QueryRow) throws {
        self.row = ObjectRow(
            id: row.id(0),
            upstreamKey: row.upstream(1),
            principal: row.string(2),
            context: row.string(3),
            model: row.string(4),
            identity: StoredIdentity(row, column: 5).text
        )
        state = try StoredState(row, from: 7)
        scope = row.id(6)
    }
}

/// The names of the upstreams and principals that have data in the store.
public struct OwnerNames: Sendable, Equatable {
    public var upstreams: [String]
    /// The labels of the oldest principals, at most ten.
    public var principals: [String]
    public var areAllPrincipals: Bool

    private static let shownPrincipals = 10

    init(_ database: Database, _ models: [UpstreamKey: UpstreamModels]) throws {
        let names = "SELECT DISTINCT u.text FROM _scopes s JOIN _names u ON u.id = s.upstream"
        upstreams = try database.query(names).all { models.label(of: $0.upstream(0)) }.sorted()
        let principals = try database.query(
            "SELECT label FROM _principals ORDER BY id LIMIT \(Self.shownPrincipals + 1)"
        )
        .all { $0.string(0) }
        areAllPrincipals = principals.count <= Self.shownPrincipals
        self.principals = Array(principals.prefix(Self.shownPrincipals))
    }
}

extension ObjectStore {
    /// The names of the upstreams and principals that have data in the store.
    public func ownerNames() async throws(StoreError) -> OwnerNames {
        try await core.read { [models = core.models] in try OwnerNames($0, models) }
    }

    /// Whether a principal has this label.
    public func hasPrincipal(_ label: String) async throws(StoreError) -> Bool {
        try await core.read { try $0.query("SELECT 1 FROM _principals WHERE label = ?").integer(label) != nil }
    }
}
