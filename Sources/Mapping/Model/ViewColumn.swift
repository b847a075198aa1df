/// One column of the SQL view of a model: what to call it and where its value is.
public struct ViewColumn: Sendable, Equatable {
    /// Where the value of a column is found.
    public indirect enum Source: Sendable, Equatable {
        /// A plain value at this SQLite JSON path (`$."user"."login"`) of the object's payload.
        case value(path: String)
        /// At this path: a reference literal (text beginning with U+0001, see `Reference`), a bare identity or null.
        case one(path: String, model: String)
        /// At this path: an array of reference literals and bare identities.
        case many(path: String, model: String)
        /// A value of the object that the relation at `path` points to: a column source of `model`.
        case derived(path: String, model: String, source: Source)
    }

    /// What the column is to the model; one column may be the identity and a property at once: then it is the former.
    public enum Role: Sendable, Equatable { case identity, key, property }

    /// The column's name: the property's, or one made from the key path. Unique in the view whatever the case.
    public var name: String
    /// What it is to the model.
    public var role: Role
    /// Where its value is.
    public var source: Source
}

extension Models {
    /// Column names that every view has; no column made here has one of them.
    public static let reservedColumns = ["upstream", "principal", "context", "json"]

    /// The columns of a model's view: identity first, then keys, then properties; empty for an unknown model.
    public func columns(of model: String) -> [ViewColumn] { [] }
}
