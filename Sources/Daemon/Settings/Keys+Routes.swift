import CachePolicy
import HTTPSemantics
import Mapping
import Yams

extension ConfigKey {
    static func routes(_ path: Path<[RouteDraft]>) -> ConfigKey { rules("routes", path, RouteDraft.keys) }

    static func errors(_ path: Path<[RouteDraft]>) -> ConfigKey { rules("errors", path, RouteDraft.errorKeys) }

    private static func rules(_ name: String, _ path: Path<[RouteDraft]>, _ keys: [ConfigKey<RouteDraft>])
        -> ConfigKey
    {
        ConfigKey(name, .strictList(.section(keys.map(\.facts)))) { node, section, reader in
            guard let sequence = node.sequence else {
                return reader.misfit(node, wanted: "a list of rules, each beginning with \"- \"")
            }
            section[keyPath: path] = sequence.enumerated().map { index, element in
                var draft = RouteDraft(place: element.place)
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
    static let keys: [ConfigKey<RouteDraft>] = demands + contents + effects + caching + waitingAndReplaying

    /// The keys of a rule for errors, with their own examples.
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

    /// Combines the keys of a rule, and reports contradictions.
    mutating func finish(_ reader: inout ConfigReader, isError: Bool) {
        route.declaration.path = path ?? ""
        route.declaration.status = status ?? (isError ? .any : .class(2))
        if let model {
            route.body = BodyRule(
                model: model.name,
                arity: model.arity,
                root: root,
                envelope: envelope?.name,
                also: also.map { BodyRule(model: $0.model.name, arity: $0.model.arity, root: $0.root) }
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

    static let demands: [ConfigKey<RouteDraft>] = documented([
        """
        The pattern, in quotes. {name} and {name:#} match like "*" and "#", and capture what they match; text may follow, as \
        in {name}.json.
        """:
            .text("path", \.path, example: "\"users/{login}\"", isRequired: true, wanted: "a path pattern in quotes"),
        "The method that the rule is for; GET includes HEAD. Default: every method.":
            .parsed("method", wanted: "a method such as GET", example: "GET") { text, draft in
                let meant = FieldName.complaint(text) == nil ? text.uppercased() : "GET"
                guard text == meant else {
                    throw InvalidValue("\"\(text)\" is not a method; methods are in capitals, such as \"\(meant)\"")
                }
                draft.route.declaration.method = text
            },
        "The status that the rule is for: 201, 4xx or any. Default: 2xx under routes, every other status under errors.":
            .parsed(
                "status",
                .either([.integer(100...599), .text]),
                wanted: "a status such as 201, a class such as 2xx, or any",
                example: "200"
            ) { text, draft in
                guard let status = StatusPattern(text) else {
                    throw InvalidValue(
                        "\"\(text)\" is not a status; write one such as 201, a class such as 2xx, or any"
                    )
                }
                draft.status = status
            },
        "Query parameters that the request must have, with this value, or with any value if it is \"*\".":
            ConfigKey("query", .named(.text, name: "state"), example: "{ state: open }") { node, draft, reader in
                for (name, _, value) in reader.pairs(node, wanted: "names of query parameters, each with a value") ?? []
                {
                    guard let text = reader.text(value, wanted: "a value, or \"*\" for any") else { continue }
                    draft.route.declaration.query[name] = .some(text == "*" ? nil : text)
                }
            },
        "The media type that the response must have.":
            .parsed("content_type", wanted: "a media type such as application/json", example: "application/json") {
                (text, draft) in
                guard text.split(separator: "/", omittingEmptySubsequences: false).count == 2, !text.contains(";")
                else {
                    throw InvalidValue("\"\(text)\" is not a media type without parameters, such as application/json")
                }
                draft.route.declaration.contentType = text.lowercased()
            },
        "Whether a more general pattern is tried if no rule of this one fits the method, status, query and type.":
            .boolean("fallthrough", \.route.declaration.fallsThrough),
    ])
}

extension StatusPattern {
    /// Parses `201`, `2xx`, `any` or `*`.
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

    /// Whether a response with it can mean that a request succeeded.
    var mayBeSuccess: Bool {
        switch self {
        case .exact(let status): (200..<400).contains(status)
        case .class(let digit): digit == 2 || digit == 3
        case .any: true
        }
    }

    var exact: Int? { if case .exact(let status) = self { status } else { nil } }
}

extension RouteDraft {
    private static let keyed = ConfigFacts(
        name: "keyed",
        kind: .text,
        example: "User",
        isRequired: true,
        text: "The model of the objects that are the body's members."
    )

    static let contents: [ConfigKey<RouteDraft>] = documented([
        """
        What the body contains: `User` for one object, `[User]` for a list of them, `{ keyed: User }` for an object whose \
        members they are.
        """: ConfigKey("model", .either([.text, .strictList(.text), .section([keyed])]), example: "User") {
            (node, draft, reader) in
            draft.model = reader.bodyModel(node)
        },
        "The model of the envelope's own members, such as a page's total count; the mapped view shows it.":
            ConfigKey("envelope", .text, example: "Page") { node, draft, reader in
                draft.envelope = reader.text(node, wanted: "the name of a model").map { ($0, node.place) }
            },
        "Further objects in the same body, each with the member that contains them.": ConfigKey(
            "also",
            .strictList(.anything),
            example: "[{ model: [User], root: users }]"
        ) { node, draft, reader in
            guard let sequence = node.sequence else {
                return reader.misfit(node, wanted: "a list such as [{ model: [User], root: users }]")
            }
            for element in sequence {
                let wanted = "{ model: [User], root: users }"
                let keys = reader.mapping(element, keys: ["model", "root"], wanted: wanted)
                guard let node = keys?["model"], let root = keys?["root"] else {
                    reader.errorAtPath(element.place, "\"model\" and \"root\" are wanted; write \(wanted)")
                    continue
                }
                guard let model = reader.bodyModel(node), let path = reader.root(root) else { continue }
                draft.also.append((model, path))
            }
        },
        "The member that contains the model's objects, if the body is an envelope; dots lead into inner objects.":
            ConfigKey("root", .text, example: "items") { node, draft, reader in
                draft.root = reader.root(node)
            },
    ])
}

extension ConfigReader {
    /// The member of a body that contains the model.
    fileprivate mutating func root(_ node: Node) -> String? {
        guard let path = text(node, wanted: "the name of a member") else { return nil }
        switch BodyRule.leadsIntoElements(path) {
        case false: return path
        case true:
            warning(
                node.place,
                "\"\(path)\" leads into the elements of a list: the objects there are known, but the mapped view shows such a "
                    + "body as it came"
            )
            return path
        case nil:
            return failAtPath(
                node.place,
                "\"\(path)\" is not a key path; \(BodyRule.complaint(aboutRoot: path) ?? "write names with dots between them")"
            )
        }
    }

    fileprivate mutating func bodyModel(_ node: Node) -> RouteDraft.Model? {
        if node.mapping != nil {
            guard let keys = mapping(node, keys: ["keyed"], wanted: "{ keyed: User }") else { return nil }
            guard let model = keys["keyed"] else { return failAtPath(node.place, "write { keyed: User }") }
            return text(model, wanted: "the name of a model").map { ($0, .keyed, model.place) }
        }
        guard let names = texts(node, wanted: "the name of a model, in brackets for a list") else { return nil }
        guard names.count == 1 else {
            return failAtPath(node.place, "write one model, in brackets if the body is a list of its objects")
        }
        let name = names[0].text
        if node.sequence == nil, name.hasPrefix("["), name.hasSuffix("]") {
            return failAtPath(node.place, "the brackets of a list go outside the quotes; write model: \(name)")
        }
        return (name, node.sequence == nil ? .one : .many, names[0].place)
    }
}

/// The object that a path names, and the paths that a write to it invalidates.
extension RouteDraft {
    static let effects: [ConfigKey<RouteDraft>] = documented([
        "Which member of the object each capture of the path is: { member: capture }.":
            ConfigKey("object", .named(.text, name: "login"), example: "{ login: login }") { node, draft, reader in
                let pairs = reader.pairs(node, wanted: "members of the model, each with a capture of the path")
                for (key, place, value) in pairs ?? [] {
                    guard let capture = reader.text(value, wanted: "the name of a capture") else { continue }
                    draft.route.object.append(.init(key: key, capture: capture))
                    draft.objectPlaces.append(place)
                }
            },
        """
        Whether a DELETE with a 2xx response deletes the object. false: it only changes the object, and its response is \
        read like that of any other write.
        """: .boolean("deletes", \.route.deletes),
        """
        Patterns of further paths whose responses become outdated by a write (POST, PUT, PATCH, DELETE) to this one, for \
        all clients and queries; {name} is what the capture of that name matched.
        """: ConfigKey("invalidates", .list(.text), fallback: ConfigText.list(RouteDraft().invalidates.map(\.text))) {
            (node, draft, reader) in
            let patterns = reader.texts(node, wanted: "a list of path patterns in quotes") ?? []
            draft.invalidates = patterns.map { ($0.text, $0.place) }
        },
    ])

    mutating func checkPattern(_ reader: inout ConfigReader) {
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
        if !route.deletes, let method = route.declaration.method, method != "DELETE" {
            reader.error(
                places["deletes"],
                "\"deletes\" applies to DELETE, but the rule to \(method); remove \"method\" or \"deletes\""
            )
        }
        checkInvalidated(by: pattern, &reader)
    }

    /// Reads the patterns of paths to invalidate, whose captures are those of the route.
    private mutating func checkInvalidated(by pattern: RoutePattern, _ reader: inout ConfigReader) {
        if let place = invalidates.first?.place {
            if let method = route.declaration.method, MethodFacts.isSafe(method) {
                reader.error(
                    place,
                    "\"invalidates\" applies to writes, but the rule to \(method); remove \"method\" or \"invalidates\""
                )
            }
            if let status, !status.mayBeSuccess {
                reader.error(
                    place,
                    "a write with such a response has changed nothing, so nothing is invalidated; remove \"status\" or \"invalidates\""
                )
            }
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
            } catch { reader.error(place, error.description) }
        }
    }

    static let caching: [ConfigKey<RouteDraft>] = documented([
        """
        Whether a POST to this path only reads, so that its response is cached like that of a GET, by its JSON body. graphql: it \
        does if its body has GraphQL queries only; any other is a write.
        """: ConfigKey("read", .either([.boolean, .choice([ReadingPost.graphQL.rawValue])]), fallback: "false") {
            (node, draft, reader) in
            let words = ["false"] + ReadingPost.allCases.map(\.rawValue)
            draft.route.read = reader.choice(node, of: words).flatMap(ReadingPost.init)
        },
        "How long a response is fresh, in place of what the upstream says.":
            .duration("fresh", \.route.overrides.fresh, in: .zero ... .forever, isWhole: true, example: "5m"),
        "How long after that it is still served while a new one is fetched in the background.":
            .duration("stale", \.route.overrides.stale, in: .zero ... .forever, isWhole: true, example: "1d"),
        "never: nothing is stored. force: responses are stored and used even if the upstream forbids it.":
            .choice("cache", \.route.overrides.cache, example: "force"),
        "How long a response with 404, 405, 410, 414 or 501 is fresh, if it does not say so itself.":
            .duration("negative", \.route.overrides.negative, in: .zero ... .forever, isWhole: true, example: "30s"),
        "How the response's Vary is treated.": .section("vary", \.route.overrides.vary),
        "Which spellings of a URL share one stored response. The upstream gets the URL as the client wrote it.":
            .section("key", \.route.overrides.key),
    ])

    /// Reports keys that contradict `read`.
    private func checkRead(_ reader: inout ConfigReader) {
        guard route.read != nil, let place = places["read"] else { return }
        if route.declaration.method != "POST" {
            let method = route.declaration.method.map { "the rule to \($0)" } ?? "the rule to every method"
            reader.error(place, "\"read\" applies to POST, but \(method); write \"method: POST\", or remove \"read\"")
        }
        if let place = places["invalidates"] {
            reader.error(place, "\"read\" says that the request changes nothing; remove \"read\" or \"invalidates\"")
        }
        if route.overrides.cache == .never {
            reader.error(place, "\"cache: never\" stores nothing that could be read again; remove one of the two")
        }
        let isBeforeResponse = status.map { $0 == .any || $0 == .class(2) } ?? true
        if !isBeforeResponse || route.declaration.contentType != nil {
            let name = isBeforeResponse ? "content_type" : "status"
            reader.error(
                places[name],
                "\"read\" is looked at before there is a response; remove \"\(name)\", or write it into a rule of its own"
            )
        }
    }

    /// Reports caching keys that make others useless.
    func checkOverrides(_ reader: inout ConfigReader) {
        if route.overrides.cache == .never {
            if let place = places["fresh"] ?? places["stale"] ?? places["negative"] ?? places["patience"] {
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
                "\"cache: force\" alone keeps responses fresh for ever, so that they are never stale; add \"fresh\" with a duration"
            )
        }
        if let name = route.overrides.key.ignore.first(where: { route.declaration.query.keys.contains($0) }) {
            reader.error(
                places["key"],
                "\"key\" ignores the parameter \"\(name)\", but \"query\" demands it, so it makes a difference; remove it there"
            )
        }
        checkRead(&reader)
        let concernsCaching = ["fresh", "stale", "cache", "negative", "vary", "key", "patience"].first {
            places[$0] != nil
        }
        // "read: false" switches off a rule of an included config, whose other keys stay.
        if let name = concernsCaching, let method = route.declaration.method, !MethodFacts.isCacheable(method),
            places["read"] == nil
        {
            let remedy = method == "POST" ? ", or add \"read: true\" if it changes nothing" : ""
            reader.error(
                places[name],
                "\"\(name)\" applies to GET, but the rule to \(method); remove \"method\" or \"\(name)\"\(remedy)"
            )
        }
    }

    /// How long clients and Larder wait for the upstream, and how a replay finds recorded requests.
    static let waitingAndReplaying: [ConfigKey<RouteDraft>] = documented([
        "How long a client waits for the upstream before it gets a stale response, in place of the upstream's \"patience\".":
            .duration("patience", \.route.patience, in: .zero ... .forever, example: "500ms"),
        "The route's own limits, in place of the upstream's.": .section("timeouts", \.route.timeouts),
        "Which requests are the same to a replay. Default: method, path, query, body and representation count.":
            .section("match", \.route.match),
    ])
}

extension CacheOverrides.Vary: ConfigSection {
    static let keys: [ConfigKey<CacheOverrides.Vary>] = documented([
        "Request fields to ignore in Vary: they select no variant of the response.":
            .texts("ignore", \.ignore, example: "[User-Agent, Origin]", check: FieldName.complaint)
    ])
}

extension CacheOverrides.Key: ConfigSection {
    static let keys: [ConfigKey<CacheOverrides.Key>] = documented([
        "Whether the order of query parameters is ignored. Parameters with the same name keep theirs.":
            .boolean("sort", \.sort),
        "Query parameters that make no difference to the response; \"*\" stands for any text. They are still sent upstream.":
            .texts("ignore", \.ignore, example: "[\"utm_*\", fbclid]", check: ParameterName.complaint),
    ])
}
