import GRDB
import Mapping

/// The state of the writer: the writing connection, the issued ids and sequences, and the current batch.
///
/// Used only on the writer's thread. Objects and observations are read once per batch, changed in memory, and written by
/// `flush`: an object that is shown a hundred times in a batch is written once.
final class WriterSession {
    /// The last issued ids and numbers; none is reused while the store is open, even if rows were deleted.
    struct Numbers: Sendable {
        var document: DocumentID
        var object: ObjectID
        var version: VersionID
        var observation: ObservationID
        var suspect: SuspectID
        var principal: PrincipalID
        var scope: ScopeID
        var sequence: CommitNumber
    }

    struct BatchEffects {
        var changed: [ObjectID] = []
        /// The objects whose rows were written, for whatever reason.
        var written: [ObjectRecord] = []
        var removed: [Digest128] = []
        /// Keys of documents that were deleted and not replaced, even without notice to the listener.
        var vanished: Set<Digest128> = []
        var inserted: [Digest128] = []
        var warnings: Int64 = 0
        var isChange = false
        var isJournaled = false
        /// New values, for other machines.
        var shown: [ShownValues] = []
    }

    final class ObservationRecord {
        var observation: Observation
        /// The digest of the cache key of its document; nil for a write, or if it is not known.
        let document: Int64?
        /// How many documents and objects refer to it.
        var uses: Int64
        /// The method and URL, if no document has them; nil keeps the stored value.
        var source: String?
        /// As in `ReceivedDocument`; only of a new one.
        var dividedBy: Int64?
        let isStored: Bool
        var isModified: Bool

        init(_ observation: Observation, document: Int64?, uses: Int64, isStored: Bool) {
            (self.observation, self.document) = (observation, document)
            (self.uses, self.isStored) = (uses, isStored)
            isModified = !isStored
        }
    }

    struct RecordKey: Hashable {
        let collection: CollectionID
        let identity: StoredIdentity
    }

    let database: Database
    let hasher: KeyHasher
    var keyHasher: KeyHasher
    let clock: StoreClock
    let presence: KeyPresence
    let compressor = BodyCompressor()
    /// Whether dispensable jobs are dropped, because the store is being closed.
    var isGivenUp: @Sendable () -> Bool = { false }
    /// Called with the effects of each transaction when all is written but the commit.
    var willCommit: (BatchEffects) -> Void = { _ in }
    /// Called after that, if the commit itself has failed.
    var commitFailed: () -> Void = {}
    var models: [UpstreamKey: UpstreamModels]
    var numbers: Numbers
    var bans = Bans()
    var recentMarks = RecentMarks()
    var recentObservations = RecentObservations()
    /// To whom new values are shown, if to anybody.
    let sharing: () -> ValueSharing?
    var journal: Journal
    var names: NameTable
    var doubts = DoubtHistory()
    var copy: StoreCopy?
    var disk = DiskState()
    /// The approximate number of rows in `_told`; nil if not counted yet.
    var sentCount: Int64?
    /// The approximate number of rows in `_deliveries`; nil if not counted yet.
    var deliveryCount: Int64?
    private var queries = QueryCache()
    private var wallLead: Int64?

    /// Set while a clean counts: the bytes of the documents deleted since then, and of the objects deleted with them.
    var deletedBytes: Int64?

    // The current batch.
    /// Whether the job under way is the last one before the commit.
    var endsTransaction = false
    var effects = BatchEffects()
    var records: [ObjectID: ObjectRecord] = [:]
    var recordIDs: [RecordKey: ObjectID] = [:]
    /// The records in the order of their first use, so that new ones are inserted in the order of their ids.
    var recordOrder: [ObjectRecord] = []
    var observations: [ObservationID: ObservationRecord] = [:]
    /// Whether objects were removed, so that the highest stored id may not be the highest ever issued.
    var hasRemovedObjects = false

    init(_ database: Database, of core: StoreCore, numbers: Numbers, journal: Journal) {
        self.database = database
        hasher = core.hasher
        keyHasher = core.keyHasher
        clock = core.clock
        presence = core.presence
        models = core.models
        sharing = { core.sharing }
        (self.numbers, self.journal) = (numbers, journal)
        names = NameTable()
        wallLead = core.clock.wallLead
    }

    /// A statement of the writing connection, prepared once; its text must be a literal.
    func query(_ sql: StaticString) throws -> Query { try queries.query(sql, in: database) }

    /// The id of a scope, created if needed.
    func scope(_ scope: NameTable.Scope) throws -> ScopeID {
        var new = numbers.scope
        let id = try names.scope(scope, orNew: new.increment(), in: database)
        numbers.scope = max(numbers.scope, id)
        return id
    }

    func nextSequence() -> CommitNumber { numbers.sequence.increment() }

    /// The time in seconds, as in `_used` and `_orphans`.
    var seconds: Int64 { clock.now() / 1_000_000 }

    /// Runs a transaction: the work, a flush, and the commit; on an error nothing of it remains.
    func transaction<Value>(durable: Bool = false, _ work: () throws -> Value) throws -> (Value, BatchEffects) {
        if durable { try database.execute(sql: "PRAGMA synchronous = FULL") }
        defer {
            // This cannot fail once it has succeeded, and a batch that is too durable does no harm.
            if durable { try? database.execute(sql: "PRAGMA synchronous = NORMAL") }
            effects = BatchEffects()
        }
        var result: Value?
        var isAnnounced = false
        do {
            // GRDB's `inTransaction` prepares both statements anew each time.
            try database.cachedStatement(sql: "BEGIN IMMEDIATE TRANSACTION").execute()
            result = try work()
            try flush()
            try flushJournal()
            try recentMarks.write(in: self)
            isAnnounced = true
            willCommit(effects)
            try database.cachedStatement(sql: "COMMIT TRANSACTION").execute()
        } catch {
            if database.isInsideTransaction { try? database.rollback() }
            if isAnnounced { commitFailed() }
            discard()
            throw error
        }
        endJournal(committed: true)
        recentMarks.committed()
        guard let result else { preconditionFailure("a transaction that did not throw ran its work") }
        return (result, effects)
    }

    /// Writes the batch's changes from memory to the file, and clears them in memory.
    func flush() throws {
        try flushObjects()
        try flushObservations()
        try query(
            """
            INSERT INTO _meta VALUES ('sequence', ?), ('clock', ?)
            ON CONFLICT DO UPDATE SET value = excluded.value WHERE value IS NOT excluded.value
            """
        ).run(numbers.sequence, clock.now())
        try flushWallLead()
        if hasRemovedObjects { try Meta.object.set(numbers.object.rawValue, in: database) }
        hasRemovedObjects = false
        if effects.isChange { try Meta.changed.set(numbers.sequence.rawValue, in: database) }
        records.removeAll(keepingCapacity: true)
        recordOrder.removeAll(keepingCapacity: true)
        recordIDs.removeAll(keepingCapacity: true)
        observations.removeAll(keepingCapacity: true)
    }

    /// Records how far the wall clock is ahead of the store's, after the wall clock was set.
    private func flushWallLead() throws {
        let lead = clock.wallLead
        if let wallLead, abs(lead &- wallLead) < 1_000_000 { return }
        try Meta.wallLead.set(lead, in: database)
        wallLead = lead
    }

    /// Removes keys without documents from memory; if the file cannot be read they stay, which only costs a read of the disk.
    func forgetAbsent(_ keys: some Sequence<Digest128>) {
        for key in keys where (try? hasDocuments(under: key)) == false { presence.remove(key.low) }
    }

    /// Discards a batch that was rolled back, with the names that it introduced.
    private func discard() {
        forgetAbsent(effects.inserted)
        records.removeAll()
        recordOrder.removeAll()
        recordIDs.removeAll()
        observations.removeAll()
        wallLead = nil
        endJournal(committed: false)
        names.forget()
    }
}
