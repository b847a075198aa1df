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
        var isMain: Bool
        /// Whether the place is unique: the path does not lead over the elements of a list.
        var isSingle: Bool { !path.contains(.elements) }

        init(_ rule: BodyRule, _ models: Models, isMain: Bool = false) throws(MappingWarning) {
            guard let model = models.index(of: rule.model) else { throw .unknownModel(rule.model) }
            guard let path = rule.root.map(KeyPathSyntax.steps(of:)) ?? [] else {
                throw MappingWarning(.envelopeMissing, "The envelope's key path is invalid.", model: rule.model)
            }
            (self.model, self.path, self.isMain) = (model, path, isMain)
            (arity, root, name) = (rule.arity, rule.root ?? "", path.leadingNames.last ?? "")
        }
    }

    /// The rule itself and its other places (`also`), except invalid ones; of two that are the same, the first counts.
    private var contents: [Content]
    let envelope: Int?
    /// The places that objects are taken from: those within another one belong to the object there.
    let targets: [Content]

    /// Whether the objects are below the body's own members.
    var isEnveloped: Bool { envelope != nil && targets.allSatisfy { !$0.path.isEmpty } }
    var main: Content { contents[0] }
    var others: ArraySlice<Content> { contents[1...] }

    /// Throws the mistake in the rule itself.
    init(_ rule: BodyRule, _ models: Models) throws(MappingWarning) {
        contents = [try Content(rule, models, isMain: true)]
        envelope = rule.envelope.flatMap(models.index)
        if let name = rule.envelope, envelope == nil { throw .unknownModel(name) }
        for part in rule.also {
            guard let other = try? Content(part, models), !contents.contains(where: { $0.path == other.path }) else {
                continue
            }
            contents.append(other)
        }
        targets = contents.reduce(into: []) { targets, content in
            if !targets.contains(where: { content.path.starts(with: $0.path) }) { targets.append(content) }
        }
        distinguishNames()
    }

    /// Renames contents with equal names to their whole key paths, as the rule spells them.
    private mutating func distinguishNames() {
        var ambiguous: [Int]
        // A whole path such as `a\.b` may equal the last name of another one, which must then be renamed too.
        repeat {
            ambiguous = contents.indices.filter { index in
                let content = contents[index]
                return content.name != content.root
                    && contents.count { $0.name.utf8.elementsEqual(content.name.utf8) } > 1
            }
            for index in ambiguous { contents[index].name = contents[index].root }
        } while !ambiguous.isEmpty
    }
}
