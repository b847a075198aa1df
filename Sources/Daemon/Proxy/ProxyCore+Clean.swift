package import Store

/// What changes the store as a whole: the fetches, the streams and the memory must not keep what was there before.
extension ProxyCore {
    /// Removes what a filter names, durably, and everywhere.
    package func clean(
        _ filter: CleanFilter,
        dryRun: Bool,
        progress: @escaping CleanProgress
    ) async throws(StoreError) -> CleanResult {
        guard !dryRun else { return try await cache.store.clean(filter, dryRun: true, progress: progress) }
        fetches.cleaned()
        liveDocuments.forgetAll()
        defer { liveDocuments.settled() }
        await cache.store.flush()
        cache.memory.removeAll()
        let result = try await cache.store.clean(filter, progress: progress)
        fetches.invalidations.noteCleaning()
        cache.memory.removeAll()
        return result
    }

    /// Copies the store into a file, with everything that has come by now.
    ///
    /// - Parameter use: what is done with the complete file before another copy may be made.
    package func save<Value: Sendable>(to path: String, use: @Sendable () -> Value) async throws(StoreError) -> Value {
        await cache.store.flush()
        return try await cache.store.save(to: path, principalKey: principals.keyDigest, use: use)
    }

    /// Puts the content of a copy in the place of the store's, everywhere; fetches that have begun store nothing.
    package func load(_ path: String, replacing: Bool) async throws(StoreError) -> LoadResult {
        fetches.cleaned()
        liveDocuments.forgetAll()
        defer { liveDocuments.settled() }
        await cache.store.flush()
        let result = try await cache.store.load(path, principalKey: principals.keyDigest, replacing: replacing)
        fetches.invalidations.noteCleaning()
        cache.memory.removeAll()
        return result
    }
}
