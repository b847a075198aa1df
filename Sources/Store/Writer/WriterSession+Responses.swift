import GRDB
import Mapping

extension WriterSession {
    /// Stores a response, whose `findCoverage` gave `coverage`: document, versions and objects, all in this
    /// transaction.
    func receive(_ response: QueuedResponse, _ coverage: TagCoverage?, _ prepared: PreparedBody) throws -> Receipt {
        let document = response.document
        let key = document.key
        var receipt = Receipt(sequence: numbers.sequence, warnings: prepared.warnings)
        let verdict = try verdict(on: response, prepared)
        if try verdict == .dropped || document.isShared && mayBeRefused(document) { return receipt }

        receipt.sequence = nextSequence()
        let context = ObjectContext(key: key.context, selectedBy: document.selectedBy).text
        let scope = try self.scope(.init(upstream: key.upstream, principal: key.principal, context: context))
        let digest = hasher.digest(key)
        // Most responses are the first of their key.
        let mayHavePredecessors = presence.mayContain(digest.low)
        let variants = mayHavePredecessors ? [document.variant, document.variantForAllFields].compactMap(\.self) : []
        let predecessors = try variants.flatMap { try documents(of: key, under: digest, variant: $0) }
        let isSuperseded =
            try verdict == .observed
            || predecessors.contains {
                try self.observation($0.observation).end > min(document.end, document.upstreamWrittenAt ?? .max)
            }
        let isInMemoryOnly = prepared.isSecret || document.isInMemoryOnly
        // While the document is there, so are its versions; the commit of this response leaves both.
        let known = try document.resembled.map { try KnownVersions(of: $0, in: database) } ?? .none
        let origin = Int64(bitPattern: digest.low)
        let observation = newObservation(
            start: document.start,
            end: document.end,
            kind: document.kind,
            document: origin,
            dividedBy: document.dividedBy
        )
        let observed = try observe(
            prepared,
            from: MarkSource(method: "GET", path: String(key.url.beforeQuery)),
            scope: scope,
            upstream: key.upstream,
            observation: observation,
            origin: origin,
            pinning: !isSuperseded && !isInMemoryOnly,
            sharing: known,
            fetch: document.fetch,
            collectingNews: showsValues(of: document)
        )
        try show(observed, by: document)
        if document.namesObjects { receipt.names = Array(Set(prepared.decomposed?.occurrences.map(\.name) ?? [])) }
        (receipt.objects, receipt.isObserved) = (observed.objects, true)
        receipt.warnings += observed.warnings
        // The changes by this response itself now have sequences.
        receipt.sequence = numbers.sequence
        if isSuperseded || isInMemoryOnly {
            try setSource("\(CacheKey.method(ofURL: key.url)) \(key.url)", of: observation.id)
        }
        if isSuperseded { return receipt }
        // The old documents are unpinned after the new one was pinned, so that a version in both is never deleted in between.
        for predecessor in predecessors { try deleteDocument(predecessor.id, notifying: false) }
        receipt.isDirty =
            try !observed.areNewest
            && (observed.isContested || isDirty(prepared, observation, scope: scope, upstream: key.upstream))
        receipt.isInMemoryOnly = isInMemoryOnly
        // Only memory keeps such a response, and is not notified of the predecessor's removal.
        if isInMemoryOnly { return receipt }
        if mayHavePredecessors, predecessors.isEmpty { try displaceVariants(of: key, under: digest) }
        // Nothing comes between this and the commit, and writing the document takes a while.
        if endsTransaction, !receipt.isDirty { response.foresee() }
        receipt.document = try insert(
            NewDocument(received: document, prepared: prepared, pins: observed.pins, coverage: coverage),
            digest: digest,
            pathHash: response.pathHash,
            scope: scope,
            observation: observation.id,
            verified: receipt.isDirty ? .zero : receipt.sequence
        )
        return receipt
    }

    /// How much of a response is stored; one that came too late marks the object that a write has named.
    private func verdict(on response: QueuedResponse, _ prepared: PreparedBody) throws -> Bans.Verdict {
        let (document, pathHash) = (response.document, response.pathHash)
        // Without it the principal was forgotten meanwhile.
        guard let label = try principalLabel(document.key.principal) else { return .dropped }
        let verdict = bans.verdict(
            on: document,
            queuedAt: response.time,
            pathHash: pathHash,
            principal: label,
            objects: prepared.decomposed?.occurrences ?? [],
            isUndivided: prepared.isUndivided
        )
        if verdict != .stored, let written = bans.write(before: document, to: pathHash) {
            try mark(rootOf: prepared, writtenBy: written, of: document.key)
        }
        return verdict
    }

    /// Whether values are known that are newer than those of a document being stored.
    private func isDirty(_ prepared: PreparedBody, _ observation: Observation, scope: ScopeID, upstream: UpstreamKey)
        throws
        -> Bool
    {
        guard let decomposed = prepared.decomposed, let models = models[upstream] else { return false }
        return try models.composer.isDirty(
            skeleton: decomposed.skeleton,
            pins: decomposed.occurrences.map(\.payload),
            keyed: decomposed.keyed,
            observation: observation
        ) { try state(of: $0, scope: scope) }
    }

    /// The state of the object with a name; nil if nothing is known of it.
    func state(of name: ObjectName, scope: ScopeID) throws -> ObjectState? {
        let collection = try names.collection(scope: scope, model: name.model, in: database)
        return try existingRecord(collection: collection, identity: StoredIdentity(name.identity)).map(state)
    }

    /// The objects in one response, after they were merged.
    struct ObservedObjects {
        var pins: [Pin] = []
        var objects: [ObjectID] = []
        /// Whether the response shows all that is known of each of its objects.
        var areNewest = true
        var warnings: [MappingWarning] = []
        /// Whether other machines have observed something else, so that the response alone does not show all that is known.
        var isContested = false
        /// The contributions that have changed what is known, and whether something was known before.
        var news: [(record: ObjectRecord, shown: [Contribution], wasKnown: Bool)] = []
    }

    /// Merges the objects of one response, and pins them if the response becomes a document.
    func observe(
        _ prepared: PreparedBody,
        from source: MarkSource,
        scope: ScopeID,
        upstream: UpstreamKey,
        observation: Observation,
        origin: Int64,
        pinning: Bool,
        sharing known: KnownVersions = .none,
        fetch: SharedFetch? = nil,
        collectingNews: Bool = false
    ) throws -> ObservedObjects {
        guard let decomposed = prepared.decomposed, let models = models[upstream] else { return ObservedObjects() }
        var observed = ObservedObjects()
        var shown: [ObjectRecord] = []
        var taken: Set<VersionID> = []
        // Consecutive objects mostly have the same model.
        var (model, collection, declared) = ("", CollectionID.zero, 0)
        let mayBeMarked = recentMarks.mayConcern(observation, lag: models.lag)
        let areEmbedded = decomposed.areEmbedded(in: observation.kind)
        for (index, occurrence) in decomposed.occurrences.enumerated() {
            // A single list may take longer than the time limit for closing the store.
            if observation.kind != .write, isGivenUp() { throw StoreError.closed }
            if occurrence.name.model != model {
                model = occurrence.name.model
                collection = try names.collection(scope: scope, model: model, in: database)
                declared = models.models.version(of: model)
            }
            let record = try record(collection: collection, identity: StoredIdentity(occurrence.name.identity))
            if mayBeMarked {
                let keys = (occurrence.keys + occurrence.boundKeys).map(\.value)
                if let recent = recentMarks.mark(of: occurrence.name, keys: keys, upstream: upstream, scope: scope) {
                    if recent.source.isWrite { record.setWrite(at: recent.mark.time) }
                    let mark = try mark(recent.mark, of: recent.writer, for: scope)
                    try apply(mark, to: record, by: recent.source)
                }
            }
            let (content, payload) = (prepared.contents[index], occurrence.payload)
            let (version, isNew) = try self.version(
                of: record,
                content,
                payload: payload,
                declared: declared,
                sharing: known
            )
            if isNew || !occurrence.boundKeys.isEmpty { try writeKeys(of: occurrence, for: record, observation.kind) }
            if pinning, let index = record.index(of: version) {
                record.entries[index].uses += 1
                record.isModified = true
            }
            observed.pins.append(Pin(object: record.id, version: version))
            let contribution = Contribution(
                observation: observation,
                version: version.rawValue,
                payload: occurrence.payload,
                origin: origin,
                isEmbedded: areEmbedded[index]
            )
            if record.contributions.isEmpty { shown.append(record) }
            if taken.insert(version).inserted { record.contributions.append(contribution) }
        }
        var former: [(change: MemberChange, model: String)] = []
        for record in shown {
            if observation.kind != .write, isGivenUp() { throw StoreError.closed }
            observed.objects.append(record.id)
            let fresh = record.contributions
            record.contributions = []
            let (before, wasKnown) = (record.changed, record.base != nil)
            if fresh.count > 1 {
                try warn(of: fresh, showing: record, in: decomposed, models: models.models, &observed)
            }
            let (changes, warnings) = try merge(fresh, into: record, models: models, by: source)
            observed.warnings += warnings
            if collectingNews, record.changed != before { observed.news.append((record, fresh, wasKnown)) }
            if !wasKnown, !recentObservations.isEmpty {
                let first = record.changed
                try mergeRemembered(into: record, besides: fresh, by: fetch, of: upstream, models: models, by: source)
                observed.isContested = observed.isContested || record.changed != first
            }
            if !changes.isEmpty, models.models.deleteFormer {
                let model = try names.collection(record.collection, in: database).model
                former += changes.map { ($0, model) }
            }
        }
        if !former.isEmpty {
            try deleteFormer(former, scope: scope, besides: decomposed.occurrences, models: models, by: source)
        }
        observed.areNewest = observed.pins.allSatisfy { records[$0.object]?.isKnownOnly(as: $0.version) == true }
        return observed
    }

    /// The version of an object with a payload, and whether it is new to the object; stored if no version is known that
    /// has it.
    ///
    /// The same bytes under another version of the model are another version of the object.
    func version(
        of record: ObjectRecord,
        _ digest: UInt64,
        payload: [UInt8],
        declared: Int,
        sharing known: KnownVersions = .none
    ) throws -> (version: VersionID, isNew: Bool) {
        let content = digest ^ UInt64(truncatingIfNeeded: declared) &* 0x9E37_79B9_7F4A_7C15
        if let index = record.index(ofContent: content) { return (record.entries[index].version, false) }
        let version: VersionID
        if let shared = known.version(payload, declared) {
            try share(shared)
            version = shared
        } else {
            version = numbers.version.increment()
            try query("INSERT INTO _versions (id, payload, declared) VALUES (?, ?, ?)").run(values: [
                version, SQLValue.text(payload), declared == 0 ? SQLValue.null : .integer(Int64(declared)),
            ])
        }
        record.entries.append(ObjectRecord.Entry(version: version, content: content, uses: 0, observation: .zero))
        record.isModified = true
        return (version, true)
    }

    /// Records the keys of an object.
    ///
    /// The path of a read identifies the object in its response, perhaps by an alias. The path of a write identified
    /// the object before the write: if the response shows another value of that key, the object may have been renamed.
    private func writeKeys(of occurrence: Occurrence, for record: ObjectRecord, _ kind: Observation.Kind) throws {
        for key in occurrence.keys {
            try query("INSERT OR IGNORE INTO _keys VALUES (?, ?, NULL)").run(record.id, keyHasher.keyHash(key.value))
        }
        for key in occurrence.boundKeys {
            let value = keyHasher.keyHash(key.value)
            if kind == .write, occurrence.keys.contains(where: { $0.member == key.member }) {
                try query("UPDATE _keys SET bound = NULL WHERE object = ? AND value = ?").run(record.id, value)
            } else {
                try query("INSERT OR REPLACE INTO _keys VALUES (?, ?, 1)").run(record.id, value)
            }
        }
    }

    /// Adds tombstones for the objects that a response removed from such relations.
    ///
    /// Objects that the response itself shows elsewhere are excluded, and so are those in an overlapping response, because the
    /// two cannot be ordered (law 3).
    func deleteFormer(
        _ changes: [(change: MemberChange, model: String)],
        scope: ScopeID,
        besides shown: [Occurrence],
        models: UpstreamModels,
        by source: MarkSource
    ) throws {
        let former = changes.flatMap { change, model in
            models.models.formerObjects(in: change, of: model).map { (name: $0, observation: change.observation) }
        }
        guard !former.isEmpty else { return }
        let shown = Set(shown.map(\.name))
        for (name, observation) in former where !shown.contains(name) {
            let collection = try names.collection(scope: scope, model: name.model, in: database)
            guard let record = try existingRecord(collection: collection, identity: StoredIdentity(name.identity)),
                record.base != nil, let lastSeen = try state(of: record).lastSeen,
                observation.lo(isEmbedded: false, lag: models.lag) > lastSeen
            else { continue }
            try apply(.tombstone(observation.effectiveTime), to: record, by: source)
        }
    }

    /// Freshens a document by a 304, if it shows the newest values of all its objects: see `ObjectStore.freshen`.
    func freshen(
        _ id: DocumentID,
        head: [UInt8],
        policy: [UInt8],
        start: Int64,
        end: Int64,
        policyIfDirty: [UInt8]?
    ) throws -> FresheningOutcome {
        let found = try query("SELECT scope, observation, verified, url FROM _documents WHERE id = ?")
            .first(id) {
                (
                    scope: $0.id(0, as: ScopeID.self), observation: $0.id(1, as: ObservationID.self),
                    verified: $0.id(2, as: CommitNumber.self),
                    url: $0.string(3)
                )
            }
        guard let found else { return .gone }
        let scope = try names.scope(found.scope, in: database)
        let stored = try StoredBody(document: id, in: database)
        let known = try observation(found.observation)
        if try isDirty(stored, known, scope: found.scope, upstream: scope.upstream, since: found.verified) {
            // The 304 does not confirm the new values, but the upstream's last word on how long they last counts.
            if let policyIfDirty {
                try query("UPDATE _documents SET head = ?, policy = ? WHERE id = ?").run(head, policyIfDirty, id)
            }
            return .dirty
        }
        _ = nextSequence()
        try move(found.observation, start: start, end: end)
        if let models = models[scope.upstream] {
            let source = MarkSource(method: "GET", path: String(found.url.beforeQuery))
            try confirm(stored, observation: try observation(found.observation), models: models, by: source)
        }
        try query("UPDATE _documents SET head = ?, policy = ?, verified = ? WHERE id = ?")
            .run(head, policy, numbers.sequence, id)
        return .freshened
    }

    func restrict(_ id: DocumentID, policy: [UInt8]) throws {
        try query("UPDATE _documents SET policy = ? WHERE id = ?").run(policy, id)
    }

    /// Confirms the versions in a clean document at its observation, which has moved.
    private func confirm(_ stored: StoredBody, observation: Observation, models: UpstreamModels, by source: MarkSource)
        throws
    {
        // This reads all payloads, which most documents do not need.
        var areEmbedded: [Bool]?
        var seen: [ObjectID: [(version: VersionID, pin: Int)]] = [:]
        var taken: Set<VersionID> = []
        for (index, pin) in stored.pins.enumerated() where taken.insert(pin.version).inserted {
            seen[pin.object, default: []].append((pin.version, index))
        }
        for (id, versions) in seen {
            guard let record = try record(id) else { continue }
            // The observation's row, which has moved, suffices.
            if let base = record.base, base.observation == observation.id, versions.count == 1,
                base.version == versions[0].version, case .whole = record.knowledge
            {
                continue
            }
            let embedded = try areEmbedded ?? stored.areEmbedded(in: observation.kind, database)
            areEmbedded = embedded
            let contributions = try versions.map { version, pin in
                var contribution = Contribution(
                    observation: observation,
                    version: version.rawValue,
                    payload: try known(version, of: record),
                    origin: try word(of: observation.id)?.document ?? 0,
                    isEmbedded: embedded[pin]
                )
                contribution.isNotModified = true
                return contribution
            }
            _ = try merge(contributions, into: record, models: models, by: source)
        }
    }

    private func isDirty(
        _ stored: StoredBody,
        _ observation: Observation,
        scope: ScopeID,
        upstream: UpstreamKey,
        since verified: CommitNumber
    ) throws -> Bool {
        // The changes of this batch are only in memory so far.
        if !records.isEmpty { try flush() }
        let shown = Set(stored.pins.map(\.object))
        let changedObjects = try StoredBody.changedObjects(among: shown, since: verified, in: database)
        guard !changedObjects.isEmpty else { return false }
        guard let skeleton = stored.skeleton, let models = models[upstream] else { return true }
        return try models.composer.isDirty(
            skeleton: skeleton,
            pins: try stored.payloads(in: database),
            keyed: stored.keyed,
            observation: observation,
            mayHaveChanged: { pin in changedObjects.contains(stored.pins[pin].object) },
            state: { try state(of: $0, scope: scope) }
        )
    }
}
