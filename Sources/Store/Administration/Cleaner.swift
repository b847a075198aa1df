import GRDB

/// Removes what a filter means: documents, their objects, and the bytes of both.
///
/// In slices, each a transaction that the WAL can hold. What was asked for
/// before is kept out from the beginning on. A process that dies in the middle
/// leaves a part cleaned, and its caller without an answer.
struct Cleaner {
    private let core: StoreCore
    private let session: WriteSession
    private let filter: CleanFilter
    private let selection: CleanSelection
    private var removed = StoreCount(objects: 0, documents: 0, bytes: 0, models: [:])
    private var lastDocument: DocumentID = 0
    private var lastOrphan: ObjectID = 0

    private static let slice = 256

    init(core: StoreCore, session: WriteSession, filter: CleanFilter) throws {
        self.core = core
        self.session = session
        self.filter = filter
        selection = try CleanSelection(
            filter,
            in: session.database,
            now: core.clock.now(),
            models: session.models,
            lag: core.lag
        )
    }

    mutating func run() throws -> CleanResult {
        // Of answers under way nobody knows yet which model of a cluster they show.
        var barred = filter
        if let base = selection.base { barred.model = base }
        session.barriers.cleaned(barred, at: core.clock.now())
        let before = try FileBudget.used(in: session.database)
        let keeper = FileKeeper(core: core)
        var isMore = true
        while isMore {
            let (more, outcome) = try session.transaction(durable: true) { try removeSlice() }
            try core.publish(outcome, of: session)
            keeper.shortenWAL(session)
            isMore = more
        }
        removed.bytes = max(before - (try FileBudget.used(in: session.database)), 0)
        keeper.giveBack(session)
        // SQLite overwrites what it frees (secure_delete); what is left of it is in the WAL.
        let isErased = keeper.emptyWAL(session, patience: 1000)
        return CleanResult(removed: removed, erasure: isErased ? .erased : .pending)
    }

    /// Removes some; true while there may be more.
    private mutating func removeSlice() throws -> Bool {
        let documents = try selection.documents(after: lastDocument, limit: Self.slice)
        let orphans = try selection.orphans(after: lastOrphan, limit: Self.slice)
        lastDocument = documents.last ?? lastDocument
        lastOrphan = orphans.last ?? lastOrphan
        var touched = Set(orphans)
        for document in documents { touched.formUnion(try erase(document)) }
        for id in orphans { try session.forget(id) }
        removed.documents += documents.count
        for id in touched {
            guard let record = session.records[id], record.isEmpty else { continue }
            let model = try session.names.collection(record.collection, in: session.database).model
            removed.objects += 1
            removed.models[model, default: 0] += 1
        }
        return documents.count == Self.slice || orphans.count == Self.slice
    }

    /// Removes a document and what its answer alone had to tell; returns the objects it showed.
    private func erase(_ document: DocumentID) throws -> Set<ObjectID> {
        let observation = try Query(session.database, "SELECT observation FROM _documents WHERE id = ?")
            .first(.integer(document)) { $0.integer(0) }
        let objects = Set(try StoredBody.pins(of: document, in: session.database).map(\.object))
        try session.remove(document)
        for id in objects {
            guard let record = try session.record(id) else { continue }
            guard record.isPinned else {
                try session.forget(id)
                continue
            }
            // Another document shows the very bytes, or another answer brought them.
            let kept = record.contributing.filter { $0.uses > 0 || $0.observation != observation }
            guard kept.count != record.contributing.count else { continue }
            try session.reassign(kept.map { ($0.version, $0.observation) }, to: record)
        }
        return objects
    }
}
