import Mapping
import Yams

extension ConfigKey {
    static func models(_ path: Path<[ModelDraft]>) -> ConfigKey {
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
            ]
        ) { node, section, reader in
            guard let pairs = reader.pairs(node, wanted: "names of models, each with its keys") else { return }
            section[keyPath: path] = pairs.map { name, place, value in
                var draft = ModelDraft(declaration: ModelDeclaration(name: name), place: place)
                draft.places = reader.under(name) { reader in
                    let places = reader.section(value, into: &draft)
                    // A base supplies the identity, which this key cannot know.
                    if places["identity"] == nil, places["base"] == nil, value.mapping != nil, !reader.isIncomplete {
                        reader.errorAtPath(value.place, "\"identity\" is missing; add it, for example `identity: id`")
                    }
                    return places
                }
                draft.declaration.properties = draft.properties.map { property in
                    var declaration = property.declaration
                    // If the source follows from the name, the model's naming determines it.
                    if !property.isNamed, draft.declaration.naming != .exact { declaration.from = "" }
                    return declaration
                }
                return draft
            }
        }
    }
}

extension ModelDraft: ConfigSection {
    static let keys: [ConfigKey<ModelDraft>] = documented([
        """
        The member, or members, that identify an object in all responses. []: objects of this model have no identity and \
        belong to the object around them. A model with a base has the base's.
        """: ConfigKey("identity", .list(.text), example: "id") { node, draft, reader in
            draft.declaration.identity = reader.checkedTexts(node) { $0.isEmpty ? "names no member" : nil } ?? []
        },
        "Further members by which an object can be found.": .members("keys", \.declaration.keys, example: "[login]"),
        """
        The members that are shared, each under a name of your choice, with the member it is read from.
        """: ConfigKey(
            "properties",
            .named(.either([.text, .section(PropertyDraft.keys.map(\.facts))]), name: "login"),
            sample: [
                "login: login",
                "city: address.city",
                "createdAt: { from: created_at, as: date }",
                "kind: { from: type, as: { enum: { User: person, Organization: organisation } } }",
                "manager: { from: manager, model: User }",
                "labels: { from: labels, models: Label }",
            ]
        ) { node, draft, reader in
            guard let pairs = reader.pairs(node, wanted: "names of properties, each with the member it is read from")
            else { return }
            draft.properties = pairs.map { name, place, value in
                reader.under(name) { PropertyDraft(name: name, place: place, value: value, &$0) }
            }
        },
        "all: every member is shared, not only the declared ones.":
            .choice("share", \.declaration.sharesAll, no: "declared", yes: "all"),
        "Members that belong to the response and are never shared, such as the score of a search.":
            .members("local", \.declaration.local, example: "[score]"),
        "Members that never reach the disk: responses that show one are kept in memory only.":
            .members("secret", \.declaration.secret, example: "[token]"),
        "strict: the number 7 and the string \"7\" identify different objects.":
            .choice("identity_types", \.declaration.distinguishesTypes, no: "any", yes: "strict"),
        "The model whose identity this one shares, because their objects are the same; ~ for none.":
            // Not an example: the keys beside it in the sample belong to models without a base.
            ConfigKey("base", .text, fallback: ModelDraft().declaration.base ?? "~") { node, draft, reader in
                if node.isNothing { return }
                draft.declaration.base = reader.text(node, wanted: "the name of a model")
            },
        """
        The models that an object of this one may be of, tried in this order; the last may have no condition. \
        \(ConditionKeys.help)
        """: .cluster,
        """
        How the names of properties without "from" become names of members. snake_case: catID is cat_id; \
        { snake_case: [HTTP] } adds words that are written in capitals.
        """: .naming,
        "The condition under which an object's own members show that it is deleted. \(ConditionKeys.help)":
            ConfigKey("deleted_when", .anything, example: "{ member: state, is: deleted }") { node, draft, reader in
                draft.declaration.deletedWhen = reader.condition(node)
            },
        """
        What happens to responses that show a deleted object. stale: they are fetched again. remove: the object is removed \
        from their lists at once. keep: they go on showing it. A model with a base has the base's.
        """: .choice("on_delete", \.declaration.onDelete, fallback: DeletionPolicy.usual.rawValue),
        "The version of the upstream's JSON for this model. Default: 0. See migrations.":
            ConfigKey("version", .integer(0...1_000_000), example: "1") { node, draft, reader in
                if let version = reader.integer(node, in: 0...1_000_000) { draft.declaration.version = version }
            },
        "What changed with each version: renamed members, converted values, removed members. Applied to stored objects when they are read.":
            .migrations,
        "The member that contains the time of the object's last change. It decides which of two responses is newer.":
            .text("modified", \.declaration.modified, example: "updated_at", wanted: "the name of a member"),
    ])
}

extension ConfigKey<ModelDraft> {
    fileprivate static func members(_ name: String, _ path: Path<[String]>, example: String) -> ConfigKey {
        .texts(name, path, example: example) { $0.isEmpty ? "names no member" : nil }
    }

    static let cluster = ConfigKey(
        "cluster",
        .strictList(.anything),
        example: "[{ model: Organization, if: { member: type, is: Organization } }, { model: Bot }]"
    ) { node, draft, reader in
        guard let sequence = node.sequence, !sequence.isEmpty else {
            return reader.misfit(node, wanted: "a list such as [{ model: Organization, if: { has: members_url } }]")
        }
        for (index, element) in sequence.enumerated() {
            guard let keys = reader.mapping(element, keys: ["model", "if"], wanted: "{ model: NAME, if: CONDITION }"),
                let model = keys["model"]
            else {
                reader.errorAtPath(element.place, "\"model\" is missing; write { model: NAME, if: CONDITION }")
                continue
            }
            guard let name = reader.text(model, wanted: "the name of a model") else { continue }
            let condition = keys["if"].flatMap { node in reader.under("if") { $0.condition(node) } }
            if keys["if"] == nil, index < sequence.count - 1 {
                reader.errorAtPath(
                    element.place,
                    "without \"if\" it matches every object, and what follows is never tried; put it last"
                )
            }
            draft.choicePlaces.append((name, model.place))
            draft.declaration.choices.append(ModelChoice(model: name, condition: condition))
        }
    }

    static let naming = ConfigKey(
        "naming",
        .either([.choice(["exact", "snake_case"]), .anything]),
        fallback: ModelDraft().declaration.naming == .exact ? "exact" : "snake_case"
    ) { node, draft, reader in
        if node.mapping != nil {
            guard let keys = reader.mapping(node, keys: ["snake_case"], wanted: "{ snake_case: [HTTP] }"),
                let words = keys["snake_case"]
            else { return }
            let acronyms = reader.checkedTexts(words) { word in
                word.isEmpty || !word.utf8.isAlphanumeric(or: "") ? "is not a word of letters and digits" : nil
            }
            draft.declaration.naming = .snakeCase(acronyms: acronyms ?? [])
        } else if reader.choice(node, of: ["exact", "snake_case"]) == "snake_case" {
            draft.declaration.naming = .snakeCase(acronyms: [])
        }
    }

    static let migrations = ConfigKey(
        "migrations",
        .strictList(.anything),
        example: "[{ to: 1, rename: { name: full_name }, convert: { created: { date: unix } }, remove: [age] }]"
    ) { node, draft, reader in
        guard let sequence = node.sequence else {
            return reader.misfit(node, wanted: "a list such as [{ to: 1, rename: { name: full_name } }]")
        }
        draft.declaration.migrations = sequence.compactMap { reader.migration($0) }
    }
}

enum ConditionKeys {
    static let all = ["has", "member", "is", "all", "any", "not"]
    static let help = """
        A condition is { has: MEMBER }, { member: MEMBER, is: VALUE } or a list of values there, { all: [...] }, \
        { any: [...] } or { not: ... }.
        """
}

extension ConfigReader {
    /// A condition on an object's members.
    mutating func condition(_ node: Node) -> Condition? {
        guard let keys = mapping(node, keys: ConditionKeys.all, wanted: "a condition such as { has: MEMBER }")
        else { return nil }
        switch Set(keys.keys) {
        case ["has"]: return keys["has"].flatMap { text($0, wanted: "the name of a member") }.map { .has($0) }
        case ["member", "is"]:
            guard let member = keys["member"].flatMap({ text($0, wanted: "the name of a member") }),
                let values = keys["is"].flatMap({ $0.isNothing ? [Array("null".utf8)] : jsonList($0) })
            else { return nil }
            if values.isEmpty { errorAtPath(node.place, "\"is\" needs a value") }
            return .member(member, isOneOf: values)
        case ["all"]: return keys["all"].flatMap { conditions($0) }.map { .all($0) }
        case ["any"]: return keys["any"].flatMap { conditions($0) }.map { .any($0) }
        case ["not"]: return keys["not"].flatMap { condition($0) }.map { .not($0) }
        default: return failAtPath(node.place, "this is not a condition. \(ConditionKeys.help)")
        }
    }

    private mutating func conditions(_ node: Node) -> [Condition]? {
        guard let sequence = node.sequence, !sequence.isEmpty else {
            return failMisfit(node, wanted: "a list of conditions such as [{ has: bot }, { has: bot_id }]")
        }
        return sequence.compactMap { condition($0) }
    }

    fileprivate mutating func migration(_ node: Node) -> Migration? {
        let wanted = "{ to: 1, rename: { name: full_name } }"
        guard let keys = mapping(node, keys: ["to", "rename", "convert", "remove"], wanted: wanted) else { return nil }
        guard let target = keys["to"] else {
            return failAtPath(
                node.place,
                "\"to\" is missing: the version that objects have afterwards; write \(wanted)"
            )
        }
        var migration = Migration(to: integer(target, in: 1...1_000_000) ?? 0)
        if let renames = keys["rename"].flatMap({ pairs($0, wanted: "names before, each with the name after") }) {
            migration.renamed = renames.compactMap { from, _, value in
                text(value, wanted: "the name of a member").map { .init(from: from, to: $0) }
            }
        }
        if let conversions = keys["convert"].flatMap({ pairs($0, wanted: "members, each with a conversion") }) {
            migration.converted = conversions.compactMap { member, _, value in
                under(member) { $0.conversion(value) }.map { .init(member: member, conversion: $0) }
            }
        }
        if let removed = keys["remove"].flatMap({ texts($0, wanted: "names of members") }) {
            migration.removed = removed.map(\.text)
        }
        return migration
    }
}
