/// Something that an object either fulfils or does not, asked of its JSON.
public indirect enum Condition: Sendable, Equatable {
    /// Whether there is a member at a key path, null or not.
    case has(String)
    /// Whether the member at a key path equals one of these JSON values.
    case member(String, isOneOf: [[UInt8]])
    case all([Condition])
    case any([Condition])
    case not(Condition)

    /// The members that it asks for, as they are written.
    var entries: [String] {
        switch self {
        case .has(let entry), .member(let entry, _): [entry]
        case .all(let conditions), .any(let conditions): conditions.flatMap(\.entries)
        case .not(let condition): condition.entries
        }
    }
}

/// One concrete model of a cluster, and when an object is of it (Mantle's class clusters).
public struct ModelChoice: Sendable, Equatable {
    /// The name of the concrete model.
    public var model: String
    /// Nil: whatever none of the choices before it wanted.
    public var condition: Condition?

    /// Declares a choice.
    public init(model: String, condition: Condition?) {
        self.model = model
        self.condition = condition
    }
}
