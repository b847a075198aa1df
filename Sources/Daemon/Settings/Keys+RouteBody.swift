import Mapping
import Yams

/// What a body contains.
extension RouteDraft {
    static let contents: [ConfigKey<RouteDraft>] = [
        ConfigKey(
            "model",
            .either([.text, .strictList(.text), .section([BodyKeys.keyed])]),
            example: "User",
            """
            What the body contains: `User` for one object, `[User]` for a list of them, `{ keyed: User }` for an object whose \
            members they are.
            """
        ) { node, draft, reader in
            draft.model = reader.bodyModel(node)
        },
        ConfigKey(
            "envelope",
            .text,
            example: "Page",
            "The model of the envelope's own members, such as a page's total count; the mapped view shows it."
        ) { node, draft, reader in
            guard let name = reader.text(node, wanted: "the name of a model") else { return }
            draft.envelope = (name, node.place)
        },
        ConfigKey(
            "also",
            .strictList(.anything),
            example: "[{ model: [User], root: users }]",
            "Further objects in the same body, each with the member that contains them."
        ) { node, draft, reader in
            guard let sequence = node.sequence else {
                return reader.misfit(node, wanted: "a list such as [{ model: [User], root: users }]")
            }
            for element in sequence {
                guard
                    let keys = reader.mapping(
                        element,
                        keys: ["model", "root"],
                        wanted: "{ model: [User], root: users }"
                    ),
                    let node = keys["model"], let root = keys["root"]
                else {
                    reader.errorHere(
                        element.place,
                        "\"model\" and \"root\" are wanted; write { model: [User], root: users }"
                    )
                    continue
                }
                guard let model = reader.bodyModel(node), let path = reader.root(root) else { continue }
                draft.also.append((model, path))
            }
        },
        ConfigKey(
            "root",
            .text,
            example: "items",
            "The member that contains it, if the body is an envelope; dots lead into inner objects."
        ) { node, draft, reader in
            draft.root = reader.root(node)
        },
    ]
}

/// Keys within `model`.
enum BodyKeys {
    static let keyed = ConfigFacts(
        name: "keyed",
        kind: .text,
        fallback: nil,
        example: "User",
        isRequired: true,
        text: "The model of the objects that are the body's members."
    )
}

extension ConfigReader {
    /// Where in a body a model is found.
    fileprivate mutating func root(_ node: Node) -> String? {
        guard let path = text(node, wanted: "the name of a member") else { return nil }
        switch BodyRule.fitness(ofRoot: path) {
        case .fitting: return path
        case .withinElements:
            warning(
                node.place,
                "\"\(path)\" leads into the elements of a list: the objects there are known, but the mapped view shows such a "
                    + "body as it came"
            )
            return path
        case .malformed:
            errorHere(
                node.place,
                "\"\(path)\" is not a key path; \(BodyRule.complaint(aboutRoot: path) ?? "write names with dots between them")"
            )
            return nil
        }
    }

    /// What stands under `model:` of a rule.
    fileprivate mutating func bodyModel(_ node: Node) -> RouteDraft.Model? {
        if node.mapping != nil {
            let wanted = "{ keyed: User }"
            guard let keys = mapping(node, keys: ["keyed"], wanted: wanted), let model = keys["keyed"] else {
                return nil
            }
            return text(model, wanted: "the name of a model").map { ($0, .keyed, model.place) }
        }
        guard let names = texts(node, wanted: "the name of a model, in brackets for a list") else { return nil }
        guard names.count == 1 else {
            errorHere(node.place, "one model stands here, in brackets if the body is a list of its objects")
            return nil
        }
        let name = names[0].text
        if node.sequence == nil, name.hasPrefix("["), name.hasSuffix("]") {
            errorHere(node.place, "the brackets of a list stand outside quotes; write model: \(name)")
            return nil
        }
        return (name, node.sequence == nil ? .one : .many, names[0].place)
    }
}
