import GRDB
import Mapping

extension WriterSession {
    func documents(of key: CacheKey, under digest: Digest128, variant: [UInt8]) throws
        -> [(id: DocumentID, observation: ObservationID)]
    {
        try query("SELECT id, observation, scope FROM _documents WHERE low = ? AND url = ? AND variant = ?")
            .all(digest, key.url, variant) { row in
                try names.scope(row.id(2), in: database).isOfKey(key) ? (row.id(0), row.id(1)) : nil
            }.compactMap(\.self)
    }

    /// Deletes the oldest variants of a key, so that one more is within the limit.
    func displaceVariants(of key: CacheKey, under digest: Digest128) throws {
        let surplus = try documents(at: key, under: digest).dropFirst(ObjectStore.variantLimit - 1)
        // The listener is not notified, because it would drop the other variants too.
        for id in surplus { try deleteDocument(id, notifying: false) }
    }

    func documents(at key: CacheKey, under digest: Digest128) throws -> [DocumentID] {
        try query("SELECT id, scope FROM _documents WHERE low = ? AND url = ? ORDER BY id DESC")
            .all(digest, key.url) { row in
                try names.scope(row.id(1), in: database).isOfKey(key) ? row.id(0, as: DocumentID.self) : nil
            }.compactMap(\.self)
    }

    /// Whether there are documents under a key, or under one that shares half its digest.
    func hasDocuments(under digest: Digest128) throws -> Bool {
        try query("SELECT 1 FROM _documents WHERE low = ? LIMIT 1").integer(digest) != nil
    }

    /// A document whose objects have been merged.
    struct NewDocument {
        var key: CacheKey
        var variant: [UInt8]
        var status: Int64
        /// The length of the body as received.
        var length: Int64
        var head: [UInt8]
        var policy: [UInt8]
        var pins: [Pin]
        var skeleton: [UInt8]?
        /// The body, where there is no skeleton.
        var literal: [UInt8]
        var keyed: [Int]
        /// Whether it is not known which objects it contains.
        var isUndivided: Bool
        var coverage: TagCoverage?
        /// As in `ReceivedDocument`.
        var resembled: DocumentID?
    }

    /// Writes the rows of a document; `verified` is the commit sequence at which it shows the newest values, or 0.
    func insert(
        _ document: NewDocument,
        digest: Digest128,
        pathHash: Int64,
        scope: ScopeID,
        observation: ObservationID,
        verified: CommitNumber
    ) throws -> DocumentID {
        let id = numbers.document.increment()
        try use(observation, by: 1)
        try query(
            """
            INSERT INTO _documents
            (id, low, place, scope, url, variant, status, observation, verified, length, head, policy, covered)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """
        ).run(values: [
            id, digest, pathHash, scope, document.key.url, document.variant, document.status, observation, verified,
            document.length, document.head, document.policy, document.coverage?.rawValue,
        ])
        let shared = try document.resembled.flatMap { try share(document, with: $0) }
        let literal = shared == nil && document.skeleton == nil ? document.literal : nil
        let compressed = literal.flatMap(compressor.compress)
        try query(
            """
            INSERT INTO _bodies (document, pins, skeleton, body, keyed, shared, compressed)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """
        ).run(values: [
            id, Pins.encode(document.pins), shared == nil ? document.skeleton : nil,
            compressed == nil ? literal : nil,
            shared == nil && !document.keyed.isEmpty ? StoredBody.encode(document.keyed).sql : .null, shared,
            compressed,
        ])
        try query("INSERT INTO _used VALUES (?, ?)").run(id, seconds)
        if document.isUndivided { try query("INSERT INTO _undivided VALUES (?, ?)").run(id, document.key.upstream) }
        // This must precede the commit: a look-up must never miss a stored document.
        presence.insert([digest.low])
        effects.inserted.append(digest)
        effects.vanished.remove(digest)
        return id
    }

    /// Removes every document of these paths, and blocks responses to requests sent until a time.
    ///
    /// Responses to later requests show the new state. They are stored, because their clients have seen it.
    func invalidate(_ paths: some Sequence<String>, of upstream: UpstreamKey, at time: Int64) throws {
        for path in paths {
            let pathHash = hasher.pathHash(upstream: upstream, url: path)
            bans.banPath(pathHash, at: time, knownAt: clock.now())
            let found = try query("SELECT id FROM _documents WHERE place = ?")
                .all(pathHash) { $0.id(0, as: DocumentID.self) }
            for id in found { try deleteDocument(id) }
        }
    }

    /// Records that documents showed the newest values at a commit sequence.
    func verify(_ documents: [DocumentID], at sequence: CommitNumber) throws {
        for id in documents {
            try query("UPDATE _documents SET verified = ?1 WHERE id = ?2 AND verified < ?1").run(sequence, id)
        }
    }

    func touch(_ documents: [DocumentID], at seconds: Int64) throws {
        for id in documents { try query("UPDATE _used SET at = ?1 WHERE document = ?2 AND at < ?1").run(seconds, id) }
    }

    /// Removes the documents with too many objects to decompose of an upstream, any of which a write or a delivery may
    /// have changed (law 10), and blocks such responses to earlier requests.
    func invalidateUndivided(of upstream: UpstreamKey, at time: Int64) throws {
        bans.written(to: upstream, at: time)
        let found = try query("SELECT document FROM _undivided WHERE upstream = ?")
            .all(upstream) { $0.id(0, as: DocumentID.self) }
        for id in found { try deleteDocument(id) }
    }
}
