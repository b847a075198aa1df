/// Where a route finds objects in a response body, and of which models.
public struct BodyRule: Sendable, Equatable {
    /// The model of the object, or of each of several.
    public var model: String
    /// Whether there is one object or several, and in what form.
    public private(set) var arity: Arity
    /// The key path to the objects.
    ///
    /// Nil for the body itself. It leads to a list, not to its elements: `items[]` is read as `items` with several
    /// objects.
    public private(set) var root: String?
    /// The model of the envelope's own members, such as the total count of a page; only the mapped view shows it.
    public var envelope: String?
    /// Further objects in the same body, each at its own `root`.
    public var also: [BodyRule]

    /// Whether the objects form a list or are keyed by name.
    public var isList: Bool { arity != .one }

    /// Describes a body.
    public init(model: String, arity: Arity, root: String? = nil, envelope: String? = nil, also: [BodyRule] = []) {
        self.model = model
        if arity != .keyed, let root, let list = KeyPathSyntax.list(ofElements: root) {
            (self.arity, self.root) = (.many, list)
        } else {
            (self.arity, self.root) = (arity, root)
        }
        (self.envelope, self.also) = (envelope, also)
    }

    /// Adapts the rule to the response of a write: a write to a list often responds with the one object that it made.
    public mutating func expectWritten(_ body: [UInt8]) {
        guard arity == .many, root == nil else { return }
        let isObject = body.withUnsafeBufferPointer { text in
            let scanner = JSONScanner(text, allowsReferences: false)
            return scanner.byte(scanner.skipSpace(0)) == UInt8(ascii: "{")
        }
        if isObject { (arity, envelope) = (.one, nil) }
    }

    /// The verdict on a `root`.
    public enum RootFitness: Sendable {
        case fitting
        /// It leads into the elements of a list.
        ///
        /// Objects are found there, but the mapped view has no single place for them.
        case withinElements
        /// It is not a key path.
        case malformed
    }

    /// Advice on how to correct a malformed `root`.
    public static func complaint(aboutRoot path: String) -> String? { KeyPathSyntax.complaint(about: path) }

    /// Checks a `root` without reading a body.
    public static func fitness(ofRoot path: String) -> RootFitness {
        guard var steps = KeyPathSyntax.steps(of: path) else { return .malformed }
        if steps.last == .elements { steps.removeLast() }
        return steps.contains(.elements) ? .withinElements : .fitting
    }

    /// Describes a body with one object or an array of objects.
    public init(model: String, isList: Bool, root: String? = nil) {
        self.init(model: model, arity: isList ? .many : .one, root: root)
    }
}
