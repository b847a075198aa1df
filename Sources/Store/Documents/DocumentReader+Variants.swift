import GRDB

extension DocumentReader {
    /// The variants under a key without their bodies, the newest first; bounded by the limit on variants.
    func variants(at key: DocumentKey, digest: Digest128) throws -> [StoredVariant] {
        var found: [(variant: StoredVariant, id: DocumentID, verified: Int64)] = []
        try Query(
            database,
            """
            SELECT d.variant, d.head, d.policy, d.id, d.verified
            FROM _documents d
            JOIN _scopes s ON s.id = d.scope AND s.principal = ?3
            JOIN _names u ON u.id = s.upstream AND u.text = ?4
            JOIN _names x ON x.id = s.context AND \(ObjectContext.isOfKey("x.text", "?5"))
            WHERE d.low = ?1 AND d.url = ?2 ORDER BY d.id DESC LIMIT ?6
            """
        ).each(
            .integer(Int64(bitPattern: digest.low)),
            .string(key.url),
            .id(key.principal),
            .string(key.upstream),
            .string(key.context),
            .integer(Int64(ObjectStore.variantLimit))
        ) { row in
            let variant = StoredVariant(
                variant: row.bytes(0),
                head: row.bytes(1),
                policy: row.bytes(2),
                isSuspicious: false
            )
            found.append((variant, row.id(3), row.integer(4)))
        }
        return try found.map { entry in
            var variant = entry.variant
            variant.isSuspicious = try isSuspicious(entry.id, verified: entry.verified)
            return variant
        }
    }

    /// The documents of a URL, whoever asked for it and in whatever context, the newest first.
    func documents(ofURL url: String, upstream: String, place: Int64, limit: Int) throws -> [DocumentOfURL] {
        var found: [DocumentOfURL] = []
        try Query(
            database,
            """
            SELECT p.label, x.text, d.variant, d.status, d.policy
            FROM _documents d
            JOIN _scopes s ON s.id = d.scope
            JOIN _names u ON u.id = s.upstream AND u.text = ?3
            JOIN _principals p ON p.id = s.principal
            JOIN _names x ON x.id = s.context
            WHERE d.place = ?1 AND d.url = ?2 ORDER BY d.id DESC LIMIT ?4
            """
        ).each(.integer(place), .string(url), .string(upstream), .integer(Int64(limit))) { row in
            found.append(
                DocumentOfURL(
                    principal: row.string(0),
                    context: ObjectContext.key(of: row.string(1)),
                    variant: row.bytes(2),
                    status: Int(row.integer(3)),
                    policy: row.bytes(4)
                )
            )
        }
        return found
    }

    private func isSuspicious(_ id: DocumentID, verified: Int64) throws -> Bool {
        guard changed > verified else { return false }
        let objects = Set(try StoredBody.pins(of: id, in: database).map(\.object))
        return try !StoredBody.suspects(among: objects, since: verified, in: database).isEmpty
    }
}
