import GRDB
import Mapping

/// Writes that are taken in ahead of answers that were handed over before.
///
/// What is known is ordered by the times of the answers and not by their arrival, and marks and barriers hold for what comes
/// later: so nothing is lost by it. One thing only is learned by taking answers in: which object a path or a key means.
extension WriteSession {
    /// Whether a write may be taken in now: no queued answer could still reveal which object it means.
    func isClear(_ write: SettledWrite, _ preparation: Preparation?, ahead of: WaitingReads) throws -> Bool {
        guard let models = models[write.upstream]?.models, !models.declarations.isEmpty else { return true }
        if write.bound?.identity != nil { return true }
        if preparation?.decomposed.map({ !Reference.names(in: $0.skeleton).isEmpty }) ?? false { return true }
        let isOwn =
            try !write.path.isEmpty
            && roots(upstream: write.upstream, path: write.path).contains { $0.principal == write.principal }
        if isOwn { return true }
        let owner = try ownership(upstream: write.upstream, principal: write.principal, context: write.context)
        let place = hasher.place(upstream: write.upstream, url: write.path)
        return try isClear(write.bound, of: write.upstream, at: place, owner, ahead: of)
    }

    /// The same for a retrieval that found nothing.
    func isClear(_ absence: ObservedAbsence, ahead of: WaitingReads) throws -> Bool {
        let key = absence.key
        if absence.named?.identity != nil { return true }
        let owner = try ownership(upstream: key.upstream, principal: key.principal, context: key.context)
        if absence.named == nil, try root(at: key, owner) != nil { return true }
        let place = hasher.place(upstream: key.upstream, url: key.url)
        return try isClear(absence.named, of: key.upstream, at: place, owner, ahead: of)
    }

    private func isClear(
        _ bound: BoundObject?,
        of upstream: String,
        at place: Int64,
        _ owner: Ownership,
        ahead of: WaitingReads
    ) throws -> Bool {
        guard let bound else { return !of.mayTell(of: place) }
        guard of.mayTellKeys(of: upstream) else { return true }
        return try records(of: bound, upstream: upstream).contains { $0.scope == owner.scope }
    }

    // MARK: Answers that come behind a write to their path

    /// Remembers a write for answers of its path that are on their way.
    func note(_ write: SettledWrite, to subjects: [Subject]) {
        guard !write.path.isEmpty, models[write.upstream]?.models.declarations.isEmpty == false else { return }
        var rest = write
        (rest.observation, rest.targets, rest.collections, rest.patterns) = (nil, [], [], [])
        let written = Barriers.Written(
            write: rest,
            named: Set(subjects.map(\.object)),
            hasDeleted: subjects.contains { $0.own?.isTombstone == true }
        )
        barriers.written(written, to: hasher.place(upstream: write.upstream, url: write.path))
    }

    /// Marks the object that an answer shows which is kept out because its path was written to: if nobody knew then that
    /// this object was meant.
    func mark(rootOf preparation: Preparation, writtenBy written: Barriers.Written, of key: DocumentKey) throws {
        guard let name = preparation.decomposed.flatMap({ Reference.root(of: $0.skeleton) }) else { return }
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
