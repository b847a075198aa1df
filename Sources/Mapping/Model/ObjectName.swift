/// The name of one object within an upstream, a principal and a context: its model and its identity.
public struct ObjectName: Sendable {
    /// The name of the declared model.
    public var model: String
    /// The canonical text of the identity.
    ///
    /// The unescaped content of a JSON string, or the exact canonical decimal of a number: the number 7, `7.0` and the
    /// string `"7"` are one identity. Several members are joined by colons.
    public var identity: String

    /// Names an object; `identity` must be canonical already.
    public init(model: String, identity: String) {
        self.model = model
        self.identity = identity
    }
}

extension ObjectName: Hashable {
    // Byte by byte: Swift's strings are equal when canonically equivalent, JSON's are not.

    /// Whether both are the same model and the same code points.
    public static func == (left: ObjectName, right: ObjectName) -> Bool {
        left.identity.utf8.elementsEqual(right.identity.utf8) && left.model.utf8.elementsEqual(right.model.utf8)
    }

    /// Feeds model and identity to the hasher.
    public func hash(into hasher: inout Hasher) {
        var (model, identity) = (model, identity)
        model.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
        hasher.combine(0xFF as UInt8)
        identity.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

extension ObjectName: CustomStringConvertible {
    /// `User:583231`, for messages.
    public var description: String { "\(model):\(identity)" }
}
