/// Counting, listing and cleaning.
extension ObjectStore {
    /// How much the store contains.
    public func count() async throws(StoreError) -> StoreCount {
        try await core.read { [hasher] in try Inventory(database: $0, hasher: hasher).count() }
    }

    /// Removes what a filter selects, durably; a dry run only counts it.
    ///
    /// A response that arrives later is not stored if its request was sent before the clean. Everything else is served and
    /// stored meanwhile. The clean stops after a slice if `progress` returns false; what was removed stays removed, and the
    /// rest is consistent.
    public func clean(
        _ filter: CleanFilter,
        dryRun: Bool = false,
        progress: @escaping CleanProgress = { _ in true }
    ) async throws(StoreError) -> CleanResult {
        var filter = filter
        filter.upstream = core.upstream(labelled: filter.upstream)
        var cleaner = Cleaner(core: core, filter: filter, isDryRun: dryRun, progress: progress)
        return try await cleaner.run()
    }

    /// A page of objects, in the order of their ids.
    ///
    /// As in all listings, query and rows give an upstream of today's configuration by its name, any other by its name and
    /// URL.
    public func objects(_ query: ObjectQuery) async throws(StoreError) -> Page<ObjectRow> {
        let models = core.models
        var query = query
        query.upstream = core.upstream(labelled: query.upstream)
        var page = try await core.read { [core, query] in
            try Inventory(database: $0, hasher: core.keyHasher).objects(query, models: models)
        }
        for index in page.rows.indices { page.rows[index].upstream = core.label(ofUpstream: page.rows[index].upstream) }
        return page
    }

    /// A page of documents, in the order of their ids.
    public func documents(_ query: DocumentQuery) async throws(StoreError) -> Page<DocumentRow> {
        var query = query
        query.upstream = core.upstream(labelled: query.upstream)
        var page = try await core.read { [hasher, query] in
            try Inventory(database: $0, hasher: hasher).documents(query)
        }
        for index in page.rows.indices { page.rows[index].upstream = core.label(ofUpstream: page.rows[index].upstream) }
        return page
    }

    /// A page of warnings, the latest first.
    public func warnings(limit: Int = 100, after: Int64? = nil) async throws(StoreError) -> Page<StoredWarning> {
        await core.examiner.settled()
        // The examiner has queued its warnings: behind them, all are committed.
        _ = try? await core.write(.batched) { _ in true }
        return try await core.read { [hasher] in
            try Inventory(database: $0, hasher: hasher).warnings(limit: limit, after: after)
        }
    }

    /// Counts warnings; batched.
    public func warn(_ warnings: [StoredWarning]) {
        let now = core.clock.now()
        core.note { try $0.warn(warnings, at: now) }
    }
}
