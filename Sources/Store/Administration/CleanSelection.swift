import GRDB
import Mapping

/// What a filter means, in the order of ids, some at a time.
struct CleanSelection {
    let database: Database
    let filter: CleanFilter
    /// What was last observed before this is old enough; nil: anything is.
    private let before: Int64?
    private let collections: [Int64]
    private let identity: Identity?
    private let kin: Kin?
    /// The model whose objects include those of the filter's, if that is another one.
    var base: String? { kin?.base }

    init(
        _ filter: CleanFilter,
        in database: Database,
        now: Int64,
        models: [String: UpstreamModels],
        lag: Int64
    ) throws {
        self.database = database
        self.filter = filter
        kin = filter.model.flatMap { Kin(of: $0, models, lag: lag) }
        before = filter.olderThan.map { now - $0 }
        identity = filter.identity.map { Identity($0) }
        var found: [Int64] = []
        try Query(
            database,
            """
            SELECT c.id FROM _collections c
            JOIN _scopes s ON s.id = c.scope
            JOIN _names m ON m.id = c.model AND (?1 IS NULL OR m.text = ?1 OR m.text = ?4)
            JOIN _names u ON u.id = s.upstream AND (?2 IS NULL OR u.text = ?2)
            JOIN _principals p ON p.id = s.principal AND (?3 IS NULL OR p.label = ?3)
            """
        ).each(SQLValue(filter.model), SQLValue(filter.upstream), SQLValue(filter.principal), SQLValue(kin?.base)) {
            found.append($0.integer(0))
        }
        collections = found
    }

    /// Documents after an id, so many at most.
    ///
    /// With a model these are the documents that show an object of it. No index says which: the pins of every
    /// document are looked at.
    func documents(after: DocumentID, limit: Int) throws -> [DocumentID] {
        let isAnyModel = filter.model == nil
        if !isAnyModel, collections.isEmpty { return [] }
        var found: [DocumentID] = []
        var isMeant: [ObjectID: Bool] = [:]
        try Query(
            database,
            """
            SELECT d.id, d.url, b.pins FROM _documents d
            JOIN _bodies b ON b.document = d.id
            JOIN _scopes s ON s.id = d.scope
            JOIN _names u ON u.id = s.upstream
            JOIN _principals p ON p.id = s.principal
            WHERE d.id > ?5 AND (?1 IS NULL OR u.text = ?1) AND (?2 IS NULL OR p.label = ?2)
            AND (?3 IS NULL OR substr(d.url, 1, length(?3)) = ?3)
            AND (?4 IS NULL OR (SELECT finish FROM _observations WHERE id = d.observation) < ?4)
            ORDER BY d.id
            """
        ).eachWhile(
            SQLValue(filter.upstream),
            SQLValue(filter.principal),
            SQLValue(filter.urlPrefix),
            before.map(SQLValue.integer) ?? .null,
            .integer(after)
        ) { row in
            if let url = filter.url, !url(row.string(1)) { return true }
            if try isAnyModel || shows(row.bytes(2), &isMeant) { found.append(row.integer(0)) }
            return found.count < limit
        }
        return found
    }

    private func shows(_ pins: [UInt8], _ isMeant: inout [ObjectID: Bool]) throws -> Bool {
        for pin in try Pins.decode(pins) {
            let known: Bool
            if let seen = isMeant[pin.object] {
                known = seen
            } else {
                known =
                    try Query(database, "SELECT collection, identity FROM _objects WHERE id = ?")
                    .first(.integer(pin.object)) { row in
                        collections.contains(row.integer(0))
                            && (identity == nil || Identity(row, column: 1) == identity)
                    } == true && isOfModel(pin.object)
                isMeant[pin.object] = known
            }
            if known { return true }
        }
        return false
    }

    /// Objects after an id that no document shows, so many at most; none for a filter that speaks of URLs.
    ///
    /// Those that a document shows go with it, or stay with another one.
    func orphans(after: ObjectID, limit: Int) throws -> [ObjectID] {
        guard filter.url == nil, filter.urlPrefix == nil, !collections.isEmpty else { return [] }
        let meant = Set(collections)
        var found: [ObjectID] = []
        try Query(
            database,
            """
            SELECT r.object, o.collection, o.identity, o.state
            FROM _orphans r JOIN _objects o ON o.id = r.object WHERE r.object > ? ORDER BY r.object
            """
        ).eachWhile(.integer(after)) { row in
            guard meant.contains(row.integer(1)) else { return true }
            if let identity, Identity(row, column: 2) != identity { return true }
            if let before, try lastSeen(row.bytes(3)) >= before { return true }
            guard try isOfModel(row.integer(0)) else { return true }
            found.append(row.integer(0))
            return found.count < limit
        }
        return found
    }

    /// Whether an object of the base is one of the concrete model that the filter speaks of.
    private func isOfModel(_ object: ObjectID) throws -> Bool {
        try kin?.includes(object, in: database) ?? true
    }

    private func lastSeen(_ state: [UInt8]) throws -> Int64 {
        let query = try Query(database, "SELECT finish FROM _observations WHERE id = ?")
        return try ObjectRecord.decode(state).filter { $0.observation != 0 }
            .map { try query.first(.integer($0.observation)) { $0.integer(0) } ?? .min }.max() ?? .min
    }
}

/// A cluster's concrete model: its objects lie among its base's, and their members tell them apart.
private struct Kin {
    let model: String
    let base: String
    let models: [String: UpstreamModels]
    let lag: Int64

    /// Nil for models whose objects go by their own name.
    init?(of model: String, _ models: [String: UpstreamModels], lag: Int64) {
        let base = models.values.lazy.map { $0.models.objectName(of: model) }.first { $0 != model }
        guard let base else { return nil }
        (self.model, self.base, self.models, self.lag) = (model, base, models, lag)
    }

    func includes(_ object: ObjectID, in database: Database) throws -> Bool {
        let found = try Query(
            database,
            """
            SELECT o.state, o.accumulated, m.text, u.text FROM _objects o JOIN _collections c ON c.id = o.collection
            JOIN _names m ON m.id = c.model JOIN _scopes s ON s.id = c.scope JOIN _names u ON u.id = s.upstream
            WHERE o.id = ?
            """
        ).first(.integer(object)) { row in
            (state: row.bytes(0), accumulated: row.bytes(1), name: row.string(2), upstream: row.string(3))
        }
        guard let found, let declared = models[found.upstream]?.models else { return false }
        guard found.name != model else { return true }
        let state = try DocumentReader(database, models: models)
            .state(in: found.state, accumulated: found.accumulated, of: found.name, upstream: found.upstream)
        return state.newestPayload(model: found.name, models: declared, lag: lag)
            .map { declared.isObject($0, of: model) } ?? false
    }
}
