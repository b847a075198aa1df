/// What a route says of a body: which objects it holds and where.
public struct BodyRule: Sendable, Equatable {
    /// How objects lie at a place.
    public enum Shape: Sendable, Equatable {
        /// One object.
        case one
        /// An array of objects.
        case many
        /// An object whose members are the objects; their names are available as `@key`.
        case keyed
    }

    /// The model of the object, or of each of several.
    public var model: String
    /// Whether there is one object or several.
    public private(set) var shape: Shape
    /// The key path of the envelope's content; nil: the body itself.
    ///
    /// It leads to a list, not to its elements: `items[]` is taken as `items`, of several objects.
    public private(set) var root: String?
    /// The model of the envelope's own members, such as the total count of a page; only the mapped view shows it.
    public var envelope: String?
    /// Further objects in the same body, each at a `root` of its own.
    public var also: [BodyRule]

    /// Whether the body, or what the envelope holds, is a list.
    public var isList: Bool { shape != .one }

    /// Describes a body.
    public init(
        model: String,
        shape: Shape,
        root: String? = nil,
        envelope: String? = nil,
        also: [BodyRule] = []
    ) {
        self.model = model
        if shape != .keyed, let root, let list = KeyPathSyntax.list(ofElements: root) {
            (self.shape, self.root) = (.many, list)
        } else {
            (self.shape, self.root) = (shape, root)
        }
        self.envelope = envelope
        self.also = also
    }

    /// What a `root` can be.
    public enum RootFitness: Sendable {
        /// It leads to objects.
        case fitting
        /// It leads into the elements of a list: objects are found there, but a mapped view has no one place for them.
        case withinElements
        /// It is no key path.
        case malformed
    }

    /// What to write instead of a `root` that is malformed.
    public static func complaint(aboutRoot path: String) -> String? { KeyPathSyntax.complaint(about: path) }

    /// What there is to say of a `root`, before any body is read.
    public static func fitness(ofRoot path: String) -> RootFitness {
        guard var steps = KeyPathSyntax.steps(of: path) else { return .malformed }
        if steps.last == .elements { steps.removeLast() }
        return steps.contains(.elements) ? .withinElements : .fitting
    }

    /// Describes a body that holds one object or an array of them.
    public init(model: String, isList: Bool, root: String? = nil) {
        self.init(model: model, shape: isList ? .many : .one, root: root)
    }
}

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
