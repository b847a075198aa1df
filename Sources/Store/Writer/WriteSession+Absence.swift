import GRDB
import Mapping

/// Retrievals that found nothing.
extension WriteSession {
    /// Marks what a retrieval did not find: the object that its path names, or the one that the document under its key is
    /// about.
    ///
    /// It is deleted if the path names it by its identity. A path that names it by anything else, such as a login, may have
    /// been given up by an object that was renamed: then nobody knows how the object is now.
    func note(_ absence: ObservedAbsence) throws {
        let key = absence.key
        guard let models = models[key.upstream]?.models, !models.declarations.isEmpty else { return }
        var owner = try ownership(upstream: key.upstream, principal: key.principal, context: key.context)
        guard try principalLabel(key.principal) != nil, let object = try absence.named ?? root(at: key, owner) else {
            return
        }
        _ = nextSequence()
        if owner.scope == nil {
            // Of the first answers of a scope some may be on their way; that none has arrived yet makes no difference to them.
            owner = try newOwnership(upstream: key.upstream, principal: key.principal, context: key.context)
        }
        let path = String(key.url.beforeQuery)
        let isIdentified = absence.named?.identity != nil || isNamed(object, by: path, nil)
        try mark(
            object,
            of: key.upstream,
            own: isIdentified ? .tombstone(absence.start) : .unobserved(absence.start),
            for: owner,
            others: nil,
            by: MarkSource(method: absence.method, path: path)
        )
    }

    func root(at key: DocumentKey, _ owner: Ownership) throws -> BoundObject? {
        guard let scope = owner.scope else { return nil }
        var found: [DocumentID] = []
        try query("SELECT id FROM _documents WHERE low = ? AND scope = ? AND url = ?").each(
            .integer(Int64(bitPattern: hasher.digest(key).low)),
            .id(scope),
            .string(key.url)
        ) { found.append($0.id(0)) }
        for id in found {
            guard let skeleton = try StoredBody(document: id, in: database).skeleton,
                let name = Reference.root(of: skeleton)
            else { continue }
            return BoundObject(model: name.model, identity: name.identity)
        }
        return nil
    }
}
