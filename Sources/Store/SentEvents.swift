import GRDB
import Mapping

/// Records what was last sent to readers of live responses, so that they can resume after a break, even of the daemon.
extension ObjectStore {
    /// Records an event about a subject before it is sent, and numbers it by a commit sequence; see `publicSequence`.
    ///
    /// The record survives a crash of the process. The same content keeps its number, even after a restart, as long as
    /// nothing else was sent in between: a reader that returns with this number has seen the content. So send only
    /// after this function has returned.
    ///
    /// - Parameters:
    ///   - subject: identifies a document in one view.
    ///   - content: a digest of what is sent. Nil if nothing of it may be stored; it is then never recognised again.
    public func recordSent(_ subject: Digest128, content: Digest128?) async throws(StoreError) -> CommitNumber {
        let (subject, content) = (Int64(bitPattern: subject.low), content.map { Int64(bitPattern: $0.low) })
        return try await core.commit(.event, .prompt) { try $0.recordSent(subject, content: content) }
    }
}

extension WriterSession {
    /// How many subjects are kept; beyond that, those sent longest ago are forgotten.
    private static let sentLimit: Int64 = 16_384

    /// Records an event about a subject; returns the commit sequence at which it was first sent.
    func recordSent(_ subject: Int64, content: Int64?) throws -> CommitNumber {
        let known = try query("SELECT sequence, content FROM _told WHERE subject = ?")
            .first(subject) { (sequence: $0.id(0, as: CommitNumber.self), content: $0.isNull(1) ? nil : $0.integer(1)) }
        if let known, let content, known.content == content { return known.sequence }
        let sequence = nextSequence()
        try query("INSERT OR REPLACE INTO _told VALUES (?, ?, ?)").run(subject, sequence, content)
        if known == nil { try trimSentEvents() }
        return sequence
    }

    /// Forgets the oldest subjects if there are too many; it drops a quarter at once, because it reads all of them.
    private func trimSentEvents() throws {
        let count = try sentCount ?? (query("SELECT count(*) FROM _told").integer() ?? 0)
        sentCount = count + 1
        guard count > Self.sentLimit else { return }
        try query("DELETE FROM _told WHERE subject IN (SELECT subject FROM _told ORDER BY sequence LIMIT ?)")
            .run(count - Self.sentLimit * 3 / 4)
        sentCount = nil
    }

    func eraseSentEvents() throws {
        try query("DELETE FROM _told").run()
        sentCount = nil
    }
}
