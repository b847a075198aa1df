import GRDB
import Mapping

/// Reads and writes the rows of documents.
extension WriterSession {
    func documents(
        of key: DocumentKey,
        under digest: Digest128,
        variant: [UInt8]
    ) throws -> [(id: DocumentID, observation: Int64)] {
        try query("SELECT id, observation, scope FROM _documents WHERE low = ? AND url = ? AND variant = ?").all(
            .integer(Int64(bitPattern: digest.low)),
            .string(key.url),
            .blob(variant)
        ) { row in
            try names.scope(row.id(2), in: database).isOfKey(key) ? (row.id(0), row.integer(1)) : nil
        }.compactMap(\.self)
    }

    /// Deletes the oldest variants of a key, so that one more is within the limit.
    func displaceVariants(of key: DocumentKey, under digest: Digest128) throws {
        let surplus = try documents(at: key, under: digest).dropFirst(ObjectStore.variantLimit - 1)
        // The listener is not notified, because it would drop the other variants too.
        for id in surplus { try delete(id) }
    }

    /// The documents under a key, newest first.
    func documents(at key: DocumentKey, under digest: Digest128) throws -> [DocumentID] {
        try query("SELECT id, scope FROM _documents WHERE low = ? AND url = ? ORDER BY id DESC").all(
            .integer(Int64(bitPattern: digest.low)),
            .string(key.url)
        ) { row in
            try names.scope(row.id(1), in: database).isOfKey(key) ? row.id(0, as: DocumentID.self) : nil
        }.compactMap(\.self)
    }

    /// Whether there are documents under a key, or under one that shares half its digest.
    func hasDocuments(under digest: Digest128) throws -> Bool {
        try query("SELECT 1 FROM _documents WHERE low = ? LIMIT 1").integer(.integer(Int64(bitPattern: digest.low)))
            != nil
    }

    /// A document whose objects have been merged.
    struct NewDocument {
        var key: DocumentKey
        var variant: [UInt8]
        var status: Int64
        /// The length of the body as received.
        var length: Int64
        var head: [UInt8]
        var policy: [UInt8]
        var pins: [Pin]
        /// Nil: the body is stored as it is.
        var skeleton: [UInt8]?
        /// The body, where there is no skeleton.
        var literal: [UInt8]
        var keyed: [Int]
        /// Whether it is not known which objects it contains.
        var isUndivided: Bool
    }

    /// Writes the rows of a document.
    ///
    /// - Parameter verified: the commit sequence at which it shows the newest values, or 0 if it does not.
    func insert(
        _ document: NewDocument,
        digest: Digest128,
        place: Int64,
        scope: ScopeID,
        observation: Int64,
        verified: Int64
    ) throws -> DocumentID {
        let id = numbers.document.increment()
        try use(observation, by: 1)
        try query("INSERT INTO _documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)").run(
            .id(id),
            .integer(Int64(bitPattern: digest.low)),
            .integer(place),
            .id(scope),
            .string(document.key.url),
            .blob(document.variant),
            .integer(document.status),
            .integer(observation),
            .integer(verified),
            .integer(document.length),
            .blob(document.head),
            .blob(document.policy)
        )
        try query("INSERT INTO _bodies VALUES (?, ?, ?, ?, ?)").run(
            .id(id),
            .blob(Pins.encode(document.pins)),
            document.skeleton.map(SQLValue.blob) ?? .null,
            document.skeleton == nil ? .blob(document.literal) : .null,
            document.keyed.isEmpty ? .null : .blob(StoredBody.encode(document.keyed))
        )
        try query("INSERT INTO _used VALUES (?, ?)").run(.id(id), .integer(seconds))
        if document.isUndivided { try noteUndivided(id, of: document.key.upstream) }
        // This must precede the commit: a look-up must never miss a stored document.
        presence.insert([digest.low])
        outcome.inserted.append(digest)
        outcome.vanished.remove(digest)
        return id
    }

    /// Deletes a document and everything that only it needed, without notifying the listener.
    ///
    /// - Parameter isForgotten: whether its URL is forgotten too, as the source of its observation.
    @discardableResult
    func delete(_ id: DocumentID, isForgotten: Bool = false) throws -> Digest128? {
        let found = try query("SELECT scope, url, observation FROM _documents WHERE id = ?")
            .first(.id(id)) { (scope: $0.id(0, as: ScopeID.self), url: $0.string(1), observation: $0.integer(2)) }
        guard let found else { return nil }
        let scope = try names.scope(found.scope, in: database)
        if let bytes = deletedBytes {
            deletedBytes = bytes + (try query(StoreCount.bytesOfDocument).integer(.id(id)) ?? 0)
        }
        try unpin(try StoredBody.pins(of: id, in: database))
        try use(found.observation, by: -1)
        if !isForgotten { try note(source: "GET \(found.url)", of: found.observation) }
        try query("DELETE FROM _bodies WHERE document = ?").run(.id(id))
        try query("DELETE FROM _used WHERE document = ?").run(.id(id))
        try query("DELETE FROM _undivided WHERE document = ?").run(.id(id))
        try query("DELETE FROM _documents WHERE id = ?").run(.id(id))
        let digest = hasher.digest(
            DocumentKey(
                upstream: scope.upstream,
                principal: scope.principal,
                context: ObjectContext.key(of: scope.context),
                url: found.url
            )
        )
        outcome.vanished.insert(digest)
        return digest
    }

    /// Deletes a document and notifies the listener.
    func remove(_ id: DocumentID, isForgotten: Bool = false) throws {
        guard let digest = try delete(id, isForgotten: isForgotten) else { return }
        outcome.removed.append(digest)
    }

    /// Deletes the documents under a key and notifies the listener.
    func remove(at key: DocumentKey) throws {
        for id in try documents(at: key, under: hasher.digest(key)) { try remove(id) }
    }

    /// Removes every document of a path, and blocks responses to requests sent before.
    func invalidate(_ target: InvalidationTarget) throws {
        let place = hasher.place(upstream: target.upstream, url: target.path)
        bans.invalidated(place: place, at: clock.now())
        let found = try query("SELECT id FROM _documents WHERE place = ?")
            .all(.integer(place)) { $0.id(0, as: DocumentID.self) }
        for id in found { try remove(id) }
    }

    /// Records that documents showed the newest values at a commit sequence.
    func verify(_ documents: [DocumentID], at sequence: Int64) throws {
        for id in documents {
            try query("UPDATE _documents SET verified = ?1 WHERE id = ?2 AND verified < ?1")
                .run(.integer(sequence), .id(id))
        }
    }

    /// Records that documents were used.
    func touch(_ documents: [DocumentID], at seconds: Int64) throws {
        for id in documents {
            try query("UPDATE _used SET at = ?1 WHERE document = ?2 AND at < ?1")
                .run(.integer(seconds), .id(id))
        }
    }
}

/// Handles documents with too many objects to decompose; a write may have changed any of these objects (law 10).
extension WriterSession {
    /// Whether such a document may show the state before a write, because its request was sent before the write's response
    /// came.
    func isOutdatedUndivided(_ document: ReceivedDocument, _ prepared: PreparedBody) -> Bool {
        guard prepared.isUndivided else { return false }
        return document.upstreamWrittenAt != nil || document.start <= lastWrites[document.key.upstream] ?? .min
    }

    /// Records that the objects in a document are unknown.
    func noteUndivided(_ id: DocumentID, of upstream: String) throws {
        try query("INSERT INTO _undivided VALUES (?, ?)").run(.id(id), .string(upstream))
    }

    /// Removes such documents of a write's upstream, for all principals, and blocks responses to earlier requests.
    func invalidateUndivided(by write: CompletedWrite) throws {
        lastWrites[write.upstream] = max(lastWrites[write.upstream] ?? .min, write.time)
        let found = try query("SELECT document FROM _undivided WHERE upstream = ?")
            .all(.string(write.upstream)) { $0.id(0, as: DocumentID.self) }
        for id in found { try remove(id) }
    }
}
