import GRDB

/// Principals: digests, surrogate ids, labels.
extension WriteSession {
    /// The id of a digest, made if there is none.
    func principal(_ digest: [UInt8]) throws -> PrincipalID {
        let known = try query("SELECT id FROM _principals WHERE digest = ?").first(.blob(digest)) {
            $0.id(0, as: PrincipalID.self)
        }
        if let known { return known }
        // Not the table's choice, which would give the number of one that was forgotten to the next.
        let id = numbers.principal.increment()
        try query("INSERT INTO _principals (id, digest, label) VALUES (?, ?, ?)")
            .run(.id(id), .blob(digest), .string(ObjectStore.label(ofPrincipal: digest)))
        return id
    }

    /// Forgets the principals of whom nothing is kept, but for the latest, and the scopes and names that nothing uses.
    ///
    /// Credentials and contexts are the clients' to choose: those that differ with each request would fill the file with
    /// rows that no eviction touches. Not within a batch.
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
            .run(.id(PrincipalID.anonymous), .id(last))
        names.forget()
    }

    /// What people call a principal; nil where it has been forgotten, and nothing must be kept of it.
    func principalLabel(_ id: PrincipalID) throws -> String? {
        try query("SELECT label FROM _principals WHERE id = ?").first(.id(id)) { $0.string(0) }
    }

    /// Gives those who have something in the file, but were forgotten, a row again, so that it can be listed, cleaned and
    /// evicted; nobody's credentials lead to it.
    func adoptOrphans() throws {
        var orphans: [PrincipalID] = []
        try query("SELECT DISTINCT principal FROM _scopes WHERE principal NOT IN (SELECT id FROM _principals)")
            .each { orphans.append($0.id(0)) }
        for id in orphans {
            let digest = (0..<32).map { _ in UInt8.random(in: .min ... .max) }
            try query("INSERT INTO _principals (id, digest, label) VALUES (?, ?, ?)")
                .run(.id(id), .blob(digest), .string(ObjectStore.label(ofPrincipal: digest)))
        }
    }
}
