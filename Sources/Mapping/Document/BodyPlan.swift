/// A compiled `BodyRule`: the places of objects in a body and their models.
///
/// A rule is like a keyless model of the body, with a relation at its `root` and one at the root of each part of
/// `also`.
struct BodyPlan {
    struct Content {
        var model: Int
        var arity: Arity
        /// The path to the place; empty for the body itself.
        var path: [PathStep]
        var root: String
        /// The member name under which the mapped view shows it beside others: the last name of its path, or the whole
        /// path if two are the same.
        var name: String
        /// Whether this is the rule itself, to whose object the route's captures are bound.
        var isMain = false
        /// Whether the place is unique: the path does not lead over the elements of a list.
        var isSingle: Bool { !path.contains(.elements) }
    }

    private(set) var main: Content
    /// The other places (`also`), except invalid ones; of two that are the same, the first counts.
    private(set) var others: [Content] = []
    let envelope: Int?

    /// The places that objects are taken from: those within another one belong to the object there.
    var targets: [Content] {
        others.reduce(into: [main]) { targets, other in
            if !targets.contains(where: { other.path.starts(with: $0.path) }) { targets.append(other) }
        }
    }

    /// Throws the mistake in the rule itself.
    init(_ rule: BodyRule, _ models: Models) throws(MappingWarning) {
        main = try Content(rule, models)
        main.isMain = true
        envelope = try rule.envelope.map { (name) throws(MappingWarning) in
            guard let envelope = models.index(of: name) else { throw .unknownModel(name) }
            return envelope
        }
        for part in rule.also {
            guard let other = try? Content(part, models), !([main] + others).contains(where: { $0.path == other.path })
            else { continue }
            others.append(other)
        }
        distinguishNames()
    }

    /// Renames contents with equal names to their whole key paths, as the rule spells them.
    private mutating func distinguishNames() {
        var isChanged = true
        // A whole path such as `a\.b` may equal the last name of another one, which must then be renamed too.
        while isChanged {
            isChanged = false
            var times: [[UInt8]: Int] = [:]
            for content in [main] + others { times[Array(content.name.utf8), default: 0] += 1 }
            func widen(_ content: inout Content) {
                guard content.name != content.root, times[Array(content.name.utf8), default: 0] > 1 else { return }
                content.name = content.root
                isChanged = true
            }
            widen(&main)
            for index in others.indices { widen(&others[index]) }
        }
    }
}

extension BodyPlan.Content {
    init(_ rule: BodyRule, _ models: Models) throws(MappingWarning) {
        guard let model = models.index(of: rule.model) else { throw .unknownModel(rule.model) }
        guard let path = rule.root.map(KeyPathSyntax.steps(of:)) ?? [] else {
            throw MappingWarning(.envelopeMissing, "The envelope's key path is invalid.", model: rule.model)
        }
        self.init(
            model: model,
            arity: rule.arity,
            path: path,
            root: rule.root ?? "",
            name: path.leadingNames.last ?? ""
        )
    }
}
