import Mapping
import Yams

extension ConfigKey {
    static func models(_ path: any WritableKeyPath<Section, [ModelDraft]> & Sendable) -> ConfigKey {
        ConfigKey(
            "models",
            .named(.section(ModelDraft.keys.map(\.facts)), name: "User"),
            sample: ["Label: { identity: id, share: all }", "Problem: { identity: [] }"],
            """
            The types of object that answers are made of. Members declared as properties are shared by all answers that \
            show the object; all others stay with the answer they came in.
            """
        ) { node, section, reader in
            guard let pairs = reader.pairs(node, wanted: "names of models, each with its keys") else { return }
            section[keyPath: path] = pairs.map { name, place, value in
                var draft = ModelDraft()
                draft.declaration.name = name
                draft.place = place
                draft.places = reader.under(name) { $0.section(value, into: &draft) }
                draft.declaration.properties = draft.properties.map(\.declaration)
                return draft
            }
        }
    }
}

extension ModelDraft: ConfigSection {
    static let keys: [ConfigKey<ModelDraft>] = [
        ConfigKey(
            "identity",
            .list(.text),
            example: "id",
            isRequired: true,
            """
            The member, or members, by which two answers are known to speak of the same object. [] says that objects of \
            this model have none and stay within their owners.
            """
        ) { node, draft, reader in
            draft.declaration.identity = reader.checkedTexts(node) { $0.isEmpty ? "names no member" : nil } ?? []
        },
        .members(
            "keys",
            \.declaration.keys,
            example: "[login]",
            "Further members that name an object, by which it can be found."
        ),
        ConfigKey(
            "properties",
            .named(.either([.text, .section(PropertyDraft.keys.map(\.facts))]), name: "login"),
            sample: [
                "login: login",
                "city: address.city",
                "createdAt: { from: created_at, as: date }",
                "kind: { from: type, as: { enum: { User: person, Organization: organisation } } }",
                "manager: { from: manager, model: User }",
                "labels: { from: labels, models: Label }",
            ],
            """
            The members that are shared, each under a name of your choice and with the member it is read from. The long \
            form's keys: \(PropertyDraft.keys.map { "\($0.facts.name): \($0.facts.text)" }.joined(separator: " "))
            """
        ) { node, draft, reader in
            guard let pairs = reader.pairs(node, wanted: "names of properties, each with the member it is read from")
            else {
                return
            }
            draft.properties = pairs.map { name, place, value in
                reader.under(name) { PropertyDraft(name: name, place: place, value: value, &$0) }
            }
        },
        ConfigKey(
            "share",
            .choice(["declared", "all"]),
            fallback: "declared",
            "all: every member is shared, not only the declared ones."
        ) { node, draft, reader in
            draft.declaration.sharesAll = reader.choice(node, of: ["declared", "all"]) == "all"
        },
        .members(
            "local",
            \.declaration.local,
            example: "[score]",
            "Members that belong to the answer and are never shared, such as the score of a search."
        ),
        ConfigKey(
            "modified",
            .text,
            example: "updated_at",
            "The member that says when the object changed. It decides which of two answers is newer before any clock."
        ) { node, draft, reader in
            draft.declaration.modified = reader.text(node, wanted: "the name of a member")
        },
    ]
}

extension ConfigKey<ModelDraft> {
    fileprivate static func members(
        _ name: String,
        _ path: any WritableKeyPath<ModelDraft, [String]> & Sendable,
        example: String,
        _ text: String
    ) -> ConfigKey {
        ConfigKey(name, .list(.text), fallback: "[]", example: example, text) { node, draft, reader in
            draft[keyPath: path] = reader.checkedTexts(node) { $0.isEmpty ? "names no member" : nil } ?? []
        }
    }
}

extension PropertyDraft: ConfigSection {
    /// Reads the short form, a key path, or the long one.
    init(name: String, place: Place?, value: Node, _ reader: inout ConfigReader) {
        self.init()
        declaration.name = name
        declaration.from = name
        self.place = place
        if value.mapping != nil {
            let places = reader.section(value, into: &self)
            if let both = places["models"], places["model"] != nil {
                reader.errorHere(both, "\"model\" (one object) and \"models\" (a list of them) exclude each other")
            }
        } else if let text = reader.text(value, wanted: "the member it is read from, or { from: …, as: …, model: … }") {
            declaration.from = text
        }
    }

    static let keys: [ConfigKey<PropertyDraft>] = [
        ConfigKey(
            "from",
            .text,
            example: "avatar_url",
            "The member it is read from; dots lead into other objects (`user.login`). Without it: its own name."
        ) { node, draft, reader in
            if let text = reader.text(node, wanted: "the name of a member") { draft.declaration.from = text }
        },
        ConfigKey(
            "as",
            .either([
                .choice(TransformNames.all), .section([TransformNames.enumFacts]),
            ]),
            example: "date",
            """
            How it is shown in the mapped view: \(TransformNames.all.joined(separator: ", ")), or \
            { enum: { open: open, closed: done } } with the upstream's spelling first. The wire view never changes.
            """
        ) { node, draft, reader in
            draft.declaration.transform = reader.transform(node)
        },
        ConfigKey(
            "model",
            .text,
            example: "User",
            "The model of the object that stands there, or whose identity does."
        ) { node, draft, reader in
            guard let name = reader.text(node, wanted: "the name of a model") else { return }
            draft.declaration.relation = .one(name)
            draft.modelPlace = node.place
        },
        ConfigKey(
            "models",
            .text,
            example: "Label",
            "The model of the objects in the list that stands there."
        ) { node, draft, reader in
            guard let name = reader.text(node, wanted: "the name of a model") else { return }
            draft.declaration.relation = .many(name)
            draft.modelPlace = node.place
        },
    ]
}

/// The conversions that `as:` knows.
enum TransformNames {
    static let all = ["base64", "boolean", "date", "decimal", "integer", "string", "url", "uuid"]

    static let enumFacts = ConfigFacts(
        name: "enum",
        kind: .either([.list(.text), .named(.text, name: "open")]),
        example: "{ open: open, closed: done }",
        isRequired: true,
        text: "The upstream's spelling of each case and the name it is shown under, or a list where both are the same."
    )
}

extension ConfigReader {
    /// What stands under `as:`.
    mutating func transform(_ node: Node) -> TransformDeclaration? {
        guard let mapping = node.mapping else {
            let wanted = "a conversion: \(TransformNames.all.joined(separator: ", ")), or { enum: … }"
            guard let name = text(node, wanted: wanted) else { return nil }
            guard TransformNames.all.contains(name) else {
                let meant = Suggestion.nearest(to: name, among: TransformNames.all + ["enum"])
                errorHere(
                    node.place,
                    "there is no conversion \"\(name)\"; "
                        + (meant.map { "did you mean \"\($0)\"?" }
                            ?? "write \(wanted.dropFirst("a conversion: ".count))")
                )
                return nil
            }
            return .named(name)
        }
        for (key, _) in mapping where key.string != "enum" {
            unknown(key.string ?? "", at: key.place, among: ["enum"])
        }
        guard let cases = mapping["enum"] else { return nil }
        return under("enum") { $0.enumeration(cases) }
    }

    private mutating func enumeration(_ node: Node) -> TransformDeclaration? {
        if node.sequence != nil {
            guard let names = texts(node, wanted: "a list of spellings") else { return nil }
            for (index, name) in names.enumerated() where names[..<index].contains(where: { $0.text == name.text }) {
                errorHere(name.place, "\"\(name.text)\" is listed twice")
            }
            return .enumeration(names.map { .init(wire: $0.text, mapped: $0.text) })
        }
        guard let pairs = pairs(node, wanted: "the upstream's spellings, each with a name") else { return nil }
        if pairs.isEmpty { errorHere(node.place, "it has no case; write { open: open, closed: done }") }
        return .enumeration(
            pairs.compactMap { wire, _, value in
                text(value, wanted: "a name").map { .init(wire: wire, mapped: $0) }
            }
        )
    }
}

extension ConfigFacts {
    fileprivate init(name: String, kind: ConfigKind, example: String, isRequired: Bool, text: String) {
        self.init(
            name: name,
            kind: kind,
            fallback: nil,
            example: example,
            isRequired: isRequired,
            sample: [],
            text: text
        )
    }
}
