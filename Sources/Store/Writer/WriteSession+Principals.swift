import GRDB

/// Principals: digests, surrogate ids, labels.
extension WriteSession {
    /// The id of a digest, made if there is none.
    func principal(_ digest: [UInt8]) throws -> PrincipalID {
        try query("INSERT OR IGNORE INTO _principals (digest, label) VALUES (?, ?)")
            .run(.blob(digest), .string(Store.label(ofPrincipal: digest)))
        let id = try query("SELECT id FROM _principals WHERE digest = ?")
            .first(.blob(digest)) { $0.integer(0) }
        guard let id else { throw StoreError.corrupt("a principal just written is not there") }
        return id
    }

    func principalLabel(_ id: PrincipalID) throws -> String {
        try query("SELECT label FROM _principals WHERE id = ?").first(.integer(id)) { $0.string(0) } ?? ""
    }
}
