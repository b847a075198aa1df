/// What the value of a property is when it is another object, or several.
public enum Relation: Sendable, Equatable {
    /// One object of the named model, null, or the bare identity of one.
    case one(String)
    /// An array of objects of the named model, or of their bare identities.
    case many(String)

    /// The name of the model on the other side.
    public var model: String {
        switch self {
        case .one(let model), .many(let model): model
        }
    }
}

/// How a property's value is converted for the `mapped` view.
///
/// Kept with the declaration; the wire form ignores it.
public enum TransformDeclaration: Sendable, Equatable {
    /// A transformer by its name: `date`, `url`, …
    case named(String)
    /// An enumeration: the upstream's spelling of each case and the name it is mapped to, in the order declared.
    case enumeration([Case])

    /// One case of an enumeration.
    public struct Case: Sendable, Equatable {
        /// The upstream's spelling.
        public var wire: String
        /// The mapped name.
        public var mapped: String

        /// Maps one spelling to one name.
        public init(wire: String, mapped: String) {
            self.wire = wire
            self.mapped = mapped
        }
    }
}

/// One property of a model: a name for the value at a key path of the upstream's JSON.
public struct PropertyDeclaration: Sendable, Equatable {
    /// The property's name, `[A-Za-z][A-Za-z0-9_]*`, unique in its model whatever the case.
    public var name: String
    /// The key path of the value: member names separated by dots; `\.` is a dot within a name, `\\` a backslash.
    public var from: String
    /// The relation, if the value is an object or several.
    public var relation: Relation?
    /// The conversion for the `mapped` view.
    public var transform: TransformDeclaration?

    /// Declares a property.
    public init(
        name: String,
        from: String,
        relation: Relation? = nil,
        transform: TransformDeclaration? = nil
    ) {
        self.name = name
        self.from = from
        self.relation = relation
        self.transform = transform
    }
}

/// A declared type of object: how it is identified, what of it is shared between answers, and what is not.
///
/// `identity`, `keys`, `local` and `modified` name a property if one is so named, else a key path of the JSON.
public struct ModelDeclaration: Sendable, Equatable {
    /// The model's name, `[A-Za-z][A-Za-z0-9_]*`, unique whatever the case.
    public var name: String
    /// What identifies an object; empty: objects of this model stay embedded in their owners.
    public var identity: [String]
    /// Further members that name an object, such as a login; looked up, never merged by.
    public var keys: [String]
    /// The declared properties, which are what moves from one answer into another.
    public var properties: [PropertyDeclaration]
    /// Whether undeclared members move as well (`share: all`).
    public var sharesAll: Bool
    /// Members that belong to the answer, not to the object: they never move.
    public var local: [String]
    /// The member that says when the object was last modified; it decides before any clock.
    public var modified: String?

    /// Declares a model.
    public init(
        name: String,
        identity: [String] = [],
        keys: [String] = [],
        properties: [PropertyDeclaration] = [],
        sharesAll: Bool = false,
        local: [String] = [],
        modified: String? = nil
    ) {
        self.name = name
        self.identity = identity
        self.keys = keys
        self.properties = properties
        self.sharesAll = sharesAll
        self.local = local
        self.modified = modified
    }
}
