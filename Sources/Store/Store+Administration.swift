/// What administrators ask and do.
extension Store {
    /// How much the store holds.
    public func count() async throws(StoreError) -> StoreCount {
        try await core.read { [hasher] in try Inventory(database: $0, hasher: hasher).count() }
    }

    /// Removes what a filter means, durably; a dry run only counts it.
    ///
    /// What was asked for before the clean and arrives after it is not stored. Others are served and stored meanwhile. Where
    /// the progress says so it stops after a slice; what is gone stays gone, and all that is left is consistent.
    public func clean(
        _ filter: CleanFilter,
        dryRun: Bool = false,
        progress: @escaping CleanProgress = { _ in true }
    ) async throws(StoreError) -> CleanResult {
        if dryRun {
            var preview = CleanPreview(core: core, filter: filter, progress: progress)
            return try await preview.run()
        }
        var cleaner = Cleaner(core: core, filter: filter, progress: progress)
        return try await cleaner.run()
    }

    /// A page of objects, in the order of their ids.
    public func objects(_ query: ObjectQuery) async throws(StoreError) -> Page<ObjectRow> {
        let models = core.models
        return try await core.read { [hasher] in
            try Inventory(database: $0, hasher: hasher).objects(query, models: models)
        }
    }

    /// A page of documents, in the order of their ids.
    public func documents(_ query: DocumentQuery) async throws(StoreError) -> Page<DocumentRow> {
        try await core.read { [hasher] in try Inventory(database: $0, hasher: hasher).documents(query) }
    }

    /// A page of warnings, the latest first.
    public func warnings(limit: Int = 100, after: Int64? = nil) async throws(StoreError) -> Page<StoredWarning> {
        try await core.read { [hasher] in
            try Inventory(database: $0, hasher: hasher).warnings(limit: limit, after: after)
        }
    }

    /// Counts warnings; batched.
    public func warn(_ warnings: [StoredWarning]) {
        let now = core.clock.now()
        core.note { try $0.warn(warnings, at: now) }
    }
}
