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
