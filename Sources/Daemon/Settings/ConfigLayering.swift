import Yams

/// How what stands in a file meets what stands at the same place of the files it includes.
indirect enum ConfigLayering: Sendable {
    /// The including file's value takes the other's place.
    case value
    /// Member by member: those named each in its own way, all others in one.
    case members([String: ConfigLayering], others: ConfigLayering = .value)
    /// Rule by rule, and there key by key. Two rules are the same when they are about the same answers.
    case rules
    /// Words with a sign change what the other says; all else takes its place.
    case changes

    /// The whole file.
    static let file = ConfigLayering.members(
        mapping.merging([
            "upstreams": .members(
                [:],
                others: .members(mapping.merging(["principal": .changes]) { first, _ in first })
            ),
            "store": .members([:]), "memory": .members([:]), "limits": .members([:]), "timeouts": .members([:]),
            "log": .members([:]),
        ]) { first, _ in first }
    )

    /// The keys that may stand at the top or under an upstream.
    static let mapping: [String: ConfigLayering] = [
        "models": .members([:], others: .members(["properties": .members([:])])),
        "routes": .rules, "errors": .rules,
    ]

    /// Lays `upper` over `lower`.
    ///
    /// - Parameter removes: Whether a member of `upper` without a value takes the other's away. Not so at the top,
    ///   where an emptied section is likelier a slip.
    func lay(_ upper: Node, over lower: Node?, removes: Bool = false) -> Node {
        switch self {
        case .value: upper
        case .members(let named, let others): Self.lay(upper, over: lower, named, others, removes: removes)
        case .rules: Self.layRules(upper, over: lower)
        case .changes: Self.layChanges(upper, over: lower)
        }
    }

    private static func layChanges(_ upper: Node, over lower: Node?) -> Node {
        guard case .sequence(let words) = upper.asList, case .sequence(let base)? = lower?.asList, !words.isEmpty,
            words.allSatisfy({ ["+", "-"].contains($0.scalar?.string.first) })
        else { return upper }
        return .sequence(Node.Sequence(Array(base) + Array(words), words.tag, words.style, words.mark))
    }

    private static func lay(
        _ upper: Node,
        over lower: Node?,
        _ named: [String: ConfigLayering],
        _ others: ConfigLayering,
        removes: Bool
    ) -> Node {
        guard case .mapping(var result) = upper else { return upper }
        let base = lower?.mapping ?? Node.Mapping([])
        // Nil: taken away.
        var pairs: [(Node, Node)?] = base.map { ($0.key, $0.value) }
        var places = Dictionary(base.enumerated().map { ($1.key, $0) }) { first, _ in first }
        for (key, value) in result {
            let index = places[key]
            if removes, value.isNothing {
                if let index { pairs[index] = nil }
                places[key] = nil
                continue
            }
            let layering = key.scalar.flatMap { named[$0.string] } ?? others
            let laid = layering.lay(value, over: index.flatMap { pairs[$0]?.1 }, removes: true)
            // The key's own place is where the person who reads a message has to look.
            if let index {
                pairs[index] = (key, laid)
            } else {
                places[key] = pairs.count
                pairs.append((key, laid))
            }
        }
        result = Node.Mapping(pairs.compactMap(\.self), result.tag, result.style, result.mark ?? base.mark)
        return .mapping(result)
    }

    private static func layRules(_ upper: Node, over lower: Node?) -> Node {
        guard case .sequence(let rules) = upper, case .sequence(let base)? = lower else { return upper }
        var result = Array(base)
        var places: [RuleKey: Int] = [:]
        for (index, rule) in base.enumerated() {
            if let key = RuleKey(rule), places[key] == nil { places[key] = index }
        }
        for rule in rules {
            let key = RuleKey(rule)
            if let key, let index = places[key] {
                var laid = Self.members([:]).lay(rule, over: result[index], removes: true)
                // What the other binds to its captures still has to find them.
                if let path = rule["path"]?.scalar?.string, !path.contains("{") {
                    laid["path"] = result[index]["path"]
                }
                result[index] = laid
            } else {
                if let key { places[key] = result.count }
                result.append(rule)
            }
        }
        return .sequence(Node.Sequence(result, rules.tag, rules.style, rules.mark))
    }
}

extension Node {
    /// A single value as a list of one.
    fileprivate var asList: Node {
        guard case .scalar = self else { return self }
        return .sequence(Node.Sequence([self], Tag(.implicit), .flow, mark))
    }
}

/// Which answers a rule speaks of; captures' names make no difference.
private struct RuleKey: Hashable {
    private let path: [String]
    private let demands: [Node?]

    init?(_ rule: Node) {
        guard let rule = rule.mapping, let path = rule["path"]?.scalar?.string else { return nil }
        // A slash at the beginning or the end makes no difference either.
        self.path = path.split(separator: "/").map { component in
            guard component.hasPrefix("{"), component.hasSuffix("}") else { return String(component) }
            return component.hasSuffix(":#}") ? "#" : "*"
        }
        demands = ["method", "status", "query", "content_type"].map { rule[$0] }
    }
}
