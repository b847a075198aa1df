import GRDB
import Mapping

/// A change of one object; each has a commit sequence of its own.
public struct ObjectChange: Sendable, Equatable {
    /// The kind of change.
    public enum Kind: UInt8, Sendable, CaseIterable {
        /// A response showed the object for the first time, or for the first time since it was forgotten or deleted.
        case created = 0
        /// A member has a new value.
        case changed = 1
        /// The object is deleted.
        case deleted = 2
        /// A write may have changed the object, and its response did not show it.
        case unknown = 3

        /// The name of the kind, for people and programs.
        public var name: String {
            switch self {
            case .created: "created"
            case .changed: "changed"
            case .deleted: "deleted"
            case .unknown: "unknown"
            }
        }
    }

    /// The commit sequence; no two changes have the same.
    public var sequence: Int64
    /// The kind of change.
    public var kind: Kind
    /// When it was committed: microseconds of the store's clock.
    public var time: Int64
    /// The upstream's name.
    public var upstream: String
    /// The principal's label.
    public var principal: String
    /// The representation it was requested in.
    public var context: String
    /// The model's name; for a cluster that of its base.
    public var model: String
    /// The models of the object: for a cluster its base and the concrete model that its members choose, or all of them if
    /// its members are no longer known.
    public var models: [String]
    /// Its identity as stored.
    public var identity: String
    /// Its identity as JSON, in the upstream's spelling if a response that shows it is still stored.
    public var id: [UInt8]
    /// Its newest known members as JSON when the journal is read; nil if not requested or not known.
    public var json: [UInt8]?
}

/// A page of the journal.
public struct ChangePage: Sendable {
    /// The changes, in the order of their sequences.
    public var changes: [ObjectChange]
    /// The commit sequence up to which this page is complete: the start of the next page.
    public var end: Int64
    /// Whether this is the last page.
    public var isLast: Bool
    /// The commit sequence up to which changes are no longer in the journal.
    public var floor: Int64
    /// How many changes in this page's range are of objects that a clean has erased.
    public var erased: Int
}

/// The journal of changes, in the order of the commits.
extension ObjectStore {
    /// Sets the function that is called after each commit that added to the journal; at most one.
    ///
    /// Called on the writer's thread: it must be quick, and must not wait for the store.
    public func onChanges(_ handler: @escaping @Sendable () -> Void) {
        core.onChanges = handler
    }

    /// The changes after a commit sequence, at most `limit`; nil if the configuration has no journal.
    ///
    /// Every change after `start` is in one page or the next, once, as long as `start` is not below the page's floor. Names
    /// are today's: a change of an object that a clean has removed is only counted.
    ///
    /// - Parameter values: whether to include each object's newest known members.
    public func changes(after start: Int64, limit: Int, values: Bool = false) async throws(StoreError) -> ChangePage? {
        let models = core.models
        let found = try await core.read { database in
            var reader = ChangeReader(database, models: models)
            return try reader.page(after: start, limit: max(limit, 1), values: values)
        }
        guard var page = found else { return nil }
        for index in page.changes.indices {
            page.changes[index].upstream = core.label(ofUpstream: page.changes[index].upstream)
        }
        // The writer may not have published its last commit yet, but a number that is handed out must be recognised.
        core.publicNumbers.advance(to: page.end)
        return page
    }
}

/// Reads the journal of changes, in one read snapshot.
struct ChangeReader {
    private struct Names {
        var upstream: String
        var principal: String
        var context: String
        var model: String
    }

    /// A page ends after so many bytes of members.
    private static let byteLimit = 1 << 20

    private let database: Database
    private let models: [String: UpstreamModels]
    /// The names of the collections read so far.
    private var collections: [CollectionID: Names] = [:]

    init(_ database: Database, models: [String: UpstreamModels]) {
        self.database = database
        self.models = models
    }

    /// The changes after a sequence, at most `limit`; nil if there is no journal.
    mutating func page(after start: Int64, limit: Int, values: Bool) throws -> ChangePage? {
        guard let floor = try Meta.journal.integer(in: database) else { return nil }
        let sequence = try Meta.sequence.integer(in: database) ?? 0
        var page = ChangePage(changes: [], end: max(start, sequence), isLast: true, floor: floor, erased: 0)
        var entries: [(entry: Journal.Entry, time: Int64)] = []
        try Query(database, "SELECT sequence, at, entries FROM _changes WHERE sequence > ? ORDER BY sequence")
            .eachWhile(.integer(start)) { row in
                let time = row.integer(1)
                for entry in try Journal.decode(row.bytes(2), at: row.integer(0)) where entry.sequence > start {
                    guard entries.count < limit else {
                        page.isLast = false
                        return false
                    }
                    entries.append((entry, time))
                }
                return true
            }
        if !page.isLast, let last = entries.last { page.end = last.entry.sequence }
        var bytes = 0
        for (index, (entry, time)) in entries.enumerated() {
            if let change = try change(entry, at: time, values: values) {
                page.changes.append(change)
                bytes += change.json?.count ?? 0
            } else {
                page.erased += 1
            }
            if bytes > Self.byteLimit, index < entries.count - 1 {
                (page.end, page.isLast) = (entry.sequence, false)
                break
            }
        }
        return page
    }

    private struct Row {
        var collection: CollectionID
        var identity: Identity
        var payload: [UInt8] = []
        var declared = 0
        var state: StoredState?
        var isDeleted = false
    }

    /// An entry with the names of its object; nil if they are no longer known.
    private mutating func change(_ entry: Journal.Entry, at time: Int64, values: Bool) throws -> ObjectChange? {
        guard let row = try row(of: entry.object), let names = try names(of: row.collection) else { return nil }
        let known = models[names.upstream]
        var change = ObjectChange(
            sequence: entry.sequence,
            kind: entry.kind,
            time: time,
            upstream: names.upstream,
            principal: names.principal,
            context: names.context,
            model: names.model,
            models: try models(of: row, names),
            identity: row.identity.text,
            id: Self.spelling(of: row, as: names.model, known?.models)
        )
        if values, !row.isDeleted, let known, let state = row.state {
            change.json = try state.state(of: names.model, known.models, in: database)
                .plainJSON(model: names.model, models: known.models)
        }
        return change
    }

    /// An object's models; its members are read only for a cluster, to find the concrete ones.
    private func models(of row: Row, _ names: Names) throws -> [String] {
        guard let known = models[names.upstream] else { return [names.model] }
        let all = known.models.names(ofObjectsNamed: names.model)
        guard all.count > 1, let state = row.state else { return all.isEmpty ? [names.model] : all }
        let json = try state.state(of: names.model, known.models, in: database)
            .plainJSON(model: names.model, models: known.models)
        guard let json else { return all }
        return all.filter { known.models.isObject(json, of: $0) }
    }

    private func row(of object: ObjectID) throws -> Row? {
        let known = try Query(
            database,
            """
            SELECT o.collection, o.identity, o.deleted, v.payload, v.declared, \(StoredState.columns)
            FROM _objects o LEFT JOIN _versions v ON v.id = o.version WHERE o.id = ?
            """
        ).first(.id(object)) { row in
            Row(
                collection: row.id(0),
                identity: Identity(row, column: 1),
                payload: row.bytes(3),
                declared: Int(row.integer(4)),
                state: try StoredState(row, from: 5),
                isDeleted: !row.isNull(2)
            )
        }
        if let known { return known }
        return try Query(database, "SELECT collection, identity FROM _gone WHERE object = ?")
            .first(.id(object)) { Row(collection: $0.id(0), identity: Identity($0, column: 1)) }
    }

    private mutating func names(of collection: CollectionID) throws -> Names? {
        if let known = collections[collection] { return known }
        let found = try Query(
            database,
            """
            SELECT u.text, p.label, x.text, m.text FROM _collections c
            JOIN _scopes s ON s.id = c.scope JOIN _names m ON m.id = c.model JOIN _names u ON u.id = s.upstream
            JOIN _names x ON x.id = s.context JOIN _principals p ON p.id = s.principal WHERE c.id = ?
            """
        ).first(.id(collection)) {
            Names(upstream: $0.string(0), principal: $0.string(1), context: $0.string(2), model: $0.string(3))
        }
        collections[collection] = found
        return found
    }

    /// An identity as the newest response spells it; otherwise as references to the object are shown.
    private static func spelling(of row: Row, as model: String, _ models: Models?) -> [UInt8] {
        if let models, !row.payload.isEmpty {
            let newest = Contribution(
                observation: Observation(sequence: 0, start: 0, end: 0, kind: .detail),
                version: 0,
                payload: models.migrate(row.payload, of: model, from: row.declared)
            )
            let state = ObjectState(base: newest)
            if let known = state.identityJSON(model: model, models: models) { return known }
        }
        return Reference.plain(Reference.literal(ObjectName(model: model, identity: row.identity.text)))
    }
}
