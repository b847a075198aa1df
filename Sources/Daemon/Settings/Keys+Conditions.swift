import Mapping
import Yams

/// How conditions are written.
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
        guard let keys = mapping(node, keys: ConditionKeys.all, wanted: "a condition such as { has: MEMBER }") else {
            return nil
        }
        switch Set(keys.keys) {
        case ["has"]:
            return keys["has"].flatMap { text($0, wanted: "the name of a member") }.map { .has($0) }
        case ["member", "is"]:
            guard let member = keys["member"].flatMap({ text($0, wanted: "the name of a member") }),
                let values = keys["is"].flatMap({ jsonList($0) })
            else { return nil }
            if values.isEmpty { errorHere(node.place, "\"is\" names no value") }
            return .member(member, isOneOf: values)
        case ["all"]: return keys["all"].flatMap { conditions($0) }.map { .all($0) }
        case ["any"]: return keys["any"].flatMap { conditions($0) }.map { .any($0) }
        case ["not"]: return keys["not"].flatMap { condition($0) }.map { .not($0) }
        default:
            errorHere(node.place, "this is not a condition. \(ConditionKeys.help)")
            return nil
        }
    }

    private mutating func conditions(_ node: Node) -> [Condition]? {
        guard let sequence = node.sequence, !sequence.isEmpty else {
            misfit(node, wanted: "a list of conditions such as [{ has: bot }, { has: bot_id }]")
            return nil
        }
        return sequence.compactMap { condition($0) }
    }
}

extension ConfigKey<ModelDraft> {
    static let cluster = ConfigKey(
        "cluster",
        .strictList(.anything),
        example: "[{ model: Organization, if: { member: type, is: Organization } }, { model: Bot }]",
        """
        The models that an object of this one may be of, tried in this order; the last may have no condition. \
        \(ConditionKeys.help)
        """
    ) { node, draft, reader in
        guard let sequence = node.sequence, !sequence.isEmpty else {
            return reader.misfit(node, wanted: "a list such as [{ model: Organization, if: { has: members_url } }]")
        }
        for (index, element) in sequence.enumerated() {
            guard let keys = reader.mapping(element, keys: ["model", "if"], wanted: "{ model: NAME, if: CONDITION }"),
                let model = keys["model"]
            else {
                reader.errorHere(element.place, "\"model\" is missing; write { model: NAME, if: CONDITION }")
                continue
            }
            guard let name = reader.text(model, wanted: "the name of a model") else { continue }
            let condition = keys["if"].flatMap { node in reader.under("if") { $0.condition(node) } }
            if keys["if"] == nil, index < sequence.count - 1 {
                reader.errorHere(
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
        fallback: "exact",
        """
        How the names of properties without "from" become names of members. snake_case: catID is cat_id; \
        { snake_case: [HTTP] } adds words that are written in capitals.
        """
    ) { node, draft, reader in
        if node.mapping != nil {
            guard let keys = reader.mapping(node, keys: ["snake_case"], wanted: "{ snake_case: [HTTP] }"),
                let words = keys["snake_case"]
            else { return }
            let acronyms = reader.checkedTexts(words) { word in
                word.isEmpty || !word.utf8.allSatisfy { ($0 | 0x20) &- 0x61 < 26 || $0 &- 0x30 < 10 }
                    ? "is not a word of letters and digits" : nil
            }
            draft.declaration.naming = .snakeCase(acronyms: acronyms ?? [])
        } else if reader.choice(node, of: ["exact", "snake_case"]) == "snake_case" {
            draft.declaration.naming = .snakeCase(acronyms: [])
        }
    }

    static let migrations = ConfigKey(
        "migrations",
        .strictList(.anything),
        example: "[{ to: 1, rename: { name: full_name }, convert: { created: { date: unix } }, remove: [age] }]",
        "What changed with each version: renamed members, converted values, removed members. Applied to stored objects when they are read."
    ) { node, draft, reader in
        guard let sequence = node.sequence else {
            return reader.misfit(node, wanted: "a list such as [{ to: 1, rename: { name: full_name } }]")
        }
        draft.declaration.migrations = sequence.compactMap { reader.migration($0) }
    }
}

extension ConfigReader {
    fileprivate mutating func migration(_ node: Node) -> Migration? {
        let wanted = "{ to: 1, rename: { name: full_name } }"
        guard let keys = mapping(node, keys: ["to", "rename", "convert", "remove"], wanted: wanted) else { return nil }
        guard let target = keys["to"] else {
            errorHere(node.place, "\"to\" is missing: the version that objects have afterwards; write \(wanted)")
            return nil
        }
        var migration = Migration(to: integer(target, in: 1...1_000_000) ?? 0)
        if let renames = keys["rename"].flatMap({ pairs($0, wanted: "names before, each with the name after") }) {
            migration.renamed = renames.compactMap { from, _, value in
                text(value, wanted: "the name of a member").map { .init(from: from, to: $0) }
            }
        }
        if let conversions = keys["convert"].flatMap({ pairs($0, wanted: "members, each with a conversion") }) {
            migration.converted = conversions.compactMap { member, _, value in
                under(member) { $0.transform(value) }.map { .init(member: member, transform: $0) }
            }
        }
        if let removed = keys["remove"].flatMap({ texts($0, wanted: "names of members") }) {
            migration.removed = removed.map(\.text)
        }
        return migration
    }
}
