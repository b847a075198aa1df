/// What the value of a property is when it is another object, or several.
public enum Relation: Sendable, Equatable {
    /// One object of the named model, null, or the bare identity of one.
    case one(String)
    /// An array of objects of the named model, or of their bare identities.
    case many(String)
    /// An object whose members are objects of the named model; their names are available as `@key`.
    case keyed(String)

    /// The name of the model on the other side; of a cluster its base.
    public var model: String {
        switch self {
        case .one(let model), .many(let model), .keyed(let model): model
        }
    }
}
