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
