import HTTPSemantics
import Yams

@testable import Settings

extension ConfigReference {
    /// The text of `config/larder.yaml`: every key, documented, at its default, commented out.
    ///
    /// Lines that begin with `# ` are text. Removing the `#` from all others gives a config with every key in it; lines that end
    /// in the word example have no default.
    static var sample: String {
        var lines = header
        for fact in root {
            lines.append("")
            lines += entry(fact, indentation: "").map { $0.hasPrefix("# ") ? $0 : "#" + $0 }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Ends the lines of keys shown with an example, because their default is to be absent.
    static let exampleMark = "  # example"

    private static let header = [
        "# yaml-language-server: $schema=larder.schema.json",
        "#",
        "# The configuration of Larder. Every key is listed with its default, commented out: remove",
        "# the # before what you want to change. A line that ends in \"example\" has no default value,",
        "# unless its text names one; the value shown is only an example.",
        "#",
        "# Durations are written 500ms, 30s, 5m, 1h30m, 1d, forever; sizes 512KiB, 64MiB, 1GiB",
        "# (powers of 1024) or 1MB (powers of 1000). \"${NAME}\" is the environment variable NAME,",
        "# \"$${\" a literal \"${\". A list of one value may be written without brackets.",
        "# Flags on the command line override this file, and this file overrides the defaults.",
        "#",
        "# `larder check --config FILE` names every mistake with its line, and what to write instead.",
    ]

    /// A key with its documentation above it and its content below it.
    private static func entry(_ fact: ConfigFacts, indentation: String, isExample: Bool = false) -> [String] {
        let prose = wrapped(fact.documentation + range(of: fact.kind), width: 96 - indentation.count).map {
            "\(indentation)# \($0)"
        }
        let isExample = !isExample && fact.fallback == nil && !fact.isRequired
        let mark = isExample && fact.name != "upstreams" && !fact.isPlainSection ? exampleMark : ""
        return prose + longForm(of: fact.kind, indentation: indentation)
            + value(fact, indentation: indentation, mark: mark)
    }

    /// The keys that each of several names may have in place of a short value, as a comment.
    private static func longForm(of kind: ConfigKind, indentation: String) -> [String] {
        guard case .named(.either(let kinds), _) = kind, case .section(let facts)? = kinds.last else { return [] }
        let blank = "\(indentation)#"
        let keys = facts.flatMap { entry($0, indentation: "\(blank)   ") }
        return ["\(blank) Keys of the long form:", blank] + keys + [blank]
    }

    private static func value(_ fact: ConfigFacts, indentation: String, mark: String) -> [String] {
        let key = "\(indentation)\(fact.name):"
        if let fallback = fact.fallback, fact.sample.isEmpty { return ["\(key) \(fallback)\(mark)"] }
        if let example = fact.example, fact.sample.isEmpty { return ["\(key) \(example)\(mark)"] }
        let inner = indentation + "  "
        var lines = [key + mark]
        switch fact.kind {
        case .section(let facts): lines += facts.flatMap { entry($0, indentation: inner) }
        case .named(.section(let facts), let name):
            lines.append("\(inner)\(name):")
            lines += facts.flatMap { entry($0, indentation: inner + "  ") }
        case .strictList(.section(let facts)):
            lines.append("\(inner)-")
            lines += facts.flatMap { entry($0, indentation: inner + "  ") }
        default: break
        }
        return lines + fact.sample.map { inner + $0 }
    }

    /// The bounds of a number, as text.
    private static func range(of kind: ConfigKind) -> String {
        if case .integer(let range) = kind { " From \(range.lowerBound) to \(range.upperBound)." } else { "" }
    }

    /// The text wrapped at spaces.
    static func wrapped(_ text: String, width: Int) -> [String] {
        var lines: [String] = []
        for word in text.split(separator: " ") {
            if let last = lines.last, last.count + 1 + word.count <= width {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines
    }
}

extension ConfigFacts {
    /// Whether it is a section whose own keys have defaults.
    fileprivate var isPlainSection: Bool {
        guard case .section(let facts) = kind else { return false }
        return !facts.contains(where: \.isRequired) && facts.contains { $0.fallback != nil }
    }
}

extension ConfigReference {
    /// The text of `config/larder.schema.json`, with which editors check and complete configs.
    static var schema: String {
        let head: [(name: String, value: JSONText)] = [
            ("$schema", "http://json-schema.org/draft-07/schema#"), ("title", "Larder configuration"),
        ]
        return JSONText.object(head + object(root)).prettyText + "\n"
    }

    private static func object(_ facts: [ConfigFacts]) -> [(name: String, value: JSONText)] {
        var members: [(name: String, value: JSONText)] = [("type", .string("object")), ("additionalProperties", false)]
        let required = facts.filter { $0.isRequired && $0.alternative == nil }.map { JSONText.string($0.name) }
        if !required.isEmpty { members.append(("required", .array(required))) }
        for fact in facts {
            guard let alternative = fact.alternative else { continue }
            let choices = [fact.name, alternative].map { JSONText.object([("required", .array([.string($0)]))]) }
            members.append(("oneOf", .array(choices)))
        }
        members.append(("properties", .object(facts.map { (name: $0.name, value: property($0)) })))
        return members
    }

    private static func property(_ fact: ConfigFacts) -> JSONText {
        var members: [(name: String, value: JSONText)] = [("description", .string(fact.documentation))]
        if let fallback = fact.fallback, let value = json(fallback) { members.append(("default", value)) }
        return .object(members + schema(of: fact.kind))
    }

    private static func schema(of kind: ConfigKind) -> [(name: String, value: JSONText)] {
        switch kind {
        case .text: [("type", .string("string"))]
        case .boolean: [("type", .string("boolean"))]
        case .integer(let range):
            [("type", "integer"), ("minimum", .integer(range.lowerBound)), ("maximum", .integer(range.upperBound))]
        case .duration(_, let isWhole):
            measure("forever|([0-9]+(\(isWhole ? "" : "ms|")s|m|h|d|w))+", integer: ("maximum", 0))
        case .size(let range):
            // A small number without a unit is refused, except 0 where it is allowed. As text it is left to the parser.
            measure(
                "[0-9]+([KMGT]iB|[kMGT]?B)|[0-9]{4,}",
                integer: ("minimum", .integer(range.lowerBound == 0 ? 0 : max(range.lowerBound, Units.leastPlainSize)))
            )
                + (range.lowerBound == 0
                    ? [("not", ["type": "integer", "minimum": 1, "maximum": .integer(Units.leastPlainSize - 1)])] : [])
        case .choice(let words): [("enum", .array(words.map { .string($0) }))]
        case .list(let element):
            [("anyOf", .array([.object(schema(of: element)), .object(schema(of: .strictList(element)))]))]
        case .strictList(let element): [("type", .string("array")), ("items", .object(schema(of: element)))]
        case .section(let facts): object(facts)
        case .named(let value, _): [("type", "object"), ("additionalProperties", .object(schema(of: value)))]
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

    /// A default in YAML, as JSON.
    private static func json(_ yaml: String) -> JSONText? { (try? Yams.compose(yaml: yaml)).flatMap(json) }

    private static func json(_ node: Node) -> JSONText? {
        switch node {
        case .sequence(let elements): .array(elements.compactMap(json))
        case .scalar(let scalar):
            if scalar.style == .plain, let number = Int(scalar.string) {
                .integer(number)
            } else if scalar.style == .plain, let flag = Bool(scalar.string) {
                .bool(flag)
            } else {
                .string(scalar.string)
            }
        default: nil
        }
    }
}
