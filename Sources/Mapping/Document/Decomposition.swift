/// What became of a body that was to be taken apart.
public enum Decomposition: Sendable {
    /// The body holds at least one object.
    case objects(DecomposedBody)
    /// The body is kept as it is: it is not JSON, too deep, uses the reserved spelling, or holds no object.
    case opaque(MappingWarning?)
}

/// A body taken apart into the objects it is made of and the literal rest.
public struct DecomposedBody: Sendable {
    /// The body with a reference literal in the place of each outermost object; valid JSON.
    public var skeleton: [UInt8]
    /// The objects in pre-order, by their first byte: the order in which recomposition consumes payloads.
    public var occurrences: [Occurrence]
    /// What did not fit.
    public var warnings: [MappingWarning]
    /// Whether the body shows a secret: it must not reach a disk, and what is given here is the body without it, which
    /// does not recompose to what was received.
    public var showsSecret = false

    /// Whether putting it together again gives these very bytes.
    public func recomposes(to body: [UInt8]) -> Bool {
        recompose(skeleton: skeleton, payloads: occurrences.map(\.payload)) == body
    }
}

/// One object as one place of a body shows it.
public struct Occurrence: Sendable {
    /// Which object.
    public var name: ObjectName
    /// The object's bytes with a reference literal in the place of each object within it; valid JSON.
    public var payload: [UInt8]
    /// The declared keys found in it: the entry of `keys` and the canonical text of its value.
    public var keys: [(member: String, value: String)]
    /// Keys that the route's path gives the object and its bytes do not.
    public var boundKeys: [(member: String, value: String)] = []
    /// Whether the object says of itself that it is deleted.
    public var isDeleted = false
    /// The raw JSON of the member that the model declares as `modified`.
    public var modified: String?
    /// The objects directly within this one, in order.
    public var children: [ObjectName]
}
