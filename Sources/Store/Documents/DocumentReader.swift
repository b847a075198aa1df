import GRDB
import Mapping

/// Reads documents within one read snapshot, and composes those that are dirty.
struct DocumentReader {
    let database: Database
    let models: [String: UpstreamModels]
    private let sequence: Int64
    let changed: Int64

    init(_ database: Database, models: [String: UpstreamModels]) throws {
        self.database = database
        self.models = models
        sequence = try Meta.sequence.integer(in: database) ?? 0
        changed = try Meta.changed.integer(in: database) ?? 0
    }

    /// The variants under a key that are wanted, and those found to show the newest although objects of theirs had changed.
    func documents(
        at key: DocumentKey,
        digest: Digest128,
        where isWanted: (_ variant: [UInt8]) -> Bool
    ) throws -> (documents: [StoredDocument], verified: [DocumentID], sequence: Int64) {
        var rows: [(document: StoredDocument, scope: ScopeID, verified: Int64, observation: Observation)] = []
        try Query(
            database,
            """
            SELECT d.id, d.scope, d.verified, d.variant, d.status, d.head, d.policy, o.start, o.finish,
                o.id, o.kind
            FROM _documents d
            JOIN _scopes s ON s.id = d.scope AND s.principal = ?3
            JOIN _names u ON u.id = s.upstream AND u.text = ?4
            JOIN _names x ON x.id = s.context AND \(ObjectContext.isOfKey("x.text", "?5"))
            JOIN _observations o ON o.id = d.observation
            WHERE d.low = ?1 AND d.url = ?2
            """
        ).each(
            .integer(Int64(bitPattern: digest.low)),
            .string(key.url),
            .id(key.principal),
            .string(key.upstream),
            .string(key.context)
        ) { row in
            // Before its body is read: it may be one of many.
            let variant = row.bytes(3)
            guard isWanted(variant) else { return }
            let document = StoredDocument(
                id: row.id(0),
                key: key,
                variant: variant,
                status: Int(row.integer(4)),
                head: row.bytes(5),
                policy: row.bytes(6),
                body: [],
                form: .asReceived,
                objects: [],
                start: row.integer(7),
                end: row.integer(8),
                sequence: sequence
            )
            let observation = Observation(
                sequence: row.integer(9),
                start: row.integer(7),
                end: row.integer(8),
                kind: Observation.Kind(rawValue: UInt8(truncatingIfNeeded: row.integer(10))) ?? .list
            )
            rows.append((document, row.id(1), row.integer(2), observation))
        }
        var verified: [DocumentID] = []
        let documents = try rows.map { row in
            var document = row.document
            if try fill(&document, row.observation, scope: row.scope, verified: row.verified) {
                verified.append(document.id)
            }
            return document
        }
        return (documents, verified, sequence)
    }

    /// Puts in body, form and objects; true if a look showed a suspicious document to be the newest.
    func fill(
        _ document: inout StoredDocument,
        _ observation: Observation,
        scope: ScopeID,
        verified: Int64
    ) throws -> Bool {
        let stored = try StoredBody(document: document.id, in: database)
        let payloads = try stored.payloads(in: database)
        let pinned = Set(stored.pins.map(\.object))
        document.objects = Array(pinned)
        let suspects =
            changed > verified ? try StoredBody.suspects(among: pinned, since: verified, in: database) : []
        let migrated = try stored.migrated(payloads, by: models[document.key.upstream]?.models, in: database)
        document.migrated = migrated.flatMap { recompose(skeleton: stored.skeleton ?? [], payloads: $0) }
        guard !suspects.isEmpty else {
            document.body = try stored.received(payloads: payloads)
            return false
        }
        guard let skeleton = stored.skeleton, let models = models[document.key.upstream] else {
            document.body = try stored.received(payloads: payloads)
            document.form = .outdated(reason: "the body cannot be put together from its objects")
            return false
        }
        func compose(_ payloads: [[UInt8]], _ doubts: inout Set<Int64>) throws -> Composition {
            try models.composer.compose(
                skeleton: skeleton,
                pins: payloads,
                keyed: stored.keyed,
                observation: observation,
                mayHaveChanged: { pin, _ in suspects.contains(stored.pins[pin].object) },
                doubts: &doubts,
                state: { try state(of: $0, scope: scope) }
            )
        }
        var doubts: Set<Int64> = []
        let composition = try compose(payloads, &doubts)
        if let migrated, case .composed(let body, _) = try compose(migrated, &doubts) { document.migrated = body }
        document.doubts = doubts.sorted()
        switch composition {
        case .composed(let body, let added):
            document.form = .composed
            document.body = body
            document.objects = Array(pinned.union(try added.compactMap { try id(of: $0, scope: scope) }))
            return false
        case .unknown(let reason):
            document.form = .outdated(reason: reason)
            document.body = try stored.received(payloads: payloads)
            return false
        case .unchanged:
            document.body = try stored.received(payloads: payloads)
            return doubts.isEmpty
        }
    }

    private static let byName = """
        FROM _names m JOIN _collections c ON c.model = m.id AND c.scope = ?1
        JOIN _objects o ON o.collection = c.id AND o.identity = ?3
        JOIN _scopes s ON s.id = c.scope JOIN _names u ON u.id = s.upstream WHERE m.text = ?2
        """

    func id(of name: ObjectName, scope: ScopeID) throws -> ObjectID? {
        try Query(database, "SELECT o.id \(Self.byName)")
            .first(.id(scope), .string(name.model), Identity(name.identity).sql) { $0.id(0) }
    }

    /// What is known of an object; nil: nothing.
    func state(of name: ObjectName, scope: ScopeID) throws -> ObjectState? {
        let found = try Query(database, "SELECT \(StoredState.columns), u.text \(Self.byName)")
            .first(.id(scope), .string(name.model), Identity(name.identity).sql) {
                (state: try StoredState($0, from: 0), upstream: $0.string(6))
            }
        return try found.map { try $0.state.state(of: name.model, models[$0.upstream]?.models, in: database) }
    }
}
