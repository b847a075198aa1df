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
        let subjects = try subjects(of: write, by: owner, preparation, isForgone: isForgone)
        var settlement = WriteSettlement()
        // Of one who has been forgotten nothing is kept, and none of what is in the file is theirs.
        let isKnown = try principalLabel(write.principal) != nil
        let observation = isForgone || !isKnown ? nil : write.observation
        if let observation, let preparation { settlement.warnings = try observe(observation, preparation) }
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
    private func observe(_ observed: ReceivedObservation, _ preparation: Preparation) throws -> [MappingWarning] {
        let scope = try self.scope(
            .init(upstream: observed.upstream, principal: observed.principal, context: observed.context)
        )
        let observation = newObservation(start: observed.start, end: observed.end, kind: observed.kind)
        try note(source: "\(observed.method) \(observed.url)", of: observation.sequence)
        let intake = try take(
            preparation,
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
        return preparation.warnings + intake.warnings
    }

    /// The path below a collection that an object created there most likely has: it may be known as one of nothing.
    private func path(ofCreated subjects: [Subject], by write: SettledWrite) -> String? {
        guard write.isCreation, subjects.count == 1, subjects[0].isTold,
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
