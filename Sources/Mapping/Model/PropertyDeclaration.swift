/// One property of a model: a name for a value of the upstream's JSON, and what is to be made of it.
public struct PropertyDeclaration: Sendable, Equatable {
    /// The property's name, `[A-Za-z][A-Za-z0-9_]*`, unique in its model whatever the case.
    ///
    /// With dots it is a write path: `location.latitude` completes the child that the property `location` gives.
    public var name: String
    /// Where the value is read from: a key path, or a value from the context (`ContextValue`); empty: the member that the
    /// model's naming makes of the property's name.
    ///
    /// A key path is member names separated by dots; `\.` is a dot within a name, `\\` a backslash, and `name[]` every
    /// element of the array at `name`.
    public var from: String
    /// Several sources that are folded into one object, each under its own name; `from` says nothing then.
    public var parts: [Part]
    /// The relation, if the value is an object or several.
    public var relation: Relation?
    /// The conversion for the `mapped` view, and back.
    public var conversion: ConversionDeclaration?
    /// Whether values of another type are converted where nothing is lost (`"5"` for a number, a scalar for a list).
    public var coerces = false
    /// Whether an object without the property is worth a warning.
    public var isRequired = false
    /// What the value must be like; one that is not is quarantined.
    public var checks: [ValueCheck] = []
    /// JSON that the mapped view shows where the property is absent; never stored.
    public var defaultValue: [UInt8]?
    /// How a new value meets the one that is known.
    public var merge = MergePolicy.latest
    /// What becomes of an object that the relation named and names no more.
    public var former = FormerPolicy.keep
    /// Where the value goes when an object is written back as the upstream's JSON.
    public var output = Output.derived

    /// One of several sources of a property.
    public struct Part: Sendable, Equatable {
        /// The member of the folded object.
        public var name: String
        /// The key path of its value.
        public var from: String

        /// Pairs a member with its source.
        public init(name: String, from: String) {
            self.name = name
            self.from = from
        }
    }

    /// The way back.
    public enum Output: Sendable, Equatable {
        /// To where it came from.
        case derived
        /// To another key path.
        case path(String)
        /// Nowhere: the property is only read.
        case none
    }

    /// Declares a property; what is rare is set afterwards.
    public init(
        name: String,
        from: String,
        relation: Relation? = nil,
        conversion: ConversionDeclaration? = nil,
        parts: [Part] = []
    ) {
        self.name = name
        self.from = from
        self.relation = relation
        self.conversion = conversion
        self.parts = parts
    }
}

/// The key paths of a model's properties by their names.
struct PropertySources: Sendable {
    private var byName: [String: [String]] = [:]

    /// Of declarations whose sources are all given.
    init(_ properties: [PropertyDeclaration]) {
        for property in properties where property.parts.isEmpty && !property.from.isEmpty {
            byName[property.name, default: []].append(property.from)
        }
    }

    /// The key paths that an entry such as `identity: id` means: those of the property of that name, one for each spelling
    /// that its model's naming allows, the preferred one first; without such a property, the entry itself.
    subscript(entry: String) -> [String] { byName[entry] ?? [entry] }
}

/// How a newly observed value of a member meets the one that is known.
public enum MergePolicy: String, Sendable, CaseIterable {
    /// The newest value counts (law 3); members of an embedded object each for themselves.
    case latest
    /// The newest value counts as a whole: an embedded object takes the place of the one before it.
    case replace
    /// The first value stays; only an unknown or null one gives way.
    case keep
    /// Lists are joined, each element once, in the order in which they came to be known.
    case union
    /// Numbers are added up.
    case sum
}

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

/// One thing that is demanded of a property's value, in the upstream's form.
public enum ValueCheck: Sendable, Equatable {
    /// The JSON types allowed.
    public enum JSONType: String, Sendable, CaseIterable {
        case string, number, integer, boolean, object, array, null
    }

    /// Of one of these types; null is always allowed unless `notNull` stands beside it.
    case type([JSONType])
    /// A number within bounds (inclusive), each an exact JSON number.
    case range(minimum: [UInt8]?, maximum: [UInt8]?)
    /// A string of so many code points, or an array of so many elements (inclusive).
    case length(minimum: Int?, maximum: Int?)
    /// A string that the regular expression matches as a whole.
    case pattern(String)
    /// Equal to one of these JSON values.
    case oneOf([[UInt8]])
    /// Not null.
    case notNull
}
