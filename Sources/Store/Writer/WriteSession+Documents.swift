import GRDB
import Mapping

/// Documents: received, renewed, invalidated, removed.
extension WriteSession {
    /// Stores an answer: document, versions and objects, all of it in this transaction.
    func receive(_ document: ReceivedDocument, _ preparation: Preparation) throws -> Receipt {
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
        if barriers.bars(document, place: place, principal: label, objects: occurrences) { return receipt }

        receipt.sequence = nextSequence()
        let scope = try names.scope(
            .init(
                upstream: key.upstream,
                principal: key.principal,
                context: ObjectContext(key: key.context, selectedBy: document.selectedBy).text
            ),
            in: database
        )
        let digest = hasher.digest(key)
        let predecessors = try documents(of: key, under: digest, variant: document.variant)
        let isOvertaken = try predecessors.contains {
            try self.observation($0.observation).end > min(document.end, document.overtakenAt ?? .max)
        }
        // What an intermediary has kept for a while does not speak of what happened since (law 3).
        let age = max(document.sent - document.start, 0)
        let observation = newObservation(
            start: document.start,
            end: document.end - age,
            kind: document.kind,
            route: try names.route(document.route, in: database)
        )
        let intake = try take(
            preparation,
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
        if preparation.isSecret {
            // What it takes the place of goes; memory, which keeps the answer itself, is told nothing.
            for predecessor in predecessors { try delete(predecessor.id) }
            receipt.isSecret = true
            receipt.isDirty =
                try !intake.isAllThereIs
                && isDirty(preparation, observation, scope: scope, upstream: key.upstream)
            return receipt
        }

        // Pinned first and unpinned then: a version that both show is never gone in between.
        for predecessor in predecessors { try delete(predecessor.id) }
        if predecessors.isEmpty { try displaceVariants(of: key, under: digest) }
        receipt.isDirty =
            try !intake.isAllThereIs && isDirty(preparation, observation, scope: scope, upstream: key.upstream)
        numbers.document += 1
        receipt.document = numbers.document
        try use(observation.sequence, by: 1)
        try insert(
            document,
            preparation,
            intake,
            id: numbers.document,
            digest: digest,
            place: place,
            scope: scope,
            observation: observation.sequence,
            verified: receipt.isDirty ? 0 : receipt.sequence
        )
        // Before the commit: a look-up must not miss a document that is there.
        presence.insert([digest.low])
        return receipt
    }

    /// Takes in an answer that is no document.
    func observe(_ observed: ReceivedObservation, _ preparation: Preparation) throws -> Receipt {
        _ = nextSequence()
        let scope = try names.scope(
            .init(upstream: observed.upstream, principal: observed.principal, context: observed.context),
            in: database
        )
        let observation = newObservation(start: observed.start, end: observed.end, kind: observed.kind)
        try note(source: "\(observed.method) \(observed.url)", of: observation.sequence)
        let intake = try take(
            preparation,
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
        return Receipt(
            document: nil,
            objects: intake.objects,
            isDirty: false,
            sequence: numbers.sequence,
            warnings: preparation.warnings + intake.warnings
        )
    }

    /// Whether something newer is known than a document just taken in shows.
    private func isDirty(
        _ preparation: Preparation,
        _ observation: Observation,
        scope: Int64,
        upstream: String
    ) throws -> Bool {
        guard let decomposed = preparation.decomposed, let models = models[upstream] else { return false }
        let composition = try models.composer.compose(
            skeleton: decomposed.skeleton,
            pins: decomposed.occurrences.map(\.payload),
            observation: observation
        ) { name in try state(of: name, scope: scope) }
        return composition != .unchanged
    }

    /// What is known of an object by its name; nil: nothing.
    private func state(of name: ObjectName, scope: Int64) throws -> ObjectState? {
        let collection = try names.collection(scope: scope, model: name.model, in: database)
        guard let record = try existingRecord(collection: collection, identity: Identity(name.identity)) else {
            return nil
        }
        return try state(of: record)
    }

    /// Renews a document by a 304, if it shows the newest of everything.
    func refresh(
        _ id: DocumentID,
        head: [UInt8],
        policy: [UInt8],
        start: Int64,
        end: Int64
    ) throws -> RefreshOutcome {
        let found = try query("SELECT scope, observation, verified FROM _documents WHERE id = ?")
            .first(.integer(id)) { (scope: $0.integer(0), observation: $0.integer(1), verified: $0.integer(2)) }
        guard let found else { return .gone }
        let scope = try names.scope(found.scope, in: database)
        let stored = try StoredBody(document: id, in: database)
        let known = try observation(found.observation)
        if try isDirty(stored, known, scope: found.scope, upstream: scope.upstream, since: found.verified) {
            return .dirty
        }
        _ = nextSequence()
        try renew(found.observation, start: start, end: end)
        if let models = models[scope.upstream] {
            try confirm(stored.pins, observation: try observation(found.observation), models: models)
        }
        try query("UPDATE _documents SET head = ?, policy = ?, verified = ? WHERE id = ?")
            .run(.blob(head), .blob(policy), .integer(numbers.sequence), .integer(id))
        return .renewed
    }

    /// Sees the versions of a clean document again, at its renewed observation.
    private func confirm(_ pins: [Pin], observation: Observation, models: UpstreamModels) throws {
        var seen: [ObjectID: [Int64]] = [:]
        var taken: Set<Int64> = []
        for pin in pins where taken.insert(pin.version).inserted { seen[pin.object, default: []].append(pin.version) }
        for (id, versions) in seen {
            guard let record = try record(id) else { continue }
            let contributing = record.contributing
            // The renewed row says it already.
            if contributing.count == 1, contributing[0].observation == observation.sequence { continue }
            // Out and in again: its place among the others goes by the new time.
            let others = contributing.filter { $0.observation != observation.sequence }
            try assign(others.map { ($0.version, $0.observation) }, to: record)
            let contributions = try versions.map { version in
                Contribution(observation: observation, version: version, payload: try known(version, of: record))
            }
            // The same answer as before changes nothing that a route had not shown already.
            var changes: [MemberChange] = []
            try merge(contributions, into: record, models: models, changes: &changes)
        }
    }

    private func isDirty(
        _ stored: StoredBody,
        _ observation: Observation,
        scope: Int64,
        upstream: String,
        since verified: Int64
    ) throws -> Bool {
        let suspects = try Set(stored.pins.map(\.object)).filter { id in
            guard let record = try record(id) else { return false }
            return record.changed > verified
        }
        guard !suspects.isEmpty else { return false }
        guard let skeleton = stored.skeleton, let models = models[upstream] else { return true }
        let composition = try models.composer.compose(
            skeleton: skeleton,
            pins: try stored.pins.map { try payload(of: $0.version) },
            observation: observation,
            mayHaveChanged: { pin, _ in suspects.contains(stored.pins[pin].object) },
            state: { try state(of: $0, scope: scope) }
        )
        return composition != .unchanged
    }

    // MARK: Rows

    private func documents(
        of key: DocumentKey,
        under digest: Digest128,
        variant: [UInt8]
    ) throws -> [(id: DocumentID, observation: Int64)] {
        var found: [(id: DocumentID, observation: Int64, scope: Int64)] = []
        try query("SELECT id, observation, scope FROM _documents WHERE low = ? AND url = ? AND variant = ?").each(
            .integer(Int64(bitPattern: digest.low)),
            .string(key.url),
            .blob(variant)
        ) { found.append(($0.integer(0), $0.integer(1), $0.integer(2))) }
        return try found.filter { try names.scope($0.scope, in: database).isOfKey(key) }
            .map { ($0.id, $0.observation) }
    }

    /// Deletes the oldest variants of a key, so that one more has a place.
    private func displaceVariants(of key: DocumentKey, under digest: Digest128) throws {
        let surplus = try documents(at: key, under: digest).dropFirst(Store.variantLimit - 1)
        // Without a word to memory, which would forget the other variants with them.
        for id in surplus { try delete(id) }
    }

    /// The documents under a key, the newest first.
    private func documents(at key: DocumentKey, under digest: Digest128) throws -> [DocumentID] {
        var found: [(id: DocumentID, scope: Int64)] = []
        try query("SELECT id, scope FROM _documents WHERE low = ? AND url = ? ORDER BY id DESC").each(
            .integer(Int64(bitPattern: digest.low)),
            .string(key.url)
        ) { found.append(($0.integer(0), $0.integer(1))) }
        return try found.filter { try names.scope($0.scope, in: database).isOfKey(key) }.map(\.id)
    }

    /// Whether there are documents under a key, or under one that shares half its digest.
    func hasDocuments(under digest: Digest128) throws -> Bool {
        try query("SELECT 1 FROM _documents WHERE low = ? LIMIT 1")
            .first(.integer(Int64(bitPattern: digest.low))) { _ in true } ?? false
    }

    private func insert(
        _ document: ReceivedDocument,
        _ preparation: Preparation,
        _ intake: Intake,
        id: DocumentID,
        digest: Digest128,
        place: Int64,
        scope: Int64,
        observation: Int64,
        verified: Int64
    ) throws {
        try query("INSERT INTO _documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)").run(
            .integer(id),
            .integer(Int64(bitPattern: digest.low)),
            .integer(place),
            .integer(scope),
            .string(document.key.url),
            .blob(document.variant),
            .integer(Int64(document.status)),
            .integer(observation),
            .integer(verified),
            .integer(Int64(document.body.count)),
            .blob(document.head),
            .blob(document.policy)
        )
        let skeleton = preparation.isExact ? preparation.decomposed.map { SQLValue.blob($0.skeleton) } : nil
        try query("INSERT INTO _bodies VALUES (?, ?, ?, ?)").run(
            .integer(id),
            .blob(Pins.encode(intake.pins)),
            skeleton ?? .null,
            skeleton == nil ? .blob(document.body) : .null
        )
        try query("INSERT INTO _used VALUES (?, ?)").run(.integer(id), .integer(seconds))
    }

    /// Deletes a document and what only it needed; tells nobody.
    ///
    /// - Parameter isForgotten: whether not even its URL is to be remembered with what it told of objects.
    @discardableResult
    func delete(_ id: DocumentID, isForgotten: Bool = false) throws -> Digest128? {
        let found = try query("SELECT scope, url, observation FROM _documents WHERE id = ?")
            .first(.integer(id)) { (scope: $0.integer(0), url: $0.string(1), observation: $0.integer(2)) }
        guard let found else { return nil }
        let scope = try names.scope(found.scope, in: database)
        try unpin(try StoredBody.pins(of: id, in: database))
        try use(found.observation, by: -1)
        if !isForgotten { try note(source: "GET \(found.url)", of: found.observation) }
        try query("DELETE FROM _bodies WHERE document = ?").run(.integer(id))
        try query("DELETE FROM _used WHERE document = ?").run(.integer(id))
        try query("DELETE FROM _documents WHERE id = ?").run(.integer(id))
        return hasher.digest(
            DocumentKey(
                upstream: scope.upstream,
                principal: scope.principal,
                context: ObjectContext.key(of: scope.context),
                url: found.url
            )
        )
    }

    /// Deletes a document for good and lets the listener know.
    func remove(_ id: DocumentID, isForgotten: Bool = false) throws {
        guard let digest = try delete(id, isForgotten: isForgotten) else { return }
        outcome.removed.append(digest)
    }

    /// Deletes the documents under a key for good and lets the listener know.
    func remove(at key: DocumentKey) throws {
        for id in try documents(at: key, under: hasher.digest(key)) { try remove(id) }
    }

    /// Removes every document of a URL, and keeps out those already asked for.
    func invalidate(_ target: InvalidationTarget) throws {
        let place = hasher.place(upstream: target.upstream, url: target.path)
        barriers.invalidated(place: place, at: clock.now())
        var found: [DocumentID] = []
        try query("SELECT id FROM _documents WHERE place = ?").each(.integer(place)) {
            found.append($0.integer(0))
        }
        for id in found { try remove(id) }
    }

    /// Notes that documents showed the newest at a commit sequence.
    func verify(_ documents: [DocumentID], at sequence: Int64) throws {
        for id in documents {
            try query("UPDATE _documents SET verified = ?1 WHERE id = ?2 AND verified < ?1")
                .run(.integer(sequence), .integer(id))
        }
    }

    /// Notes that documents were used.
    func touch(_ documents: [DocumentID], at seconds: Int64) throws {
        for id in documents {
            try query("UPDATE _used SET at = ?1 WHERE document = ?2 AND at < ?1")
                .run(.integer(seconds), .integer(id))
        }
    }
}
