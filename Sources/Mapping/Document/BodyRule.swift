/// What a route says of a body: which objects it holds and where.
public struct BodyRule: Sendable, Equatable {
    /// The model of the object, or of each element of the list.
    public var model: String
    /// Whether the body, or what the envelope holds, is a list.
    public var isList: Bool
    /// The key path of the envelope's content; nil: the body itself.
    public var root: String?

    /// Describes a body.
    public init(model: String, isList: Bool, root: String? = nil) {
        self.model = model
        self.isList = isList
        self.root = root
    }
}
