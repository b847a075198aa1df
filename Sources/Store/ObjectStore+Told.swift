/// What readers of live answers were told.
extension ObjectStore {
    /// Notes durably enough for a crash what is about to be told of a subject, and numbers it.
    ///
    /// The same content told again has the number of the first time, also after a restart, as long as nothing else was told
    /// in between: who comes back with that number has seen it. So what is told must be told after this has returned.
    ///
    /// - Parameters:
    ///   - subject: which document it is, and in which view.
    ///   - content: a digest of what is told; nil where nothing of it may be kept: it is never known again.
    /// - Returns: a commit sequence; see `publicSequence`.
    public func tell(_ subject: Digest128, content: Digest128?) async throws(StoreError) -> Int64 {
        let (subject, content) = (Int64(bitPattern: subject.low), content.map { Int64(bitPattern: $0.low) })
        return try await core.write(.prompt) { try $0.tell(subject, content: content) }
    }
}
