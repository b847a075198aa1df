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
        let surplus = try documents(at: key, under: digest).dropFirst(ObjectStore.storedVariantLimit - 1)
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
        let received: ReceivedDocument
        let prepared: PreparedBody
        let pins: [Pin]
        let coverage: TagCoverage?

        /// Nil if the body is stored as it is.
        var skeleton: [UInt8]? { prepared.isExact ? prepared.decomposed?.skeleton : nil }
        var keyed: [Int] { prepared.isExact ? prepared.decomposed?.keyed ?? [] : [] }
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
        let (id, received) = (numbers.document.increment(), document.received)
        try use(observation, by: 1)
        try query(
            """
            INSERT INTO _documents
            (id, low, place, scope, url, variant, status, observation, verified, length, head, policy, covered)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """
        ).run(values: [
            id, digest, pathHash, scope, received.key.url, received.variant, Int64(received.status), observation,
            verified, Int64(received.body.count), received.head, received.policy, document.coverage?.rawValue,
        ])
        let shared = try received.resembled.flatMap { try share(document, with: $0) }
        let (skeleton, keyed) = (document.skeleton, document.keyed)
        let literal = shared == nil && skeleton == nil ? received.body : nil
        let compressed = literal.flatMap(compressor.compress)
        try query(
            """
            INSERT INTO _bodies (document, pins, skeleton, body, keyed, shared, compressed)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """
        ).run(values: [
            id, Pins.encode(document.pins), shared == nil ? skeleton : nil, compressed == nil ? literal : nil,
            shared == nil && !keyed.isEmpty ? StoredBody.encode(keyed).sql : .null, shared, compressed,
        ])
        try query("INSERT INTO _used VALUES (?, ?)").run(id, seconds)
        if document.prepared.isUndivided {
            try query("INSERT INTO _undivided VALUES (?, ?)").run(id, received.key.upstream)
        }
        // This must precede the commit: a look-up must never miss a stored document.
        presence.insert([digest.low])
        effects.inserted.append(digest)
        effects.vanished.remove(digest)
        return id
    }

    /// Removes every document of an invalidation's paths, and blocks responses to requests sent until its time.
    ///
    /// Responses to later requests show the new state. They are stored, because their clients have seen it.
    ///
    /// - Parameter isLate: whether it comes from another machine, so that documents requested after its time are there and stay.
    func removePaths(of invalidation: Invalidation, isLate: Bool = false) throws {
        guard let upstream = invalidation.upstream else { return }
        for path in invalidation.paths {
            let pathHash = hasher.pathHash(upstream: upstream, url: path)
            bans.banPath(pathHash, at: invalidation.time, knownAt: clock.now())
            let found = try query("SELECT id, observation FROM _documents WHERE place = ?")
                .all(pathHash) { ($0.id(0, as: DocumentID.self), $0.id(1, as: ObservationID.self)) }
            for (id, observation) in found
            where try !isLate || self.observation(observation).start <= invalidation.time {
                try deleteDocument(id)
            }
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
