/// The journal of changes: what became of which object, in the order of the commits.
extension ObjectStore {
    /// Says what is to be called after each commit with a change in it; at most one.
    ///
    /// On the writer's thread: it must be quick, and must not wait for the store.
    public func onChanges(_ tell: @escaping @Sendable () -> Void) {
        core.onChanges = tell
    }

    /// The changes after a commit sequence, so many at most; nil if the configuration has no journal kept.
    ///
    /// Every change after `start` is in one page or the next, once, so long as `start` is not below the page's floor. Names
    /// are as they are today: a change of an object that a clean has removed is only counted.
    ///
    /// - Parameter values: whether each object's newest known members are wanted, as they are now.
    public func changes(after start: Int64, limit: Int, values: Bool = false) async throws(StoreError) -> ChangePage? {
        let models = core.models
        let found = try await core.read { database in
            var reader = ChangeReader(database, models: models)
            return try reader.page(after: start, limit: max(limit, 1), values: values)
        }
        guard var page = found else { return nil }
        for index in page.changes.indices {
            page.changes[index].upstream = core.label(ofUpstream: page.changes[index].upstream)
        }
        // The writer may have committed what it has not told yet; what is handed out must be known again.
        core.publicNumbers.advance(to: page.end)
        return page
    }
}
