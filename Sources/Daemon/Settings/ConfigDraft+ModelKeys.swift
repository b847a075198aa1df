import Mapping

/// Keys of a model that leave each other nothing to say.
extension ConfigDraft {
    func validateKeys(of model: ModelDraft, among models: [String: ModelDraft], _ reader: inout ConfigReader) {
        let name = model.declaration.name
        if !Self.hasIdentity(model, among: models) {
            for (key, use) in Self.usesOfIdentity {
                guard let place = model.places[key] else { continue }
                reader.once(
                    place,
                    "objects of \"\(name)\" have no identity, and \(use); remove \"\(key)\", or give the model an identity"
                )
            }
        }
        if !Self.hasIdentity(model, among: models), let place = model.places["migrations"] {
            reader.once(
                place,
                "objects of \"\(name)\" have no identity, so none is stored by itself and these never apply; declare them in "
                    + "the model of the object that holds it",
                .warning
            )
        }
        guard let modified = model.declaration.modified else { return }
        if modified.hasPrefix("@") {
            reader.once(
                model.places["modified"],
                "\"\(modified)\" does not come with the object, so it cannot say when that changed; name a member of the object"
            )
        } else if Self.identity(of: model, among: models)?.contains(modified) == true {
            reader.once(
                model.places["modified"],
                "\"\(modified)\" is part of the identity, which never changes; name the member that says when the object changed"
            )
        }
    }

    /// Keys that only make sense for objects with an identity, and why.
    private static let usesOfIdentity = [
        ("keys", "so none is found by a key"),
        ("identity_types", "so there is none whose type could count"),
        ("modified", "so two responses are never known to show the same one"),
        ("deleted_when", "so other responses never learn that one is deleted"),
        ("on_delete", "so other responses never learn that one is deleted"),
    ]

    /// Whether objects of a model have an identity, their own or their base's.
    static func hasIdentity(_ model: ModelDraft, among models: [String: ModelDraft]) -> Bool {
        identity(of: model, among: models)?.isEmpty != true
    }

    /// nil if it could not be read, which has been reported already.
    private static func identity(of model: ModelDraft, among models: [String: ModelDraft]) -> [String]? {
        let root = lineage(of: model, among: models)[0]
        guard root.declaration.base == nil || models[root.declaration.base ?? ""] != nil else { return nil }
        return root.places["identity"] == nil ? nil : root.declaration.identity
    }

    /// The model with its bases before it, as far as they are declared.
    static func lineage(of model: ModelDraft, among models: [String: ModelDraft]) -> [ModelDraft] {
        var lineage = [model]
        var seen: Set<String> = [model.declaration.name]
        while let base = lineage[0].declaration.base, seen.insert(base).inserted, let next = models[base] {
            lineage.insert(next, at: 0)
        }
        return lineage
    }
}
