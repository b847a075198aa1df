import Mapping
import Yams

extension ConfigKey {
    static func routes(_ path: any WritableKeyPath<Section, [RouteDraft]> & Sendable) -> ConfigKey {
        rules(
            "routes",
            path,
            RouteDraft.keys,
            """
            What the responses under a path contain, and how they are cached. Paths are written without prefix and base path. \
            In each component a literal wins over "#" (digits), "#" over "*" (anything), and "*" over "**" (all that \
            follows); the order of the rules does not matter.
            """
        )
    }

    static func errors(_ path: any WritableKeyPath<Section, [RouteDraft]> & Sendable) -> ConfigKey {
        rules(
            "errors",
            path,
            RouteDraft.errorKeys,
            "The same for responses that are not 2xx, without the keys on caching and captures."
        )
    }

    private static func rules(
        _ name: String,
        _ path: any WritableKeyPath<Section, [RouteDraft]> & Sendable,
        _ keys: [ConfigKey<RouteDraft>],
        _ text: String
    ) -> ConfigKey {
        ConfigKey(name, .strictList(.section(keys.map(\.facts))), text) { node, section, reader in
            guard let sequence = node.sequence else {
                reader.misfit(node, wanted: "a list of rules, each beginning with \"- \"")
                return
            }
            section[keyPath: path] = sequence.enumerated().map { index, element in
                var draft = RouteDraft()
                draft.place = element.place
                draft.places = reader.under("\(index + 1)") { reader in
                    reader.section(element, into: &draft, keys: keys)
                }
                draft.finish(&reader, isError: name == "errors")
                return draft
            }
        }
    }
}

extension RouteDraft: ConfigSection {
    static let keys: [ConfigKey<RouteDraft>] = demands + contents + effects + caching + replaying

    /// The keys that a rule for errors has, with examples of its own.
    static let errorKeys: [ConfigKey<RouteDraft>] = {
        let examples = [
            "path": "\"**\"", "method": "GET", "status": "4xx", "query": "{ state: open }",
            "content_type": "application/problem+json", "fallthrough": nil, "model": "Problem", "envelope": "Page",
            "also": "[{ model: [Page], root: details }]", "root": "error",
        ]
        return keys.compactMap { key in
            var key = key
            guard let example = examples[key.facts.name] else { return nil }
            if let example { key.facts.example = example }
            return key
        }
    }()
}

/// What several keys of a rule say together.
extension RouteDraft {
    /// Puts together what several keys say, and says where they contradict each other.
    mutating func finish(_ reader: inout ConfigReader, isError: Bool) {
        route.declaration.path = path ?? ""
        route.declaration.status = status ?? (isError ? .any : .class(2))
        if let model {
            route.body = BodyRule(
                model: model.name,
                shape: model.shape,
                root: root,
                envelope: envelope?.name,
                also: also.map { BodyRule(model: $0.model.name, shape: $0.model.shape, root: $0.root) }
            )
        }
        if model == nil, let place = places["envelope"] ?? places["also"] {
            reader.error(place, "\"envelope\" and \"also\" say what else the body contains; add \"model\"")
        }
        if root != nil, places["model"] == nil {
            reader.error(places["root"], "\"root\" says where a model is found, but the rule names none; add \"model\"")
        }
        if isError, let status, status == .class(2) || (200..<300).contains(status.exact ?? 0) {
            reader.error(places["status"], "\"errors\" is for responses that are not 2xx; move this rule to \"routes\"")
        }
        checkOverrides(&reader)
        if isError, places["model"] == nil, places["path"] != nil {
            reader.error(place, "the rule names no model; add one, for example \"model: Problem\"")
        }
        checkPattern(&reader)
    }
}

/// What a rule requires of a request and its response.
extension RouteDraft {
    static let demands: [ConfigKey<RouteDraft>] = [
        ConfigKey(
            "path",
            .text,
            example: "\"users/{login}\"",
            isRequired: true,
            "The pattern, in quotes. {name} and {name:#} match like \"*\" and \"#\", and capture what they match."
        ) { node, draft, reader in
            draft.path = reader.text(node, wanted: "a path pattern in quotes")
        },
        ConfigKey(
            "method",
            .text,
            example: "GET",
            "The method that the rule is for; GET includes HEAD. Without it: every method."
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "a method such as GET") else { return }
            guard FieldName.complaint(text) == nil, text == text.uppercased() else {
                reader.errorHere(
                    node.place,
                    "\"\(text)\" is not a method; methods are in capitals, such as "
                        + (FieldName.complaint(text) == nil ? "\"\(text.uppercased())\"" : "\"GET\"")
                )
                return
            }
            draft.route.declaration.method = text
        },
        ConfigKey(
            "status",
            .either([.integer(100...599), .text]),
            example: "200",
            "The status that the rule is for: 201, 4xx or any. Without it: 2xx under routes, every other status under errors."
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "a status such as 201, a class such as 2xx, or any") else {
                return
            }
            guard let status = StatusPattern(text) else {
                reader.errorHere(
                    node.place,
                    "\"\(text)\" is not a status; write one such as 201, a class such as 2xx, or any"
                )
                return
            }
            draft.status = status
        },
        ConfigKey(
            "query",
            .named(.text, name: "state"),
            example: "{ state: open }",
            "Query parameters that the request must have, with this value, or with any value if it is \"*\"."
        ) { node, draft, reader in
            guard let pairs = reader.pairs(node, wanted: "names of query parameters, each with a value") else { return }
            for (name, _, value) in pairs {
                guard let text = reader.text(value, wanted: "a value, or \"*\" for any") else { continue }
                draft.route.declaration.query[name] = .some(text == "*" ? nil : text)
            }
        },
        ConfigKey(
            "content_type",
            .text,
            example: "application/json",
            "The media type that the response must have."
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "a media type such as application/json") else { return }
            guard text.split(separator: "/", omittingEmptySubsequences: false).count == 2, !text.contains(";") else {
                return reader.errorHere(
                    node.place,
                    "\"\(text)\" is not a media type without parameters, such as application/json"
                )
            }
            draft.route.declaration.contentType = text.lowercased()
        },
        .boolean(
            "fallthrough",
            \.route.declaration.fallsThrough,
            "Whether a more general pattern is tried if no rule of this one fits the method, status, query and type."
        ),
    ]
}

extension StatusPattern {
    /// Reads `201`, `2xx`, `any` or `*`.
    init?(_ text: String) {
        if text == "any" || text == "*" {
            self = .any
        } else if text.utf8.count == 3, text.hasSuffix("xx"), let digit = text.first?.wholeNumberValue,
            (1...5).contains(digit)
        {
            self = .class(digit)
        } else if let status = Int(text), (100...599).contains(status) {
            self = .exact(status)
        } else {
            return nil
        }
    }

    /// Whether a response with it can mean that a request was carried out.
    var mayBeSuccess: Bool {
        switch self {
        case .exact(let status): (200..<400).contains(status)
        case .class(let digit): digit == 2 || digit == 3
        case .any: true
        }
    }

    var exact: Int? {
        if case .exact(let status) = self { status } else { nil }
    }
}

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
