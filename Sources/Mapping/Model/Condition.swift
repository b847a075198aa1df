/// Something that an object either fulfils or does not, asked of its JSON.
public indirect enum Condition: Sendable, Equatable {
    /// Whether there is a member at a key path, null or not.
    case has(String)
    /// Whether the member at a key path equals one of these JSON values.
    case member(String, isOneOf: [[UInt8]])
    case all([Condition])
    case any([Condition])
    case not(Condition)

    /// The same, asked of members as the JSON spells them: what names a property asks for that one's.
    func spelled(by properties: PropertySources) -> Condition {
        func each(_ entry: String, _ condition: (String) -> Condition) -> Condition {
            let sources = properties[entry]
            return sources.count == 1 ? condition(sources[0]) : .any(sources.map(condition))
        }
        switch self {
        case .has(let entry): return each(entry) { .has($0) }
        case .member(let entry, let values): return each(entry) { .member($0, isOneOf: values) }
        case .all(let conditions): return .all(conditions.map { $0.spelled(by: properties) })
        case .any(let conditions): return .any(conditions.map { $0.spelled(by: properties) })
        case .not(let condition): return .not(condition.spelled(by: properties))
        }
    }

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
