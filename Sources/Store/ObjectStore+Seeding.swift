public import Mapping

/// Objects that are given to the store without a response (`larder seed`).
public struct Seed: Sendable {
    public var upstream: UpstreamKey
    public var principal: PrincipalID
    /// The representation that they are given for, as in the key of a document.
    var context: String
    public var model: String
    /// The JSON texts, each of one object of the model.
    public var values: [[UInt8]]

    /// Describes objects.
    public init(upstream: UpstreamKey, principal: PrincipalID, context: String = "", model: String, values: [[UInt8]]) {
        (self.upstream, self.principal, self.context) = (upstream, principal, context)
        (self.model, self.values) = (model, values)
    }
}

/// What seeding values did.
public struct SeedReceipt: Sendable {
    /// A warning about a value.
    public struct Finding: Sendable {
        public var value: Int
        public var warning: MappingWarning
    }

    /// How many objects are new, those within others included.
    public var created = 0
    /// How many known objects have changed, those within others included.
    public var changed = 0
    /// How many values showed nothing that was not known.
    public var unchanged = 0
    /// The values of which nothing was stored, each with the reason.
    public var skipped: [Finding] = []
    public var warnings: [Finding] = []
}

extension ObjectStore {
    /// Stores the objects in some values, in one transaction: all of them or, after an error, none; returns after the
    /// commit.
    ///
    /// They are observed at that moment, after the responses queued earlier. Every response that is complete later
    /// counts as newer, whenever its request was sent. A value whose object has no identity is skipped.
    public func seed(_ seed: Seed) async throws(StoreError) -> SeedReceipt {
        guard let models = core.models[seed.upstream], models.isConfigured else {
            throw .refused("the upstream \(seed.upstream.name) is no longer in the config")
        }
        let hasher = core.hasher
        let values = seed.values.map { PreparedSeed($0, of: seed.model, models, hasher) }
        return try await result { done in
            submit(
                .seed,
                .prompt,
                bytes: seed.values.reduce(0) { $0 + $1.count },
                { session in
                    guard let current = session.models[seed.upstream], current.edition != models.edition else {
                        return try session.seed(values, seed)
                    }
                    return try session.seed(seed.values.map { PreparedSeed($0, of: seed.model, current, hasher) }, seed)
                },
                done: done
            )
        }
    }

    /// The principals with a label; there may be several, because a label is a part of a digest.
    public func principals(labelled label: String) async throws(StoreError) -> [PrincipalID] {
        try await core.read { database in
            try database.query("SELECT id FROM _principals WHERE label = ?").all(label) { $0.id(0) }
        }
    }
}

/// A value that was taken apart before its transaction.
struct PreparedSeed: Sendable {
    let body: PreparedBody
    let warnings: [MappingWarning]
    /// Why it is skipped; nil if its object has an identity.
    let refusal: MappingWarning?

    init(_ value: [UInt8], of model: String, _ models: UpstreamModels, _ hasher: KeyHasher) {
        let rule = BodyRule(model: model, isList: false)
        let subject = MappedSubject(body: value, rule: rule, mappingContext: .none, url: "")
        body = PreparedBody(subject, models: models, hasher: hasher, isExamined: true)
        let found = (body.warnings + models.mapper.map(value, as: rule).warnings).grouped
        warnings = found
        guard body.decomposed?.pointer(toOccurrence: 0) != "" else {
            refusal = nil
            return
        }
        // The reason why the object itself is none comes before those about its members.
        refusal =
            found.first { $0.pointer ?? "" == "" && $0.kind != .nothingMapped } ?? found.first
            ?? MappingWarning(.identityMissing, "The object has no identity.", model: model)
    }
}
