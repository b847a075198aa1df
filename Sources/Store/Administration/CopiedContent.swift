import GRDB
import Mapping

/// Reads a copy slice by slice; any thread, blocks.
struct CopiedContent: Sendable {
    /// How far it has been read: all documents first, then the objects that none of them shows.
    struct Cursor: Sendable {
        fileprivate var document: Int64 = 0
        fileprivate var orphan: Int64 = 0
        /// Documents and objects that were read.
        fileprivate(set) var done = 0
    }

    private static let rows = 64
    private static let bytes = 512 << 10

    private let queue: DatabaseQueue
    private let models: [String: UpstreamModels]
    private let hasSameSecret: Bool
    /// How many documents, and objects that no document shows, there are.
    let total: Int

    /// - Parameter keys: what digests the keys of objects in the store that the content is for.
    init(_ path: String, models: [String: UpstreamModels], keys: KeyHasher) throws {
        self.models = models
        queue = try DatabaseQueue(path: path)
        (total, hasSameSecret) = try queue.read { database in
            let documents = try Query(database, "SELECT count(*) FROM _documents").integer() ?? 0
            let orphans = try Query(database, "SELECT count(*) FROM _orphans").integer() ?? 0
            let low = try Meta.keyLow.integer(in: database) ?? Meta.secretLow.integer(in: database) ?? 0
            let high = try Meta.keyHigh.integer(in: database) ?? Meta.secretHigh.integer(in: database) ?? 0
            let hasher = KeyHasher(secret: (UInt64(bitPattern: low), UInt64(bitPattern: high)))
            return (Int(documents + orphans), hasher.agrees(with: keys))
        }
    }

    /// Reads everything, and throws where something in it makes no sense.
    func check() throws {
        var cursor = Cursor()
        while true {
            let (next, slice) = try self.slice(after: cursor)
            if slice.isEmpty { return }
            cursor = next
        }
    }

    /// The next slice, and where it ends; empty at the end.
    func slice(after cursor: Cursor) throws -> (Cursor, CopiedSlice) {
        try queue.read { database in
            var (cursor, slice) = (cursor, CopiedSlice())
            let reader = Reader(database: database, models: models, hasSameSecret: hasSameSecret)
            let documents = try Query(database, "SELECT id FROM _documents WHERE id > ? ORDER BY id LIMIT ?")
                .all(.integer(cursor.document), .integer(Int64(Self.rows))) { $0.id(0, as: DocumentID.self) }
            for id in documents where slice.bytes < Self.bytes {
                try reader.add(id, to: &slice)
                cursor.document = id.rawValue
                cursor.done += 1
            }
            guard documents.isEmpty else { return (cursor, slice) }
            let orphans = try Query(
                database,
                """
                SELECT object FROM _orphans WHERE object > ? AND EXISTS (SELECT 1 FROM _objects WHERE id = object)
                ORDER BY object LIMIT ?
                """
            ).all(.integer(cursor.orphan), .integer(Int64(Self.rows))) { $0.id(0, as: ObjectID.self) }
            for id in orphans where slice.bytes < Self.bytes {
                try reader.add(id, to: &slice)
                cursor.orphan = id.rawValue
                cursor.done += 1
            }
            return (cursor, slice)
        }
    }
}

/// Reads rows of a copy, in one access to it.
private struct Reader {
    let database: Database
    let models: [String: UpstreamModels]
    let hasSameSecret: Bool

    func add(_ id: DocumentID, to slice: inout CopiedSlice) throws {
        let found = try Query(
            database,
            """
            SELECT d.scope, d.url, d.variant, d.status, d.length, d.head, d.policy, o.start, o.finish, o.kind,
                (SELECT at FROM _used WHERE document = d.id), EXISTS (SELECT 1 FROM _undivided WHERE document = d.id),
                o.id
            FROM _documents d JOIN _observations o ON o.id = d.observation WHERE d.id = ?
            """
        ).first(.id(id)) { row in
            CopiedDocument(
                scope: try scope(row.id(0)),
                url: row.string(1),
                variant: row.bytes(2),
                status: row.integer(3),
                length: row.integer(4),
                head: row.bytes(5),
                policy: row.bytes(6),
                sighting: row.integer(12),
                observation: row.observation(row.integer(12), from: 7).moved,
                pins: [],
                keyed: [],
                isUndivided: row.integer(11) == 1,
                used: CopiedTime.moved(row.integer(10) * 1_000_000) / 1_000_000
            )
        }
        guard var document = found else { throw StoreError.corrupt("document \(id) has no observation") }
        let stored = try StoredBody(document: id, in: database)
        (document.skeleton, document.literal, document.keyed) = (stored.skeleton, stored.literal, stored.keyed)
        let declared = try stored.declaredVersions(in: database)
        let payloads = try stored.payloads(in: database)
        for (index, pin) in stored.pins.enumerated() {
            try add(pin.object, to: &slice)
            document.pins.append(.init(object: pin.object, payload: payloads[index], declared: declared[index]))
            if slice.objects[pin.object]?.keys == nil, try isBound(pin.object) { document.isUndivided = true }
        }
        // A body that cannot be put together would be found so by whoever asks for it.
        let body = try stored.received(payloads: payloads)
        slice.bytes += body.count + document.head.count + document.policy.count
        slice.documents.append(document)
    }

    /// Whether a write may mean the object by a name that only a path has given it.
    private func isBound(_ id: ObjectID) throws -> Bool {
        try Query(database, "SELECT 1 FROM _keys WHERE object = ? AND bound = 1").integer(.id(id)) != nil
    }

    func add(_ id: ObjectID, to slice: inout CopiedSlice) throws {
        guard slice.objects[id] == nil else { return }
        let found = try Query(
            database,
            """
            SELECT \(StoredState.columns), c.scope, m.text, o.identity, (SELECT source FROM _marks WHERE object = o.id)
            FROM _objects o JOIN _collections c ON c.id = o.collection JOIN _names m ON m.id = c.model WHERE o.id = ?
            """
        ).first(.id(id)) { row in
            (
                stored: try StoredState(row, from: 0), scope: try scope(row.id(6)), model: row.string(7),
                identity: Identity(row, column: 8), markSource: row.isNull(9) ? nil : row.string(9)
            )
        }
        guard let found else { throw StoreError.corrupt("object \(id) is missing") }
        let models = models[found.scope.upstream]?.models
        var state = try found.stored.state(of: found.model, models, in: database)
        var declared = models?.version(of: found.model) ?? 0
        if let base = state.base {
            let stored = try Query(database, "SELECT declared FROM _versions WHERE id = ?").integer(
                .integer(base.version)
            )
            declared = max(declared, Int(stored ?? 0))
        }
        var sightings: [Int64: CopiedObject.Sighting] = [:]
        for source in state.knowledge.sources.union(state.base.map { [$0.observation.sequence] } ?? []) {
            sightings[source] = try sighting(source)
        }
        state.move()
        slice.objects[id] = CopiedObject(
            scope: found.scope,
            model: found.model,
            identity: found.identity,
            state: state,
            declared: declared,
            sightings: sightings,
            markSource: found.markSource,
            keys: hasSameSecret ? try keys(of: id) : nil
        )
        slice.bytes += (state.base?.payload.count ?? 0) + (state.merged?.count ?? 0)
    }

    private func keys(of id: ObjectID) throws -> [(value: Int64, isBound: Bool)] {
        try Query(database, "SELECT value, bound FROM _keys WHERE object = ?")
            .all(.id(id)) { ($0.integer(0), $0.integer(1) == 1) }
    }

    private func sighting(_ id: Int64) throws -> CopiedObject.Sighting {
        let found = try Query(database, "SELECT start, finish, kind, source FROM _observations WHERE id = ?")
            .first(.integer(id)) { ($0.observation(id, from: 0).moved, $0.isNull(3) ? nil : $0.string(3)) }
        guard let found else { throw StoreError.corrupt("observation \(id) is missing") }
        guard found.1 == nil else { return .init(observation: found.0, source: found.1) }
        let url = try ShowingReader(database: database, models: [:]).url(observedAs: id)
        return .init(observation: found.0, source: url.map { "GET \($0)" })
    }

    private func scope(_ id: ScopeID) throws -> CopiedScope {
        let found = try Query(
            database,
            """
            SELECT u.text, p.digest, x.text FROM _scopes s JOIN _principals p ON p.id = s.principal
            JOIN _names u ON u.id = s.upstream JOIN _names x ON x.id = s.context WHERE s.id = ?
            """
        ).first(.id(id)) { CopiedScope(upstream: $0.string(0), principal: $0.bytes(1), context: $0.string(2)) }
        guard let found else { throw StoreError.corrupt("scope \(id) is missing") }
        return found
    }
}

extension Observation {
    /// The same among what came with a copy.
    fileprivate var moved: Observation {
        var moved = self
        (moved.start, moved.end) = (CopiedTime.moved(start), CopiedTime.moved(end))
        return moved
    }
}

extension ObjectState {
    /// Moves all its times among those of what came with a copy.
    fileprivate mutating func move() {
        base = base.map { base in
            var base = base
            base.observation = base.observation.moved
            return base
        }
        deletedSince = deletedSince.map(CopiedTime.moved)
        switch mark {
        case .tombstone(let time): mark = .tombstone(CopiedTime.moved(time))
        case .unobserved(let time): mark = .unobserved(CopiedTime.moved(time))
        case nil: break
        }
        guard case .groups(var groups) = knowledge else { return }
        for index in groups.indices {
            groups[index].clock.lo = CopiedTime.moved(groups[index].clock.lo)
            groups[index].clock.hi = CopiedTime.moved(groups[index].clock.hi)
            groups[index].clock.lowerSince = groups[index].clock.lowerSince.map(CopiedTime.moved)
            groups[index].contradictedUntil = groups[index].contradictedUntil.map(CopiedTime.moved)
            if var doubt = groups[index].doubt {
                (doubt.lo, doubt.hi) = (CopiedTime.moved(doubt.lo), CopiedTime.moved(doubt.hi))
                (doubt.rest, doubt.asksFrom) = (CopiedTime.moved(doubt.rest), CopiedTime.moved(doubt.asksFrom))
                groups[index].doubt = doubt
            }
        }
        knowledge = .groups(groups)
    }
}
