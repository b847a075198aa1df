import GRDB
import Mapping

/// Deletes documents, and what only they needed.
extension WriterSession {
    /// Deletes a document and everything that only it needed.
    ///
    /// - Parameters:
    ///   - isNotified: whether the listener drops what memory has under the document's key.
    ///   - isErased: whether its URL is erased too, which otherwise stays as the source of its observation.
    func deleteDocument(_ id: DocumentID, notifying isNotified: Bool = true, erasingURL isErased: Bool = false) throws {
        let found = try query("SELECT scope, url, observation FROM _documents WHERE id = ?")
            .first(id) {
                (scope: $0.id(0, as: ScopeID.self), url: $0.string(1), observation: $0.id(2, as: ObservationID.self))
            }
        guard let found else { return }
        let scope = try names.scope(found.scope, in: database)
        if let bytes = deletedBytes { deletedBytes = bytes + (try query(StoreCount.bytesOfDocument).integer(id) ?? 0) }
        for pin in try StoredBody.pins(of: id, in: database) { try unpin(pin) }
        try use(found.observation, by: -1)
        if !isErased { try setSource("GET \(found.url)", of: found.observation) }
        try releaseSharedBody(of: id)
        try query("DELETE FROM _bodies WHERE document = ?").run(id)
        try query("DELETE FROM _used WHERE document = ?").run(id)
        try query("DELETE FROM _undivided WHERE document = ?").run(id)
        try query("DELETE FROM _documents WHERE id = ?").run(id)
        let digest = hasher.digest(scope.key(ofURL: found.url))
        effects.vanished.insert(digest)
        if isNotified { effects.removed.append(digest) }
    }

    func deleteDocuments(at key: CacheKey) throws {
        for id in try documents(at: key, under: hasher.digest(key)) { try deleteDocument(id) }
    }

    private func unpin(_ pin: Pin) throws {
        guard let record = try record(pin.object) else { return }
        if let index = record.index(of: pin.version) {
            record.entries[index].uses = max(record.entries[index].uses - 1, 0)
            record.isModified = true
        } else if record.spilledUses > 0,
            let uses = try query("SELECT uses FROM _spilled WHERE version = ?").integer(pin.version)
        {
            record.spilledUses = max(record.spilledUses - 1, 0)
            record.isModified = true
            if uses > 1 { return try query("UPDATE _spilled SET uses = uses - 1 WHERE version = ?").run(pin.version) }
            try query("DELETE FROM _spilled WHERE version = ?").run(pin.version)
            try release(pin.version)
        }
    }

    /// Evicts objects that no document shows and that were last observed up to a time in seconds; returns how many.
    func evictOrphans(until time: Int64, limit: Int) throws -> Int {
        let found = try query("SELECT object FROM _orphans WHERE since <= ? LIMIT ?")
            .all(time, limit) { $0.id(0, as: ObjectID.self) }
        guard !found.isEmpty else { return 0 }
        for id in found { try eraseKnowledge(of: id) }
        try refuseShared(until: (min(time, seconds) + 1) * 1_000_000)
        // Mapped views may show objects that no document shows.
        _ = nextSequence()
        effects.changed += found
        return found.count
    }

    /// Erases all that is known of an object; the flush then deletes its rows, except versions that documents pin.
    func eraseKnowledge(of id: ObjectID) throws {
        guard let record = try record(id) else {
            try query("DELETE FROM _orphans WHERE object = ?").run(id)
            return
        }
        try eraseValues(of: record)
        record.accumulated = []
        record.deletedSince = nil
        record.setMark(nil)
    }

    /// Erases the settled values of an object, but not its mark, nor what its policies gather.
    func eraseValues(of record: ObjectRecord) throws {
        try releaseBase(of: record)
        try setKnowledge(.whole(isEmbedded: false), of: record)
        record.merged = nil
        record.isModified = true
    }

    /// Takes back that the base version is what is known.
    func releaseBase(of record: ObjectRecord) throws {
        guard let base = record.base else { return }
        try use(base.observation, by: -1)
        record.entries[0].observation = .zero
    }

    /// Deletes the versions of an object that nothing needs any more, and its rows if none is left, in the flush of a
    /// batch; returns whether it is gone.
    func deleteUnusedVersions(of record: ObjectRecord) throws -> Bool {
        for entry in record.entries where entry.uses == 0 && entry.observation == .zero {
            // An object that stays is not removed, however many of its versions go.
            try release(entry.version, isCounted: record.isEmpty)
        }
        record.entries.removeAll { $0.uses == 0 && $0.observation == .zero }
        if record.isEmpty { try deleteObjectRows(of: record) }
        return record.isEmpty
    }

    private func deleteObjectRows(of record: ObjectRecord) throws {
        guard record.isStored else {
            try query("DELETE FROM _keys WHERE object = ?").run(record.id)
            return
        }
        hasRemovedObjects = true
        try writeName(of: record)
        if record.mark != nil || record.markSource != .none { try deleteMarkSource(of: record) }
        try query("DELETE FROM _objects WHERE id = ?").run(record.id)
        try query("DELETE FROM _orphans WHERE object = ?").run(record.id)
        try query("DELETE FROM _keys WHERE object = ?").run(record.id)
    }
}
