import HTTPSemantics
import Yams

extension ConfigReference {
    /// The text of `config/larder.schema.json`, by which editors check and complete.
    static var schema: String {
        let schema = object(root)
        let head: [(name: String, value: JSONText)] = [
            ("$schema", .string("http://json-schema.org/draft-07/schema#")),
            ("title", .string("Larder configuration")),
        ]
        return JSONText.object(head + schema).prettyText + "\n"
    }

    private static func object(_ facts: [ConfigFacts]) -> [(name: String, value: JSONText)] {
        var members: [(name: String, value: JSONText)] = [
            ("type", .string("object")),
            ("additionalProperties", false),
        ]
        let required = facts.filter(\.isRequired).map { JSONText.string($0.name) }
        if !required.isEmpty { members.append(("required", .array(required))) }
        members.append(("properties", .object(facts.map { (name: $0.name, value: property($0)) })))
        return members
    }

    private static func property(_ fact: ConfigFacts) -> JSONText {
        var members: [(name: String, value: JSONText)] = [("description", .string(fact.text))]
        if let fallback = fact.fallback, let value = json(fallback) { members.append(("default", value)) }
        return .object(members + schema(of: fact.kind))
    }

    private static func schema(of kind: ConfigKind) -> [(name: String, value: JSONText)] {
        switch kind {
        case .text: [("type", .string("string"))]
        case .boolean: [("type", .string("boolean"))]
        case .integer(let range):
            [
                ("type", .string("integer")), ("minimum", .integer(range.lowerBound)),
                ("maximum", .integer(range.upperBound)),
            ]
        case .duration(_, let isWhole):
            measure("forever|([0-9]+(\(isWhole ? "" : "ms|")s|m|h|d|w))+", integer: ("maximum", 0))
        case .size(let range): measure(#"[0-9]+([KMGT]iB|[kMGT]?B)?"#, integer: ("minimum", .integer(range.lowerBound)))
        case .choice(let words): [("enum", .array(words.map { .string($0) }))]
        case .list(let element):
            [("anyOf", .array([.object(schema(of: element)), .object(schema(of: .strictList(element)))]))]
        case .strictList(let element): [("type", .string("array")), ("items", .object(schema(of: element)))]
        case .section(let facts): object(facts)
        case .named(let value, _):
            [("type", .string("object")), ("additionalProperties", .object(schema(of: value)))]
        case .anything: []
        case .either(let kinds): [("anyOf", .array(kinds.map { .object(schema(of: $0)) }))]
        }
    }

    /// A number with a unit, or an environment variable.
    private static func measure(_ pattern: String, integer bound: (name: String, value: JSONText)) -> [(
        name: String, value: JSONText
    )] {
        [
            ("type", .array([.string("string"), .string("integer")])),
            ("pattern", .string("^(\(pattern)|0|.*\\$\\{.*)$")),
            bound,
        ]
    }

    /// A default, written in YAML, as JSON.
    private static func json(_ yaml: String) -> JSONText? {
        guard let node = try? Yams.compose(yaml: yaml) else { return nil }
        return json(node)
    }

    private static func json(_ node: Node) -> JSONText? {
        switch node {
        case .sequence(let elements): .array(elements.compactMap(json))
        case .scalar(let scalar) where scalar.style == .plain:
            if let number = Int(scalar.string) {
                .integer(number)
            } else if let flag = Bool(scalar.string) {
                .bool(flag)
            } else {
                .string(scalar.string)
            }
        case .scalar(let scalar): .string(scalar.string)
        default: nil
        }
    }
}
