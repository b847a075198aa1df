import Mapping

/// The body of a response that shows objects, with the input for its mapping.
struct MappedSubject: Sendable {
    var body: [UInt8]
    var rule: BodyRule
    var mappingContext: MappingContext
    var url: String
}

/// A body that was decomposed before its transaction.
struct PreparedBody: Sendable {
    /// The decomposed body; nil to store the body as it is.
    var decomposed: DecomposedBody?
    /// Whether the skeleton recomposes to exactly the same bytes.
    var isExact = false
    var isSecret = false
    var contents: [UInt64] = []
    var warnings: [MappingWarning] = []
    /// The edition of the models that it was decomposed by (`UpstreamModels.edition`).
    var edition = 0
    /// Whether the examiner maps the body too, and reports what only the mapped view shows.
    var isExamined = false

    init() {}

    init(_ subject: MappedSubject, models: UpstreamModels, hasher: KeyHasher, isExamined: Bool) {
        let (body, rule) = (subject.body, subject.rule)
        (edition, self.isExamined) = (models.edition, isExamined)
        switch models.decomposer.decompose(body, as: rule, in: subject.mappingContext) {
        case .opaque(let warning):
            warnings = warning.map { [$0] } ?? []
            // A body that could not be read may contain secrets.
            isSecret = models.models.haveSecrets && warnings.contains { Self.unread.contains($0.kind) }
        case .objects(let decomposed):
            warnings = decomposed.warnings
            isSecret = decomposed.showsSecret
            isExact = !isSecret && decomposed.recomposes(to: body)
            if !isExact, !isSecret {
                let message = "the body could not be put together again"
                warnings.append(MappingWarning(.notRecomposed, message, model: rule.model))
            }
            contents = decomposed.occurrences.map { hasher.contentHash($0.payload) }
            self.decomposed = decomposed
        }
        if isExamined { warnings.removeAll(where: \.kind.isOfMappedView) }
    }

    private static let unread: Set<MappingWarning.Kind> = [.notJSON, .tooDeep, .reservedText, .tooManyObjects]

    /// Whether the body has too many objects to decompose it; it then never shows their changes.
    var isUndivided: Bool { decomposed == nil && warnings.contains { $0.kind == .tooManyObjects } }

    /// The approximate memory it needs until its commit, in bytes, besides the body itself.
    var weight: Int {
        guard let decomposed else { return 0 }
        // Measured for an occurrence with its name, its payload, its keys, and its record in the writer.
        return decomposed.occurrences.count * 1024 + decomposed.skeleton.count
    }
}
