import GRDB
import Mapping

/// Completes writes whose responses have arrived, or never will (law 10).
extension WriterSession {
    /// Stores the objects in a write's response, marks other objects that it may have changed, and removes the
    /// documents that it invalidates, except for those that match its patterns.
    ///
    /// - Parameter prepared: the body of its response, if it shows objects. If the write has no observation, because
    ///   there is no room for it, these objects are only marked.
    func complete(_ write: CompletedWrite, _ prepared: PreparedBody?) throws -> WriteCompletion {
        _ = nextSequence()
        let owner = try existingScope(NameTable.Scope(of: write))
        let subjects = try subjects(of: write, by: owner, prepared)
        var completion = WriteCompletion()
        // Nothing is stored for a forgotten principal, and nothing in the file belongs to it.
        let isKnown = try principalLabel(write.principal) != nil
        let observation = isKnown ? write.observation : nil
        let gone = subjects.filter { $0.own?.isTombstone == true }
        // The observation may be the first of its scope, and a deletion is kept for responses under way.
        var known = owner
        if isKnown, owner == nil, observation != nil || !gone.isEmpty {
            known = try scope(NameTable.Scope(of: write))
        }
        func mark(_ subjects: [Subject]) throws {
            for subject in subjects {
                try self.mark(
                    subject.object,
                    of: write.upstream,
                    own: subject.own,
                    for: known,
                    others: write.effect == .absent ? nil : .unobserved(write.time, isOwn: true),
                    of: write.principal,
                    by: MarkSource(method: write.method, path: write.path)
                )
            }
        }
        // What the response to a DELETE leaves out of the deleted object puts nothing of it in doubt.
        try mark(gone)
        if let observation, let prepared { completion.warnings = try observe(observation, of: write, prepared) }
        try mark(subjects.filter { $0.own?.isTombstone != true })
        var further = write.effect == .absent || isDeletionShown(by: subjects, write) ? [] : write.collections
        if let created = path(ofCreated: subjects, by: write) { further.append(created) }
        var invalidation = write.invalidation
        invalidation.paths.formUnion(further)
        try removePaths(of: invalidation)
        if write.effect != .absent { try invalidateUndivided(of: write.upstream, at: write.time) }
        blockResponses(before: write, to: subjects)
        if let suspect = write.suspect { try clear(suspect) }
        completion.removed = further
        completion.objects = subjects.map(\.object)
        if let observation, let prepared {
            let marked = subjects.filter { $0.own != nil }.map(\.object)
            let announcement = try self.announcement(of: write, showing: prepared, at: observation.url, except: marked)
            completion.shown = announcement.flatMap { $0.observation.objects.isEmpty ? nil : $0.observation }
            completion.objects += announcement?.oversized.filter { !completion.objects.contains($0) } ?? []
        }
        return completion
    }

    /// Stores the objects of a write's response, which is not a document.
    private func observe(_ received: ReceivedObservation, of write: CompletedWrite, _ prepared: PreparedBody) throws
        -> [MappingWarning]
    {
        let observation = newObservation(start: received.start, end: write.time, kind: .write)
        try setSource("\(write.method) \(received.url)", of: observation.id)
        let (url, context) = (received.url, write.context)
        let key = CacheKey(upstream: write.upstream, principal: write.principal, context: context, url: url)
        let objects = try observe(
            prepared,
            from: MarkSource(method: write.method, path: String(received.url.beforeQuery)),
            scope: try scope(NameTable.Scope(of: write)),
            upstream: write.upstream,
            observation: observation,
            origin: Int64(bitPattern: hasher.digest(key).low),
            pinning: false
        )
        return prepared.warnings + objects.warnings
    }

    /// The likely path of an object that was created in a collection; a 404 may be stored for it.
    private func path(ofCreated subjects: [Subject], by write: CompletedWrite) -> String? {
        guard write.isCreation, subjects.count == 1, subjects[0].isShown, let identity = subjects[0].object.identity,
            identity.utf8.allSatisfy({ ($0 | 0x20) &- 0x61 < 26 || $0 &- 0x30 < 10 || "-._~".utf8.contains($0) })
        else { return nil }
        return "\(write.path)\(write.path.hasSuffix("/") ? "" : "/")\(identity)"
    }

    /// Whether a write only deleted objects whose models declare how documents show a deletion without a fetch.
    private func isDeletionShown(by subjects: [Subject], _ write: CompletedWrite) -> Bool {
        guard write.effect == .deleted, let models = models[write.upstream]?.models else { return false }
        let deleted = subjects.filter { $0.own?.isTombstone == true }
        return !deleted.isEmpty && deleted.allSatisfy { models.onDelete(of: $0.object.model) != .stale }
    }

    /// An object that a write concerns, and its mark for the principal who wrote.
    struct Subject {
        var object: BoundObject
        /// The mark that applies besides the response, if any.
        var own: ObjectMark?
        var isShown = false
    }

    /// The objects that a write concerns, each once, deleted ones first.
    ///
    /// If an object has two marks of the same time by two names, the first holds. Without anything stored, the writing
    /// principal has no scope.
    func subjects(of write: CompletedWrite, by owner: ScopeID?, _ prepared: PreparedBody?) throws -> [Subject] {
        guard let models = models[write.upstream]?.models, !models.declarations.isEmpty else { return [] }
        let paths = [write.path, write.actionPath ?? ""].filter { !$0.isEmpty }
        let roots = try paths.flatMap { try self.roots(upstream: write.upstream, path: $0) }
        let own = roots.filter { $0.principal == write.principal }.map(\.object)
        let shown = self.subjects(shownBy: prepared, of: write, models)
        var subjects: [Subject] = []
        var known: Set<BoundObject> = []
        func add(_ new: [Subject]) { subjects += new.filter { known.insert($0.object).inserted } }
        func add(_ objects: [BoundObject], _ mark: ObjectMark) { add(objects.map { Subject(object: $0, own: mark) }) }
        if write.effect != .changed {
            // The only object in the response may be a parent of the deleted one, unless the path identifies it.
            let only = shown.count == 1 ? shown.map(\.object).filter { isNamed($0, by: write.path, prepared) } : []
            let candidates = [write.bound.map { [$0] } ?? [], own, only]
            let gone = candidates.first { !$0.isEmpty } ?? []
            for object in gone + (try own.filter { try isNamed($0, byKeysOf: gone, of: write.upstream, owner) }) {
                // If nothing is found under a key, the object may be renamed rather than deleted.
                let isIdentified = write.bound?.identity != nil || isNamed(object, by: write.path, nil)
                let isDeleted = write.effect == .deleted || isIdentified
                add([object], isDeleted ? .tombstone(write.time) : .unobserved(write.time, isOwn: true))
            }
        }
        add(shown)
        if write.effect != .absent {
            // The path may identify an object by a key, and the response show the same object by its identity.
            let named = write.bound.flatMap { bound in
                bound.identity == nil && shown.contains { $0.object.model == bound.model } ? nil : bound
            }
            let supposed = subjects.isEmpty && roots.isEmpty ? write.supposed : []
            add((named.map { [$0] } ?? supposed) + roots.map(\.object), .unobserved(write.time, isOwn: true))
        }
        return subjects
    }

    private func isNamed(
        _ object: BoundObject,
        byKeysOf others: [BoundObject],
        of upstream: UpstreamKey,
        _ owner: ScopeID?
    )
        throws -> Bool
    {
        guard let identity = object.identity.map(StoredIdentity.init) else { return false }
        return try others.contains { other in
            guard other.identity == nil, other.model == object.model else { return false }
            return try records(of: other, upstream: upstream)
                .contains { $0.scope == owner && $0.record.identity == identity }
        }
    }

    /// Whether a path ends with an object's identity, or with a key that the response shows.
    func isNamed(_ object: BoundObject, by path: String, _ prepared: PreparedBody?) -> Bool {
        guard let last = path.split(separator: "/").last, let pattern = try? RoutePattern(String(last)),
            case .literal(let text)? = pattern.components.first
        else { return false }
        if object.identity == text { return true }
        return prepared?.decomposed?.occurrences.contains { occurrence in
            occurrence.name.identity == object.identity && occurrence.name.model == object.model
                && occurrence.keys.contains { $0.value == text }
        } ?? false
    }

    /// The outermost objects in a write's response.
    private func subjects(shownBy prepared: PreparedBody?, of write: CompletedWrite, _ models: Models) -> [Subject] {
        guard let decomposed = prepared?.decomposed else { return [] }
        let payloads = Dictionary(grouping: decomposed.occurrences, by: \.name).mapValues { $0.map(\.payload) }
        var known: Set<ObjectName> = []
        return Reference.names(in: decomposed.skeleton).filter { known.insert($0).inserted }.map { name in
            let object = BoundObject(model: name.model, identity: name.identity)
            let payloads = payloads[name] ?? []
            guard write.observation != nil, payloads.contains(where: { models.showsState($0, of: name.model) }) else {
                return Subject(object: object, own: .unobserved(write.time, isOwn: true))
            }
            return Subject(object: object, isShown: true)
        }
    }

    /// The objects that the documents of a path represent, except for lists.
    func roots(upstream: UpstreamKey, path: String) throws -> [(object: BoundObject, principal: PrincipalID)] {
        try query("SELECT id, scope FROM _documents WHERE place = ?")
            .all(hasher.pathHash(upstream: upstream, url: path)) { row in
                let principal = try names.scope(row.id(1), in: database).principal
                return try root(of: row.id(0)).map { ($0, principal) }
            }.compactMap(\.self)
    }
}

/// Decides which writes go ahead of queued responses.
///
/// Observations are ordered by the times of their responses, not by their arrival, and marks and bans apply to later responses,
/// so the order does not matter. There is one exception: a queued response may show which object a path or a key identifies.
extension WriterSession {
    /// Whether a write may go ahead: no queued response could show which object it concerns.
    func mayGoAhead(_ write: CompletedWrite, _ prepared: PreparedBody?, of queued: QueuedResponses) throws -> Bool {
        guard let models = models[write.upstream]?.models, !models.declarations.isEmpty else { return true }
        if write.bound?.identity != nil { return true }
        if prepared?.decomposed.map({ !Reference.names(in: $0.skeleton).isEmpty }) ?? false { return true }
        let isOwn =
            try !write.path.isEmpty
            && roots(upstream: write.upstream, path: write.path).contains { $0.principal == write.principal }
        if isOwn { return true }
        let owner = try existingScope(NameTable.Scope(of: write))
        let pathHash = hasher.pathHash(upstream: write.upstream, url: write.path)
        return try mayGoAhead(write.bound, of: write.upstream, at: pathHash, owner, of: queued)
    }

    /// The same for a retrieval that found nothing.
    func mayGoAhead(_ absence: ObservedAbsence, of queued: QueuedResponses) throws -> Bool {
        let key = absence.key
        if absence.named?.identity != nil { return true }
        let owner = try existingScope(NameTable.Scope(of: key))
        if absence.named == nil, try root(at: key, owner) != nil { return true }
        let pathHash = hasher.pathHash(upstream: key.upstream, url: key.url)
        return try mayGoAhead(absence.named, of: key.upstream, at: pathHash, owner, of: queued)
    }

    private func mayGoAhead(
        _ bound: BoundObject?,
        of upstream: UpstreamKey,
        at pathHash: Int64,
        _ owner: ScopeID?,
        of queued: QueuedResponses
    ) throws -> Bool {
        guard let bound else { return !queued.mayIdentify(pathHash) }
        guard queued.mayHaveKeys(of: upstream) else { return true }
        return try records(of: bound, upstream: upstream).contains { $0.scope == owner }
    }

    // MARK: Responses that arrive after a write to their path

    /// Blocks responses to a write's path that are under way.
    func blockResponses(before write: CompletedWrite, to subjects: [Subject]) {
        guard !write.path.isEmpty, models[write.upstream]?.models.declarations.isEmpty == false else { return }
        var rest = write
        (rest.observation, rest.paths, rest.collections, rest.patterns) = (nil, [], [], [])
        let hasDeleted = subjects.contains { $0.own?.isTombstone == true }
        let written = Bans.PathWrite(write: rest, named: Set(subjects.map(\.object)), hasDeleted: hasDeleted)
        bans.written(written, to: hasher.pathHash(upstream: write.upstream, url: write.path))
    }

    /// Marks the object in a response that is blocked because of a write to its path, unless the write was known to concern
    /// this object.
    func mark(rootOf prepared: PreparedBody, writtenBy written: Bans.PathWrite, of key: CacheKey) throws {
        guard let name = prepared.decomposed.flatMap({ Reference.root(of: $0.skeleton) }) else { return }
        let object = BoundObject(model: name.model, identity: name.identity)
        guard !written.named.contains(object) else { return }
        let write = written.write
        let isGone = write.effect != .changed && !written.hasDeleted && key.principal == write.principal
        guard isGone || write.effect != .absent else { return }
        _ = nextSequence()
        try mark(
            object,
            of: write.upstream,
            own: isGone ? .tombstone(write.time) : .unobserved(write.time, isOwn: true),
            for: existingScope(NameTable.Scope(of: write)),
            others: write.effect == .absent ? nil : .unobserved(write.time, isOwn: true),
            of: write.principal,
            by: MarkSource(method: write.method, path: write.path)
        )
    }
}
