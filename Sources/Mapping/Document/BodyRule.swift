/// Where a route finds objects in a response body, and of which models.
public struct BodyRule: Sendable, Equatable {
    public var model: String
    public private(set) var arity: Arity
    /// The key path to the objects, or nil for the body itself; `items[]` is read as `items` with several objects.
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
        let list = arity == .keyed ? nil : root.flatMap(KeyPathSyntax.list(ofElements:))
        (self.arity, self.root) = (list == nil ? arity : .many, list ?? root)
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

    /// Advice on how to correct a malformed `root`.
    public static func complaint(aboutRoot path: String) -> String? { KeyPathSyntax.complaint(about: path) }

    /// Whether a `root` leads into the elements of a list; nil if it is not a key path.
    ///
    /// Objects are found there, but the mapped view has no single place for them.
    public static func leadsIntoElements(_ root: String) -> Bool? {
        guard var steps = KeyPathSyntax.steps(of: root) else { return nil }
        if steps.last == .elements { steps.removeLast() }
        return steps.contains(.elements)
    }

    /// Describes a body with one object or an array of objects.
    public init(model: String, isList: Bool, root: String? = nil) {
        self.init(model: model, arity: isList ? .many : .one, root: root)
    }
}
