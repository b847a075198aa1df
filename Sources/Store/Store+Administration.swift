/// What administrators ask and do.
extension Store {
    /// How much the store holds.
    public func count() async throws(StoreError) -> StoreCount {
        try await core.read { [hasher] in try Inventory(database: $0, hasher: hasher).count() }
    }

    /// Removes what a filter means, durably; a dry run only counts it.
    ///
    /// What was asked for before the clean and arrives after it is not stored.
    public func clean(_ filter: CleanFilter, dryRun: Bool = false) async throws(StoreError) -> CleanResult {
        if dryRun {
            let (now, models, lag) = (core.clock.now(), core.models, core.lag)
            let count = try await core.read {
                try CleanPreview(filter, in: $0, now: now, models: models, lag: lag).count()
            }
            return CleanResult(removed: count, erasure: .notAsked)
        }
        return try await core.write(.prompt, alone: true) { [core] session in
            var cleaner = try Cleaner(core: core, session: session, filter: filter)
            return try cleaner.run()
        }
    }

    /// A page of objects, in the order of their ids.
    public func objects(_ query: ObjectQuery) async throws(StoreError) -> Page<ObjectRow> {
        let (models, lag) = (core.models, core.lag)
        return try await core.read { [hasher] in
            try Inventory(database: $0, hasher: hasher).objects(query, models: models, lag: lag)
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
