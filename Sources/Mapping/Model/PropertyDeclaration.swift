/// One property of a model: a name for a value of the upstream's JSON, and how the value is treated.
public struct PropertyDeclaration: Sendable, Equatable {
    /// The property's name, `[A-Za-z][A-Za-z0-9_]*`, unique in its model regardless of case.
    ///
    /// A name with dots is a write path: `location.latitude` completes the child in the property `location`.
    public var name: String
    /// The source of the value: a key path (`KeyPathSyntax`), or a value from the context (`ContextValue`).
    ///
    /// If empty, the member's name is derived from the property's name by the model's naming.
    public var from: String
    /// Several sources that are combined into one object, each under its own name; `from` is not used then.
    public var parts: [Part]
    /// With `parts`, these are the parts of the identity of one object.
    public var relation: Relation?
    /// The key of the related model that stands in place of an object, instead of its identity.
    public var relatedKey: String?
    /// The conversion for the `mapped` view, and back.
    public var conversion: ConversionDeclaration?
    /// Whether values of another type are converted if nothing is lost (`"5"` for a number, a scalar for a list).
    public var coerces = false
    /// Whether an object without the property gives a warning.
    public var isRequired = false
    /// A value that fails one of these is quarantined.
    public var checks: [ValueCheck] = []
    /// JSON that the mapped view shows if the property is absent; it is never stored.
    public var defaultValue: [UInt8]?
    /// Whether the mapped view shows each element of a list once, in the place of the first.
    public var isUnique = false
    public var merge = MergePolicy.latest
    public var former = FormerPolicy.keep
    public var output = Output.derived

    /// The names of a write path; empty for a plain property.
    var completes: [String] {
        let names = name.split(separator: ".", omittingEmptySubsequences: false)
        return names.count > 1 ? names.map(String.init) : []
    }

    /// Whether the child is made of its parent's own members.
    var isItself: Bool { ContextValue(from) == .itself && parts.isEmpty }

    /// One member of a combined object.
    public struct Part: Sendable, Equatable {
        public var name: String
        public var from: String

        /// `from` is a key path in the upstream's object.
        public init(name: String, from: String) { (self.name, self.from) = (name, from) }
    }

    /// Where the value is written back to.
    public enum Output: Sendable, Equatable {
        case derived
        case path(String)
        /// None: the property is read-only.
        case none
    }

    /// Declares a property; rarely used options are set afterwards.
    public init(
        name: String,
        from: String,
        relation: Relation? = nil,
        conversion: ConversionDeclaration? = nil,
        parts: [Part] = []
    ) {
        (self.name, self.from, self.relation, self.conversion, self.parts) = (name, from, relation, conversion, parts)
    }
}

/// How a new value of a member is merged with the known one.
public enum MergePolicy: String, Sendable, CaseIterable {
    /// The newest value counts (law 3); members of an embedded object are merged one by one.
    case latest
    /// The newest value counts as a whole; an embedded object replaces the former one.
    case replace
    /// The first value stays; only an unknown or null value is replaced.
    case keep
    /// Lists are joined; each element occurs once, in the order of observation.
    case union
    case sum

    var takesNewest: Bool { self == .latest || self == .replace }
}

/// The arrangement of objects at one place of a JSON text.
public enum Arity: UInt8, Sendable {
    case one
    /// An array of objects.
    case many
    /// An object whose members are the objects; their names are available as `@key`.
    case keyed
}

/// The relation of a property whose value is another object, or several.
///
/// In place of an object there may be its bare identity, or null.
public struct Relation: Sendable, Equatable {
    var arity: Arity
    /// The name of the related model; for a cluster, its base.
    public var model: String

    /// A relation to one object.
    public static func one(_ model: String) -> Relation { Relation(arity: .one, model: model) }
    /// A relation to a list of objects.
    public static func many(_ model: String) -> Relation { Relation(arity: .many, model: model) }
    /// A relation to an object of objects.
    public static func keyed(_ model: String) -> Relation { Relation(arity: .keyed, model: model) }
}

/// One requirement on a property's value in the upstream's form.
public enum ValueCheck: Sendable, Equatable {
    /// A type of JSON values; `integer` is a number without a fraction.
    public enum JSONType: String, Sendable, CaseIterable { case string, number, integer, boolean, object, array, null }

    /// The value has one of these types; null is always allowed unless `notNull` is declared too.
    case type([JSONType])
    /// The value is a number within bounds (inclusive), each an exact JSON number.
    case range(minimum: [UInt8]?, maximum: [UInt8]?)
    /// The value is a string with this many code points, or an array with this many elements (inclusive).
    case length(minimum: Int?, maximum: Int?)
    /// The value is a string that matches the regular expression as a whole.
    case pattern(String)
    /// The value equals one of these JSON values.
    case oneOf([[UInt8]])
    case notNull
}

/// What happens to an object that a relation no longer names (RestKit's replacing of children).
public enum FormerPolicy: String, Sendable, CaseIterable {
    /// The object is unlinked, but stays.
    case keep
    /// The object counts as deleted, as if its own address had said so.
    ///
    /// The upstream keeps such objects within their owner, and the owner always shows all of them.
    case delete
}

extension Models {
    /// The objects that a change removes from a relation with `former: delete`.
    ///
    /// None if the new value has an element that is not identified: it may be the object that seems to be missing.
    ///
    /// - Parameter model: the name of the object's model, or of its cluster's base.
    public func formerObjects(in change: MemberChange, of model: String) -> [ObjectName] {
        guard deleteFormer, let index = index(of: model),
            let node = node(of: MemberPath(pointer: change.member), in: index).map({ tree.nodes[$0] }),
            node.deletesFormer, let known = named(by: change.old, at: node), let named = named(by: change.new, at: node)
        else { return [] }
        var seen = Set(named)
        return known.filter { seen.insert($0).inserted }
    }

    /// The objects that the value of a relation names; nil if it contains anything but names and nulls.
    private func named(by json: [UInt8], at node: PathTree.Node) -> [ObjectName]? {
        guard let value = JSONSlice(json) else { return nil }
        let values: [JSONSlice]
        switch (node.arity, value.kind) {
        case _ where value.isNull: values = []
        case (.one, .string), (.one, .number): values = [value]
        case (.many, .array): values = value.elements
        case (.keyed, .object): values = value.members.map(\.value)
        default: return nil
        }
        let model = compiled[Int(node.relation)]
        let named = values.filter { !$0.isNull }
        let names = named.compactMap { $0.target(isStrict: model.distinguishesTypes) }.map {
            $0.name ?? ObjectName(model: model.objectName, identity: $0.identity)
        }
        return names.count == named.count ? names : nil
    }
}
