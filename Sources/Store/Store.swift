public import Mapping

/// Objects and documents in one SQLite file.
///
/// Any thread may call; whatever touches the file is `async` and runs on the
/// writer's thread or on a reader's.
public final class Store: Sendable {
    /// The store's own clock.
    public let clock: StoreClock
    /// Digests keys under this store's secret.
    public let hasher: KeyHasher

    init(clock: StoreClock, hasher: KeyHasher) {
        self.clock = clock
        self.hasher = hasher
    }

    /// Opens or creates a store, alone: a second opening fails with `.locked`.
    ///
    /// Blocks; takes the same short time whatever the store holds.
    public static func open(_ configuration: StoreConfiguration) throws(StoreError) -> (Store, [StoreNotice]) {
        throw .closed
    }

    /// Says who is to be told of commits; at most one, set before anything is stored.
    public func setListener(_ listener: any ChangeListener) {
    }

    /// Replaces the models, after a reload of the configuration; the people's views follow.
    public func replaceModels(_ models: [String: Models]) async throws(StoreError) {
        throw .closed
    }

    // MARK: Principals

    /// The id of requests without credentials.
    public static let anonymous: PrincipalID = 1

    /// The id of a principal's digest, if it is in memory; any thread, quick. The empty digest is `anonymous`.
    public func knownPrincipal(_ digest: [UInt8]) -> PrincipalID? {
        nil
    }

    /// The id of a principal's digest, made durable if it is new.
    public func principal(_ digest: [UInt8]) async throws(StoreError) -> PrincipalID {
        throw .closed
    }

    /// What people call a principal: `anonymous`, or `p-` and eight hexadecimal digits of its digest.
    public static func label(ofPrincipal digest: [UInt8]) -> String {
        ""
    }

    // MARK: Documents

    /// Whether documents may exist under a key; memory only, any thread. Never wrongly false.
    public func mayHave(_ digest: Digest128) -> Bool {
        true
    }

    /// Whether any of these objects, or none that is remembered, changed after a commit sequence; memory only, any thread.
    ///
    /// Never wrongly false. To be asked after registering a document with the listener's side, so that no change falls between.
    public func mayHaveChanged(_ objects: [ObjectID], since sequence: Int64) -> Bool {
        true
    }

    /// Every variant under a key, composed where its objects are known newer.
    public func documents(at key: DocumentKey) async throws(StoreError) -> [StoredDocument] {
        throw .closed
    }

    /// The body of a document as it was received; nil when the document is gone.
    public func received(_ id: DocumentID) async throws(StoreError) -> [UInt8]? {
        throw .closed
    }

    /// Stores an answer whole, and returns after the commit that holds it; waits for room in the queue.
    public func receive(_ document: ReceivedDocument) async throws(StoreError) -> Receipt {
        throw .closed
    }

    /// Stores an answer whole without waiting; fails with `.queueFull` when there is no room. `done` runs on the writer's thread.
    public func submit(
        _ document: ReceivedDocument,
        done: @escaping @Sendable (Result<Receipt, StoreError>) -> Void
    ) {
        done(.failure(.closed))
    }

    /// Takes in an answer that tells about objects and is no document.
    public func observe(_ observation: ReceivedObservation) async throws(StoreError) -> Receipt {
        throw .closed
    }

    /// Renews a document by a 304: its fields and its one observation time.
    @discardableResult
    public func refresh(
        _ id: DocumentID,
        head: [UInt8],
        policy: [UInt8],
        observedFrom: Int64,
        observedTo: Int64
    ) async throws(StoreError) -> RefreshOutcome {
        throw .closed
    }

    /// Removes the documents of these URLs, every principal's, and settles a suspect in the same commit.
    ///
    /// A `receive` for one of these URLs whose request was sent before stores nothing.
    public func invalidate(
        _ targets: [InvalidationTarget],
        settle suspect: SuspectID? = nil
    ) async throws(StoreError) {
        throw .closed
    }

    /// Removes one document; soon, and without a word if it is gone already.
    public func remove(_ id: DocumentID) {
    }

    /// Marks URLs that a write is about to change; on disk before it returns.
    ///
    /// If the process dies before `settle`, opening the store removes their documents.
    public func markSuspect(upstream: String, urls: [String]) async throws(StoreError) -> SuspectID {
        throw .closed
    }

    /// Takes a mark off.
    public func settle(_ suspect: SuspectID) async throws(StoreError) {
        throw .closed
    }

    /// Says that documents were used, for eviction; batched, and lost when much else is going on.
    public func touchUsed(_ documents: [DocumentID]) {
    }

    // MARK: Administration

    /// How much the store holds.
    public func count() async throws(StoreError) -> StoreCount {
        throw .closed
    }

    /// Removes what a filter means, durably; a dry run only counts it.
    ///
    /// What was asked for before the clean and arrives after it is not stored.
    public func clean(_ filter: CleanFilter, dryRun: Bool = false) async throws(StoreError) -> CleanResult {
        throw .closed
    }

    /// A page of objects.
    public func objects(_ query: ObjectQuery) async throws(StoreError) -> Page<ObjectRow> {
        throw .closed
    }

    /// A page of documents.
    public func documents(_ query: DocumentQuery) async throws(StoreError) -> Page<DocumentRow> {
        throw .closed
    }

    /// A page of warnings, the latest first.
    public func warnings(limit: Int = 100, after: Int64? = nil) async throws(StoreError) -> Page<StoredWarning> {
        throw .closed
    }

    /// Counts warnings; batched.
    public func warn(_ warnings: [StoredWarning]) {
    }

    /// Returns when everything handed over before is committed.
    public func flush() async {
    }

    /// Commits what is waiting and closes the file; everything after fails with `.closed`.
    public func close() async {
    }

    /// What operators want to know of the store at run time; memory only, any thread.
    public var statistics: StoreStatistics {
        StoreStatistics()
    }
}
