import GRDB

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

/// What readers of live answers were told last.
extension WriterSession {
    /// How many subjects are remembered; past it the ones told longest ago go.
    private static let toldLimit: Int64 = 16_384

    /// Notes what is told of a subject; gives the commit sequence at which it was told first.
    func tell(_ subject: Int64, content: Int64?) throws -> Int64 {
        let known = try query("SELECT sequence, content FROM _told WHERE subject = ?")
            .first(.integer(subject)) { (sequence: $0.integer(0), content: $0.isNull(1) ? nil : $0.integer(1)) }
        if let known, let content, known.content == content { return known.sequence }
        let sequence = nextSequence()
        try query("INSERT OR REPLACE INTO _told VALUES (?, ?, ?)")
            .run(.integer(subject), .integer(sequence), content.map { .integer($0) } ?? .null)
        if known == nil { try forgetTold() }
        return sequence
    }

    /// Forgets the oldest when there are too many; a quarter at once, since it takes a look at all of them.
    private func forgetTold() throws {
        let count = try told ?? (query("SELECT count(*) FROM _told").first { $0.integer(0) } ?? 0)
        told = count + 1
        guard count > Self.toldLimit else { return }
        try query(
            "DELETE FROM _told WHERE subject IN (SELECT subject FROM _told ORDER BY sequence LIMIT ?)"
        ).run(.integer(count - Self.toldLimit * 3 / 4))
        told = nil
    }

    /// Forgets all that was told, as a cleaning must.
    func forgetAllTold() throws {
        try query("DELETE FROM _told").run()
        told = nil
    }
}
