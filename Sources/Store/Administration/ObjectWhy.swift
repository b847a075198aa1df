public import Mapping

/// A document that shows an object.
public struct ShowingDocument: Sendable {
    /// The document.
    public var row: DocumentRow
    /// The form in which a look-up returns it.
    public var form: StoredDocument.Form
    /// The versions of the object that it pins.
    var versions: [Int64]
    /// Its observation.
    var observation: Observation
}

/// The response of an observation.
public struct ObservationSource: Sendable, Equatable {
    /// The method of the request.
    public var method: String
    /// Path and query; credentials are redacted.
    public var url: String
    /// Whether the response is still in the store.
    public var isStored: Bool
}

/// A notice that an object is deleted, or that a write may have changed it in a way that no response has shown.
public struct ObjectNotice: Sendable, Equatable {
    /// The kind of notice.
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
        /// A response that shows the deletion; nil if its request is no longer known.
        case itself(ObservationSource?)
        /// The cause is no longer known.
        case forgotten
    }

    /// The kind of notice.
    public var kind: Kind
    /// The time of the cause: the end of a write, or the start of a read; microseconds of the store's clock.
    public var time: Int64
    /// What caused it.
    public var cause: Cause
    /// Whether the object was observed later; the notice then concerns only older responses.
    public var isSuperseded: Bool
}

/// What is known of an object, from which responses, and which documents show it.
public struct ObjectWhy: Sendable {
    /// Set if it is deleted, or if a write may have changed it.
    public var notice: ObjectNotice?
    /// Its members.
    public var members: [Provenance.Member]
    /// The responses of the members' observations, as far as they are still known.
    public var sources: [Int64: ObservationSource]
    /// The documents that show it, newest first; the page may be short.
    public var documents: Page<ShowingDocument>
}

/// Explains an object's values.
extension ObjectStore {
    /// The maximum bytes of bodies composed for one page; a single document may be larger.
    private static let composedBytes: Int64 = 16 << 20

    /// A page of the documents that show an object, newest first.
    ///
    /// A page may be short, or empty with a `next`: the search stops after `patience`. Searches run one at a time, and none
    /// holds a snapshot for long.
    ///
    /// - Parameter after: the `next` of the previous page.
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

    /// What is known of an object, and from which responses; nil if it is gone.
    ///
    /// - Parameters:
    ///   - limit: the maximum number of documents that show it.
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
