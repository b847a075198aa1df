public import Mapping

/// Marks of writes that are under way: what a crash would leave in doubt.
extension ObjectStore {
    /// Marks URLs that a write is about to change; on disk before it returns.
    ///
    /// If the process dies before it is settled, opening the store removes their documents, those that the patterns match,
    /// and takes the objects, that of the path and those that these documents are about, for changed.
    public func markSuspect(
        upstream: String,
        urls: [String],
        object: BoundObject? = nil,
        patterns: [InvalidationPattern] = []
    ) async throws(StoreError) -> SuspectID {
        try await core.write(.durable) { session in
            try session.markSuspect(upstream: upstream, urls: urls, object: object, patterns: patterns)
        }
    }

    /// Takes a mark off; durably.
    public func settle(_ suspect: SuspectID) async throws(StoreError) {
        try await core.write(.durable) { try $0.settle(suspect) }
    }
}
