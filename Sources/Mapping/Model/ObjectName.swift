/// The name of one object within an upstream, a principal and a context: its model and its identity.
public struct ObjectName: Hashable, Sendable {
    /// The name of the declared model.
    public var model: String
    /// The canonical text of the identity: the unescaped content of a JSON string, or the exact canonical decimal of a
    /// number. The number 7, `7.0` and the string `"7"` are one identity.
    public var identity: String

    /// Names an object; `identity` must be canonical already.
    public init(model: String, identity: String) {
        self.model = model
        self.identity = identity
    }
}

extension ObjectName: CustomStringConvertible {
    /// `User:583231`, for messages.
    public var description: String { "\(model):\(identity)" }
}
