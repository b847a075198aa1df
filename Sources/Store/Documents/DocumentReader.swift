import GRDB
public import Mapping

/// Reads documents in one read snapshot, and composes those with outdated values.
struct DocumentReader {
    let database: Database
    let models: [UpstreamKey: UpstreamModels]
    private let sequence: CommitNumber
    let changed: CommitNumber
    /// The division of the request that documents are read for, as in `ReceivedDocument`.
    private let dividedBy: Int64?

    init(_ database: Database, models: [UpstreamKey: UpstreamModels], for dividedBy: Int64? = nil) throws {
        (self.database, self.models, self.dividedBy) = (database, models, dividedBy)
        sequence = try Meta.commitNumber(in: database)
        changed = CommitNumber(rawValue: try Meta.changed.integer(in: database) ?? 0)
    }

    /// The wanted variants under a key, and those among them that still show the newest values although their objects changed.
    func documents(at key: CacheKey, digest: Digest128, where isWanted: (_ variant: [UInt8]) -> Bool) throws
        -> (documents: [StoredDocument], verified: [DocumentID], sequence: CommitNumber)
    {
        var (documents, verified): ([StoredDocument], [DocumentID]) = ([], [])
        try database.query(
            "SELECT \(Self.columns) \(Self.underKey) \(Self.observed) WHERE d.low = ?1 AND d.url = ?2"
        ).each(digest, key.url, key.principal, key.upstream, key.context) { row in
            // This precedes reading the body: there may be many variants.
            guard isWanted(row.bytes(3)) else { return }
            var document = withoutBody(row, under: key)
            let isVerified = try composeIfDirty(&document, scope: row.id(1), verified: row.id(2))
            if isVerified { verified.append(document.id) }
            documents.append(document)
        }
        return (documents, verified, sequence)
    }

    func document(_ id: DocumentID) throws -> StoredDocument? {
        try database.query(
            """
            SELECT \(Self.columns), u.text, s.principal, x.text, d.url FROM _documents d
            JOIN _scopes s ON s.id = d.scope JOIN _names u ON u.id = s.upstream JOIN _names x ON x.id = s.context
            \(Self.observed) WHERE d.id = ?
            """
        ).first(id) { row in
            let scope = NameTable.Scope(upstream: row.upstream(11), principal: row.id(12), context: row.string(13))
            var document = withoutBody(row, under: scope.key(ofURL: row.string(14)))
            _ = try composeIfDirty(&document, scope: row.id(1), verified: row.id(2))
            return document
        }
    }

    private static let columns = """
        d.id, d.scope, d.verified, d.variant, d.status, d.head, d.policy, d.observation, o.start, o.finish, o.kind
        """
    private static let observed = "JOIN _observations o ON o.id = d.observation"

    /// The document of a row that begins with `columns`, without its body and its objects.
    private func withoutBody(_ row: QueryRow, under key: CacheKey) -> StoredDocument {
        StoredDocument(
            id: row.id(0),
            key: key,
            variant: row.bytes(3),
            status: Int(row.integer(4)),
            head: row.bytes(5),
            policy: row.bytes(6),
            observation: row.observation(row.id(7), from: 8),
            sequence: sequence
        )
    }

    /// Selects the documents under a key, whose parts are the parameters from the third on.
    private static let underKey = """
        FROM _documents d
        JOIN _scopes s ON s.id = d.scope AND s.principal = ?3
        JOIN _names u ON u.id = s.upstream AND u.text = ?4
        JOIN _names x ON x.id = s.context AND \(ObjectContext.isOfKey("x.text", "?5"))
        """

    /// Fills in body, form and objects; returns whether objects had changed but the document still shows the newest values.
    private func composeIfDirty(_ document: inout StoredDocument, scope: ScopeID, verified: CommitNumber) throws -> Bool
    {
        let observation = document.observation
        let stored = try StoredBody(document: document.id, in: database)
        let payloads = try stored.payloads(in: database)
        let pinned = Set(stored.pins.map(\.object))
        document.objects = Array(pinned)
        let changedObjects =
            changed > verified ? try StoredBody.changedObjects(among: pinned, since: verified, in: database) : []
        let migrated = try stored.migrated(payloads, by: models[document.key.upstream]?.models, in: database)
        document.migrated = migrated.flatMap { recompose(skeleton: stored.skeleton ?? [], payloads: $0) }
        guard !changedObjects.isEmpty else {
            document.body = try stored.received(payloads: payloads)
            return false
        }
        guard let skeleton = stored.skeleton, let models = models[document.key.upstream] else {
            document.body = try stored.received(payloads: payloads)
            document.form = .outdated(reason: "the body cannot be put together from its objects")
            return false
        }
        let own = try divisions(of: [observation.sequence]).first
        var failure: (any Error)?
        var judged: [Int64: Bool] = [:]
        /// Whether a value is from no response for requests with other fields than this one.
        func mayShow(_ source: Int64) -> Bool {
            // The objects of a list mostly share their sources.
            if let known = judged[source] { return known }
            var result = true
            do {
                if let division = try divisions(of: [source]).first, division != own {
                    document.isForRequestOnly = true
                    result = own == nil && division == dividedBy
                }
            } catch {
                (failure, result) = (error, false)
            }
            judged[source] = result
            return result
        }
        func compose(_ payloads: [[UInt8]], _ doubts: inout Set<Int64>) throws -> Composition {
            try models.composer.compose(
                skeleton: skeleton,
                pins: payloads,
                keyed: stored.keyed,
                url: document.key.url,
                observation: observation,
                mayHaveChanged: { pin in changedObjects.contains(stored.pins[pin].object) },
                isPartialWanted: true,
                mayShow: mayShow,
                doubts: &doubts,
                state: { try state(of: $0, scope: scope) }
            )
        }
        var doubts: Set<Int64> = []
        var composition = try compose(migrated ?? payloads, &doubts)
        if let failure { throw failure }
        document.doubts = doubts.sorted()
        if migrated != nil, composition != .unchanged {
            switch composition {
            case .composed(let body), .unknown(_, let body?): document.migrated = body.bytes
            case .unknown, .unchanged: break
            }
            // The newer values have another form than the bytes received.
            composition = .unknown(reason: "it is stored in the form of an earlier version of its models")
        }
        switch composition {
        case .composed(let body):
            document.form = .composed
            (document.body, document.isBodyComposed) = (body.bytes, true)
            document.objects = Array(pinned.union(try body.added.compactMap { try id(of: $0, scope: scope) }))
            return false
        case .unknown(let reason, let partial):
            document.form = .outdated(reason: reason)
            document.body = try partial?.bytes ?? stored.received(payloads: payloads)
            document.isBodyComposed = partial != nil
            return false
        case .unchanged:
            document.body = try stored.received(payloads: payloads)
            return doubts.isEmpty
        }
    }

    /// The fields by which the responses of these observations are divided.
    private func divisions(of observations: Set<Int64>) throws -> Set<Int64> {
        // The index is empty as long as no client sends such fields.
        guard try database.query("SELECT 1 FROM _observations WHERE divided IS NOT NULL LIMIT 1").integer() != nil
        else { return [] }
        let query = try database.query("SELECT divided FROM _observations WHERE id = ? AND divided IS NOT NULL")
        return Set(try observations.compactMap { try query.integer($0) })
    }

    /// Whether a document with this division may show an object's settled values.
    func mayShow(_ state: ObjectState, dividedBy: Int64?) throws -> Bool {
        try divisions(of: state.sources).allSatisfy { $0 == dividedBy }
    }

    private static let byName = """
        FROM _names m JOIN _collections c ON c.model = m.id AND c.scope = ?1
        JOIN _objects o ON o.collection = c.id AND o.identity = ?3
        JOIN _scopes s ON s.id = c.scope JOIN _names u ON u.id = s.upstream WHERE m.text = ?2
        """

    func id(of name: ObjectName, scope: ScopeID) throws -> ObjectID? {
        let query = try database.query("SELECT o.id \(Self.byName)")
        return try query.first(scope, name.model, StoredIdentity(name.identity)) { $0.id(0) }
    }

    /// The name of an object that is given by its identity or by a key; nil if none has the key, or several have.
    func name(of object: BoundObject, _ models: Models, _ hasher: KeyHasher, scope: ScopeID) throws -> ObjectName? {
        if let identity = object.identity { return ObjectName(model: object.model, identity: identity) }
        guard let key = object.keys.first else { return nil }
        let found = try database.query(
            """
            SELECT o.identity FROM _keys k JOIN _objects o ON o.id = k.object AND o.deleted IS NULL
            JOIN _collections c ON c.id = o.collection AND c.scope = ?1 JOIN _names m ON m.id = c.model AND m.text = ?2
            WHERE k.value = ?3
            """
        ).all(scope, object.model, hasher.keyHash(key)) { StoredIdentity($0, column: 0).text }
        let names = try found.map { ObjectName(model: object.model, identity: $0) }.filter { name in
            // The key may be one that the object had before.
            let json = try state(of: name, scope: scope)?.payload ?? []
            return models.keys(in: json, of: object.model).contains { $0.value.utf8.elementsEqual(key.utf8) }
        }
        return names.count == 1 ? names[0] : nil
    }

    /// The scope of responses under a key that vary by nothing else; nil if there are none.
    static func scope(of key: CacheKey, in database: Database) throws -> ScopeID? {
        try database.query(
            """
            SELECT s.id FROM _scopes s JOIN _names u ON u.id = s.upstream AND u.text = ?2
            JOIN _names x ON x.id = s.context AND x.text = ?3 WHERE s.principal = ?1
            """
        ).first(key.principal, key.upstream, key.context) { $0.id(0) }
    }

    /// The state of an object; nil if nothing is known of it.
    func state(of name: ObjectName, scope: ScopeID) throws -> ObjectState? {
        let found = try database.query("SELECT \(StoredState.columns), u.text \(Self.byName)")
            .first(scope, name.model, StoredIdentity(name.identity)) {
                (state: try StoredState($0, from: 0), upstream: $0.upstream(7))
            }
        return try found.map { try $0.state.state(of: name.model, models[$0.upstream]?.models, in: database) }
    }

    /// The variants under a key, newest first, up to the limit on variants; without their bodies and objects.
    func variants(at key: CacheKey, digest: Digest128) throws -> [StoredDocument] {
        try database.query(
            """
            SELECT \(Self.columns) \(Self.underKey) \(Self.observed)
            WHERE d.low = ?1 AND d.url = ?2 ORDER BY d.id DESC LIMIT ?6
            """
        ).all(digest, key.url, key.principal, key.upstream, key.context, ObjectStore.storedVariantLimit) { row in
            var document = withoutBody(row, under: key)
            if try isDirty(document.id, verified: row.id(2)) {
                document.form = .outdated(reason: "an object in it has changed")
            }
            return document
        }
    }

    /// The documents of a URL for every principal and context, newest first.
    func documents(ofURL url: String, upstream: UpstreamKey, pathHash: Int64, limit: Int) throws -> [DocumentOfURL] {
        try database.query(
            """
            SELECT \(Self.columns), p.label, s.principal, x.text
            FROM _documents d
            JOIN _scopes s ON s.id = d.scope
            JOIN _names u ON u.id = s.upstream AND u.text = ?3
            JOIN _principals p ON p.id = s.principal
            JOIN _names x ON x.id = s.context
            \(Self.observed)
            WHERE d.place = ?1 AND d.url = ?2 ORDER BY d.id DESC LIMIT ?4
            """
        ).all(pathHash, url, upstream, limit) { row in
            let scope = NameTable.Scope(upstream: upstream, principal: row.id(12), context: row.string(13))
            return DocumentOfURL(principal: row.string(11), stored: withoutBody(row, under: scope.key(ofURL: url)))
        }
    }

    private func isDirty(_ id: DocumentID, verified: CommitNumber) throws -> Bool {
        guard changed > verified else { return false }
        let objects = Set(try StoredBody.pins(of: id, in: database).map(\.object))
        return try !StoredBody.changedObjects(among: objects, since: verified, in: database).isEmpty
    }
}

/// One document of a URL, without its body and objects.
public struct DocumentOfURL: Sendable {
    /// Its label, such as `p-0a1b2c3d`.
    public var principal: String
    public var stored: StoredDocument
}

extension ObjectStore {
    /// All variants under a key, at most ``storedVariantLimit``, newest first, without bodies and objects; one whose objects
    /// have changed is `outdated`.
    public func variants(at key: CacheKey) async throws(StoreError) -> [StoredDocument] {
        let digest = core.hasher.digest(key)
        guard mayHave(digest) else { return [] }
        let models = core.models
        return try await core.read { try DocumentReader($0, models: models).variants(at: key, digest: digest) }
    }
}

/// An object that a document names without showing it.
public struct RelatedObject: Sendable {
    public var id: ObjectID
    public var json: [UInt8]
    /// The earliest time at which its values may have been true, on the store's clock.
    public var start: Int64
}

extension ObjectStore {
    /// The objects among these whose newest values are known, in the upstream, principal and context of a document's
    /// key (law 4), by name, and the commit sequence at which this holds.
    ///
    /// `selectedBy` and `dividedBy` are as in `ReceivedDocument`.
    public func known(
        _ objects: Set<BoundObject>,
        beside key: CacheKey,
        selectedBy: String,
        dividedBy: Int64? = nil
    ) async throws(StoreError) -> (objects: [BoundObject: RelatedObject], sequence: CommitNumber) {
        let (models, keyHasher) = (core.models, core.keyHasher)
        let context = ObjectContext(key: key.context, selectedBy: selectedBy).text
        return try await core.read { database in
            let sequence = try Meta.commitNumber(in: database)
            var own = key
            own.context = context
            guard let scope = try DocumentReader.scope(of: own, in: database), let known = models[key.upstream] else {
                return ([:], sequence)
            }
            let reader = try DocumentReader(database, models: models)
            // If an identity cannot be read, the default spelling is used.
            func spelling(of name: ObjectName) -> [UInt8]? {
                try? reader.state(of: name, scope: scope)?.identityJSON(model: name.model, models: known.models)
            }
            var related: [BoundObject: RelatedObject] = [:]
            for object in objects {
                guard let name = try reader.name(of: object, known.models, keyHasher, scope: scope),
                    let state = try reader.state(of: name, scope: scope),
                    try reader.mayShow(state, dividedBy: dividedBy),
                    let id = try reader.id(of: name, scope: scope),
                    let json = state.sharedJSON(
                        model: name.model,
                        models: known.models,
                        lag: known.lag,
                        identity: spelling
                    )
                else { continue }
                related[object] = RelatedObject(id: id, json: json, start: state.start)
            }
            return (related, sequence)
        }
    }
}

extension ObjectState {
    var start: Int64 {
        let start = base?.observation.start ?? .min
        guard case .groups(let groups) = knowledge else { return start }
        return groups.reduce(start) { min($0, $1.clock.lo) }
    }
}
