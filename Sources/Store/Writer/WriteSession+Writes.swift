import GRDB
import Mapping

/// Writes that have been answered, or never will be (law 10).
extension WriteSession {
    /// Takes in what a write's answer tells, marks what it does not tell, and removes what it makes worthless but for what
    /// its patterns match.
    ///
    /// - Parameters:
    ///   - preparation: of what its answer tells; nil where it tells nothing.
    ///   - isForgone: whether there is no room for that: then what it shows counts as changed without telling.
    func settle(
        _ write: SettledWrite,
        _ preparation: Preparation?,
        isForgone: Bool = false
    ) throws -> WriteSettlement {
        _ = nextSequence()
        let owner = try ownership(upstream: write.upstream, principal: write.principal, context: write.context)
        let subjects = try subjects(of: write, preparation, isForgone: isForgone)
        var settlement = WriteSettlement()
        let observation = isForgone ? nil : write.observation
        if let observation, let preparation { settlement.warnings = try observe(observation, preparation) }
        // The observation may be the first of its scope; and what is deleted is remembered for answers on their way to it.
        var known = owner
        if owner.scope == nil, observation != nil || subjects.contains(where: { $0.own?.isTombstone == true }) {
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
        note(write, to: subjects)
        if let suspect = write.suspect { try settle(suspect) }
        settlement.removed = further.map(\.path)
        return settlement
    }

    /// Takes in an answer that is no document.
    ///
    /// - Returns: what there is to say of it.
    private func observe(_ observed: ReceivedObservation, _ preparation: Preparation) throws -> [MappingWarning] {
        let scope = try names.scope(
            .init(upstream: observed.upstream, principal: observed.principal, context: observed.context),
            in: database
        )
        let observation = newObservation(start: observed.start, end: observed.end, kind: observed.kind)
        try note(source: "\(observed.method) \(observed.url)", of: observation.sequence)
        let intake = try take(
            preparation,
            from: MarkSource(method: observed.method, path: String(observed.url.prefix { $0 != "?" })),
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
        return preparation.warnings + intake.warnings
    }

    /// The path below a collection that an object created there most likely has: it may be known as one of nothing.
    private func path(ofCreated subjects: [Subject], by write: SettledWrite) -> String? {
        guard write.isCreation, subjects.count == 1, subjects[0].own == nil,
            let identity = subjects[0].object.identity,
            identity.utf8.allSatisfy({ ($0 | 0x20) &- 0x61 < 26 || $0 &- 0x30 < 10 || "-._~".utf8.contains($0) })
        else { return nil }
        return "\(write.path)\(write.path.hasSuffix("/") ? "" : "/")\(identity)"
    }

    /// What a write speaks of, and what is known of it for the one who wrote.
    struct Subject {
        var object: BoundObject
        var own: ObjectMark?
    }

    private func subjects(
        of write: SettledWrite,
        _ preparation: Preparation?,
        isForgone: Bool
    ) throws -> [Subject] {
        guard let models = models[write.upstream]?.models, !models.declarations.isEmpty else { return [] }
        let roots = try write.path.isEmpty ? [] : self.roots(upstream: write.upstream, path: write.path)
        let own = roots.filter { $0.principal == write.principal }.map(\.object)
        let shown = shown(by: preparation, models)
        var subjects: [BoundObject: ObjectMark?] = [:]
        func add(_ objects: [BoundObject], _ mark: ObjectMark?) {
            for object in objects where subjects[object] == nil { subjects[object] = .some(mark) }
        }
        if write.effect != .changed {
            // What the answer shows alone may be what something was taken away from, unless the path names it.
            let only = shown.count == 1 ? shown.map(\.object).filter { isNamed($0, by: write.path, preparation) } : []
            let candidates = [write.bound.map { [$0] } ?? [], own, only]
            add(candidates.first { !$0.isEmpty } ?? [], .tombstone(write.time))
        }
        for (object, isTold) in shown { add([object], isTold && !isForgone ? nil : .unobserved(write.time)) }
        if write.effect != .absent {
            // What the path names by a key and the answer shows by its identity is one object.
            let named = write.bound.flatMap { bound in
                bound.identity == nil && shown.contains { $0.object.model == bound.model } ? nil : bound
            }
            add((named.map { [$0] } ?? []) + roots.map(\.object), .unobserved(write.time))
        }
        return subjects.map { Subject(object: $0.key, own: $0.value) }
    }

    /// Whether a path ends with an object's identity, or a key that an answer shows of it.
    private func isNamed(_ object: BoundObject, by path: String, _ preparation: Preparation?) -> Bool {
        guard let last = path.split(separator: "/").last, let pattern = try? RoutePattern(String(last)),
            case .literal(let text)? = pattern.components.first
        else { return false }
        if object.identity == text { return true }
        return preparation?.decomposed?.occurrences.contains { occurrence in
            occurrence.name.identity == object.identity && occurrence.name.model == object.model
                && occurrence.keys.contains { $0.value == text }
        } ?? false
    }

    /// The outermost objects of a write's answer, and whether it tells anything of them.
    private func shown(by preparation: Preparation?, _ models: Models) -> [(object: BoundObject, isTold: Bool)] {
        guard let decomposed = preparation?.decomposed else { return [] }
        var told: Set<ObjectName> = []
        for occurrence in decomposed.occurrences where !told.contains(occurrence.name) {
            if models.tells(occurrence.payload, of: occurrence.name.model) { told.insert(occurrence.name) }
        }
        return Set(Reference.names(in: decomposed.skeleton)).map { name in
            (BoundObject(model: name.model, identity: name.identity), told.contains(name))
        }
    }

    /// Whether a write deleted objects whose models say how that shows in documents, without asking for them again.
    private func isDeletionShown(by subjects: [Subject], _ write: SettledWrite) -> Bool {
        guard write.effect == .deleted, let models = models[write.upstream]?.models else { return false }
        let deleted = subjects.filter { $0.own?.isTombstone == true }
        return !deleted.isEmpty && deleted.allSatisfy { models.onDelete(of: $0.object.model) != .stale }
    }

    /// What the documents of a path are about: each one's only object, if it is not a list's.
    func roots(
        upstream: String,
        path: String
    ) throws -> [(object: BoundObject, principal: PrincipalID)] {
        var found: [(id: DocumentID, scope: Int64)] = []
        try query("SELECT id, scope FROM _documents WHERE place = ?")
            .each(.integer(hasher.place(upstream: upstream, url: path))) {
                found.append(($0.integer(0), $0.integer(1)))
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
