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
            The types of object that responses contain. Members that are declared as properties are shared by all responses that \
            show the object; all others stay with their response.
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
            The member, or members, that identify an object in all responses. []: objects of this model have no identity and \
            belong to the object around them. A model with a base has the base's.
            """
        ) { node, draft, reader in
            draft.declaration.identity = reader.checkedTexts(node) { $0.isEmpty ? "names no member" : nil } ?? []
        },
        .members(
            "keys",
            \.declaration.keys,
            example: "[login]",
            "Further members by which an object can be found."
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
            The members that are shared, each under a name of your choice, with the member it is read from. Keys of the long \
            form: \(PropertyDraft.keys.map { "\($0.facts.name): \($0.facts.text)" }.joined(separator: " "))
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
            "Members that belong to the response and are never shared, such as the score of a search."
        ),
        .members(
            "secret",
            \.declaration.secret,
            example: "[token]",
            "Members that never reach the disk: responses that show one are kept in memory only."
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
            "The model whose identity this one shares, because their objects are the same; ~ for none."
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
            "The condition under which an object's own members show that it is deleted. \(ConditionKeys.help)"
        ) { node, draft, reader in
            draft.declaration.deletedWhen = reader.condition(node)
        },
        ConfigKey(
            "on_delete",
            .choice(DeletionPolicy.allCases.map(\.rawValue)),
            fallback: "stale",
            """
            What happens to responses that show a deleted object. stale: they are fetched again. remove: the object is removed \
            from their lists at once. keep: they go on showing it. A model with a base has the base's.
            """
        ) { node, draft, reader in
            let words = DeletionPolicy.allCases.map(\.rawValue)
            draft.declaration.onDelete = reader.choice(node, of: words).flatMap(DeletionPolicy.init)
        },
        ConfigKey(
            "version",
            .integer(0...1_000_000),
            example: "1",
            "The version of these objects' form at the upstream; 0 by default. See migrations."
        ) { node, draft, reader in
            if let version = reader.integer(node, in: 0...1_000_000) { draft.declaration.version = version }
        },
        .migrations,
        ConfigKey(
            "modified",
            .text,
            example: "updated_at",
            "The member that contains the time of the object's last change. It decides which of two responses is newer."
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
