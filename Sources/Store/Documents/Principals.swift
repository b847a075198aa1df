import GRDB

/// Looks up principals: 32-byte digests outside, surrogate ids inside.
extension ObjectStore {
    /// The id of a principal's digest; a new one is made durable, unless another process keeps the writer waiting.
    public func principal(_ digest: [UInt8]) async throws(StoreError) -> PrincipalID {
        if let known = try await existingPrincipal(digest) { return known }
        return try await unlessBlocked { [core] () async throws(StoreError) in
            try await core.commit(.principal, .durable) { try $0.principal(digest) }
        }
    }

    /// The id of a principal's digest, if there is one; the empty digest is `anonymous`.
    public func existingPrincipal(_ digest: [UInt8]) async throws(StoreError) -> PrincipalID? {
        guard !digest.isEmpty else { return .anonymous }
        return try await core.read {
            try $0.query("SELECT id FROM _principals WHERE digest = ?").first(digest) { $0.id(0) }
        }
    }

    /// A principal's label: `anonymous`, or `p-` and eight hexadecimal digits of its digest.
    public static func label(ofPrincipal digest: [UInt8]) -> String {
        guard !digest.isEmpty else { return "anonymous" }
        return "p-" + digest.prefix(4).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

extension WriterSession {
    /// The id of a digest, created if needed.
    func principal(_ digest: [UInt8]) throws -> PrincipalID {
        let known = try query("SELECT id FROM _principals WHERE digest = ?").integer(digest)
        if let known { return PrincipalID(rawValue: known) }
        // SQLite itself would reuse the number of a forgotten principal.
        let id = numbers.principal.increment()
        try insert(id, digest)
        return id
    }

    private func insert(_ id: PrincipalID, _ digest: [UInt8]) throws {
        try query("INSERT INTO _principals (id, digest, label) VALUES (?, ?, ?)")
            .run(id, digest, ObjectStore.label(ofPrincipal: digest))
    }

    /// Removes all but the latest principals without data, and unused scopes and names; not within a batch.
    ///
    /// Clients choose credentials and contexts freely. If these differ with each request, they would fill the file with
    /// rows that no eviction removes.
    func forgetUnused(keepingPrincipalsAfter last: PrincipalID) throws {
        try query(
            """
            DELETE FROM _collections WHERE NOT EXISTS (SELECT 1 FROM _objects o WHERE o.collection = _collections.id)
            AND id NOT IN (SELECT collection FROM _gone)
            """
        ).run()
        try query(
            """
            DELETE FROM _scopes WHERE id NOT IN (SELECT scope FROM _documents)
            AND id NOT IN (SELECT scope FROM _collections)
            """
        ).run()
        try query(
            """
            DELETE FROM _names WHERE id NOT IN (SELECT upstream FROM _scopes) AND id NOT IN (SELECT context FROM _scopes)
            AND id NOT IN (SELECT model FROM _collections)
            """
        ).run()
        try query("DELETE FROM _principals WHERE id > ? AND id <= ? AND id NOT IN (SELECT principal FROM _scopes)")
            .run(PrincipalID.anonymous, last)
        names.forget()
    }

    /// The label of a principal; nil if it was forgotten; nothing of it must be stored then.
    func principalLabel(_ id: PrincipalID) throws -> String? { try names.label(of: id, in: database) }

    /// Gives forgotten principals that still have data a new row, so that the data can be listed, cleaned and evicted;
    /// no credentials lead to it.
    func restorePrincipals() throws {
        let sql: StaticString =
            "SELECT DISTINCT principal FROM _scopes WHERE principal NOT IN (SELECT id FROM _principals)"
        let forgotten = try query(sql).all { $0.id(0, as: PrincipalID.self) }
        for id in forgotten { try insert(id, (0..<32).map { _ in UInt8.random(in: .min ... .max) }) }
    }
}
