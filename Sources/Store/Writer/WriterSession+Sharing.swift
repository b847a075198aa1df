import GRDB
import Mapping

/// Shows new values to other machines.
extension WriterSession {
    func showsValues(of document: ReceivedDocument) -> Bool {
        !document.isShared && sharing()?.isWanted(document.key.upstream) ?? false
    }

    /// Notes what a response has changed, to be shown before the commit.
    func show(_ observed: ObservedObjects, by document: ReceivedDocument) throws {
        guard !observed.news.isEmpty, let principal = try digest(of: document.key.principal) else { return }
        let context = ObjectContext(key: document.key.context, selectedBy: document.selectedBy).text
        func values() -> ShownValues {
            let observation = SharedObservation(
                principal: principal,
                context: context,
                url: document.key.url,
                isList: document.kind == .list,
                dividedBy: document.dividedBy,
                objects: []
            )
            let (start, end) = (document.start, document.end)
            return ShownValues(upstream: document.key.upstream, observation: observation, start: start, end: end)
        }
        var (all, bytes) = ([values()], 0)
        for (record, contributions, wasKnown) in observed.news {
            let model = try names.collection(record.collection, in: database).model
            let size = contributions.reduce(0) { $0 + $1.payload.count }
            guard size <= ShownValues.objectByteLimit else {
                // Whoever knows the object would fetch it anew. If that happened for a first value, too, two machines that fetch
                // it in turn would never be done.
                if wasKnown {
                    all[all.count - 1].oversized.append(ObjectName(model: model, identity: record.identity.text))
                }
                continue
            }
            if bytes + size > ShownValues.byteLimit {
                all.append(values())
                bytes = 0
            }
            bytes += size
            all[all.count - 1].observation.objects += contributions.map {
                .init(model: model, identity: record.identity.text, payload: $0.payload, isEmbedded: $0.isEmbedded)
            }
        }
        effects.shown += all.filter { !$0.observation.objects.isEmpty || !$0.oversized.isEmpty }
    }

    /// What a write's response has shown of the objects that it does not only mark, and objects that are too large for
    /// it; nil if other machines are not to know it.
    ///
    /// It has all of these objects, also those that are as they were known here.
    func announcement(
        of write: CompletedWrite,
        showing prepared: PreparedBody,
        at url: String,
        except marked: [BoundObject]
    ) throws -> (observation: SharedObservation, oversized: [BoundObject])? {
        guard sharing()?.isWanted(write.upstream) == true, !prepared.isSecret, let decomposed = prepared.decomposed,
            let principal = try digest(of: write.principal)
        else { return nil }
        var observation = SharedObservation(
            principal: principal,
            context: write.context,
            url: url,
            isList: false,
            write: write.method,
            objects: []
        )
        let areEmbedded = decomposed.areEmbedded(in: .write)
        var payloads: [ObjectName: [(payload: [UInt8], isEmbedded: Bool)]] = [:]
        for (occurrence, isEmbedded) in zip(decomposed.occurrences, areEmbedded)
        where payloads[occurrence.name]?.contains(where: { $0.payload == occurrence.payload }) != true {
            payloads[occurrence.name, default: []].append((occurrence.payload, isEmbedded))
        }
        var (bytes, oversized) = (0, [BoundObject]())
        for (name, found) in payloads.sorted(by: { ($0.key.model, $0.key.identity) < ($1.key.model, $1.key.identity) })
        {
            let object = BoundObject(model: name.model, identity: name.identity)
            let size = found.reduce(0) { $0 + $1.payload.count }
            guard size <= ShownValues.objectByteLimit, bytes + size <= ShownValues.writeByteLimit else {
                oversized.append(object)
                continue
            }
            guard !marked.contains(object) else { continue }
            bytes += size
            observation.objects += found.map { payload, isEmbedded in
                .init(model: name.model, identity: name.identity, payload: payload, isEmbedded: isEmbedded)
            }
        }
        return (observation, oversized)
    }

    /// The digest of a principal; nil if it was forgotten.
    private func digest(of principal: PrincipalID) throws -> [UInt8]? {
        guard principal != .anonymous else { return [] }
        return try query("SELECT digest FROM _principals WHERE id = ?").first(principal) { $0.bytes(0) }
    }

    /// Merges what a response on another machine has shown of objects that are known here, and remembers the rest.
    ///
    /// - Returns: the objects that it has shown; others were malformed.
    func apply(_ values: AppliedValues, of upstream: UpstreamKey) throws -> Set<ObjectName> {
        let (shared, start, end) = (values.observation, values.start, values.end)
        guard let models = models[upstream], start <= end else { return [] }
        let scope = try principal(of: shared.principal).flatMap { principal in
            try existingScope(.init(upstream: upstream, principal: principal, context: shared.context))
        }
        var order: [ObjectName] = []
        var objects: [ObjectName: [SharedObservation.Object]] = [:]
        for object in shared.objects where Self.isObject(object.payload) {
            let name = ObjectName(model: object.model, identity: object.identity)
            if objects[name] == nil { order.append(name) }
            objects[name, default: []].append(object)
        }
        let sighting = RecentObservations.Sighting(
            shown: [],
            start: start,
            end: end,
            isList: shared.isList,
            write: shared.write,
            url: shared.url,
            dividedBy: shared.dividedBy,
            fetch: values.fetch
        )
        var observation: Observation?
        for name in order {
            var seen = sighting
            seen.shown = objects[name] ?? []
            if let scope, let record = try knownRecord(name, in: scope) {
                observation = try observation ?? newObservation(of: seen, scope: scope)
                if let observation {
                    try merge(seen, as: observation, into: record, scope: scope, models: models)
                    continue
                }
            }
            let forgotten = recentObservations.add(
                seen,
                of: .init(
                    upstream: upstream,
                    principal: shared.principal,
                    context: shared.context,
                    model: name.model,
                    identity: name.identity
                )
            )
            if let forgotten { bans.banEverything(until: forgotten) }
        }
        return Set(order)
    }

    /// Merges what other machines have observed of an object, once a response has shown it here.
    ///
    /// - Parameter fetch: the response's fetch, if it is another machine's: what that machine has announced of it is
    ///   merged already.
    func mergeRemembered(
        into record: ObjectRecord,
        besides fresh: [Contribution],
        by fetch: SharedFetch?,
        of upstream: UpstreamKey,
        models: UpstreamModels,
        by source: MarkSource
    ) throws {
        let (id, model) = try names.collection(record.collection, in: database)
        let scope = try names.scope(id, in: database)
        guard let principal = try digest(of: scope.principal) else { return }
        let name = RecentObservations.Name(
            upstream: upstream,
            principal: principal,
            context: scope.context,
            model: model,
            identity: record.identity.text
        )
        for seen in recentObservations[name] where !seen.isSame(as: fresh, of: fetch) {
            try merge(seen, as: newObservation(of: seen, scope: id), into: record, scope: id, models: models)
        }
    }

    private func newObservation(of seen: RecentObservations.Sighting, scope: ScopeID) throws -> Observation {
        let key = try names.scope(scope, in: database).key(ofURL: seen.url)
        let observation = newObservation(
            start: seen.start,
            end: seen.end,
            kind: seen.write != nil ? .write : seen.isList ? .list : .detail,
            document: seen.write == nil ? Int64(bitPattern: hasher.digest(key).low) : nil,
            dividedBy: seen.dividedBy
        )
        try setSource("\(seen.write ?? CacheKey.method(ofURL: seen.url)) \(seen.url)", of: observation.id)
        return observation
    }

    private func merge(
        _ seen: RecentObservations.Sighting,
        as observation: Observation,
        into record: ObjectRecord,
        scope: ScopeID,
        models: UpstreamModels
    ) throws {
        let model = try names.collection(record.collection, in: database).model
        let declared = models.models.version(of: model)
        var taken: Set<VersionID> = []
        let contributions = try seen.shown.compactMap { object -> Contribution? in
            let content = hasher.contentHash(object.payload)
            let version = try version(of: record, content, payload: object.payload, declared: declared).version
            guard taken.insert(version).inserted else { return nil }
            return Contribution(
                observation: observation,
                version: version.rawValue,
                payload: object.payload,
                origin: try word(of: observation.id)?.document ?? 0,
                isEmbedded: object.isEmbedded
            )
        }
        let source = MarkSource(method: seen.write ?? "GET", path: String(seen.url.beforeQuery))
        _ = try merge(contributions, into: record, models: models, by: source)
    }

    /// The object with a name, if anything is known of it.
    private func knownRecord(_ name: ObjectName, in scope: ScopeID) throws -> ObjectRecord? {
        let collection = try names.collection(scope: scope, model: name.model, in: database)
        let record = try existingRecord(collection: collection, identity: StoredIdentity(name.identity))
        return record?.base == nil ? nil : record
    }

    private func principal(of digest: [UInt8]) throws -> PrincipalID? {
        guard !digest.isEmpty else { return .anonymous }
        return try query("SELECT id FROM _principals WHERE digest = ?").first(digest) { $0.id(0) }
    }

    private static func isObject(_ payload: [UInt8]) -> Bool { JSONOutline(payload)?.kind == .object }

    /// Removes what something on another machine has made outdated, except for documents requested later, and marks its objects,
    /// except for those that a write's response has shown to the principal who wrote.
    func apply(_ invalidation: Invalidation, isWrite: Bool, _ values: AppliedValues? = nil) throws {
        guard let upstream = invalidation.upstream else { return }
        _ = nextSequence()
        let time = invalidation.time
        let shown = try values.map { try apply($0, of: upstream) } ?? []
        var scope: ScopeID?
        if let observation = values?.observation, let principal = try principal(of: observation.principal) {
            // It may have no objects so far; the marks outlast that.
            scope = try self.scope(.init(upstream: upstream, principal: principal, context: observation.context))
        }
        try removePaths(of: invalidation, isLate: true)
        let method = values?.observation.write ?? ""
        let source = MarkSource(method: method, path: invalidation.paths.min() ?? "")
        for object in invalidation.objects {
            let name = object.identity.map { ObjectName(model: object.model, identity: $0) }
            try mark(
                object,
                of: upstream,
                own: nil,
                for: name.map { shown.contains($0) } == true ? scope : nil,
                others: .unobserved(time, isOwn: isWrite),
                of: .nobody,
                by: source
            )
        }
        try invalidateUndivided(of: upstream, at: time)
    }

    // MARK: Responses of other machines

    /// Refuses the responses that other machines have requested until a time, also after a restart.
    func refuseShared(until time: Int64) throws {
        guard try time > Meta.sharedSince.integer(in: database) ?? .min else { return }
        try Meta.sharedSince.set(time, in: database)
    }

    /// Whether another machine's response may be older than something that was known here and is not any more.
    func mayBeRefused(_ document: ReceivedDocument) throws -> Bool {
        try document.sent <= Meta.sharedSince.integer(in: database) ?? .min
    }
}
