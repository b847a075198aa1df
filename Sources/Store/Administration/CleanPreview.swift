import GRDB

/// Reckons what a clean would remove, slice by slice, so that no snapshot is held for long.
struct CleanPreview {
    private let core: StoreCore
    private let filter: CleanFilter
    private let progress: CleanProgress
    private var unshown = 0
    private var isStopped = false
    private var count = StoreCount(objects: 0, documents: 0, bytes: 0, models: [:])
    /// In how many places that would go each object is shown.
    private var unpinned: [ObjectID: Int64] = [:]

    init(core: StoreCore, filter: CleanFilter, progress: @escaping CleanProgress) {
        self.core = core
        self.filter = filter
        self.progress = progress
    }

    /// Counts; the bytes are those of bodies and versions, without what the file needs around them.
    mutating func run() async throws(StoreError) -> CleanResult {
        let (core, filter, now) = (core, filter, core.clock.now())
        var (position, isAtEnd) = (DocumentID.zero, false)
        while !isAtEnd, goesOn() {
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
        while !isAtLast, goesOn() {
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

    private mutating func goesOn() -> Bool {
        isStopped = isStopped || !progress(count)
        return !isStopped
    }

    private mutating func addObjects() async throws(StoreError) {
        let (filter, now) = (filter, core.clock.now())
        var rest = Array(unpinned)[...]
        while !rest.isEmpty, goesOn() {
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

    /// An object goes if all the places that show it do, and it is meant itself.
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
        guard try selection.means(object) else {
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
