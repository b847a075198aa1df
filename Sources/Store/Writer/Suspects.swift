import GRDB
import Mapping

/// Records suspects: what a write in progress may change, in case of a crash.
extension ObjectStore {
    /// Records what a write is about to make outdated; the record is on disk when this returns.
    ///
    /// If the process dies before the suspect is cleared, the next opening of the store removes the documents of the
    /// paths and those that match the patterns. It also marks objects as changed: the given ones and those that these
    /// documents represent.
    public func markSuspect(_ invalidation: Invalidation) async throws(StoreError) -> SuspectID {
        try await core.commit(.suspect, .durable) { try $0.markSuspect(invalidation) }
    }

    /// Clears a suspect, durably.
    public func clear(_ suspect: SuspectID) async throws(StoreError) {
        try await core.commit(.suspect, .durable) { try $0.clear(suspect) }
    }
}

extension WriterSession {
    func markSuspect(_ invalidation: Invalidation) throws -> SuspectID {
        let suspect = numbers.suspect.increment()
        guard let upstream = invalidation.upstream else { return suspect }
        for path in invalidation.paths {
            try query("INSERT INTO _suspects VALUES (?, ?, ?)").run(suspect, upstream, path)
        }
        for object in invalidation.objects { try write(object, of: upstream, suspect: suspect) }
        for pattern in invalidation.patterns {
            try query("INSERT INTO _suspect_patterns VALUES (?, ?, ?, ?)")
                .run(suspect, upstream, pattern.base, pattern.pattern.text)
        }
        return suspect
    }

    private func write(_ object: BoundObject, of upstream: UpstreamKey, suspect: SuspectID) throws {
        let names: [(identity: String?, key: String?)] =
            object.identity.map { [($0, nil)] } ?? object.keys.map { (nil, $0) }
        for name in names {
            try query("INSERT INTO _suspect_objects VALUES (?, ?, ?, ?, ?)")
                .run(suspect, upstream, object.model, name.identity, name.key)
        }
    }

    func clear(_ suspect: SuspectID) throws {
        try query("DELETE FROM _suspects WHERE suspect = ?").run(suspect)
        try query("DELETE FROM _suspect_objects WHERE suspect = ?").run(suspect)
        try query("DELETE FROM _suspect_patterns WHERE suspect = ?").run(suspect)
    }

    /// Removes the documents of every suspect, and marks its objects: a write without a response counts as one that happened.
    func completeSuspectWrites() throws -> Int {
        let writes = try suspectWrites()
        guard !writes.isEmpty else { return 0 }
        for write in writes {
            _ = try complete(write, nil)
            for id in try write.invalidation.documentsOfPatterns(until: numbers.document, in: database) {
                try deleteDocument(id)
            }
        }
        try query("DELETE FROM _suspects").run()
        try query("DELETE FROM _suspect_objects").run()
        try query("DELETE FROM _suspect_patterns").run()
        return effects.removed.count
    }

    /// The writes that were in progress, each with one path, object or pattern; nothing else is known of them.
    private func suspectWrites() throws -> [CompletedWrite] {
        let now = clock.now()
        var writes: [CompletedWrite] = []
        // It has no principal: it may have changed the objects of every one.
        func makeWrite(_ upstream: UpstreamKey, path: String = "") -> CompletedWrite {
            CompletedWrite(upstream: upstream, principal: .nobody, context: "", path: path, time: now)
        }
        try query("SELECT DISTINCT upstream, url FROM _suspects").each { row in
            var suspect = makeWrite(row.upstream(0), path: row.string(1))
            suspect.paths = [suspect.path]
            writes.append(suspect)
        }
        try query("SELECT upstream, model, identity, key FROM _suspect_objects").each { row in
            var suspect = makeWrite(row.upstream(0))
            let (identity, keys) = (row.isNull(2) ? nil : row.string(2), row.isNull(3) ? [] : [row.string(3)])
            suspect.bound = BoundObject(model: row.string(1), identity: identity, keys: keys)
            writes.append(suspect)
        }
        try query("SELECT upstream, base, pattern FROM _suspect_patterns").each { row in
            var suspect = makeWrite(row.upstream(0))
            // The error would quote the text, which may come from a copy that anybody has made.
            guard let pattern = try? RoutePattern(row.string(2)) else {
                throw StoreError.corrupt("a write that was under way has a malformed pattern")
            }
            suspect.patterns = [InvalidationPattern(base: row.string(1), pattern: pattern)]
            writes.append(suspect)
        }
        return writes
    }
}
