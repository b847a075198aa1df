import Mapping

/// What ends a warning: a sentence, and lines for the config where there are any.
struct WarningCure: AdminBody, Equatable {
    static let sentences = [
        "sentence": "What to do.",
        "lines": "What to write into the config, as YAML; `…` stands for what only you know.",
    ]
    var sentence: String
    var lines: String?

    /// Nil where nothing is to be done: the upstream sends what does not fit, and it is stored as it came.
    ///
    /// - Parameters:
    ///   - kind: as the store names it.
    ///   - subject: a model, or a model, a dot and a property.
    ///   - local: the members that the model declares to be local today.
    init?(kind: String, subject: String, local: (_ model: String) -> [String]) {
        guard let kind = MappingWarning.Kind(rawValue: kind) else { return nil }
        let parts = subject.split(separator: ".", maxSplits: 1).map(String.init)
        let (model, property) = (parts.first ?? "…", parts.count == 2 ? parts[1] : nil)
        func ofModel(_ line: String) -> String { "models:\n  \(model):\n    \(line)" }
        func ofProperty(_ keys: String) -> String {
            ofModel("properties:\n      \(property ?? "…"): { from: …, \(keys) }")
        }
        func ofRoute(_ keys: String) -> String { "routes:\n  - { path: \"…\", \(keys) }" }
        switch kind {
        case .flipFlop, .disagreement:
            guard let property else { return nil }
            sentence = "Let each response show its own value: it no longer moves between responses."
            let members = local(model).filter { $0 != property } + [property]
            lines = ofModel("local: [\(members.joined(separator: ", "))]")
        case .identityMissing, .identityUnusable, .identityRepeated:
            sentence = "Name the member that identifies \(model), or write [] if it has none."
            lines = ofModel("identity: …")
        case .unknownModel:
            sentence = "Declare the model, or correct its name where it is used."
            lines = "models:\n  \(model): { identity: id }"
        case .objectForList:
            sentence = "Where one object is what comes, declare no list."
            lines = property == nil ? ofRoute("model: \(model)") : ofProperty("model: …")
        case .arrayForObject:
            sentence = "Where a list is what comes, declare one."
            lines = property == nil ? ofRoute("model: [\(model)]") : ofProperty("models: …")
        case .envelopeMissing, .notAnObject, .nothingMapped:
            sentence = "Say which member of the body contains the objects, or give the route another model."
            lines = ofRoute("model: \(model), root: …")
        case .notJSON:
            sentence = "Restrict the route to JSON; other bodies are then stored as they are."
            lines = ofRoute("model: \(model), content_type: application/json")
        case .tooManyObjects:
            sentence = "Allow more objects in one response, if you have the memory."
            lines = "limits:\n  objects: …"
        case .requiredMissing:
            sentence = "Do not require the property."
            lines = ofProperty("required: false")
        case .unexpectedNull:
            sentence = "Allow null."
            lines = ofProperty("null: true")
        case .quarantined:
            sentence = "Widen the check that the value fails: type, range, length, pattern, one_of or null."
            lines = ofProperty("type: …")
        case .conversionFailed:
            sentence = "Let the conversion know the value, or leave the conversion out."
            lines = ofProperty("as: …")
        case .coerced:
            sentence = "Nothing is lost. To be shown the value as it comes, do not convert it."
            lines = ofProperty("coerce: false")
        case .pathBlocked:
            sentence = "Correct the key path: what it leads through is no object."
            lines = ofModel("properties:\n      \(property ?? "…"): { from: … }")
        case .noChoice:
            sentence = "End the cluster with a model that has no condition: it takes all others."
            lines = ofModel("cluster: [ …, { model: … } ]")
        case .tooDeep, .reservedText, .keyCollision, .completionIgnored, .undeclaredMember, .notWritten, .notRecomposed:
            return nil
        }
    }
}
