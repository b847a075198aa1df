/// What a rule says of a body, compiled: where objects stand, and of which models.
///
/// A rule is like a keyless model of the body with a relation at its root, and one at the root of each of `also`.
struct BodyPlan {
    /// A place in the body.
    struct Target {
        var path: [PathStep]
        var model: Int
        var shape: BodyRule.Shape
        /// Whether this is the rule itself, whose object a route's captures are bound to.
        var isMain: Bool
    }

    /// The rule first, then those beside it that are declared and do not lie within one before them.
    private(set) var targets: [Target] = []
    /// Whether the outermost object counts as one of a declared model.
    let hasEnvelope: Bool

    /// Fails with what is wrong with the rule itself; a part of `also` that is wrong is left out.
    init(_ rule: BodyRule, models: Models) throws(MappingError) {
        hasEnvelope = rule.envelope != nil
        targets.append(try Self.target(rule, isMain: true, models: models))
        for part in rule.also {
            guard let target = try? Self.target(part, isMain: false, models: models),
                !targets.contains(where: { target.path.starts(with: $0.path) })
            else { continue }
            targets.append(target)
        }
    }

    private static func target(_ rule: BodyRule, isMain: Bool, models: Models) throws(MappingError) -> Target {
        guard let model = models.index(of: rule.model) else {
            throw .unknownModel(rule.model, property: "model", model: rule.model)
        }
        guard let path = rule.root.map(KeyPathSyntax.steps(of:)) ?? [] else {
            throw .invalidKeyPath(rule.root ?? "", usedBy: "root", model: rule.model)
        }
        return Target(path: path, model: model, shape: rule.shape, isMain: isMain)
    }
}
