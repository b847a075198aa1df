import GRDB
import Mapping

/// Writes that have been answered, or never will be (law 10).
extension WriterSession {
    /// Takes in what a write's answer tells, marks what it does not tell, and removes what it makes worthless but for what
    /// its patterns match.
    ///
    /// - Parameters:
    ///   - prepared: of what its answer tells; nil where it tells nothing.
    ///   - isObservationSkipped: whether there is no room for that: then what it shows counts as changed without telling.
    func settle(
        _ write: SettledWrite,
        _ prepared: PreparedBody?,
        isObservationSkipped: Bool = false
    ) throws -> WriteSettlement {
        _ = nextSequence()
        let owner = try ownership(upstream: write.upstream, principal: write.principal, context: write.context)
        let subjects = try subjects(of: write, by: owner, prepared, isObservationSkipped: isObservationSkipped)
        var settlement = WriteSettlement()
        // Of one who has been forgotten nothing is kept, and none of what is in the file is theirs.
        let isKnown = try principalLabel(write.principal) != nil
        let observation = isObservationSkipped || !isKnown ? nil : write.observation
        if let observation, let prepared { settlement.warnings = try observe(observation, prepared) }
        // The observation may be the first of its scope; and what is deleted is remembered for answers on their way to it.
        var known = owner
        if isKnown, owner.scope == nil, observation != nil || subjects.contains(where: { $0.own?.isTombstone == true })
        {
            known = try newOwnership(upstream: write.upstream, principal: write.principal, context: write.context)
        }
        for subject in subjects {
            try mark(
                subject.object,
                of: write.upstream,
                own: subject.own,
                for: known,
                others: write.effect == .absent ? nil : .unobserved(write.time),
                by: MarkSource(method: write.method, path: write.path)
            )
        }
        var further = write.effect == .absent || isDeletionShown(by: subjects, write) ? [] : write.collections
        if let created = path(ofCreated: subjects, by: write) {
            further.append(InvalidationTarget(upstream: write.upstream, path: created))
        }
        for target in write.targets + further { try invalidate(target) }
        if write.effect != .absent { try invalidateUndivided(by: write) }
        note(write, to: subjects)
        if let suspect = write.suspect { try settle(suspect) }
        settlement.removed = further.map(\.path)
        return settlement
    }

    /// Takes in an answer that is no document.
    ///
    /// - Returns: what there is to say of it.
    private func observe(_ observed: ReceivedObservation, _ prepared: PreparedBody) throws -> [MappingWarning] {
        let scope = try self.scope(
            .init(upstream: observed.upstream, principal: observed.principal, context: observed.context)
        )
        let observation = newObservation(start: observed.start, end: observed.end, kind: observed.kind)
        try note(source: "\(observed.method) \(observed.url)", of: observation.sequence)
        let intake = try take(
            prepared,
            from: MarkSource(method: observed.method, path: String(observed.url.beforeQuery)),
            scope: scope,
            upstream: observed.upstream,
            observation: observation,
            origin: Int64(
                bitPattern: hasher.digest(
                    DocumentKey(
                        upstream: observed.upstream,
                        principal: observed.principal,
                        context: observed.context,
                        url: observed.url
                    )
                ).low
            ),
            pinning: false
        )
        return prepared.warnings + intake.warnings
    }

    /// The path below a collection that an object created there most likely has: it may be known as one of nothing.
    private func path(ofCreated subjects: [Subject], by write: SettledWrite) -> String? {
        guard write.isCreation, subjects.count == 1, subjects[0].isShown,
            let identity = subjects[0].object.identity,
            identity.utf8.allSatisfy({ ($0 | 0x20) &- 0x61 < 26 || $0 &- 0x30 < 10 || "-._~".utf8.contains($0) })
        else { return nil }
        return "\(write.path)\(write.path.hasSuffix("/") ? "" : "/")\(identity)"
    }

    /// Whether a write deleted objects whose models say how that shows in documents, without asking for them again.
    private func isDeletionShown(by subjects: [Subject], _ write: SettledWrite) -> Bool {
        guard write.effect == .deleted, let models = models[write.upstream]?.models else { return false }
        let deleted = subjects.filter { $0.own?.isTombstone == true }
        return !deleted.isEmpty && deleted.allSatisfy { models.onDelete(of: $0.object.model) != .stale }
    }
}

/// Which objects a write speaks of.
extension WriterSession {
    /// What a write speaks of, and what is known of it for the one who wrote.
    struct Subject {
        var object: BoundObject
        /// What holds besides what the answer tells; nil: nothing.
        var own: ObjectMark?
        /// Whether the answer tells of it.
        var isShown = false
    }

    /// Each object once, those that are gone first: of two marks of one time, set by two names of one object, the first
    /// holds.
    ///
    /// - Parameters:
    ///   - owner: who wrote.
    ///   - isObservationSkipped: whether what the answer tells is not taken in.
    func subjects(
        of write: SettledWrite,
        by owner: Ownership,
        _ prepared: PreparedBody?,
        isObservationSkipped: Bool
    ) throws -> [Subject] {
        guard let models = models[write.upstream]?.models, !models.declarations.isEmpty else { return [] }
        let roots = try write.path.isEmpty ? [] : self.roots(upstream: write.upstream, path: write.path)
        let own = roots.filter { $0.principal == write.principal }.map(\.object)
        let shown = shown(by: prepared, of: write, isObservationSkipped: isObservationSkipped, models)
        var subjects: [Subject] = []
        var known: Set<BoundObject> = []
        func add(_ new: [Subject]) { subjects += new.filter { known.insert($0.object).inserted } }
        func add(_ objects: [BoundObject], _ mark: ObjectMark) { add(objects.map { Subject(object: $0, own: mark) }) }
        if write.effect != .changed {
            // What the answer shows alone may be what something was taken away from, unless the path names it.
            let only = shown.count == 1 ? shown.map(\.object).filter { isNamed($0, by: write.path, prepared) } : []
            let candidates = [write.bound.map { [$0] } ?? [], own, only]
            let gone = candidates.first { !$0.isEmpty } ?? []
            for object in gone + (try own.filter { try isMeant($0, byKeysOf: gone, of: write.upstream, owner) }) {
                // That nothing was found under a key does not say that the object is deleted: it may have been renamed.
                let isIdentified = write.bound?.identity != nil || isNamed(object, by: write.path, nil)
                let isDeleted = write.effect == .deleted || isIdentified
                add([object], isDeleted ? .tombstone(write.time) : .unobserved(write.time))
            }
        }
        add(shown)
        if write.effect != .absent {
            // What the path names by a key and the answer shows by its identity is one object.
            let named = write.bound.flatMap { bound in
                bound.identity == nil && shown.contains { $0.object.model == bound.model } ? nil : bound
            }
            add((named.map { [$0] } ?? []) + roots.map(\.object), .unobserved(write.time))
        }
        return subjects
    }

    /// Whether an object is one that others of these mean by a key.
    private func isMeant(
        _ object: BoundObject,
        byKeysOf others: [BoundObject],
        of upstream: String,
        _ owner: Ownership
    ) throws -> Bool {
        guard let identity = object.identity.map(Identity.init) else { return false }
        return try others.contains { other in
            guard other.identity == nil, other.model == object.model else { return false }
            return try records(of: other, upstream: upstream)
                .contains { $0.scope == owner.scope && $0.record.identity == identity }
        }
    }

    /// Whether a path ends with an object's identity, or a key that an answer shows of it.
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

    /// The outermost objects of a write's answer.
    private func shown(
        by prepared: PreparedBody?,
        of write: SettledWrite,
        isObservationSkipped: Bool,
        _ models: Models
    ) -> [Subject] {
        guard let decomposed = prepared?.decomposed else { return [] }
        let payloads = Dictionary(grouping: decomposed.occurrences, by: \.name).mapValues { $0.map(\.payload) }
        var known: Set<ObjectName> = []
        return Reference.names(in: decomposed.skeleton).filter { known.insert($0).inserted }.map { name in
            let object = BoundObject(model: name.model, identity: name.identity)
            let payloads = payloads[name] ?? []
            guard !isObservationSkipped, let told = write.observation,
                payloads.contains(where: { models.tells($0, of: name.model) })
            else { return Subject(object: object, own: .unobserved(write.time)) }
            guard models.contradict(payloads, of: name.model) else { return Subject(object: object, isShown: true) }
            // What it contradicts itself on has changed without telling; the rest counts as newer than the mark.
            return Subject(object: object, own: .unobserved(told.end - 1), isShown: true)
        }
    }

    /// What the documents of a path are about: each one's only object, if it is not a list's.
    func roots(
        upstream: String,
        path: String
    ) throws -> [(object: BoundObject, principal: PrincipalID)] {
        var found: [(id: DocumentID, scope: ScopeID)] = []
        try query("SELECT id, scope FROM _documents WHERE place = ?")
            .each(.integer(hasher.place(upstream: upstream, url: path))) {
                found.append(($0.id(0), $0.id(1)))
            }
        return try found.compactMap { id, scope in
            guard let skeleton = try StoredBody(document: id, in: database).skeleton,
                let name = Reference.root(of: skeleton)
            else { return nil }
            return (
                BoundObject(model: name.model, identity: name.identity),
                try names.scope(scope, in: database).principal
            )
        }
    }
}

/// Writes that are taken in ahead of answers that were handed over before.
///
/// What is known is ordered by the times of the answers and not by their arrival, and marks and bans hold for what comes
/// later: so nothing is lost by it. One thing only is learned by taking answers in: which object a path or a key means.
extension WriterSession {
    /// Whether a write may be taken in now: no queued answer could still reveal which object it means.
    func mayGoAhead(_ write: SettledWrite, _ prepared: PreparedBody?, ahead of: QueuedResponses) throws -> Bool {
        guard let models = models[write.upstream]?.models, !models.declarations.isEmpty else { return true }
        if write.bound?.identity != nil { return true }
        if prepared?.decomposed.map({ !Reference.names(in: $0.skeleton).isEmpty }) ?? false { return true }
        let isOwn =
            try !write.path.isEmpty
            && roots(upstream: write.upstream, path: write.path).contains { $0.principal == write.principal }
        if isOwn { return true }
        let owner = try ownership(upstream: write.upstream, principal: write.principal, context: write.context)
        let place = hasher.place(upstream: write.upstream, url: write.path)
        return try mayGoAhead(write.bound, of: write.upstream, at: place, owner, ahead: of)
    }

    /// The same for a retrieval that found nothing.
    func mayGoAhead(_ absence: ObservedAbsence, ahead of: QueuedResponses) throws -> Bool {
        let key = absence.key
        if absence.named?.identity != nil { return true }
        let owner = try ownership(upstream: key.upstream, principal: key.principal, context: key.context)
        if absence.named == nil, try root(at: key, owner) != nil { return true }
        let place = hasher.place(upstream: key.upstream, url: key.url)
        return try mayGoAhead(absence.named, of: key.upstream, at: place, owner, ahead: of)
    }

    private func mayGoAhead(
        _ bound: BoundObject?,
        of upstream: String,
        at place: Int64,
        _ owner: Ownership,
        ahead of: QueuedResponses
    ) throws -> Bool {
        guard let bound else { return !of.mayIdentify(place) }
        guard of.mayHaveKeys(of: upstream) else { return true }
        return try records(of: bound, upstream: upstream).contains { $0.scope == owner.scope }
    }

    // MARK: Answers that come behind a write to their path

    /// Remembers a write for answers of its path that are on their way.
    func note(_ write: SettledWrite, to subjects: [Subject]) {
        guard !write.path.isEmpty, models[write.upstream]?.models.declarations.isEmpty == false else { return }
        var rest = write
        (rest.observation, rest.targets, rest.collections, rest.patterns) = (nil, [], [], [])
        let written = Bans.Write(
            write: rest,
            named: Set(subjects.map(\.object)),
            hasDeleted: subjects.contains { $0.own?.isTombstone == true }
        )
        bans.written(written, to: hasher.place(upstream: write.upstream, url: write.path))
    }

    /// Marks the object that an answer shows which is kept out because its path was written to: if nobody knew then that
    /// this object was meant.
    func mark(rootOf prepared: PreparedBody, writtenBy written: Bans.Write, of key: DocumentKey) throws {
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
            own: isGone ? .tombstone(write.time) : .unobserved(write.time),
            for: ownership(upstream: write.upstream, principal: write.principal, context: write.context),
            others: write.effect == .absent ? nil : .unobserved(write.time),
            by: MarkSource(method: write.method, path: write.path)
        )
    }
}
