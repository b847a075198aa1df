import HTTPSemantics
import Yams

/// A part of the config with keys of its own.
///
/// A fresh value holds the defaults, so they are not stated again.
protocol ConfigSection: SendableMetatype {
    init()
    /// Every key, in the order in which the reference shows them.
    static var keys: [ConfigKey<Self>] { get }
}

extension ConfigSection {
    /// Keys, each after the sentences that document it.
    static func documented(_ keys: KeyValuePairs<String, ConfigKey<Self>>) -> [ConfigKey<Self>] {
        ConfigKey.documented(keys)
    }
}

extension ConfigKey: Documented {
    var sentence: String {
        get { facts.text }
        set { facts.text = newValue }
    }
}

/// A part of what users see a reference of, such as a config key or a metric.
package protocol Documented {
    var sentence: String { get set }
}

extension Documented {
    /// Parts, each written after the sentence that documents it.
    package static func documented(_ parts: KeyValuePairs<String, Self>) -> [Self] {
        parts.map { sentence, part in
            var part = part
            part.sentence = sentence
            return part
        }
    }
}

/// One key of a section: the single definition of its name, its values, its meaning and its destination.
///
/// The parser, the sample file (`config/larder.yaml`) and the JSON Schema are made from it.
struct ConfigKey<Section>: Sendable {
    /// Where in the section a value goes.
    typealias Path<Value> = any WritableKeyPath<Section, Value> & Sendable

    var facts: ConfigFacts
    let read: @Sendable (Node, inout Section, inout ConfigReader) -> Void
    /// Finds out what differs between two sections, and sets back what only a restart changes; see `ConfigChange`.
    var compare: ConfigComparison<Section>

    init(
        _ name: String,
        _ kind: ConfigKind,
        fallback: String? = nil,
        example: String? = nil,
        isRequired: Bool = false,
        orElse alternative: String? = nil,
        sample: [String] = [],
        comparing compare: @escaping ConfigComparison<Section> = { _, _ in [] },
        read: @escaping @Sendable (Node, inout Section, inout ConfigReader) -> Void
    ) {
        facts = ConfigFacts(name: name, kind: kind, fallback: fallback, example: example, sample: sample)
        (facts.isRequired, facts.alternative) = (isRequired, alternative)
        (self.compare, self.read) = (compare, read)
    }
}

/// The facts about a key besides its parser.
struct ConfigFacts: Sendable {
    var name: String
    var kind: ConfigKind
    /// The default as it would be written; nil if an absent key means something that cannot be written.
    var fallback: String?
    /// An example, shown if there is no default.
    var example: String?
    var isRequired = false
    /// A key that may be there in its place, if it is required.
    var alternative: String?
    /// Whether its value is read when Larder starts, and not at a reload.
    var needsRestart = false
    /// Sample lines under the key, after those for its kind.
    var sample: [String] = []
    var text = ""

    var documentation: String { needsRestart ? text + " A change takes effect at a restart." : text }
}

indirect enum ConfigKind: Sendable {
    case text
    case boolean
    case integer(ClosedRange<Int>)
    case duration(ClosedRange<Duration>, isWhole: Bool = false)
    case size(ClosedRange<Int>)
    case choice([String])
    /// A list; a single value counts as a list of one.
    case list(ConfigKind)
    case strictList(ConfigKind)
    case section([ConfigFacts])
    /// Names chosen by the author, each with the same kind of value.
    case named(ConfigKind, name: String)
    case either([ConfigKind])
    /// Any YAML value; the parser decides.
    case anything
}

extension ConfigKey where Section: ConfigSection {
    /// A value that `read` makes; it returns nil where it has reported a mistake.
    static func value<Value: Equatable & SendableMetatype>(
        _ name: String,
        _ kind: ConfigKind,
        _ path: Path<Value>,
        fallback: String? = nil,
        example: String? = nil,
        isRequired: Bool = false,
        read: @escaping @Sendable (Node, inout ConfigReader) -> Value?
    ) -> ConfigKey {
        ConfigKey(
            name,
            kind,
            fallback: fallback,
            example: example,
            isRequired: isRequired,
            comparing: ConfigChange.comparison(of: path, kind)
        ) { node, section, reader in
            if let value = read(node, &reader) { section[keyPath: path] = value }
        }
    }

    static func text(
        _ name: String,
        _ path: Path<String?>,
        example: String,
        isRequired: Bool = false,
        wanted: String = "text"
    ) -> ConfigKey {
        value(name, .text, path, example: example, isRequired: isRequired) { $1.text($0, wanted: wanted) }
    }

    /// A text with a syntax of its own; the message that `take` throws is reported at its place.
    static func parsed(
        _ name: String,
        _ kind: ConfigKind = .text,
        wanted: String,
        fallback: String? = nil,
        example: String? = nil,
        isRequired: Bool = false,
        comparing compare: @escaping ConfigComparison<Section> = { _, _ in [] },
        take: @escaping @Sendable (String, inout Section) throws -> Void
    ) -> ConfigKey {
        ConfigKey(
            name,
            kind,
            fallback: fallback,
            example: example,
            isRequired: isRequired,
            comparing: compare
        ) { node, section, reader in
            guard let text = reader.text(node, wanted: wanted) else { return }
            do { try take(text, &section) } catch { reader.errorAtPath(node.place, "\(error)") }
        }
    }

    static func file(_ name: String, _ path: Path<String?>, example: String) -> ConfigKey {
        value(name, .text, path, example: example) { node, reader in
            let value = reader.text(node, wanted: "a path")
            if let value, value.hasPrefix("~") {
                reader.errorAtPath(
                    node.place,
                    "\"~\" is not expanded here; write \"${HOME}\(value.hasPrefix("~/") ? value.dropFirst() : "/…")\""
                )
            }
            return value
        }
    }

    static func boolean(_ name: String, _ path: Path<Bool>) -> ConfigKey {
        value(name, .boolean, path, fallback: "\(Section()[keyPath: path])") { $1.boolean($0) }
    }

    static func integer(_ name: String, _ path: Path<Int>, in range: ClosedRange<Int>) -> ConfigKey {
        value(name, .integer(range), path, fallback: "\(Section()[keyPath: path])") { $1.integer($0, in: range) }
    }

    static func duration(_ name: String, _ path: Path<Duration>, in range: ClosedRange<Duration>, isWhole: Bool = false)
        -> ConfigKey
    {
        let fallback = Units.text(Section()[keyPath: path])
        return value(name, .duration(range, isWhole: isWhole), path, fallback: fallback) {
            $1.duration($0, in: range, isWhole: isWhole)
        }
    }

    /// A duration that may be absent.
    static func duration(
        _ name: String,
        _ path: Path<Duration?>,
        in range: ClosedRange<Duration>,
        isWhole: Bool = false,
        example: String? = nil
    ) -> ConfigKey {
        let fallback = Section()[keyPath: path].map(Units.text)
        return value(name, .duration(range, isWhole: isWhole), path, fallback: fallback, example: example) {
            $1.duration($0, in: range, isWhole: isWhole).map(Optional.some)
        }
    }

    static func size(_ name: String, _ path: Path<Int>, in range: ClosedRange<Int>) -> ConfigKey {
        value(name, .size(range), path, fallback: Units.text(size: Section()[keyPath: path])) { $1.size($0, in: range) }
    }

    static func choice<Value: RawRepresentable<String> & CaseIterable & Equatable & Sendable>(
        _ name: String,
        _ path: Path<Value>
    ) -> ConfigKey {
        let words = Value.allCases.map(\.rawValue)
        return value(name, .choice(words), path, fallback: Section()[keyPath: path].rawValue) {
            $1.choice($0, of: words).flatMap(Value.init)
        }
    }

    /// A flag, written as one of two words.
    static func choice(_ name: String, _ path: Path<Bool>, no: String, yes: String) -> ConfigKey {
        let fallback = Section()[keyPath: path] ? yes : no
        return value(name, .choice([no, yes]), path, fallback: fallback) { node, reader in
            reader.choice(node, of: [no, yes]).map { $0 == yes }
        }
    }

    /// One of a few words; nil by default.
    static func choice<Value: RawRepresentable<String> & CaseIterable & Equatable & Sendable>(
        _ name: String,
        _ path: Path<Value?>,
        fallback: String? = nil,
        example: String? = nil
    ) -> ConfigKey {
        let words = Value.allCases.map(\.rawValue)
        return value(name, .choice(words), path, fallback: fallback, example: example) {
            $1.choice($0, of: words).flatMap(Value.init)
        }
    }

    /// A list of texts, each of which `check` may refuse with a message, and `checkAll` all together.
    static func texts(
        _ name: String,
        _ path: Path<[String]>,
        example: String? = nil,
        check: @escaping @Sendable (String) -> String? = { _ in nil },
        checkAll: @escaping @Sendable ([String]) -> String? = { _ in nil }
    ) -> ConfigKey {
        let fallback = ConfigText.list(Section()[keyPath: path])
        return value(name, .list(.text), path, fallback: fallback, example: example) { node, reader in
            let texts = reader.checkedTexts(node, check)
            guard let complaint = texts.flatMap(checkAll) else { return texts }
            return reader.failAtPath(node.place, complaint)
        }
    }

    /// A section within the section; two may share a value, each with keys of its own.
    static func section<Inner: ConfigSection>(
        _ name: String,
        _ path: Path<Inner>,
        keys: [ConfigKey<Inner>] = Inner.keys
    ) -> ConfigKey {
        ConfigKey(name, .section(keys.map(\.facts)), comparing: ConfigChange.comparison(of: path, by: keys)) {
            (node, section, reader) in
            reader.section(node, into: &section[keyPath: path], keys: keys)
        }
    }

    /// A section that has a short form: the value of one of its keys, whose default and example are also its own.
    static func section<Inner: ConfigSection>(_ name: String, _ path: Path<Inner>, orValueOf short: String) -> Self {
        guard let key = Inner.keys.first(where: { $0.facts.name == short }) else {
            preconditionFailure("\(name) has no key \(short)")
        }
        let (facts, kind) = (key.facts, ConfigKind.either([key.facts.kind, .section(Inner.keys.map(\.facts))]))
        return ConfigKey(
            name,
            kind,
            fallback: facts.fallback,
            example: facts.example,
            comparing: ConfigChange.comparison(of: path, by: Inner.keys)
        ) { node, section, reader in
            if node.mapping == nil {
                key.read(node, &section[keyPath: path], &reader)
            } else {
                reader.section(node, into: &section[keyPath: path])
            }
        }
    }
}

extension ConfigReader {
    /// Reads the keys of a mapping into a section; returns the place of each value found.
    @discardableResult
    mutating func section<Section: ConfigSection>(
        _ node: Node,
        into section: inout Section,
        keys: [ConfigKey<Section>] = Section.keys
    ) -> [String: Place] {
        var places: [String: Place] = [:]
        let examples = keys.prefix(3).map(\.facts.name).joined(separator: ", ")
        guard let pairs = pairs(node, wanted: "keys with values, such as \(examples)") else { return places }
        for (name, place, value) in pairs {
            guard let key = keys.first(where: { $0.facts.name == name }) else {
                unknown(name, at: place, among: keys.map(\.facts.name))
                continue
            }
            places[name] = value.place
            under(name) { key.read(value, &section, &$0) }
        }
        for key in keys
        where key.facts.isRequired && !isIncomplete
            && !pairs.contains(where: { [key.facts.name, key.facts.alternative].contains($0.key) })
        {
            let example = key.facts.example.map { ", for example `\(key.facts.name): \($0)`" } ?? ""
            let other = key.facts.alternative.map { ", or \"\($0)\" in its place" } ?? ""
            errorAtPath(node.place, "\"\(key.facts.name)\" is missing; add it\(example)\(other)")
        }
        return places
    }

    mutating func unknown(_ name: String, at place: Place?, among known: [String]) {
        if name == "<<" {
            errorAtPath(place, "merge keys are not read; write the keys out, use \"base\" for models, or \"include\"")
        } else if let meant = Suggestion.nearest(to: name, among: known) {
            errorAtPath(place, "unknown key \"\(name)\"; did you mean \"\(meant)\"?")
        } else if let home = ConfigReference.home(of: name) {
            errorAtPath(place, "unknown key \"\(name)\" here; it belongs \(home)")
        } else {
            errorAtPath(place, "unknown key \"\(name)\"; expected: \(known.joined(separator: ", "))")
        }
    }

    mutating func checkedTexts(_ node: Node, _ check: (String) -> String?) -> [String]? {
        guard let values = texts(node, wanted: "a list") else { return nil }
        for (text, place) in values {
            if let complaint = check(text) { errorAtPath(place, "\"\(text)\" \(complaint)") }
        }
        return values.map(\.text)
    }
}

/// All keys, as a tree; the tests write `config/larder.yaml` and its schema from it.
enum ConfigReference {
    static var root: [ConfigFacts] { ConfigDraft.keys.map(\.facts) }

    /// Where a key belongs, such as `under "store"` or `at the top of the file`; nil if nowhere or in several places.
    static func home(of name: String) -> String? {
        // A key both at the top and under an upstream is described at the top only.
        let homes = Set(
            sections(root, at: []).filter { $0.facts.contains { $0.name == name } }
                .map {
                    $0.path.starts(with: ["upstreams", "NAME"]) && $0.path.count > 2 && $0.path[2] != "credential"
                        ? Array($0.path.dropFirst(2)) : $0.path
                }
        )
        let top = "at the top of the file"
        // A section may occur again further down, such as the timeouts of a route.
        let outermost = homes.filter { home in !homes.contains { $0.count < home.count && $0.last == home.last } }
        guard outermost.count == 1, let home = outermost.first else { return homes.contains([]) ? top : nil }
        return home.isEmpty ? top : "under \"\(home.joined(separator: "."))\""
    }

    private static func sections(_ facts: [ConfigFacts], at path: [String]) -> [(path: [String], facts: [ConfigFacts])]
    { [(path, facts)] + facts.flatMap { inner($0.kind, at: path + [$0.name]) } }

    private static func inner(_ kind: ConfigKind, at path: [String]) -> [(path: [String], facts: [ConfigFacts])] {
        switch kind {
        case .section(let facts): sections(facts, at: path)
        case .named(let kind, _): inner(kind, at: path + ["NAME"])
        case .list(let kind), .strictList(let kind): inner(kind, at: path)
        case .either(let kinds): kinds.flatMap { inner($0, at: path) }
        default: []
        }
    }
}

/// Values in YAML syntax.
enum ConfigText {
    /// A text, quoted if it would otherwise be read as something else.
    static func scalar(_ text: String) -> String {
        let isPlain = !text.isEmpty && text.utf8.isAlphanumeric(or: "-_./:")
        return isPlain && !text.hasPrefix("-") && !text.hasSuffix(":") ? text : "\"\(text)\""
    }

    static func list(_ texts: [String]) -> String { "[\(texts.map(scalar).joined(separator: ", "))]" }
}
