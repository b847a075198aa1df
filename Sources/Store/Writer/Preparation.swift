import Mapping

/// A body taken apart before its transaction begins.
struct Preparation: Sendable {
    /// Nil: the body is kept as it is.
    var decomposed: DecomposedBody?
    /// Whether the skeleton gives back the very bytes.
    var isExact = false
    /// Digest of each occurrence's payload.
    var contents: [UInt64] = []
    var warnings: [MappingWarning] = []

    init(body: [UInt8], rule: BodyRule?, models: UpstreamModels?, hasher: KeyHasher) {
        guard let rule, let models else { return }
        switch models.normaliser.decompose(body, as: rule) {
        case .opaque(let warning):
            warnings = warning.map { [$0] } ?? []
        case .objects(let decomposed):
            warnings = decomposed.warnings
            isExact = decomposed.recomposes(to: body)
            if !isExact {
                warnings.append(
                    MappingWarning(.notRecomposed, "the body could not be put together again", model: rule.model)
                )
            }
            contents = decomposed.occurrences.map { hasher.content($0.payload) }
            self.decomposed = decomposed
        }
    }
}
