import Mapping
import Yams

extension ConfigKey {
    static func routes(_ path: any WritableKeyPath<Section, [RouteDraft]> & Sendable) -> ConfigKey {
        rules(
            "routes",
            path,
            RouteDraft.keys,
            """
            What the answers under a path hold, and how they are cached. Paths come without prefix and base path; per \
            component a literal wins over "#" (digits), that over "*" (anything) and that over "**" (all that follows), \
            whatever the order.
            """
        )
    }

    static func errors(_ path: any WritableKeyPath<Section, [RouteDraft]> & Sendable) -> ConfigKey {
        rules(
            "errors",
            path,
            RouteDraft.errorKeys,
            "The same for answers that are not 2xx; of the keys, those that speak of caching and captures are not known here."
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
    private static let lifetimes: ClosedRange<Duration> = .zero ... .forever

    static let keys: [ConfigKey<RouteDraft>] = [
        ConfigKey(
            "path",
            .text,
            example: "\"users/{login}\"",
            isRequired: true,
            "The pattern, in quotes. {name} and {name:#} are \"*\" and \"#\" that remember what they matched."
        ) { node, draft, reader in
            draft.path = reader.text(node, wanted: "a path pattern in quotes")
        },
        ConfigKey(
            "method",
            .text,
            example: "GET",
            "The method it speaks of. Without it: every method. GET includes HEAD."
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "a method such as GET") else { return }
            guard FieldName.complaint(text) == nil, text == text.uppercased() else {
                reader.errorHere(
                    node.place,
                    "\"\(text)\" is no method; methods are in capitals, such as "
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
            "The status it speaks of: 201, 4xx or any. Without it: 2xx under routes, every other status under errors."
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "a status such as 201, a class such as 2xx, or any") else {
                return
            }
            guard let status = StatusPattern(text) else {
                reader.errorHere(
                    node.place,
                    "\"\(text)\" is no status; write one such as 201, a class such as 2xx, or any"
                )
                return
            }
            draft.status = status
        },
        ConfigKey(
            "query",
            .named(.text, name: "state"),
            example: "{ state: open }",
            "Query parameters that must be there: with this value, or with any where the value is \"*\"."
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
            "The media type that the answer must have."
        ) { node, draft, reader in
            guard let text = reader.text(node, wanted: "a media type such as application/json") else { return }
            guard text.split(separator: "/", omittingEmptySubsequences: false).count == 2, !text.contains(";") else {
                return reader.errorHere(
                    node.place,
                    "\"\(text)\" is no media type without parameters, such as application/json"
                )
            }
            draft.route.declaration.contentType = text.lowercased()
        },
        .boolean(
            "fallthrough",
            \.route.declaration.fallsThrough,
            "Whether a more general pattern is asked where no rule of this one fits, because of its method, status, query or type."
        ),
        ConfigKey(
            "model",
            .either([.text, .strictList(.text), .section([BodyKeys.keyed])]),
            example: "User",
            """
            What the body holds: `User` for one object, `[User]` for a list of them, `{ keyed: User }` for an object whose \
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
            "Further objects in the same body, each with the member that holds them."
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
                guard let model = reader.bodyModel(node), let path = reader.text(root, wanted: "the name of a member")
                else { continue }
                draft.also.append((model, path))
            }
        },
        ConfigKey(
            "root",
            .text,
            example: "items",
            "The member that holds it, where the body is an envelope; dots lead further in."
        ) { node, draft, reader in
            draft.root = reader.text(node, wanted: "the name of a member")
        },
        ConfigKey(
            "object",
            .named(.text, name: "login"),
            example: "{ login: login }",
            "Keys of the object that the path already gives: the model's member, then the capture's name."
        ) { node, draft, reader in
            guard let pairs = reader.pairs(node, wanted: "members of the model, each with a capture of the path") else {
                return
            }
            for (key, place, value) in pairs {
                guard let capture = reader.text(value, wanted: "the name of a capture") else { continue }
                draft.route.object.append(.init(key: key, capture: capture))
                draft.objectPlaces.append(place)
            }
        },
        ConfigKey(
            "invalidates",
            .list(.text),
            fallback: "[]",
            example: "[\"users/{login}/**\", search/users]",
            """
            Patterns of further paths whose answers a write (POST, PUT, PATCH, DELETE) of this one makes stale, whoever asked \
            for them and with whatever query; {name} is what the capture of that name matched.
            """
        ) { node, draft, reader in
            let patterns = reader.texts(node, wanted: "a list of path patterns in quotes") ?? []
            draft.invalidates = patterns.map { ($0.text, $0.place) }
        },
        .optionalDuration(
            "fresh",
            \.route.overrides.fresh,
            in: lifetimes,
            example: "5m",
            "How long an answer is fresh, in place of what the upstream says."
        ),
        .optionalDuration(
            "stale",
            \.route.overrides.stale,
            in: lifetimes,
            example: "1d",
            "How long after that it is still served while a new one is fetched behind it."
        ),
        ConfigKey(
            "cache",
            .choice(Settings.Overrides.Cache.allCases.map(\.rawValue)),
            example: "force",
            "never: nothing is stored. force: stored and used even where the upstream forbids it."
        ) { node, draft, reader in
            let words = Settings.Overrides.Cache.allCases.map(\.rawValue)
            draft.route.overrides.cache = reader.choice(node, of: words).flatMap(Settings.Overrides.Cache.init)
        },
        .optionalDuration(
            "negative",
            \.route.overrides.negative,
            in: lifetimes,
            example: "30s",
            "How long an answer of absence (404, 405, 410, 414, 501) is fresh, where it does not say so itself."
        ),
        .section("vary", \.route.overrides.vary, "What becomes of the answer's Vary."),
        .section(
            "key",
            \.route.overrides.key,
            "Which spellings of a URL have one answer; upstream goes what the client wrote."
        ),
    ]

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
            reader.error(place, "\"envelope\" and \"also\" say what else the body holds; add \"model\"")
        }
        if root != nil, places["model"] == nil {
            reader.error(places["root"], "\"root\" says where a model is found, but the rule names none; add \"model\"")
        }
        if isError, let status, status == .class(2) || (200..<300).contains(status.exact ?? 0) {
            reader.error(places["status"], "errors speak of answers that are not 2xx; move this rule to \"routes\"")
        }
        checkOverrides(&reader)
        if isError, places["model"] == nil, places["path"] != nil {
            reader.error(place, "the rule names no model; add one, for example \"model: Problem\"")
        }
        checkPattern(&reader)
    }

    /// Says which of the words on caching leave nothing for others to say.
    private func checkOverrides(_ reader: inout ConfigReader) {
        if route.overrides.cache == .never {
            if let place = places["fresh"] ?? places["stale"] ?? places["negative"] {
                reader.error(
                    place,
                    "\"cache: never\" stores nothing that could be fresh or stale; remove one of the two"
                )
            }
            if let place = places["vary"] ?? places["key"] {
                reader.error(place, "\"cache: never\" stores nothing that could be found again; remove one of the two")
            }
        }
        if route.overrides.cache == .force, route.overrides.fresh == nil, let place = places["stale"] {
            reader.error(
                place,
                "\"cache: force\" alone keeps answers fresh for ever, never stale; add \"fresh\" for how long"
            )
        }
        let concernsCaching = ["fresh", "stale", "cache", "negative", "vary", "key"].first { places[$0] != nil }
        if let name = concernsCaching, let method = route.declaration.method, !MethodFacts.isAnswerable(method) {
            reader.error(
                places[name],
                "\"\(name)\" speaks of answers to GET, but the rule of \(method); remove \"method\" or \"\(name)\""
            )
        }
    }

    private mutating func checkPattern(_ reader: inout ConfigReader) {
        guard let path else { return }
        let pattern: RoutePattern
        do {
            pattern = try RoutePattern(path)
        } catch {
            reader.error(places["path"], error.description)
            return
        }
        for (binding, place) in zip(route.object, objectPlaces)
        where !pattern.names.contains(where: { $0.name == binding.capture }) {
            let known = pattern.names.map(\.name)
            let meant =
                known.isEmpty
                ? "it has none; write {\(binding.capture)} there" : "it has \(known.joined(separator: ", "))"
            reader.error(place, "\"\(path)\" has no capture \"\(binding.capture)\"; \(meant)")
        }
        checkInvalidated(by: pattern, &reader)
    }

    /// Reads the patterns of what a write invalidates, whose captures are those of the route.
    private mutating func checkInvalidated(by pattern: RoutePattern, _ reader: inout ConfigReader) {
        if let method = route.declaration.method, MethodFacts.isSafe(method), let place = invalidates.first?.place {
            reader.error(
                place,
                "\"invalidates\" speaks of writes, but the rule of \(method); remove \"method\" or \"invalidates\""
            )
        }
        for (text, place) in invalidates {
            do {
                let invalidated = try RoutePattern(text)
                let known = pattern.names.map(\.name)
                if let unknown = invalidated.names.first(where: { !known.contains($0.name) })?.name {
                    let meant = known.isEmpty ? "it has none" : "it has \(known.joined(separator: ", "))"
                    reader.error(
                        place,
                        "\"\(path ?? "")\" has no capture \"\(unknown)\"; \(meant). Write \"*\" for any component"
                    )
                }
                route.invalidates.append(invalidated)
            } catch {
                reader.error(place, error.description)
            }
        }
    }
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
        return (names[0].text, node.sequence == nil ? .one : .many, names[0].place)
    }
}

extension Settings.Overrides.Vary: ConfigSection {
    static let keys: [ConfigKey<Settings.Overrides.Vary>] = [
        .texts(
            "ignore",
            \.ignore,
            example: "[User-Agent, Origin]",
            "Request fields that select no variant of the answer, though its Vary names them.",
            check: FieldName.complaint
        )
    ]
}

extension Settings.Overrides.Key: ConfigSection {
    static let keys: [ConfigKey<Settings.Overrides.Key>] = [
        .boolean(
            "sort",
            \.sort,
            "Whether query parameters may come in any order. Those of one name keep theirs."
        ),
        .texts(
            "ignore",
            \.ignore,
            example: "[\"utm_*\", fbclid]",
            "Query parameters that make no difference to the answer; \"*\" stands for any text. They go upstream all the same.",
            check: ParameterName.complaint
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

    fileprivate var exact: Int? {
        if case .exact(let status) = self { status } else { nil }
    }
}
