import GRDB
import Mapping

/// Answers that have arrived.
extension WriteSession {
    /// Stores an answer: document, versions and objects, all of it in this transaction.
    ///
    /// - Parameter handover: when it was handed over to the store.
    func receive(
        _ document: ReceivedDocument,
        handedOverAt handover: Int64,
        _ preparation: Preparation
    ) throws -> Receipt {
        let key = document.key
        let place = hasher.place(upstream: key.upstream, url: key.url)
        let occurrences = preparation.decomposed?.occurrences ?? []
        let label = try principalLabel(key.principal)
        var receipt = Receipt(
            document: nil,
            objects: [],
            isDirty: false,
            sequence: numbers.sequence,
            warnings: preparation.warnings
        )
        // Forgotten while it was on its way.
        guard let label else { return receipt }
        let verdict = barriers.verdict(
            on: document,
            handedOverAt: handover,
            place: place,
            principal: label,
            objects: occurrences
        )
        if verdict != .kept, let written = barriers.write(before: document, to: place) {
            try mark(rootOf: preparation, writtenBy: written, of: key)
        }
        if verdict == .dropped || isOvertakenUndivided(document, preparation) { return receipt }

        receipt.sequence = nextSequence()
        let scope = try self.scope(
            .init(
                upstream: key.upstream,
                principal: key.principal,
                context: ObjectContext(key: key.context, selectedBy: document.selectedBy).text
            )
        )
        let digest = hasher.digest(key)
        let predecessors = try documents(of: key, under: digest, variant: document.variant)
        let isOvertaken =
            try verdict == .told
            || predecessors.contains {
                try self.observation($0.observation).end > min(document.end, document.overtakenAt ?? .max)
            }
        let observation = newObservation(start: document.start, end: document.end, kind: document.kind)
        let intake = try take(
            preparation,
            from: MarkSource(method: "GET", path: String(key.url.beforeQuery)),
            scope: scope,
            upstream: key.upstream,
            observation: observation,
            origin: Int64(bitPattern: digest.low),
            pinning: !isOvertaken && !preparation.isSecret
        )
        receipt.objects = intake.objects
        receipt.warnings += intake.warnings
        // What this answer itself has changed has numbers by now.
        receipt.sequence = numbers.sequence
        if isOvertaken || preparation.isSecret {
            try note(source: "GET \(key.url)", of: observation.sequence)
        }
        if isOvertaken { return receipt }
        // Pinned first and unpinned then: a version that both show is never gone in between.
        for predecessor in predecessors { try delete(predecessor.id) }
        receipt.isDirty =
            try !intake.isAllThereIs && isDirty(preparation, observation, scope: scope, upstream: key.upstream)
        receipt.isSecret = preparation.isSecret
        // Memory alone keeps such an answer, and is not told that its predecessor went.
        if preparation.isSecret { return receipt }
        if predecessors.isEmpty { try displaceVariants(of: key, under: digest) }
        receipt.document = try insert(
            document,
            preparation,
            intake,
            digest: digest,
            place: place,
            scope: scope,
            observation: observation.sequence,
            verified: receipt.isDirty ? 0 : receipt.sequence
        )
        return receipt
    }

    /// Whether something newer is known than a document just taken in shows.
    private func isDirty(
        _ preparation: Preparation,
        _ observation: Observation,
        scope: ScopeID,
        upstream: String
    ) throws -> Bool {
        guard let decomposed = preparation.decomposed, let models = models[upstream] else { return false }
        var doubts: Set<Int64> = []
        let composition = try models.composer.compose(
            skeleton: decomposed.skeleton,
            pins: decomposed.occurrences.map(\.payload),
            keyed: decomposed.keyed,
            observation: observation,
            doubts: &doubts
        ) { name in try state(of: name, scope: scope) }
        return composition != .unchanged || !doubts.isEmpty
    }

    /// What is known of an object by its name; nil: nothing.
    func state(of name: ObjectName, scope: ScopeID) throws -> ObjectState? {
        let collection = try names.collection(scope: scope, model: name.model, in: database)
        guard let record = try existingRecord(collection: collection, identity: Identity(name.identity)) else {
            return nil
        }
        return try state(of: record)
    }
}
