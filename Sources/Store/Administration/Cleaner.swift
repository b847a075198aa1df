import GRDB
import Mapping

/// Removes what a filter selects: documents, their objects, and the bytes of both.
///
/// With a model, or one object of it, those objects go together with the documents that show them. Other objects in these
/// documents stay known, even if no document shows them any more. Without a model, objects that only the removed documents
/// showed go too.
///
/// From the beginning on, responses to requests that were sent before are not stored. A reader searches slice by slice. The
/// writer removes each slice in a transaction that fits into the WAL, and does other work in between. The store is consistent
/// after each slice: a process that dies in the middle, or a caller who stops, leaves part of it cleaned.
struct Cleaner {
    private let core: StoreCore
    private let filter: CleanFilter
    private let progress: CleanProgress
    private var removed = StoreCount(objects: 0, documents: 0, bytes: 0, models: [:])
    private var unshown = 0
    private var isStopped = false

    init(core: StoreCore, filter: CleanFilter, progress: @escaping CleanProgress = { _ in true }) {
        self.core = core
        self.filter = filter
        self.progress = progress
    }

    /// Reports the progress; whether to continue.
    private mutating func shouldContinue() -> Bool {
        isStopped = isStopped || !progress(removed)
        return !isStopped
    }

    mutating func run() async throws(StoreError) -> CleanResult {
        let (core, filter) = (core, filter)
        let (time, last) = try await core.write(.prompt) { session in
            let time = core.clock.now()
            let selection = try CleanSelection(filter, in: session.database, now: time, of: core)
            // Which model of a cluster a response on its way shows is not known yet.
            var banned = filter
            if let base = selection.base { banned.model = base }
            session.bans.cleaned(banned, at: time)
            try session.forgetSentEvents()
            try session.forgetMarks(matching: filter, base: selection.base)
            if !selection.isOfURLs { try session.eraseNames(of: selection.collections, identity: selection.identity) }
            return (time, session.numbers.document)
        }
        var (position, isAtEnd) = (DocumentID.zero, false)
        while !isAtEnd, shouldContinue() {
            let start = position
            let slice = try await core.scan { database, deadline in
                try CleanSelection(filter, in: database, now: time, of: core).documents(
                    after: start,
                    upTo: last,
                    CleanSelection.Bounds(bytes: Int64(core.budget.batch), deadline: deadline)
                )
            }
            try await remove(documents: slice.found, askedAt: time)
            (position, isAtEnd) = (slice.position, slice.isAtEnd)
        }
        var (object, isAtLast) = (ObjectID.zero, false)
        while !isAtLast, shouldContinue() {
            let start = object
            let slice = try await core.scan { database, deadline in
                try CleanSelection(filter, in: database, now: time, of: core)
                    .orphans(after: start, CleanSelection.Bounds(deadline: deadline))
            }
            try await remove(orphans: slice.found, askedAt: time)
            (object, isAtLast) = (slice.position, slice.isAtEnd)
        }
        let isErased = isStopped ? false : try await erase()
        return CleanResult(
            removed: removed,
            erasure: isErased ? .erased : .pending,
            unshown: unshown,
            isStopped: isStopped
        )
    }

    // MARK: Slices

    private mutating func remove(documents: [DocumentID], askedAt time: Int64) async throws(StoreError) {
        try await remove(documents.count) { [core, filter] session in
            let selection = try CleanSelection(filter, in: session.database, now: time, of: core)
            var (count, touched, unshown) = (0, Set<ObjectID>(), Set<ObjectID>())
            for document in documents where try selection.isSelected(document) {
                guard let objects = try Self.erase(document, matching: selection, in: session) else { continue }
                count += 1
                touched.formUnion(objects.selected)
                unshown.formUnion(objects.unshown)
            }
            return (count, touched, unshown.count)
        }
    }

    private mutating func remove(orphans: [ObjectID], askedAt time: Int64) async throws(StoreError) {
        try await remove(orphans.count) { [core, filter] session in
            let selection = try CleanSelection(filter, in: session.database, now: time, of: core)
            let selected = try orphans.filter { try selection.isOrphan($0, knownBefore: time) }
            for id in selected { try session.forget(id) }
            return (0, Set(selected), 0)
        }
    }

    /// Lets the writer remove a slice, and counts the removed documents and the objects of which nothing is left.
    private mutating func remove(
        _ count: Int,
        _ work: @escaping @Sendable (WriterSession) throws -> (documents: Int, touched: Set<ObjectID>, unshown: Int)
    ) async throws(StoreError) {
        guard count > 0 else { return }
        let (gone, left) = try await core.write(.prompt) { session in
            // Bytes that other jobs of this batch write do not count.
            try session.flush()
            let before = try FileBudget.used(in: session.database)
            session.journal.isErasing = true
            defer { session.journal.isErasing = false }
            let (documents, touched, unshown) = try work(session)
            var gone = StoreCount(objects: 0, documents: documents, bytes: 0, models: [:])
            for id in touched {
                guard let record = session.records[id], record.isEmpty else { continue }
                let model = try session.names.collection(record.collection, in: session.database).model
                gone.objects += 1
                gone.models[model, default: 0] += 1
            }
            try session.flush()
            gone.bytes = before - (try FileBudget.used(in: session.database))
            return (gone, unshown)
        }
        unshown += left
        removed.documents += gone.documents
        removed.objects += gone.objects
        removed.bytes = max(removed.bytes + gone.bytes, 0)
        removed.models.merge(gone.models, uniquingKeysWith: +)
    }

    /// Removes a document, and from the selected objects in it what only its response contained.
    ///
    /// - Returns: the selected objects, and the others that no document shows any more; nil if the document is gone already.
    private static func erase(
        _ document: DocumentID,
        matching selection: CleanSelection,
        in session: WriterSession
    ) throws -> (selected: Set<ObjectID>, unshown: Set<ObjectID>)? {
        let observation = try Query(session.database, "SELECT observation FROM _documents WHERE id = ?")
            .first(.id(document)) { $0.integer(0) }
        guard let observation else { return nil }
        let objects = Set(try StoredBody.pins(of: document, in: session.database).map(\.object))
        let selected = try objects.filter(selection.selects)
        try session.remove(document, isForgotten: true)
        let unshown = try objects.subtracting(selected).filter { try session.record($0)?.isPinned == false }
        for id in selected {
            guard let record = try session.record(id) else { continue }
            guard record.isPinned else {
                try session.forget(id)
                continue
            }
            // Another document shows the same bytes, or another response contained them.
            guard let base = record.base, base.uses == 0 || record.isMerged,
                ([base.observation] + record.knowledge.sources).contains(observation)
            else { continue }
            // What remains is older than what was erased: the mark has it fetched again.
            let known = try session.observation(observation)
            try session.forgetKnown(record)
            try session.apply(.unobserved(known.end), to: record)
        }
        return (selected, unshown)
    }

    // MARK: Bytes

    /// Returns free pages to the file system and empties the WAL; false if another process still reads the WAL.
    ///
    /// SQLite overwrites what it frees (secure_delete); copies may be left in the WAL.
    private mutating func erase() async throws(StoreError) -> Bool {
        let core = core
        try await core.write(.durable) { _ in }
        var isMore = true
        while isMore {
            _ = shouldContinue()
            isMore = try await core.write(.prompt, alone: true) { try FileKeeper(core: core).returnSomePages($0) }
        }
        for _ in 0..<Self.attempts {
            let isErased = try await core.write(.prompt, alone: true) {
                FileKeeper(core: core).emptyWAL($0, patience: Self.patience, erasing: true)
            }
            if isErased { return true }
        }
        return false
    }

    /// How often it tries to empty the WAL, and for how many milliseconds each time: a second in all.
    private static let (attempts, patience) = (20, 50)
}

/// Counts what a clean would remove, slice by slice, so that no snapshot is held for long.
struct CleanPreview {
    private let core: StoreCore
    private let filter: CleanFilter
    private let progress: CleanProgress
    private var unshown = 0
    private var isStopped = false
    private var count = StoreCount(objects: 0, documents: 0, bytes: 0, models: [:])
    /// How many of the places that would go show each object.
    private var unpinned: [ObjectID: Int64] = [:]

    init(core: StoreCore, filter: CleanFilter, progress: @escaping CleanProgress) {
        self.core = core
        self.filter = filter
        self.progress = progress
    }

    /// Counts; the bytes are those of bodies and versions, without the overhead of the file.
    mutating func run() async throws(StoreError) -> CleanResult {
        let (core, filter, now) = (core, filter, core.clock.now())
        var (position, isAtEnd) = (DocumentID.zero, false)
        while !isAtEnd, shouldContinue() {
            let start = position
            let (slice, bytes, places) = try await core.scan { database, deadline in
                let selection = try CleanSelection(filter, in: database, now: now, of: core)
                let bounds = CleanSelection.Bounds(deadline: deadline)
                let slice = try selection.documents(after: start, upTo: .max, bounds)
                var (bytes, places) = (Int64(0), [ObjectID: Int64]())
                for id in slice.found {
                    bytes += try Self.bytes(of: id, in: database)
                    for pin in try StoredBody.pins(of: id, in: database) { places[pin.object, default: 0] += 1 }
                }
                return (slice, bytes, places)
            }
            count.documents += slice.found.count
            count.bytes += bytes
            unpinned.merge(places, uniquingKeysWith: +)
            (position, isAtEnd) = (slice.position, slice.isAtEnd)
        }
        var (object, isAtLast) = (ObjectID.zero, false)
        while !isAtLast, shouldContinue() {
            let start = object
            let slice = try await core.scan { database, deadline in
                try CleanSelection(filter, in: database, now: now, of: core)
                    .orphans(after: start, CleanSelection.Bounds(deadline: deadline))
            }
            for id in slice.found { unpinned[id] = 0 }
            (object, isAtLast) = (slice.position, slice.isAtEnd)
        }
        try await addObjects()
        return CleanResult(removed: count, erasure: .notAsked, unshown: unshown, isStopped: isStopped)
    }

    private mutating func shouldContinue() -> Bool {
        isStopped = isStopped || !progress(count)
        return !isStopped
    }

    private mutating func addObjects() async throws(StoreError) {
        let (filter, now) = (filter, core.clock.now())
        var rest = Array(unpinned)[...]
        while !rest.isEmpty, shouldContinue() {
            let slice = Array(rest.prefix(1024))
            rest = rest.dropFirst(1024)
            let (gone, left) = try await core.scan { [core] database, _ in
                var (gone, left) = (StoreCount(objects: 0, documents: 0, bytes: 0, models: [:]), 0)
                let selection = try CleanSelection(filter, in: database, now: now, of: core)
                for (id, places) in slice {
                    try Self.add(id, unpinned: places, to: &gone, unshown: &left, selection)
                }
                return (gone, left)
            }
            unshown += left
            count.objects += gone.objects
            count.bytes += gone.bytes
            count.models.merge(gone.models, uniquingKeysWith: +)
        }
    }

    private static func bytes(of document: DocumentID, in database: Database) throws -> Int64 {
        try Query(
            database,
            """
            SELECT length(d.head) + length(d.policy) + length(b.pins) + ifnull(length(b.skeleton), 0)
                + ifnull(length(b.body), 0)
            FROM _documents d JOIN _bodies b ON b.document = d.id WHERE d.id = ?
            """
        ).first(.id(document)) { $0.integer(0) } ?? 0
    }

    /// An object goes if all places that show it go, and the filter selects it.
    private static func add(
        _ object: ObjectID,
        unpinned: Int64,
        to count: inout StoreCount,
        unshown: inout Int,
        _ selection: CleanSelection
    ) throws {
        let database = selection.database
        let found = try Query(
            database,
            """
            SELECT o.state, m.text FROM _objects o JOIN _collections c ON c.id = o.collection
            JOIN _names m ON m.id = c.model WHERE o.id = ?
            """
        ).first(.id(object)) { (entries: try ObjectRecord.decode($0.bytes(0)), model: $0.string(1)) }
        guard let found, found.entries.reduce(0, { $0 + $1.uses }) <= unpinned else { return }
        guard try selection.selects(object) else {
            unshown += 1
            return
        }
        count.objects += 1
        count.models[found.model, default: 0] += 1
        for version in Set(found.entries.map(\.version)) {
            count.bytes +=
                try Query(database, "SELECT length(CAST(payload AS BLOB)) FROM _versions WHERE id = ?")
                .first(.integer(version)) { $0.integer(0) } ?? 0
        }
    }
}
