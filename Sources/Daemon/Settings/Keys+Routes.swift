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
