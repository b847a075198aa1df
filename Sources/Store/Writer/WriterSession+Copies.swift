import GRDB
import Mapping

/// What a copy adds to the store, in the transactions of the writer.
extension WriterSession {
    /// Adds a slice of a copy; gives the number of documents and objects that are new.
    func merge(_ slice: CopiedSlice, ofUnknownAge: (_ policy: [UInt8]) -> [UInt8]) throws -> StoreCount {
        _ = nextSequence()
        var added = StoreCount()
        let observed = try observe(slice)
        for (_, object) in slice.objects.sorted(by: { $0.key < $1.key }) {
            if isGivenUp() { throw StoreError.closed }
            let record = try record(of: object)
            if record.base != nil || record.mark != nil {
                try observe(object, as: record)
            } else if try adopt(object, as: record, observed) {
                added.objects += 1
            }
        }
        for document in slice.documents {
            if isGivenUp() { throw StoreError.closed }
            if try insert(document, of: slice.objects, observed, ofUnknownAge: ofUnknownAge) { added.documents += 1 }
        }
        return added
    }

    /// Numbers a slice's observations in the order of its documents.
    ///
    /// - Returns: the new numbers by those in the copy. What nothing refers to is not written.
    private func observe(_ slice: CopiedSlice) throws -> [ObservationID: ObservationID] {
        var observations = slice.objects.values.reduce(into: [:]) { all, object in
            all.merge(object.observations) { first, _ in first }
        }
        for document in slice.documents {
            let seen = document.observation
            observations[seen.id] = CopiedObservation(observation: seen, source: "GET \(document.url)")
        }
        var observed: [ObservationID: ObservationID] = [:]
        for (number, copied) in observations.sorted(by: { $0.key < $1.key }) {
            let seen = copied.observation
            let new = newObservation(start: seen.start, end: seen.end, kind: seen.kind).id
            try note(source: copied.source, of: new)
            observed[number] = new
        }
        return observed
    }

    private func scope(of copied: CopiedScope) throws -> NameTable.Scope {
        NameTable.Scope(upstream: copied.upstream, principal: try principal(copied.principal), context: copied.context)
    }

    private func record(of object: CopiedObject) throws -> ObjectRecord {
        let scope = try self.scope(try scope(of: object.scope))
        let collection = try names.collection(scope: scope, model: object.model, in: database)
        return try record(collection: collection, identity: object.identity)
    }

    // MARK: Objects

    /// Stores a copy's object that this store does not have.
    ///
    /// Returns whether it adds to the number of objects.
    ///
    /// - Parameter observed: the observations of the slice, by their numbers in the copy.
    private func adopt(_ object: CopiedObject, as record: ObjectRecord, _ observed: [ObservationID: ObservationID])
        throws -> Bool
    {
        let state = object.state
        guard let base = state.base else {
            // That it is deleted concerns the documents that show it.
            if let mark = state.mark { record.setMark(mark, by: object.markSource.map { MarkSource(text: $0) }) }
            return false
        }
        func local(_ copied: ObservationID) -> ObservationID {
            guard let new = observed[copied] else {
                preconditionFailure("a state names only observations that were read")
            }
            return new
        }
        let version = try version(
            of: record,
            hasher.contentHash(base.payload),
            payload: base.payload,
            declared: object.declared
        )
        try rebase(record, on: version, local(base.observation.id))
        var knowledge = state.knowledge
        if case .groups(var groups) = knowledge {
            for index in groups.indices {
                groups[index].source = local(ObservationID(rawValue: groups[index].source)).rawValue
                if let source = groups[index].doubt?.source {
                    groups[index].doubt?.source = local(ObservationID(rawValue: source)).rawValue
                }
            }
            knowledge = .groups(groups)
        }
        try setKnowledge(knowledge, of: record)
        record.merged = state.merged
        record.accumulated = state.gathered.bytes
        record.deletedSince = state.deletedSince
        if let mark = state.mark { record.setMark(mark, by: object.markSource.map { MarkSource(text: $0) }) }
        let isDeleted = state.mark?.isTombstone == true || state.deletedSince != nil
        markChanged(record, wasKnown: false, as: isDeleted ? .deleted : nil)
        try note(keysOf: object, for: record)
        return !isDeleted
    }

    private func note(keysOf object: CopiedObject, for record: ObjectRecord) throws {
        guard let models = models[object.scope.upstream]?.models, let payload = object.state.payload else { return }
        let known = models.keys(in: payload, of: object.model)
        let keys = object.keys ?? known.map { (value: keyHasher.keyHash($0.value), isBound: false) }
        for key in keys {
            try query("INSERT OR IGNORE INTO _keys VALUES (?, ?, ?)")
                .run(record.id, key.value, key.isBound ? SQLValue.integer(1) : .null)
        }
        // A write may have changed it before this store had it.
        let name = ObjectName(model: object.model, identity: object.identity.text)
        let scope = try names.collection(record.collection, in: database).scope
        let values = known.map(\.value)
        if let recent = recentMarks.mark(of: name, keys: values, upstream: object.scope.upstream, scope: scope) {
            try apply(recent.mark, to: record, by: recent.source)
        }
    }

    /// Adds what a copy knows of an object that is known here too: an observation older than all others (law 3).
    ///
    /// Merged values and deletions that this store knows are kept.
    private func observe(_ object: CopiedObject, as record: ObjectRecord) throws {
        guard let models = models[object.scope.upstream], models.models.isSimple(object.model),
            let payload = object.state.payload, !object.state.isOutdated(lag: models.lag)
        else { return }
        let known = try state(of: record)
        guard known.payload != payload else { return }
        let observation = newObservation(start: CopiedTime.unknown, end: CopiedTime.unknown, kind: .list)
        let source = object.state.base.flatMap { object.observations[$0.observation.id]?.source }
        try note(source: source, of: observation.id)
        let version = try version(of: record, hasher.contentHash(payload), payload: payload, declared: object.declared)
        let contribution = Contribution(observation: observation, version: version.rawValue, payload: payload)
        _ = try merge([contribution], into: record, models: models, by: MarkSource(method: "", path: ""))
    }

    // MARK: Documents

    /// Adds a document, unless there is one under its key; whether it was added.
    private func insert(
        _ document: CopiedDocument,
        of objects: [ObjectID: CopiedObject],
        _ observed: [ObservationID: ObservationID],
        ofUnknownAge: (_ policy: [UInt8]) -> [UInt8]
    ) throws -> Bool {
        let scope = try scope(of: document.scope)
        let key = CacheKey(
            upstream: scope.upstream,
            principal: scope.principal,
            context: ObjectContext.key(of: scope.context),
            url: document.url
        )
        let digest = hasher.digest(key)
        guard try documents(of: key, under: digest, variant: document.variant).isEmpty,
            try documents(at: key, under: digest).count < ObjectStore.variantLimit
        else { return false }
        var pins: [Pin] = []
        for pin in document.pins {
            guard let object = objects[pin.object] else {
                preconditionFailure("a slice has the objects of its documents")
            }
            let record = try record(of: object)
            let version = try version(
                of: record,
                hasher.contentHash(pin.payload),
                payload: pin.payload,
                declared: pin.declared
            )
            if let index = record.index(of: version) {
                record.entries[index].uses += 1
                record.isModified = true
            }
            pins.append(Pin(object: record.id, version: version))
        }
        guard let observation = observed[document.observation.id] else {
            preconditionFailure("a slice numbers the observations of its documents")
        }
        // From now on the document says where it comes from.
        try note(source: nil, of: observation)
        let id = try insert(
            NewDocument(
                key: key,
                variant: document.variant,
                status: document.status,
                length: document.length,
                head: document.head,
                policy: ofUnknownAge(document.policy),
                pins: pins,
                skeleton: document.skeleton,
                literal: document.literal ?? [],
                keyed: document.keyed,
                isUndivided: document.isUndivided
            ),
            digest: digest,
            pathHash: hasher.pathHash(upstream: key.upstream, url: key.url),
            scope: try self.scope(scope),
            observation: observation,
            verified: .zero
        )
        try query("UPDATE _used SET at = ? WHERE document = ?").run(document.used, id)
        return true
    }
}
