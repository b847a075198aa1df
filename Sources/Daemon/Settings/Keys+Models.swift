import Mapping
import Yams

extension ConfigKey {
    static func models(_ path: any WritableKeyPath<Section, [ModelDraft]> & Sendable) -> ConfigKey {
        ConfigKey(
            "models",
            .named(.section(ModelDraft.keys.map(\.facts)), name: "User"),
            sample: [
                "Label: { identity: id, share: all }",
                "Problem: { identity: [] }",
                "Person: { identity: id }",
                "Organization: { identity: id, base: User }",
                "Bot: { identity: id, base: User }",
                "Page: { identity: [] }",
            ],
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
                draft.places = reader.under(name) { reader in
                    let places = reader.section(value, into: &draft)
                    // Only a base makes up for it, which a key by itself cannot see.
                    if places["identity"] == nil, places["base"] == nil, value.mapping != nil, !reader.isIncomplete {
                        reader.errorHere(value.place, "\"identity\" is missing; add it, for example `identity: id`")
                    }
                    return places
                }
                draft.declaration.properties = draft.properties.map { property in
                    var declaration = property.declaration
                    // Where its name says where the value comes from, the model's naming says how.
                    if !property.isNamed, draft.declaration.naming != .exact { declaration.from = "" }
                    return declaration
                }
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
            """
            The member, or members, by which two answers are known to speak of the same object. [] says that objects of \
            this model have none and stay within their owners. A model with a base has the base's.
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
        .members(
            "secret",
            \.declaration.secret,
            example: "[token]",
            "Members that never reach the disk: answers that show one are kept in memory only."
        ),
        ConfigKey(
            "identity_types",
            .choice(["any", "strict"]),
            fallback: "any",
            "strict: the number 7 and the string \"7\" identify different objects."
        ) { node, draft, reader in
            draft.declaration.distinguishesTypes = reader.choice(node, of: ["any", "strict"]) == "strict"
        },
        ConfigKey(
            "base",
            .text,
            // Not an example: what stands beside it in the sample belongs to models without a base.
            fallback: "~",
            "The model whose identity this one shares, because objects of both are the same ones; ~ for none."
        ) { node, draft, reader in
            if node.isNothing { return }
            draft.declaration.base = reader.text(node, wanted: "the name of a model")
        },
        .cluster,
        .naming,
        ConfigKey(
            "deleted_when",
            .anything,
            example: "{ member: state, is: deleted }",
            "When an object says of itself that it is gone. \(ConditionKeys.help)"
        ) { node, draft, reader in
            draft.declaration.deletedWhen = reader.condition(node)
        },
        ConfigKey(
            "on_delete",
            .choice(DeletionPolicy.allCases.map(\.rawValue)),
            fallback: "stale",
            """
            What becomes of answers that show an object which is gone. stale: they are asked for again. remove: it leaves the \
            lists it stands in at once. keep: they go on showing it. A model with a base has the base's.
            """
        ) { node, draft, reader in
            let words = DeletionPolicy.allCases.map(\.rawValue)
            draft.declaration.onDelete = reader.choice(node, of: words).flatMap(DeletionPolicy.init)
        },
        ConfigKey(
            "version",
            .integer(0...1_000_000),
            example: "1",
            "The version of the upstream's form of these objects, 0 without it; see migrations."
        ) { node, draft, reader in
            if let version = reader.integer(node, in: 0...1_000_000) { draft.declaration.version = version }
        },
        .migrations,
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
