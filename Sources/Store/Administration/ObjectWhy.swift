public import Mapping

/// A document that shows an object.
public struct ShowingDocument: Sendable {
    /// The document.
    public var row: DocumentRow
    /// The form in which a look-up finds it.
    public var form: StoredDocument.Form
    /// The versions of the object that it pins.
    var versions: [Int64]
    /// Its observation.
    var observation: Observation
}

/// Where an observation comes from.
public struct ObservationSource: Sendable, Equatable {
    /// The method of the request.
    public var method: String
    /// Path and query; credentials are redacted.
    public var url: String
    /// Whether the response is still in the store.
    public var isStored: Bool
}

/// States that an object is deleted, or that a write may have changed it in a way that no response has shown.
public struct ObjectNotice: Sendable, Equatable {
    /// Which of the two.
    public enum Kind: Sendable, Equatable {
        /// The object is deleted.
        case deleted
        /// A write may have changed it, and no response has shown it since.
        case unknown
    }

    /// What caused it.
    public enum Cause: Sendable, Equatable {
        /// A request.
        case request(MarkSource)
        /// A response whose members say so of the object; nil if its request is no longer known.
        case itself(ObservationSource?)
        /// The cause is no longer known.
        case forgotten
    }

    /// Which of the two.
    public var kind: Kind
    /// Since when: the end of a write, or the start of a read; microseconds of the store's clock.
    public var time: Int64
    /// What caused it.
    public var cause: Cause
    /// Whether the object was observed later, so that the notice concerns only older responses.
    public var isSuperseded: Bool
}

/// What is known of an object, where from, and which documents show it.
public struct ObjectWhy: Sendable {
    /// Set if it is deleted, or if a write may have changed it.
    public var notice: ObjectNotice?
    /// Its members.
    public var members: [Provenance.Member]
    /// Where the members' observations come from, as far as that is still known.
    public var sources: [Int64: ObservationSource]
    /// The documents that show it, the newest first; the page may be short.
    public var documents: Page<ShowingDocument>
}

/// Where an object's values come from, and which documents show it.
extension ObjectStore {
    /// At most so many bytes of bodies are composed for one page; a single document may be larger.
    private static let composedBytes: Int64 = 16 << 20

    /// A page of the documents that show an object, the newest first.
    ///
    /// A page may be short, or empty with a `next`: the search stops after `patience`. Searches run one at a time, and none
    /// holds a snapshot for long.
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
        var scan = ShowingScan(object: object, after: after.map { DocumentID(rawValue: $0) })
        var page = Page<ShowingDocument>()
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
                    try ShowingReader(database: database, models: models).document(id, showing: object)
                }
                if var read {
                    read.row.upstream = core.label(ofUpstream: read.row.upstream)
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

    /// What is known of an object and where from; nil when it is gone.
    ///
    /// - Parameters:
    ///   - limit: the maximum of documents that show it.
    ///   - patience: how long to search for them.
    public func why(
        _ object: ObjectID,
        documents limit: Int = 10,
        patience: Duration = .seconds(1)
    ) async throws(StoreError) -> ObjectWhy? {
        let page = limit > 0 ? try await documents(showing: object, limit: limit, patience: patience) : Page()
        let models = core.models
        let found = try await core.read { database in
            try ShowingReader(database: database, models: models).provenance(of: object, showing: page.rows)
        }
        return found.map {
            ObjectWhy(notice: $0.notice, members: $0.members, sources: $0.sources, documents: page)
        }
    }
}
