public import Mapping

/// A document that shows an object.
public struct ShowingDocument: Sendable {
    /// What it shows, as far as is known newer.
    public enum Appearance: Sendable, Equatable {
        /// The newest of everything, as it was received.
        case newest
        /// Something older; the newest is put in at the next hit.
        case composed
        /// Something older, and the newest cannot be put in: a miss (law 6).
        case outdated(reason: String)
    }

    /// The document.
    public var row: DocumentRow
    /// What it shows, of all its objects.
    public var appearance: Appearance
    /// The versions of the object that it pins.
    var versions: [Int64]
    /// When and as what it was observed.
    var observation: Observation
}

/// Where an observation comes from.
public struct ObservationSource: Sendable, Equatable {
    /// The method of the request.
    public var method: String
    /// Path and query; credentials in it are replaced.
    public var url: String
    /// Whether the answer is still in the store.
    public var isStored: Bool
}

/// That an object is gone, or that a write has happened of which nobody was told what it made of it.
public struct ObjectNotice: Sendable, Equatable {
    /// What is known.
    public enum Kind: Sendable, Equatable {
        /// It is gone.
        case deleted
        /// Nobody was told what has become of it.
        case unknown
    }

    /// By what that is known.
    public enum Cause: Sendable, Equatable {
        /// A request.
        case request(MarkSource)
        /// An answer in which it says so of itself; nil where its request is no longer known.
        case itself(ObservationSource?)
        /// What that was is no longer known.
        case forgotten
    }

    /// What is known.
    public var kind: Kind
    /// Since when: of a write its end, of a read its start; microseconds of the store's clock.
    public var time: Int64
    /// By what.
    public var cause: Cause
    /// Whether the object was observed after that, so that only older answers are concerned.
    public var isSuperseded: Bool
}

/// What is known of an object, where from, and which documents show it.
public struct ObjectWhy: Sendable {
    /// That it is gone, or that a write may have changed it; nil where neither is so.
    public var notice: ObjectNotice?
    /// Its members.
    public var members: [Provenance.Member]
    /// Where the observations that they name come from; none where that is no longer known.
    public var sources: [Int64: ObservationSource]
    /// The documents that show it, the newest first; a page that may be short.
    public var documents: Page<ShowingDocument>
}

/// Where what is known comes from, and what shows it.
extension ObjectStore {
    /// How many bytes of bodies are composed for one page at most; a single document may be larger.
    private static let composedBytes: Int64 = 16 << 20

    /// A page of the documents that show an object, the newest first.
    ///
    /// A page may be short, or empty with a `next`: after `patience` the search pauses. It runs beside everything else,
    /// one at a time, and never holds a snapshot for long.
    ///
    /// - Parameter after: the `next` of the page before.
    public func documents(
        showing object: ObjectID,
        limit: Int = 100,
        after: Int64? = nil,
        patience: Duration = .seconds(1)
    ) async throws(StoreError) -> Page<ShowingDocument> {
        let models = core.models
        let end = ContinuousClock.now + patience
        var scan = ShowingScan(object: object, position: after.map { DocumentID(rawValue: $0) })
        var page = Page<ShowingDocument>(rows: [], next: nil)
        var composed: Int64 = 0
        while page.rows.count < limit, !scan.isAtEnd {
            let (begun, wanted) = (scan, limit - page.rows.count)
            let (next, found) = try await core.scan { database, deadline in
                var scan = begun
                let found = try scan.next(wanted, until: deadline, in: database)
                return (scan, found)
            }
            scan = next
            for id in found {
                let read = try await core.scan { database, _ in
                    try ShowingReader(database, models: models).document(id, showing: object)
                }
                if var read {
                    read.row.upstream = core.label(ofUpstream: read.row.upstream)
                    page.rows.append(read)
                    if read.appearance != .newest { composed += read.row.bytes }
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

    /// What is known of an object and where from; nil when it is gone.
    ///
    /// - Parameters:
    ///   - limit: how many documents that show it are told of at most.
    ///   - patience: how long these are looked for.
    public func why(
        _ object: ObjectID,
        documents limit: Int = 10,
        patience: Duration = .seconds(1)
    ) async throws(StoreError) -> ObjectWhy? {
        let page =
            limit > 0
            ? try await documents(showing: object, limit: limit, patience: patience) : Page(rows: [], next: nil)
        let models = core.models
        let found = try await core.read { database in
            try ShowingReader(database, models: models).provenance(of: object, showing: page.rows)
        }
        return found.map {
            ObjectWhy(notice: $0.notice, members: $0.members, sources: $0.sources, documents: page)
        }
    }
}
