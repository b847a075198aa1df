/// The name of one object within an upstream, a principal and a context: its model and its identity.
public struct ObjectName: Sendable {
    /// The name of the declared model.
    public var model: String
    /// The canonical text of the identity.
    ///
    /// It is the unescaped content of a JSON string, or the exact canonical decimal of a number: the number 7, `7.0`
    /// and the string `"7"` are one identity. Several members are joined by colons.
    public var identity: String

    /// Names an object; `identity` must already be canonical.
    public init(model: String, identity: String) {
        self.model = model
        self.identity = identity
    }
}

extension ObjectName: Hashable {
    // Names are compared byte by byte: canonically equivalent text is equal in Swift, but not in JSON.

    /// Whether both have the same model and the same code points.
    public static func == (left: ObjectName, right: ObjectName) -> Bool {
        left.identity.utf8.elementsEqual(right.identity.utf8) && left.model.utf8.elementsEqual(right.model.utf8)
    }

    /// Hashes the model and the identity.
    public func hash(into hasher: inout Hasher) {
        var (model, identity) = (model, identity)
        model.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(0xFF as UInt8)
        identity.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

extension ObjectName: CustomStringConvertible {
    /// A text such as `User:583231`, for messages.
    public var description: String { "\(model):\(identity)" }
}
