import Foundation
import GRDB
import Mapping
import Synchronization

/// What a copy adds to a store that has content of its own.
extension ObjectStore {
    /// Adds what a copy contains to what the store knows, slice by slice, while the store is in use.
    ///
    /// The copy is checked as `load` checks it. Documents whose key the store has already stay as they are. What is added is of
    /// unknown age: it counts as older than all that this store has observed itself, so that it replaces no value but one with
    /// a lower `modified:` stamp. Each slice is a transaction. If it ends early, merging again adds the rest.
    ///
    /// - Parameters:
    ///   - path: a copy made by `save`. It is used up.
    ///   - principalKey: as for `load`.
    ///   - ofUnknownAge: makes the policy of a document that of one whose age is not known.
    public func merge(
        _ path: String,
        principalKey: [UInt8],
        ofUnknownAge: @escaping @Sendable (_ policy: [UInt8]) -> [UInt8]
    ) async throws(StoreError) -> LoadResult {
        try await loading(path) { core throws(StoreError) in
            let copiedKey = try await blocking { try StoreLoading.check(path, for: core, isMerged: true) }
            let dropped = try await StoreLoading.prepare(path, for: core, withoutPrivate: copiedKey != principalKey)
            defer { core.merging.withLock { $0 = nil } }
            var added = StoreCount()
            do throws(StoreError) {
                let copy = try await blocking { try CopiedContent(path, models: core.models, keys: core.keyHasher) }
                // Before any of it counts: a copy is refused whole.
                try await blocking { try copy.check() }
                let evicted = core.statistics.evicted
                var cursor = CopiedContent.Cursor()
                while true {
                    // It would go on forever displacing what it has added.
                    guard core.statistics.evicted == evicted else {
                        throw .refused(
                            Self.unfinished(
                                added,
                                "the store is full; raise store.maximum_size, or make room on its disk"
                            )
                        )
                    }
                    core.merging.withLock { [cursor] in $0 = MergeProgress(merged: cursor.done, total: copy.total) }
                    let (next, slice) = try await blocking { [cursor] in try copy.slice(after: cursor) }
                    guard !slice.isEmpty else { break }
                    let new = try await result { done in
                        core.post(
                            .prompt,
                            bytes: slice.bytes,
                            isDispensable: true,
                            { try $0.merge(slice, ofUnknownAge: ofUnknownAge) },
                            done: done
                        )
                    }
                    added += new
                    cursor = next
                }
            } catch .corrupt(let reason) where core.foundDamage == nil {
                throw .refused("the copy is damaged: \(reason)")
            } catch .unwritable(let reason), .full(let reason) {
                throw .unwritable(Self.unfinished(added, reason))
            }
            return LoadResult(count: try await count(), dropped: dropped, added: added)
        }
    }

    /// How far the merging is that is under way; nil: none is.
    public var mergeProgress: MergeProgress? { core.merging.withLock { $0 } }

    private static func unfinished(_ added: StoreCount, _ reason: String) -> String {
        "\(reason). \(added.documents) documents were added so far; merging again adds the rest"
    }
}

/// How far a merging is: documents and objects of the copy.
public struct MergeProgress: Sendable {
    /// Those that were looked at.
    public var merged: Int
    /// All.
    public var total: Int
}

/// Times of what came with a copy.
///
/// Intervals of two stores are never compared: all times of a copy are moved before everything that this store can have
/// observed, in their own order and with their own distances. What this store observes is newer.
public enum CopiedTime {
    /// Some 47 years: what was observed in 2026 is kept as of 1979, until 2046 before 1999.
    private static let distance: Int64 = 1_500_000_000_000_000
    private static let end: Int64 = 900_000_000_000_000

    /// The time of what a copy adds to an object that is known here: before all else, other copies included.
    static let unknown: Int64 = 1

    /// Whether a time that this store keeps says only that the value came with a copy.
    public static func isUnknown(_ time: Int64) -> Bool { time == unknown }

    /// A time of a copy, as this store keeps it; what came to the copy from another one has been moved already.
    static func moved(_ time: Int64) -> Int64 { time < distance ? time : time - distance }

    /// A time that this store keeps, for people: where it came with a copy, by the clock of the copy's store.
    public static func shown(_ time: Int64) -> Int64 { time > 0 && time < end ? time + distance : time }
}

/// What one slice of a copy contains, read and checked before the writer has it.
struct CopiedSlice: Sendable {
    var documents: [CopiedDocument] = []
    /// By their ids in the copy.
    var objects: [ObjectID: CopiedObject] = [:]
    /// About how much is written for it.
    var bytes = 0

    var isEmpty: Bool { documents.isEmpty && objects.isEmpty }
}

/// Whose data it is, from where, in which representation.
struct CopiedScope: Sendable {
    var upstream: String
    /// The principal's digest.
    var principal: [UInt8]
    var context: String
}

struct CopiedDocument: Sendable {
    struct Pin: Sendable {
        var object: ObjectID
        var payload: [UInt8]
        /// The version of the model that the payload was stored under.
        var declared: Int
    }

    var scope: CopiedScope
    var url: String
    var variant: [UInt8]
    var status: Int64
    var length: Int64
    var head: [UInt8]
    var policy: [UInt8]
    /// By its number in the copy.
    var observation: Observation
    var pins: [Pin]
    var skeleton: [UInt8]?
    var literal: [UInt8]?
    var keyed: [Int]
    /// Whether it is not known which objects it contains, or by which names writes may mean them.
    var isUndivided: Bool
    /// When it was last used, in seconds: before anything that this store has used, so that it is evicted first.
    var used: Int64
}

struct CopiedObservation: Sendable {
    /// By its number in the copy.
    var observation: Observation
    /// Method and URL of its request.
    var source: String?
}

struct CopiedObject: Sendable {
    var scope: CopiedScope
    var model: String
    var identity: Identity
    /// What is known of it, at today's version of its model.
    var state: ObjectState
    var declared: Int
    /// The observations that its state names, by their numbers in the copy.
    var observations: [ObservationID: CopiedObservation]
    var markSource: String?
    /// The digests of its keys; nil: the copy made them with a secret that is not this store's.
    var keys: [(value: Int64, isBound: Bool)]?
}

/// Reads a copy slice by slice; any thread, blocks.
struct CopiedContent: Sendable {
    /// How far it has been read: all documents first, then the objects that none of them shows.
    struct Cursor: Sendable {
        fileprivate var document = DocumentID.zero
        fileprivate var orphan = ObjectID.zero
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
            let documents = try database.query("SELECT count(*) FROM _documents").integer() ?? 0
            let orphans = try database.query("SELECT count(*) FROM _orphans").integer() ?? 0
            let hasher = KeyHasher(secret: try Meta.keySecret(in: database) ?? (0, 0))
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
            let documents = try database.query("SELECT id FROM _documents WHERE id > ? ORDER BY id LIMIT ?")
                .all(cursor.document, Self.rows) { $0.id(0, as: DocumentID.self) }
            for id in documents where slice.bytes < Self.bytes {
                try reader.add(id, to: &slice)
                cursor.document = id
                cursor.done += 1
            }
            guard documents.isEmpty else { return (cursor, slice) }
            let orphans = try database.query(
                """
                SELECT object FROM _orphans WHERE object > ? AND EXISTS (SELECT 1 FROM _objects WHERE id = object)
                ORDER BY object LIMIT ?
                """
            ).all(cursor.orphan, Self.rows) { $0.id(0, as: ObjectID.self) }
            for id in orphans where slice.bytes < Self.bytes {
                try reader.add(id, to: &slice)
                cursor.orphan = id
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
        let found = try database.query(
            """
            SELECT d.scope, d.url, d.variant, d.status, d.length, d.head, d.policy, o.start, o.finish, o.kind,
                (SELECT at FROM _used WHERE document = d.id), EXISTS (SELECT 1 FROM _undivided WHERE document = d.id),
                o.id
            FROM _documents d JOIN _observations o ON o.id = d.observation WHERE d.id = ?
            """
        ).first(id) { row in
            CopiedDocument(
                scope: try scope(row.id(0)),
                url: row.string(1),
                variant: row.bytes(2),
                status: row.integer(3),
                length: row.integer(4),
                head: row.bytes(5),
                policy: row.bytes(6),
                observation: row.observation(row.id(12), from: 7).moved,
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
        try database.query("SELECT 1 FROM _keys WHERE object = ? AND bound = 1").integer(id) != nil
    }

    func add(_ id: ObjectID, to slice: inout CopiedSlice) throws {
        guard slice.objects[id] == nil else { return }
        let found = try database.query(
            """
            SELECT \(StoredState.columns), c.scope, m.text, o.identity, (SELECT source FROM _marks WHERE object = o.id)
            FROM _objects o JOIN _collections c ON c.id = o.collection JOIN _names m ON m.id = c.model WHERE o.id = ?
            """
        ).first(id) { row in
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
            let stored = try database.query("SELECT declared FROM _versions WHERE id = ?").integer(base.version)
            declared = max(declared, Int(stored ?? 0))
        }
        var observations: [ObservationID: CopiedObservation] = [:]
        for source in state.knowledge.sources.union(state.base.map { [$0.observation.sequence] } ?? []) {
            let id = ObservationID(rawValue: source)
            observations[id] = try observation(id)
        }
        state.move()
        slice.objects[id] = CopiedObject(
            scope: found.scope,
            model: found.model,
            identity: found.identity,
            state: state,
            declared: declared,
            observations: observations,
            markSource: found.markSource,
            keys: hasSameSecret ? try keys(of: id) : nil
        )
        slice.bytes += (state.base?.payload.count ?? 0) + (state.merged?.count ?? 0)
    }

    private func keys(of id: ObjectID) throws -> [(value: Int64, isBound: Bool)] {
        try database.query("SELECT value, bound FROM _keys WHERE object = ?")
            .all(id) { ($0.integer(0), $0.integer(1) == 1) }
    }

    private func observation(_ id: ObservationID) throws -> CopiedObservation {
        let found = try database.query("SELECT start, finish, kind, source FROM _observations WHERE id = ?")
            .first(id) { ($0.observation(id, from: 0).moved, $0.isNull(3) ? nil : $0.string(3)) }
        guard let found else { throw StoreError.corrupt("observation \(id) is missing") }
        guard found.1 == nil else { return .init(observation: found.0, source: found.1) }
        let url = try ProvenanceReader(database: database, models: [:]).url(observedAs: id)
        return .init(observation: found.0, source: url.map { "GET \($0)" })
    }

    private func scope(_ id: ScopeID) throws -> CopiedScope {
        let found = try database.query(
            """
            SELECT u.text, p.digest, x.text FROM _scopes s JOIN _principals p ON p.id = s.principal
            JOIN _names u ON u.id = s.upstream JOIN _names x ON x.id = s.context WHERE s.id = ?
            """
        ).first(id) { CopiedScope(upstream: $0.string(0), principal: $0.bytes(1), context: $0.string(2)) }
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
