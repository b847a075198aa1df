import GRDB
import Mapping

extension ObjectStore {
    /// Removes what a filter selects, durably; a dry run only counts it.
    ///
    /// Later responses are not stored if their requests were sent before the clean; everything else is served and
    /// stored meanwhile. If `progress` returns false, the clean stops after a slice: what was removed stays removed,
    /// and the rest is consistent.
    public func clean(_ filter: CleanFilter, dryRun: Bool = false, progress: @escaping CleanProgress = { _ in true })
        async throws(StoreError) -> CleanResult
    {
        try await core.clean(filter, dryRun: dryRun, progress: progress)
    }

    /// The key of the upstream with a label, as in listings.
    public func upstreamKey(labelled label: String?) -> UpstreamKey? { label.map(core.models.key) }
}

extension StoreCore {
    func clean(_ filter: CleanFilter, dryRun: Bool = false, progress: @escaping CleanProgress = { _ in true })
        async throws(StoreError) -> CleanResult
    {
        var cleaner = Cleaner(core: self, filter: filter, isDryRun: dryRun, progress: progress)
        return try await cleaner.run()
    }
}

/// Removes what a filter selects: documents, their objects, and the bytes of both; a dry run only counts them.
///
/// With a model, or one object of it, those objects go together with the documents that show them. Other objects in
/// these documents stay known, even if no document shows them any more. Without a model, objects that only the removed
/// documents showed go too.
///
/// A reader searches slice by slice. The writer removes each slice in a transaction that fits into the WAL, and does
/// other work in between. The store is consistent after each slice: if the process dies or the caller stops, the store
/// is partly cleaned.
private struct Cleaner {
    let core: StoreCore
    let filter: CleanFilter
    let isDryRun: Bool
    let progress: CleanProgress
    var removed = StoreCount()
    var unshown = 0
    var isStopped = false
    /// For a dry run: how many of the places that show each object would go.
    var unpinned: [ObjectID: Int64] = [:]
    /// For a dry run: how many of their owners would stay of what several principals share.
    var sharedBodies: [SharedBodyID: Int64] = [:]
    var sharedVersions: [VersionID: Int64] = [:]

    mutating func run() async throws(StoreError) -> CleanResult {
        let (time, last) = isDryRun ? (core.clock.now(), .max) : try await begin()
        let listing = DocumentListing(isDescending: false, principal: filter.principal)
        var scan = DocumentScan(listing, of: filter.upstream)
        (scan.owners, scan.last) = (filter.owners, last)
        while !scan.isAtEnd, shouldContinue() {
            let documents = try await core.advance(&scan) { [core, filter] scan, database, bounds in
                var bounds = bounds
                bounds.bytes = Int64(core.budget.batch)
                return try CleanSelection(filter, in: database, now: time, of: core).documents(of: &scan, bounds)
            }
            try await isDryRun ? countDocuments(documents) : removeDocuments(documents, askedAt: time)
        }
        var orphans = CleanSelection.Slice()
        while !orphans.isAtEnd, shouldContinue() {
            let start = orphans.position
            orphans = try await search(at: time) { try $0.orphans(after: start, $1) }
            if isDryRun {
                for id in orphans.found { unpinned[id] = 0 }
            } else {
                try await eraseOrphans(orphans.found, askedAt: time)
            }
        }
        var erasure = CleanResult.Erasure.notAsked
        if isDryRun {
            try await countObjects(at: time)
        } else {
            erasure = isStopped ? .pending : try await emptyFreeSpace() ? .erased : .pending
        }
        return CleanResult(removed: removed, erasure: erasure, unshown: unshown, isStopped: isStopped)
    }

    /// Blocks responses to earlier requests; returns the time, and the last document to examine.
    private func begin() async throws(StoreError) -> (Int64, DocumentID) {
        let (core, filter) = (core, filter)
        return try await core.commit(.clean, .prompt) { session in
            let time = core.clock.now()
            let selection = try CleanSelection(filter, in: session.database, now: time, of: core)
            // A response under way may show any model of the cluster, so the ban covers the base.
            session.bans.cleaned(filter.invalidation(of: selection.base ?? filter.model, at: time))
            try session.eraseSentEvents()
            session.recentObservations = RecentObservations()
            try session.refuseShared(until: time)
            try session.forgetMarks(matching: filter, base: selection.base)
            if !selection.isOfURLs {
                try session.eraseJournaledNames(of: selection.collections, identity: selection.identity)
            }
            return (time, session.numbers.document)
        }
    }

    private mutating func shouldContinue() -> Bool {
        isStopped = isStopped || !progress(removed)
        return !isStopped
    }

    /// Searches in a snapshot that is held only briefly.
    private func search<Value: Sendable>(
        at time: Int64,
        _ work: @escaping @Sendable (CleanSelection, SliceBounds) throws -> Value
    ) async throws(StoreError) -> Value {
        try await core.scan { [core, filter] database, bounds in
            try work(CleanSelection(filter, in: database, now: time, of: core), bounds)
        }
    }

    // MARK: Removing

    private mutating func removeDocuments(_ documents: [DocumentID], askedAt time: Int64) async throws(StoreError) {
        try await removeSlice(of: documents.count, askedAt: time) { session, selection in
            var (count, touched, unshown) = (0, Set<ObjectID>(), Set<ObjectID>())
            for document in documents where try selection.isSelected(document) {
                let removed = try Self.removeDocument(document, matching: selection, in: session)
                guard let objects = removed else { continue }
                count += 1
                touched.formUnion(objects.selected)
                unshown.formUnion(objects.unshown)
            }
            return (count, touched, unshown.count)
        }
    }

    private mutating func eraseOrphans(_ orphans: [ObjectID], askedAt time: Int64) async throws(StoreError) {
        try await removeSlice(of: orphans.count, askedAt: time) { session, selection in
            let selected = try orphans.filter { try selection.isOrphan($0, knownBefore: time) }
            for id in selected { try session.eraseKnowledge(of: id) }
            return (0, Set(selected), 0)
        }
    }

    /// Has the writer remove a slice, and counts the removed documents and the objects deleted with them.
    private mutating func removeSlice(
        of count: Int,
        askedAt time: Int64,
        _ work:
            @escaping @Sendable (WriterSession, CleanSelection) throws -> (
                documents: Int, touched: Set<ObjectID>, unshown: Int
            )
    ) async throws(StoreError) {
        guard count > 0 else { return }
        let (gone, left) = try await core.commit(.clean, .prompt) { [core, filter] session in
            // What other jobs of this batch delete must not count.
            try session.flush()
            session.deletedBytes = 0
            session.journal.isErasing = true
            defer { (session.journal.isErasing, session.deletedBytes) = (false, nil) }
            let selection = try CleanSelection(filter, in: session.database, now: time, of: core)
            let (documents, touched, unshown) = try work(session, selection)
            var gone = StoreCount(documents: documents)
            for id in touched {
                guard let record = session.records[id], record.isEmpty else { continue }
                let model = try session.names.collection(record.collection, in: session.database).model
                gone.objects += 1
                gone.models[model, default: 0] += 1
            }
            try session.flush()
            gone.bytes = session.deletedBytes ?? 0
            return (gone, unshown)
        }
        unshown += left
        removed += gone
    }

    /// Removes a document, and the parts of its selected objects that only its response contained.
    ///
    /// - Returns: the selected objects, and the others that no document shows any more; nil if the document is already
    ///   gone.
    private static func removeDocument(
        _ document: DocumentID,
        matching selection: CleanSelection,
        in session: WriterSession
    ) throws -> (selected: Set<ObjectID>, unshown: Set<ObjectID>)? {
        let observation = try session.database.query("SELECT observation FROM _documents WHERE id = ?")
            .first(document) { $0.id(0, as: ObservationID.self) }
        guard let observation else { return nil }
        let objects = Set(try StoredBody.pins(of: document, in: session.database).map(\.object))
        let selected = try objects.filter(selection.selects)
        try session.deleteDocument(document, erasingURL: true)
        let unshown = try objects.subtracting(selected).filter { try session.record($0)?.isPinned == false }
        for id in selected {
            guard let record = try session.record(id) else { continue }
            guard record.isPinned else {
                try session.eraseKnowledge(of: id)
                continue
            }
            // The object stays if another document shows the same bytes, or another response contained them.
            guard let base = record.base, base.uses == 0 || record.merged != nil,
                record.observations.contains(observation)
            else { continue }
            // The remaining values are older than the erased ones; the mark causes them to be fetched again.
            let known = try session.observation(observation)
            try session.eraseValues(of: record)
            try session.apply(.unobserved(known.end), to: record)
        }
        return (selected, unshown)
    }

    /// Returns free pages to the file system and empties the WAL; false if another process still reads the WAL.
    ///
    /// SQLite overwrites freed content (secure_delete), but copies may remain in the WAL.
    private mutating func emptyFreeSpace() async throws(StoreError) -> Bool {
        let core = core
        try await core.commit(.clean, .durable) { _ in }
        var isMore = true
        while isMore {
            _ = shouldContinue()
            isMore = try await core.commit(.clean, .prompt, alone: true) {
                try FileKeeper(core: core).returnSomePages($0)
            }
        }
        // One second in total.
        for _ in 0..<20 {
            let isErased = try await core.commit(.clean, .prompt, alone: true) {
                FileKeeper(core: core).emptyWAL($0, timeout: 50, erasing: true) == .emptied
            }
            if isErased { return true }
        }
        return false
    }

    // MARK: Counting

    /// Counts documents, and their bytes without the overhead of the file.
    private mutating func countDocuments(_ documents: [DocumentID]) async throws(StoreError) {
        let (bytes, places, shared) = try await core.scan { database, _ in
            var (bytes, places, shared) = (Int64(0), [ObjectID: Int64](), [Shared<SharedBodyID>]())
            let length = try database.query("\(StoreCount.bytesOfDocument)")
            let body = try database.query(
                """
                SELECT s.id, s.documents, length(coalesce(s.skeleton, s.compressed, s.body)) FROM _bodies b
                JOIN _shared_bodies s ON s.id = b.shared AND s.documents > 1 WHERE b.document = ?
                """
            )
            for id in documents {
                bytes += try length.integer(id) ?? 0
                try body.each(id) { shared.append(Shared($0)) }
                for pin in try StoredBody.pins(of: id, in: database) { places[pin.object, default: 0] += 1 }
            }
            return (bytes, places, shared)
        }
        removed.documents += documents.count
        removed.bytes += bytes + shared.reduce(0) { $0 + $1.bytesGone(&sharedBodies) }
        unpinned.merge(places, uniquingKeysWith: +)
    }

    private mutating func countObjects(at time: Int64) async throws(StoreError) {
        var rest = Array(unpinned)[...]
        while !rest.isEmpty, shouldContinue() {
            let slice = Array(rest.prefix(1024))
            rest = rest.dropFirst(1024)
            let (gone, left, shared) = try await search(at: time) { selection, _ in
                var (gone, left, shared) = (StoreCount(), 0, [Shared<VersionID>]())
                for (id, places) in slice {
                    try Self.countObject(id, unpinned: places, to: &gone, unshown: &left, &shared, selection)
                }
                return (gone, left, shared)
            }
            unshown += left
            removed += gone
            removed.bytes += shared.reduce(0) { $0 + $1.bytesGone(&sharedVersions) }
        }
    }

    /// Counts an object if the filter selects it and all places that show it go.
    private static func countObject(
        _ object: ObjectID,
        unpinned: Int64,
        to count: inout StoreCount,
        unshown: inout Int,
        _ shared: inout [Shared<VersionID>],
        _ selection: CleanSelection
    ) throws {
        let database = selection.database
        let found = try database.query(
            """
            SELECT o.state, m.text FROM _objects o JOIN _collections c ON c.id = o.collection
            JOIN _names m ON m.id = c.model WHERE o.id = ?
            """
        ).first(object) { (entries: try ObjectRecord.decode($0.bytes(0)), model: $0.string(1)) }
        guard let found, found.entries.reduce(0, { $0 + $1.uses }) <= unpinned else { return }
        guard try selection.selects(object) else {
            unshown += 1
            return
        }
        count.objects += 1
        count.models[found.model, default: 0] += 1
        let length = try database.query("\(StoreCount.bytesOfVersion)")
        let owners = try database.query("SELECT owners FROM _shared_versions WHERE version = ?")
        for version in Set(found.entries.map(\.version)) {
            let bytes = try length.integer(version) ?? 0
            if let owners = try owners.integer(version) {
                shared.append(Shared(id: version, owners: owners, bytes: bytes))
            } else {
                count.bytes += bytes
            }
        }
    }

    /// Bytes that are deleted with the last of their owners.
    struct Shared<ID: RowID> {
        let id: ID
        let owners: Int64
        let bytes: Int64

        init(id: ID, owners: Int64, bytes: Int64) { (self.id, self.owners, self.bytes) = (id, owners, bytes) }

        init(_ row: QueryRow) { self.init(id: row.id(0), owners: row.integer(1), bytes: row.integer(2)) }

        /// Notes that one owner goes; returns how many bytes go with it.
        func bytesGone(_ left: inout [ID: Int64]) -> Int64 {
            left[id, default: owners] -= 1
            return left[id] == 0 ? bytes : 0
        }
    }
}

/// What a clean counts as the size of what it removes: the content, without the overhead of the file, which shrinks by
/// whole pages.
extension StoreCount {
    /// The query for the size of a document, without the objects that it shows, and without what others share with it.
    static let bytesOfDocument: StaticString = """
        SELECT length(d.head) + length(d.policy) + length(b.pins)
            + ifnull(length(coalesce(b.skeleton, b.compressed, b.body)), 0)
            + CASE WHEN s.documents = 1 THEN ifnull(length(coalesce(s.skeleton, s.compressed, s.body)), 0) ELSE 0 END
        FROM _documents d JOIN _bodies b ON b.document = d.id LEFT JOIN _shared_bodies s ON s.id = b.shared
        WHERE d.id = ?
        """
    static let bytesOfVersion: StaticString = "SELECT length(CAST(payload AS BLOB)) FROM _versions WHERE id = ?"
}

/// How much the store contains, or a clean removed.
public struct StoreCount: Codable, Sendable, Equatable {
    public var objects = 0
    public var documents = 0
    /// Bytes in use in the file, or freed in it.
    public var bytes: Int64 = 0
    public var models: [String: Int] = [:]

    /// Adds another count.
    public static func += (left: inout StoreCount, right: StoreCount) {
        (left.objects, left.documents) = (left.objects + right.objects, left.documents + right.documents)
        left.bytes += right.bytes
        left.models.merge(right.models, uniquingKeysWith: +)
    }
}

/// What a clean did.
public struct CleanResult: Sendable, Equatable {
    /// Whether the bytes are erased.
    public enum Erasure: String, Sendable {
        /// They are neither in the file nor in its WAL.
        case erased
        /// Another process still reads the WAL; they are erased when it ends its transaction.
        case pending
        /// Nothing was removed: a dry run.
        case notAsked
    }

    public var removed: StoreCount
    public var erasure: Erasure
    /// How many other objects no document shows any more; they are kept until their room is needed.
    public var unshown = 0
    public var isStopped = false
}

/// Receives the progress of a clean after each slice; returns whether to continue.
public typealias CleanProgress = @Sendable (StoreCount) -> Bool
