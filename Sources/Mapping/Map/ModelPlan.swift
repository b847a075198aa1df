/// How objects of one model are mapped.
struct ModelPlan: Sendable {
    let name: String
    /// The properties in display order; those that complete a child have a path in `completes`.
    private(set) var properties: [PropertyPlan] = []
    /// The indexes of the properties that do not complete a child, by name.
    private var places: [String: Int] = [:]
    /// The places that the properties are read from.
    var sources = PathTree()
    /// The number of values that are read there.
    var slotCount = 0
    /// Whether undeclared members are shown as well.
    var sharesAll: Bool
    /// Whether a string or number in place of an object is its identity.
    var hasIdentity: Bool
    /// How such an identity is read; nil if it does not name a single object.
    var bare: BareIdentity?
    /// The concrete plans of a cluster, in the order in which they are tried.
    var choices: [Choice] = []
    /// Properties within values that other properties write; they are written back last, to fill in what is missing.
    var derived: Set<Int> = []
    /// The order in which properties are written back.
    var writingOrder: [Int] = []

    /// One concrete model of a cluster.
    struct Choice: Sendable {
        var condition: CompiledCondition?
        var plan: Int
    }

    /// Creates a plan without properties.
    init(name: String, sharesAll: Bool, hasIdentity: Bool) {
        (self.name, self.sharesAll, self.hasIdentity) = (name, sharesAll, hasIdentity)
    }

    /// Whether the plan reads any member of an object.
    var readsMembers: Bool { slotCount > 0 }

    /// The names of the shown properties; those that complete a child are not among them.
    var propertyNames: [String] { properties.lazy.filter(\.completes.isEmpty).map(\.name) }

    /// The index of the property that is shown under a name.
    func property(named name: String) -> Int? {
        places[name].flatMap { properties[$0].name.utf8.elementsEqual(name.utf8) ? $0 : nil }
    }

    /// Appends a property.
    mutating func append(_ property: PropertyPlan) {
        if property.completes.isEmpty, places[property.name] == nil { places[property.name] = properties.count }
        properties.append(property)
        properties[properties.count - 1].model = name
    }

    /// Changes a property; its name must stay the same.
    mutating func update(_ index: Int, _ change: (inout PropertyPlan) -> Void) { change(&properties[index]) }
}

/// How one property is read, shown and written back.
struct PropertyPlan: Sendable {
    /// The source of a value.
    indirect enum Source: Sendable {
        /// The first of these members that is present; then the steps over arrays, if any.
        case members(slots: [Int], tail: ArraySlice<PathStep>)
        /// A value from the object's surroundings, with its key path in an outer object.
        case context(ContextValue, path: [PathStep])
        /// The object itself: a child made of its parent's members.
        case itself
        /// Several sources, combined into one object.
        case parts([(name: [UInt8], source: Source)])
    }

    /// A relation, with its model compiled.
    struct Related: Sendable {
        var arity: Arity
        var plan: Int
    }

    /// The destination of a value that is written back.
    enum Output: Sendable {
        case none
        case place(Place)
        /// The members of the object itself.
        case itself
        /// A separate place for each part of the combined object.
        indirect case parts([(name: [UInt8], output: Output)])
        /// None, because the list or the object around the object determines the value.
        case given(ContextValue)
    }

    /// A place in the upstream's JSON.
    struct Place: Sendable {
        /// The object in which the path begins.
        enum Origin: Sendable { case object, parent, root }
        var origin: Origin
        var path: [PathStep]
    }

    let name: String
    /// The name of the model under which it is shown.
    var model = ""
    /// `"name":`, ready to be copied.
    let key: [UInt8]
    /// For a write path, the names of the children's properties on it; otherwise empty.
    let completes: [String]
    var source: Source
    var relation: Related?
    var conversion: ValueConversion
    var isRequired: Bool
    var defaultValue: [UInt8]?
    var output: Output
    /// Whether it is part of the identity, which is always shown.
    var isIdentity = false
    /// Whether the value comes from the object's surroundings.
    var isFromContext: Bool { if case .context = source { true } else { false } }
    /// The maximum nesting of arrays in a list of related objects: the number of `[]` steps in its key path.
    var listLevels: Int {
        guard case .members(_, let tail) = source else { return 1 }
        return max(1, tail.count { $0 == .elements })
    }
    /// For a relation, the properties of the same model that complete it.
    var completedBy: [Int] = []
    /// For a write path, the default of the property that it completes.
    var completedDefault: [UInt8]?
}

extension PropertyPlan.Output {
    /// The paths within the object itself.
    var ownPaths: [[PathStep]] {
        switch self {
        case .place(let place): place.origin == .object ? [place.path] : []
        case .parts(let parts): parts.flatMap(\.output.ownPaths)
        case .none, .itself, .given: []
        }
    }
}

extension JSONIndex {
    /// The value at a key path of an object; nil if a member on the path is missing or not an object.
    func value(at path: [PathStep], of object: Int) -> Int? {
        var value = object
        for case .name(let name) in path {
            guard let next = member(name.utf8, of: value) else { return nil }
            value = next
        }
        return value
    }
}

extension CompiledCondition {
    /// The first names of the key paths that the condition reads.
    var members: [[UInt8]] {
        switch self {
        case .has(let path), .member(let path, _): path.prefix(1).map { Array($0.utf8) }
        case .all(let conditions), .any(let conditions): conditions.flatMap(\.members)
        case .not(let condition): condition.members
        }
    }
}

/// How a bare identity in place of a model's object is read.
struct BareIdentity: Sendable {
    /// The model name in the objects' keys.
    let objectName: String
    /// Whether the number 7 and the string "7" identify different objects.
    let isStrict: Bool
    /// The key paths of the identity in an object, in every spelling.
    let paths: [[String]]

    /// Nil if a single value does not identify an object: the identity has several parts, or comes from the
    /// surroundings.
    init?(_ model: CompiledModel) {
        let identity = model.reading.identity
        guard identity.count == 1, case .member(let paths, _) = identity[0] else { return nil }
        (objectName, isStrict, self.paths) = (model.objectName, model.distinguishesTypes, paths)
    }

    /// The object that a JSON value identifies; nil if the value is no identity.
    func name(_ literal: UnsafeBufferPointer<UInt8>) -> ObjectName? {
        guard case .text(let text) = Identity.read(literal, isStrict: isStrict) else { return nil }
        return ObjectName(model: objectName, identity: text)
    }

    /// The identity of an object, as spelled there.
    func literal(in object: [UInt8]) -> [UInt8]? {
        guard let object = JSONSlice(object) else { return nil }
        return paths.lazy.compactMap { object.value(at: $0[...]) }.first.map { Array($0.bytes) }
    }
}

extension MapRun {
    /// The most bare identities in a body that are expanded to objects.
    static let maximumNamed = 1_000
    /// The size of the output, in bytes, beyond which no more objects are inserted: one object may be named very often.
    static let maximumExpanded = 4 << 20

    /// Writes a bare identity, or if it is known, the object that it names.
    ///
    /// Objects are inserted one level deep. An identity that is spelled differently within the object stays, because
    /// the way back could not restore its spelling.
    mutating func bare(_ value: Value, as index: Int, position: Int?, key: Value?, mask: MemberMask) {
        guard !isWithinNamed, let identity = plans[index].bare, let name = withBytes(value, identity.name) else {
            return appendLiteral(value)
        }
        if named.count < Self.maximumNamed { named.insert(name) }
        guard let json = known[name], identity.literal(in: json) == bytes(value),
            expansions < Self.maximumExpansions, output.count < Self.maximumExpanded,
            frames.count < Self.maximumNesting, let object = make(json, of: nil)
        else { return appendLiteral(value) }
        expansions += 1
        synthetic.append(outputPointer)
        isWithinNamed = true
        self.object(object, as: index, position: position, key: key, mask: mask)
        isWithinNamed = false
        documents.removeLast()
    }
}

extension UnmapRun {
    /// Whether an object was inserted in place of its bare identity.
    func isNamed(_ value: Value) -> Bool {
        guard let synthetic, kind(value) == .object else { return false }
        return pointer(value).map { synthetic.contains($0) } ?? false
    }

    /// Writes the bare identity of an object that was inserted in its place.
    mutating func bare(_ value: Value, as index: Int, into node: Int) throws(UnmapError) {
        let model = plans[index]
        let whole = builder.makeDetached()
        let identity = MemberMask(model.properties.filter(\.isIdentity).map(\.name))
        try object(value, as: index, into: whole, mask: identity)
        guard let literal = model.bare?.literal(in: builder.json(of: whole)), builder.set(node, literal) else {
            return warnOfNoPlace(value, model.name)
        }
    }
}
