import HTTPSemantics
import Mapping
import Yams

/// Reads values from YAML nodes and collects the mistakes in them.
///
/// Nothing throws: an unreadable value leaves its default and a diagnostic, so that one run finds every mistake.
struct ConfigReader {
    let environment: [String: String]
    /// The files read; places refer to them.
    var sources = ConfigSources()
    var inclusion = Inclusion()
    /// Whether an included file could not be read, which may contain missing keys.
    var isIncomplete = false
    private var found: [(diagnostic: Diagnostic, place: Place?)] = []
    private var reported: Set<Diagnostic> = []
    /// The keys from the root to the current value.
    private(set) var path: [String] = []

    init(environment: [String: String]) { self.environment = environment }

    /// The diagnostics in the order of the files.
    var sorted: [Diagnostic] {
        found.enumerated().sorted {
            ($0.element.place ?? .start, $0.offset) < ($1.element.place ?? .start, $1.offset)
        }.map(\.element.diagnostic)
    }

    mutating func error(_ place: Place?, _ message: String) { say(.error, place, message) }

    mutating func warning(_ place: Place?, _ message: String) { say(.warning, place, message) }

    /// Reports a mistake that several upstreams may share, once.
    mutating func once(_ place: Place?, _ message: String, _ severity: Diagnostic.Severity = .error) {
        say(severity, place, message, isOnce: true)
    }

    private mutating func say(_ severity: Diagnostic.Severity, _ place: Place?, _ message: String, isOnce: Bool = false)
    {
        let (file, line) = sources.resolve(place)
        let diagnostic = Diagnostic(severity: severity, file: file, place: line, message: message)
        if reported.insert(diagnostic).inserted || !isOnce { found.append((diagnostic, place)) }
    }

    /// Reports an error whose message begins with the dotted path of the current value.
    mutating func errorAtPath(_ place: Place?, _ message: String) {
        error(place, path.isEmpty ? message : "\(path.joined(separator: ".")): \(message)")
    }

    /// The same for a reader that then has no value.
    mutating func failAtPath<Value>(_ place: Place?, _ message: String) -> Value? {
        errorAtPath(place, message)
        return nil
    }

    /// Reads the value under a key, so that messages contain the key.
    mutating func under<Result>(_ key: String, _ body: (inout ConfigReader) -> Result) -> Result {
        path.append(key)
        defer { path.removeLast() }
        return body(&self)
    }

    // MARK: Scalars

    /// The text of a scalar, with variables expanded; nil, with an error, if it is something else.
    mutating func text(_ node: Node, wanted: String) -> String? {
        guard case .scalar(let scalar) = node, !node.isNothing else { return failMisfit(node, wanted: wanted) }
        return expand(scalar.string, at: node.place)
    }

    /// True or false; the many other spellings of YAML 1.1 are refused.
    mutating func boolean(_ node: Node) -> Bool? {
        guard let text = text(node, wanted: "true or false") else { return nil }
        switch text {
        case "true": return true
        case "false": return false
        default:
            let meant = Suggestion.boolean(text).map { "; write \($0)" } ?? ""
            return failAtPath(node.place, "\"\(text)\" is neither true nor false\(meant)")
        }
    }

    mutating func integer(_ node: Node, in range: ClosedRange<Int>) -> Int? {
        let wanted = "a whole number from \(range.lowerBound) to \(range.upperBound)"
        guard let text = text(node, wanted: wanted) else { return nil }
        guard let number = Int(text), range.contains(number)
        else { return failAtPath(node.place, "\"\(text)\" is not \(wanted)") }
        return number
    }

    /// - Parameter isWhole: whether the key takes whole seconds, as HTTP does, so that fractions are refused.
    mutating func duration(_ node: Node, in range: ClosedRange<Duration>, isWhole: Bool = false) -> Duration? {
        let examples = isWhole ? "30s, 5m or 1d" : "500ms, 30s, 5m or 1d"
        let wanted = "a duration such as \(examples)"
        guard let value = measure(node, wanted: wanted, in: range, Units.duration, Units.text) else { return nil }
        let seconds = value.components
        guard isWhole, seconds.attoseconds != 0 else { return value }
        return failAtPath(
            node.place,
            "\(Units.text(value)) is not a whole number of seconds, which this key requires; write \(Units.text(.seconds(seconds.seconds + 1)))"
        )
    }

    mutating func size(_ node: Node, in range: ClosedRange<Int>) -> Int? {
        measure(node, wanted: "a size such as 512KiB, 64MiB or 1GiB", in: range, Units.size) { Units.text(size: $0) }
    }

    private mutating func measure<Value: Comparable>(
        _ node: Node,
        wanted: String,
        in range: ClosedRange<Value>,
        _ parse: (String) throws(InvalidValue) -> Value,
        _ print: (Value) -> String
    ) -> Value? {
        guard let text = text(node, wanted: wanted) else { return nil }
        do {
            let value = try parse(text)
            if range.contains(value) { return value }
            let bound =
                value < range.lowerBound
                ? "less than \(print(range.lowerBound)), the least" : "more than \(print(range.upperBound)), the most"
            errorAtPath(node.place, "\(text) is \(bound) allowed")
        } catch { errorAtPath(node.place, error.description) }
        return nil
    }

    mutating func choice(_ node: Node, of words: [String]) -> String? {
        let wanted = words.count == 1 ? "\"\(words[0])\"" : "one of \(words.joined(separator: ", "))"
        guard let text = text(node, wanted: wanted) else { return nil }
        guard words.contains(text) else {
            let meant = Suggestion.word(for: text, among: words).map { "; did you mean \"\($0)\"?" } ?? ""
            return failAtPath(node.place, "\"\(text)\" is not \(wanted)\(meant)")
        }
        return text
    }

    // MARK: Collections

    /// The elements of a list; a single value counts as a list of one.
    mutating func list(_ node: Node, wanted: String) -> [Node]? {
        switch node {
        case .sequence(let sequence): return Array(sequence)
        case .scalar where !node.isNothing: return [node]
        default: return failMisfit(node, wanted: wanted)
        }
    }

    mutating func texts(_ node: Node, wanted: String) -> [(text: String, place: Place?)]? {
        list(node, wanted: wanted)?.compactMap { item in text(item, wanted: "text").map { ($0, item.place) } }
    }

    /// The pairs of a mapping whose keys are plain text.
    mutating func pairs(_ node: Node, wanted: String) -> [(key: String, place: Place?, value: Node)]? {
        guard case .mapping(let mapping) = node else { return failMisfit(node, wanted: wanted) }
        return mapping.compactMap { key, value in
            guard case .scalar(let scalar) = key
            else { return failAtPath(key.place, "a key is plain text, this is \(key.kindInWords)") }
            return (scalar.string, key.place, value)
        }
    }

    /// Reports that a value is not of the wanted kind.
    mutating func misfit(_ node: Node, wanted: String) {
        if node.isNothing {
            let hint = line(node.place).contains("#") ? "; a \"#\" begins a comment, so quote a value that has one" : ""
            errorAtPath(node.place, "nothing was found here; write \(wanted)\(hint)")
        } else {
            let found = node.sequence?.isEmpty == true ? "an empty list" : node.kindInWords
            errorAtPath(node.place, "\(found) was found here; write \(wanted)")
        }
    }

    /// The same for a reader that then has no value.
    mutating func failMisfit<Value>(_ node: Node, wanted: String) -> Value? {
        misfit(node, wanted: wanted)
        return nil
    }

    func line(_ place: Place?) -> Substring { sources.line(place) }

    // MARK: Variables

    /// Expands environment variables in the form `${NAME}`; `$${` is a literal `${`.
    private mutating func expand(_ text: String, at place: Place?) -> String? {
        guard text.contains("${") else { return text }
        let literal = "a literal \"${\" is written \"$${\""
        var result = ""
        var rest = Substring(text)
        while let start = rest.firstRange(of: "${") {
            if rest[..<start.lowerBound].hasSuffix("$") {
                result += rest[..<start.lowerBound].dropLast() + "${"
                rest = rest[start.upperBound...]
                continue
            }
            result += rest[..<start.lowerBound]
            guard let end = rest[start.upperBound...].firstIndex(of: "}") else {
                return failAtPath(place, "\"\(text)\" has a \"${\" without its \"}\"; \(literal)")
            }
            let name = String(rest[start.upperBound..<end])
            guard let value = environment[name] else {
                return failAtPath(place, "the environment variable \(name) is not set; \(literal)")
            }
            result += value
            rest = rest[rest.index(after: end)...]
        }
        return result + rest
    }

    // MARK: JSON

    /// A YAML value as JSON: plain scalars that look like a number, true, false or null become that, all others text.
    mutating func json(_ node: Node) -> [UInt8]? {
        switch node {
        case .scalar(let scalar):
            if node.isNothing { return Array("null".utf8) }
            let isPlain = scalar.style == .plain || scalar.style == .any
            if isPlain, scalar.string == "true" || scalar.string == "false" || JSONBody.isNumber(scalar.string) {
                return Array(scalar.string.utf8)
            }
            return text(node, wanted: "a value").map { JSONText.string($0).bytes }
        case .sequence(let sequence):
            var parts: [[UInt8]] = []
            for element in sequence {
                guard let part = json(element) else { return nil }
                parts.append(part)
            }
            return Array("[".utf8) + parts.joined(separator: Array(",".utf8)) + Array("]".utf8)
        case .mapping:
            guard let pairs = pairs(node, wanted: "members") else { return nil }
            var parts: [[UInt8]] = []
            for (name, _, value) in pairs {
                guard let part = json(value) else { return nil }
                parts.append(JSONText.string(name).bytes + Array(":".utf8) + part)
            }
            return Array("{".utf8) + parts.joined(separator: Array(",".utf8)) + Array("}".utf8)
        case .alias: return failMisfit(node, wanted: "a value")
        }
    }

    /// Several values as JSON; a single one counts as a list of one.
    mutating func jsonList(_ node: Node) -> [[UInt8]]? {
        list(node, wanted: "a list of values")?.compactMap { json($0) }
    }

    /// The values of a mapping with only these keys; nil, with an error, if it is no mapping or has other keys.
    mutating func mapping(_ node: Node, keys: [String], wanted: String) -> [String: Node]? {
        guard let pairs = pairs(node, wanted: wanted) else { return nil }
        var values: [String: Node] = [:]
        for (name, place, value) in pairs {
            guard keys.contains(name) else {
                unknown(name, at: place, among: keys)
                continue
            }
            values[name] = value
        }
        return values
    }
}

extension Place {
    init(_ mark: Mark) { self.init(line: mark.line, column: mark.column) }
}

extension Node {
    /// Its position in the sources.
    var place: Place? { mark.map { Place($0) } }

    /// Whether it is an empty value or a null.
    var isNothing: Bool {
        guard case .scalar(let scalar) = self, scalar.style == .plain || scalar.style == .any else { return false }
        return ["", "~", "null", "Null", "NULL"].contains(scalar.string)
    }

    var kindInWords: String {
        switch self {
        case .scalar(let scalar): isNothing ? "nothing" : "\"\(scalar.string)\""
        case .mapping: "a mapping"
        case .sequence: "a list"
        case .alias: "an alias"
        }
    }
}
