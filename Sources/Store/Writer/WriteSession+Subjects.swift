import GRDB
import Mapping

/// Which objects a write speaks of.
extension WriteSession {
    /// What a write speaks of, and what is known of it for the one who wrote.
    struct Subject {
        var object: BoundObject
        /// What holds besides what the answer tells; nil: nothing.
        var own: ObjectMark?
        /// Whether the answer tells of it.
        var isTold = false
    }

    /// Each object once, those that are gone first: of two marks of one time, set by two names of one object, the first
    /// holds.
    ///
    /// - Parameters:
    ///   - owner: who wrote.
    ///   - isForgone: whether what the answer tells is not taken in.
    func subjects(
        of write: SettledWrite,
        by owner: Ownership,
        _ preparation: Preparation?,
        isForgone: Bool
    ) throws -> [Subject] {
        guard let models = models[write.upstream]?.models, !models.declarations.isEmpty else { return [] }
        let roots = try write.path.isEmpty ? [] : self.roots(upstream: write.upstream, path: write.path)
        let own = roots.filter { $0.principal == write.principal }.map(\.object)
        let shown = shown(by: preparation, of: write, isForgone: isForgone, models)
        var subjects: [Subject] = []
        var known: Set<BoundObject> = []
        func add(_ new: [Subject]) { subjects += new.filter { known.insert($0.object).inserted } }
        func add(_ objects: [BoundObject], _ mark: ObjectMark) { add(objects.map { Subject(object: $0, own: mark) }) }
        if write.effect != .changed {
            // What the answer shows alone may be what something was taken away from, unless the path names it.
            let only = shown.count == 1 ? shown.map(\.object).filter { isNamed($0, by: write.path, preparation) } : []
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
    func isNamed(_ object: BoundObject, by path: String, _ preparation: Preparation?) -> Bool {
        guard let last = path.split(separator: "/").last, let pattern = try? RoutePattern(String(last)),
            case .literal(let text)? = pattern.components.first
        else { return false }
        if object.identity == text { return true }
        return preparation?.decomposed?.occurrences.contains { occurrence in
            occurrence.name.identity == object.identity && occurrence.name.model == object.model
                && occurrence.keys.contains { $0.value == text }
        } ?? false
    }

    /// The outermost objects of a write's answer.
    private func shown(
        by preparation: Preparation?,
        of write: SettledWrite,
        isForgone: Bool,
        _ models: Models
    ) -> [Subject] {
        guard let decomposed = preparation?.decomposed else { return [] }
        let payloads = Dictionary(grouping: decomposed.occurrences, by: \.name).mapValues { $0.map(\.payload) }
        var known: Set<ObjectName> = []
        return Reference.names(in: decomposed.skeleton).filter { known.insert($0).inserted }.map { name in
            let object = BoundObject(model: name.model, identity: name.identity)
            let payloads = payloads[name] ?? []
            guard !isForgone, let told = write.observation,
                payloads.contains(where: { models.tells($0, of: name.model) })
            else { return Subject(object: object, own: .unobserved(write.time)) }
            guard models.contradict(payloads, of: name.model) else { return Subject(object: object, isTold: true) }
            // What it contradicts itself on has changed without telling; the rest counts as newer than the mark.
            return Subject(object: object, own: .unobserved(told.end - 1), isTold: true)
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
