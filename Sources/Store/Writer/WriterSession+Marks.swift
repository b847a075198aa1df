import GRDB
import Mapping

/// Marks deleted objects, and objects that a write may have changed.
extension WriterSession {
    /// Marks an object if it is known, and keeps the mark for later responses.
    ///
    /// - Parameters:
    ///   - own: the mark for the scope `owner`, which is nil if nothing of it is stored.
    ///   - others: the mark for all other scopes.
    func mark(
        _ object: BoundObject,
        of upstream: UpstreamKey,
        own: ObjectMark?,
        for owner: ScopeID?,
        others: ObjectMark?,
        of writer: PrincipalID,
        by source: MarkSource
    ) throws {
        for (record, scope) in try records(of: object, upstream: upstream) {
            guard let mark = try scope == owner ? own : others.map({ try mark($0, of: writer, for: scope) })
            else { continue }
            if source.isWrite { record.setWrite(at: mark.time) }
            try apply(mark, to: record, by: source)
        }
        if let own, let owner { remember(own, by: source, object, upstream, scope: owner) }
        if let others { remember(others, by: source, object, upstream, scope: nil, of: writer, exception: owner) }
    }

    /// A write's mark as it counts in a scope; of a write whose principal is not known every scope may be its own.
    func mark(_ mark: ObjectMark, of writer: PrincipalID, for scope: ScopeID) throws -> ObjectMark {
        let isOwn = try writer == .nobody || writer == names.scope(scope, in: database).principal
        return isOwn ? mark : mark.forOthers
    }

    private func remember(
        _ mark: ObjectMark,
        by source: MarkSource,
        _ object: BoundObject,
        _ upstream: UpstreamKey,
        scope: ScopeID?,
        of writer: PrincipalID = .nobody,
        exception: ScopeID? = nil
    ) {
        let forgotten = recentMarks.add(mark, of: writer, by: source, to: object, upstream, scope, except: exception)
        if let forgotten { bans.banEverything(until: forgotten) }
    }

    func apply(_ mark: ObjectMark, to record: ObjectRecord, by source: MarkSource? = nil, isJournaled: Bool = true)
        throws
    {
        if let known = record.mark, known.time >= mark.time { return }
        let mark = mark.replacing(record.mark)
        // Older values are kept for admin queries if nothing newer is known. Documents do not use them.
        if record.base != nil, case (let model, let models?) = try model(of: record) {
            var state = try state(of: record)
            // Its state at the deletion is unknown, so documents that still show it must not show an earlier one. What has been
            // seen since an unseen write may be a part of it.
            if mark.isTombstone, state.hasUnseenWrite {
                try eraseValues(of: record)
                state = try self.state(of: record)
            }
            // The object exists again. Whatever is older than the deletion shows another object of the same name.
            if mark.isTombstone, !state.isOutdated(by: mark, lag: models.lag) {
                state.drop(outdatedBy: mark, model: model, models: models.models, lag: models.lag)
                try apply(state, to: record, of: model, models: models)
                return try apply(.unobserved(mark.time, isReused: true), to: record, by: source, isJournaled: false)
            }
        }
        let wasGone = record.mark?.isTombstone == true || record.deletedSince != nil
        record.setMark(mark, by: source)
        // A second deletion is not journaled, though documents from in between may show the object.
        let isNews = isJournaled && !(mark.isTombstone && wasGone)
        markChanged(record, wasKnown: true, as: mark.isTombstone ? .deleted : .unknown, isJournaled: isNews)
    }

    /// Replaces values from before a mark by newer observations; after a tombstone, the object is a new one.
    func supersede(
        _ mark: ObjectMark,
        of record: ObjectRecord,
        by new: [Contribution],
        model: String,
        _ models: UpstreamModels
    ) throws {
        // What the response to a write leaves out stays in doubt, for which it must be known.
        let isWritten = !mark.isTombstone && new.contains { $0.observation.kind == .write && !$0.isEmbedded }
        if !isWritten, record.base != nil, try state(of: record).isOutdated(by: mark, lag: models.lag) {
            try eraseValues(of: record)
        }
        guard mark.isTombstone else { return }
        record.accumulated = []
        // Documents older than the deletion show another object of the same name.
        record.weakenTombstone()
        let scope = try names.collection(record.collection, in: database).scope
        recentMarks.weaken(
            tombstoneAt: mark.time,
            of: record.identity.text,
            keys: new.flatMap { models.models.keys(in: $0.payload, of: model).map(\.value) },
            model: model,
            upstream: try names.scope(scope, in: database).upstream,
            scope: scope
        )
    }

    /// Removes the marks of objects that a clean removes completely.
    func forgetMarks(matching filter: CleanFilter, base: String?) throws {
        guard filter.url == nil, filter.olderThan == nil else { return }
        // The model that a deleted object had within its cluster is no longer known.
        guard base == nil || filter.identity != nil else { return }
        let scopes = try query(
            """
            SELECT s.id FROM _scopes s JOIN _names u ON u.id = s.upstream AND (?1 IS NULL OR u.text = ?1)
            JOIN _principals p ON p.id = s.principal AND (?2 IS NULL OR p.label = ?2)
            """
        ).all(filter.upstream, filter.principal) { $0.id(0, as: ScopeID.self) }
        recentMarks.forget(
            model: base ?? filter.model,
            identity: filter.identity,
            upstream: filter.upstream,
            scopes: Set(scopes),
            isOfEverybody: filter.principal == nil
        )
    }

    /// Whether all known values of an object are newer than its mark.
    func isNewerThanMark(_ record: ObjectRecord) throws -> Bool {
        guard let mark = record.mark, record.base != nil, let lag = try model(of: record).1?.lag else { return false }
        return try state(of: record).isNewer(than: mark, lag: lag)
    }

    /// Writes the request that caused a mark, if the mark is new.
    func writeMarkSource(of record: ObjectRecord) throws {
        switch record.markSource {
        case .none: break
        case .removed: try deleteMarkSource(of: record)
        case .replaced(let source): try query("INSERT OR REPLACE INTO _marks VALUES (?, ?)").run(record.id, source.text)
        }
    }

    func deleteMarkSource(of record: ObjectRecord) throws {
        try query("DELETE FROM _marks WHERE object = ?").run(record.id)
    }

    // MARK: Look-ups

    /// The id of a scope; nil if nothing of it is stored.
    func existingScope(_ scope: NameTable.Scope) throws -> ScopeID? {
        try query(
            """
            SELECT s.id FROM _names u JOIN _names x ON x.text = ?3
            JOIN _scopes s ON s.upstream = u.id AND s.principal = ?2 AND s.context = x.id WHERE u.text = ?1
            """
        ).first(scope.upstream, scope.principal, scope.context) { $0.id(0) }
    }

    /// The known objects of a name, for every principal and context; reads each scope that has objects of the model.
    func records(of object: BoundObject, upstream: UpstreamKey) throws -> [(record: ObjectRecord, scope: ScopeID)] {
        var collections: [CollectionID: ScopeID] = [:]
        try query(
            """
            SELECT c.id, c.scope FROM _names u JOIN _scopes s ON s.upstream = u.id
            JOIN _collections c ON c.scope = s.id JOIN _names m ON m.id = c.model AND m.text = ?2 WHERE u.text = ?1
            """
        ).each(upstream, object.model) { collections[$0.id(0)] = $0.id(1) }
        if let identity = object.identity {
            return try collections.sorted { $0.key < $1.key }.compactMap { collection, scope in
                try existingRecord(collection: collection, identity: StoredIdentity(identity)).map { ($0, scope) }
            }
        }
        var found: [ObjectID: (record: ObjectRecord, scope: ScopeID)] = [:]
        for key in object.keys {
            let candidates = try query("SELECT object, bound FROM _keys WHERE value = ?")
                .all(keyHasher.keyHash(key)) { ($0.id(0, as: ObjectID.self), $0.integer(1) == 1) }
            for (id, isBound) in candidates where found[id] == nil {
                guard let record = try record(id), let scope = collections[record.collection],
                    try isBound || isKnown(record, by: key, model: object.model, upstream: upstream)
                else { continue }
                found[id] = (record, scope)
            }
        }
        return found.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Whether an object still has a key with this value, or may have it: the index also contains earlier values.
    ///
    /// After a write that showed nothing, its keys may not be known: then it may still have any that it had.
    private func isKnown(_ record: ObjectRecord, by key: String, model: String, upstream: UpstreamKey) throws -> Bool {
        guard let models = models[upstream]?.models else { return false }
        let state = try state(of: record)
        let newest = state.newestPayload(model: model, models: models).map { models.keys(in: $0, of: model) } ?? []
        let challenged =
            state.challengedPayload(model: model, models: models).map { models.keys(in: $0, of: model) } ?? []
        return newest.count < models.keyCount(of: model)
            || (newest + challenged).contains { $0.value.utf8.elementsEqual(key.utf8) }
    }

    /// Marks the object that a retrieval did not find: the one that its path identifies, or the one that the document
    /// under its key represents.
    ///
    /// If the path contains the object's identity, the object is deleted. If it contains a key, such as a login, the
    /// object may only have been renamed, so its state is unknown.
    func write(_ absence: ObservedAbsence) throws {
        let key = absence.key
        guard let models = models[key.upstream]?.models, !models.declarations.isEmpty else { return }
        var owner = try existingScope(NameTable.Scope(of: key))
        guard try principalLabel(key.principal) != nil, let object = try absence.named ?? root(at: key, owner)
        else { return }
        _ = nextSequence()
        // The first responses of this scope may be under way: the mark must exist for them.
        owner = try owner ?? scope(NameTable.Scope(of: key))
        let path = String(key.url.beforeQuery)
        let isIdentified = absence.named?.identity != nil || isNamed(object, by: path, nil)
        try mark(
            object,
            of: key.upstream,
            own: isIdentified ? .tombstone(absence.start) : .unobserved(absence.start),
            for: owner,
            others: nil,
            of: key.principal,
            by: MarkSource(method: absence.method, path: path)
        )
    }

    /// The object that the document under a key represents.
    func root(at key: CacheKey, _ owner: ScopeID?) throws -> BoundObject? {
        guard let owner else { return nil }
        return try query("SELECT id FROM _documents WHERE low = ? AND scope = ? AND url = ?")
            .all(hasher.digest(key), owner, key.url) { try root(of: $0.id(0)) }.lazy.compactMap(\.self).first
    }

    /// The object that a document represents; nil for a list.
    func root(of document: DocumentID) throws -> BoundObject? {
        try StoredBody(document: document, in: database).skeleton.flatMap(Reference.root)
            .map { BoundObject(model: $0.model, identity: $0.identity) }
    }
}

/// The request that deleted an object, or made its state unknown.
public struct MarkSource: Sendable, Hashable {
    /// The method; nil for a write that was under way when the daemon ended.
    public var method: String?
    /// The path without the query; nil if it is not known.
    public var path: String?

    /// Names a request; an empty text means unknown.
    init(method: String, path: String) {
        self.method = method.isEmpty ? nil : method
        self.path = path.isEmpty ? nil : path
    }

    /// Whether it is a write, or may be one.
    var isWrite: Bool { method != "GET" && method != "HEAD" }

    // MARK: Stored form

    /// The stored text, such as `PATCH /users/1`.
    var text: String { "\(method ?? "") \(path ?? "")" }

    init(text: String) {
        let parts = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        self.init(method: String(parts[0]), path: parts.count > 1 ? String(parts[1]) : "")
    }
}
