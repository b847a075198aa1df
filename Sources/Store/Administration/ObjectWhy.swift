import GRDB
public import Mapping

/// A document that shows an object.
public struct ShowingDocument: Sendable {
    public var row: DocumentRow
    /// The form in which a look-up returns it.
    public var form: StoredDocument.Form
    var versions: [VersionID]
    var observation: Observation
}

/// The response of an observation.
public struct ObservationSource: Sendable, Equatable {
    public var method: String
    /// Path and query; credentials are redacted.
    public var url: String
    public var isStored: Bool
    /// Whether there was no request: the object was given (`larder seed`).
    public var isSeed = false
}

/// A notice that an object is deleted, or that a write may have changed it in a way that no response has shown.
public struct ObjectNotice: Sendable, Equatable {
    /// The kind of notice.
    public enum Kind: Sendable, Equatable {
        case deleted
        /// A write may have changed it, and no response has shown it since.
        case unknown
    }

    /// What caused it.
    public enum Cause: Sendable, Equatable {
        case request(MarkSource)
        /// A response that shows the deletion; nil if its request is no longer known.
        case itself(ObservationSource?)
        case forgotten
    }

    public var kind: Kind
    /// The end of a write, or the start of a read; microseconds of the store's clock.
    public var time: Int64
    public var cause: Cause
    /// Whether the object was observed later; the notice then concerns only older responses.
    public var isSuperseded: Bool
}

/// What is known of an object, from which responses, and which documents show it.
public struct ObjectWhy: Sendable {
    /// Set if it is deleted, or if a write may have changed it.
    public var notice: ObjectNotice?
    public var members: [Provenance.Member]
    /// The responses of the members' observations, as far as they are still known.
    public var sources: [Int64: ObservationSource]
    /// The documents that show it, newest first; the page may be short.
    public var documents: Page<ShowingDocument>
}

extension ObjectStore {
    /// The maximum bytes of bodies composed for one page; a single document may be larger.
    private static let composedBytes: Int64 = 16 << 20

    /// A page of the documents that show an object, newest first.
    ///
    /// A page may be short, or empty with a `next`: the search stops after `patience`. Searches run one at a time, and
    /// none holds a snapshot for long.
    public func documents(
        showing object: ObjectID,
        limit: Int = 100,
        after: Int64? = nil,
        patience: Duration = .seconds(1)
    ) async throws(StoreError) -> Page<ShowingDocument> {
        let models = core.models
        let end = ContinuousClock.now + patience
        var scan = ShowingScan(object: object, after: after.map { DocumentID(rawValue: $0) })
        var page = Page<ShowingDocument>()
        var composed: Int64 = 0
        while page.rows.count < limit, !scan.isAtEnd {
            let found = try await core.advance(&scan, count: limit - page.rows.count) { scan, database, bounds in
                try scan.next(bounds, in: database)
            }
            for id in found {
                let read = try await core.scan { database, _ in
                    try ProvenanceReader(database: database, models: models).document(id, showing: object)
                }
                if let read {
                    page.rows.append(read)
                    if read.form != .asReceived { composed += read.row.bytes }
                }
                guard composed < Self.composedBytes, ContinuousClock.now < end, !Task.isCancelled else {
                    page.next = id == found.last && scan.isAtEnd ? nil : id.rawValue
                    return page
                }
            }
            if ContinuousClock.now >= end || Task.isCancelled { break }
        }
        page.next = scan.isAtEnd ? nil : scan.position.rawValue
        return page
    }

    /// What is known of an object, and from which responses; nil if it is gone.
    ///
    /// - Parameter limit: the maximum number of documents that show it, for which it searches for `patience`.
    public func why(_ object: ObjectID, documents limit: Int = 10, patience: Duration = .seconds(1))
        async throws(StoreError) -> ObjectWhy?
    {
        let page = limit > 0 ? try await documents(showing: object, limit: limit, patience: patience) : Page()
        let models = core.models
        let found = try await core.read { database in
            try ProvenanceReader(database: database, models: models).provenance(of: object, showing: page.rows)
        }
        return found.map { ObjectWhy(notice: $0.notice, members: $0.members, sources: $0.sources, documents: page) }
    }
}

/// Reads the documents that show an object, and the sources of its members, in one read snapshot.
struct ProvenanceReader {
    let database: Database
    let models: [UpstreamKey: UpstreamModels]

    // MARK: Documents

    /// A document that shows an object, composed if newer values are known; nil if it is gone.
    func document(_ id: DocumentID, showing object: ObjectID) throws -> ShowingDocument? {
        guard let row = try DocumentRow.read(id, in: database, models),
            let document = try DocumentReader(database, models: models).document(id)
        else { return nil }
        let pins = try StoredBody.pins(of: id, in: database).filter { $0.object == object }
        let versions = Set(pins.map(\.version)).sorted()
        return ShowingDocument(row: row, form: document.form, versions: versions, observation: document.observation)
    }

    // MARK: Members

    /// The sources of an object's members; nil if the object is gone.
    ///
    /// - Parameter showing: documents that show it, which may contain older values.
    func provenance(of object: ObjectID, showing documents: [ShowingDocument]) throws
        -> (notice: ObjectNotice?, members: [Provenance.Member], sources: [Int64: ObservationSource])?
    {
        guard let found = try StoredState.named(object, in: database) else { return nil }
        let declared = models[found.upstream]
        let state = try found.state.state(of: found.model, declared?.models, in: database)
        let members = state.provenance(
            model: found.model,
            models: declared?.models ?? .none,
            lag: declared?.lag ?? Lag(lists: 0),
            others: try others(than: state, in: documents, of: found.model, upstream: found.upstream)
        )
        var sources: [Int64: ObservationSource] = [:]
        for document in documents {
            let url = document.row.url
            let source = ObservationSource(method: CacheKey.method(ofURL: url), url: url, isStored: true)
            sources[document.observation.sequence] = source
        }
        for member in members {
            let sightings = [member.shown, member.challenger].compactMap { $0 } + member.quarantined
            for sequence in sightings.map(\.source) where sources[sequence] == nil {
                sources[sequence] = try source(of: ObservationID(rawValue: sequence))
            }
        }
        let notice = try notice(of: state, object: object, models[found.upstream])
        return (notice, members, sources)
    }

    /// Whether the object is deleted or in an unknown state; its own members take precedence over a write's mark.
    private func notice(of state: ObjectState, object: ObjectID, _ models: UpstreamModels?) throws -> ObjectNotice? {
        let isOutdated = state.isOutdated(lag: models?.lag ?? Lag(lists: 0))
        if !isOutdated, let time = state.deletedSince, let base = state.base {
            let cause = ObjectNotice.Cause.itself(try source(of: base.observation.id))
            return ObjectNotice(kind: .deleted, time: time, cause: cause, isSuperseded: false)
        }
        guard let mark = state.mark else { return nil }
        let cause: ObjectNotice.Cause? = try database.query("SELECT source FROM _marks WHERE object = ?")
            .first(object) { .request(MarkSource(text: $0.string(0))) }
        let kind = mark.isTombstone ? ObjectNotice.Kind.deleted : .unknown
        return ObjectNotice(kind: kind, time: mark.time, cause: cause ?? .forgotten, isSuperseded: !isOutdated)
    }

    /// The outdated versions in documents, each with its latest observation.
    private func others(
        than state: ObjectState,
        in documents: [ShowingDocument],
        of model: String,
        upstream: UpstreamKey
    )
        throws -> [Contribution]
    {
        var latest: [VersionID: Observation] = [:]
        for document in documents {
            for version in document.versions where state.base?.versionID != version {
                guard document.observation.start >= latest[version]?.start ?? .min else { continue }
                latest[version] = document.observation
            }
        }
        return try latest.sorted { ($0.value.start, $0.key) > ($1.value.start, $1.key) }.compactMap {
            version,
            observation in
            try database.query("SELECT payload, declared FROM _versions WHERE id = ?").first(version) { row in
                let (stored, declared) = (row.bytes(0), Int(row.integer(1)))
                let payload = models[upstream]?.models.migrate(stored, of: model, from: declared) ?? stored
                return Contribution(observation: observation, version: version.rawValue, payload: payload)
            }
        }
    }

    /// The response of an observation; nil if it is not known.
    private func source(of observation: ObservationID) throws -> ObservationSource? {
        let kind = try database.query("SELECT kind FROM _observations WHERE id = ?").integer(observation)
        if kind == Int64(Observation.Kind.seed.rawValue) {
            return ObservationSource(method: "", url: "", isStored: false, isSeed: true)
        }
        let noted = try database.query("SELECT source FROM _observations WHERE id = ? AND source IS NOT NULL")
            .first(observation) { $0.string(0) }
        if let noted {
            let parts = noted.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
            return ObservationSource(method: String(parts[0]), url: String(parts.last ?? ""), isStored: false)
        }
        return try url(observedAs: observation).map {
            ObservationSource(method: CacheKey.method(ofURL: $0), url: $0, isStored: true)
        }
    }

    /// The URL of the document with an observation.
    ///
    /// One writer assigns both numbers, and a document keeps its observation for life. So both have the same order, and a
    /// binary search takes some twenty look-ups among a million documents.
    func url(observedAs observation: ObservationID) throws -> String? {
        var low: Int64 = 0
        var high = (try database.query("SELECT max(id) FROM _documents").integer() ?? 0) + 1
        let query = try database.query("SELECT id, observation, url FROM _documents WHERE id >= ? ORDER BY id LIMIT 1")
        while low < high {
            let middle = low + (high - low) / 2
            let found = try query.first(middle) {
                (id: $0.integer(0), observation: $0.id(1, as: ObservationID.self), url: $0.string(2))
            }
            guard let found else {
                high = middle
                continue
            }
            if found.observation == observation { return found.url }
            if found.observation < observation { low = found.id + 1 } else { high = middle }
        }
        return nil
    }
}

/// Finds the documents that show an object, newest first.
///
/// There is no index from objects to documents: every response would pay for a rare question. Instead, the scan reads the pins
/// of all documents, in slices of some milliseconds. Each slice has its own snapshot, so that neither the WAL nor other readers
/// wait for it. An object's row counts the places that show it, so the scan ends when all of them are found.
struct ShowingScan: Sendable {
    let object: ObjectID
    /// The scan has read all documents from this one on.
    private(set) var position: DocumentID
    private(set) var isAtEnd = false
    /// How many places remain to be found; nil if the scan continues an earlier one.
    private var missing: Int64?
    private var isBegun: Bool

    init(object: ObjectID, after last: DocumentID? = nil) {
        self.object = object
        position = last ?? .max
        isBegun = last != nil
    }

    mutating func next(_ bounds: SliceBounds, in database: Database) throws -> [DocumentID] {
        if !isBegun {
            isBegun = true
            let entries = try database.query("SELECT state FROM _objects WHERE id = ?")
                .first(object) { try ObjectRecord.decode($0.bytes(0)) }
            missing = entries?.reduce(0) { $0 + $1.uses } ?? 0
        }
        var (found, examined, isStopped) = ([DocumentID](), 0, missing == 0)
        if !isStopped {
            try database.query("SELECT document, pins FROM _bodies WHERE document < ? ORDER BY document DESC")
                .eachWhile(position) { row in
                    position = row.id(0)
                    let places = row.withBytes(1) { Pins.places(of: object, in: $0) }
                    if places > 0 { found.append(position) }
                    missing = missing.map { $0 - Int64(places) }
                    examined += 1
                    isStopped = missing == 0 || bounds.areReached(found: found.count, examined: examined)
                    return !isStopped
                }
        }
        isAtEnd = !isStopped || missing.map { $0 <= 0 } ?? false
        return found
    }
}

extension Pins {
    /// How often an object is pinned; skips all other pins.
    static func places(of object: ObjectID, in bytes: UnsafeRawBufferPointer) -> Int {
        var count = 0
        var (last, value): (Int64, UInt64) = (0, 0)
        var shift: UInt64 = 0
        var isObject = true
        for byte in bytes {
            if shift < 64 { value |= UInt64(byte & 0x7f) << shift }
            shift += 7
            guard byte < 0x80 else { continue }
            if isObject {
                last = last &+ (Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1))
                if last == object.rawValue { count += 1 }
            }
            isObject.toggle()
            (value, shift) = (0, 0)
        }
        return count
    }
}
