/// What the models of one upstream say of the mapped view, compiled once: while mapping, no declaration is read again.
struct MappingPlan: Sendable {
    /// The plans of the declared models in their order, then those that clusters need besides.
    var models: [ModelPlan] = []
    private var indexes: [String: Int] = [:]

    /// Nothing is declared.
    static let none = MappingPlan()

    private init() {}

    /// Compiles; the error is the first of `mistakes`.
    init(_ declarations: [ModelDeclaration]) throws(MappingError) {
        var compiler = PlanCompiler(declarations)
        compiler.compile()
        if let first = compiler.mistakes.first { throw first.error }
        models = compiler.plans
        for (index, declaration) in declarations.enumerated() { indexes[declaration.name] = index }
    }

    /// The plan of a declared model.
    func index(of model: String) -> Int? { indexes[model] }
}

/// How objects of one model are mapped.
struct ModelPlan: Sendable {
    let name: String
    /// In the order in which they are shown; those that complete a child have a path in `completes`.
    private(set) var properties: [PropertyPlan] = []
    /// Those that do not complete a child, by name.
    private var places: [String: Int] = [:]
    /// Where the properties are read.
    var sources = SourceTree()
    /// Whether undeclared members are shown as well.
    var sharesAll: Bool
    /// Whether a string or number in the place of an object is its identity.
    var hasIdentity: Bool
    /// Which object that is; nil where it does not say.
    var bare: BareIdentity?
    /// The concrete plans that an object may fall under, in the order in which they are tried.
    var choices: [Choice] = []
    /// Properties that lie within what others write: they are written back last, to fill in what is missing.
    var derived: Set<Int> = []
    /// The order in which properties are written back.
    var writingOrder: [Int] = []

    /// One concrete model of a cluster.
    struct Choice: Sendable {
        var condition: CompiledCondition?
        var plan: Int
    }

    /// A plan that has no properties yet.
    init(name: String, sharesAll: Bool, hasIdentity: Bool) {
        self.name = name
        self.sharesAll = sharesAll
        self.hasIdentity = hasIdentity
    }

    /// Whether there is any member of an object that this plan reads.
    var readsMembers: Bool { sources.slotCount > 0 }

    /// What its properties are shown as, but for those that complete a child.
    var propertyNames: [String] { properties.lazy.filter(\.completes.isEmpty).map(\.name) }

    /// The index of the property that is shown under a name.
    func property(named name: String) -> Int? {
        places[name].flatMap { properties[$0].name.utf8.elementsEqual(name.utf8) ? $0 : nil }
    }

    /// Adds a property behind the others.
    mutating func append(_ property: PropertyPlan) {
        if property.completes.isEmpty, places[property.name] == nil { places[property.name] = properties.count }
        properties.append(property)
        properties[properties.count - 1].model = name
    }

    /// Changes a property, but for its name.
    mutating func update(_ index: Int, _ change: (inout PropertyPlan) -> Void) { change(&properties[index]) }
}

/// How one property is read, shown and written back.
struct PropertyPlan: Sendable {
    /// Where a value comes from.
    indirect enum Source: Sendable {
        /// The first of these members that is there; then the steps over arrays, if any.
        case members(slots: [Int], tail: ArraySlice<ValuePath.Step>)
        /// What surrounds the object.
        case context(ContextSource)
        /// The object itself: a child made of its parent's members.
        case itself
        /// Several sources, folded into one object.
        case parts([(name: [UInt8], source: Source)])
    }

    /// A value from the context, its key path compiled.
    enum ContextSource: Sendable {
        case url
        case capture(String)
        case header(String)
        case parent(ValuePath)
        case root(ValuePath)
        case index
        case key
    }

    /// A relation, its model compiled.
    struct Related: Sendable {
        enum Shape: Sendable { case one, many, keyed }
        var shape: Shape
        var plan: Int
    }

    /// Where a value goes when it is written back.
    enum Output: Sendable {
        case none
        case place(Place)
        /// Into the members of the object itself.
        case itself
        /// Each part of the folded object to its own place.
        indirect case parts([(name: [UInt8], output: Output)])
        /// Nowhere, for the list or the object that holds the object gives it again.
        case given(ContextSource)
    }

    /// A place of the upstream's JSON.
    struct Place: Sendable {
        /// The object that the path begins at.
        enum Origin: Sendable { case object, parent, root }
        var origin: Origin
        var path: ValuePath
    }

    let name: String
    /// The name of the model whose objects are shown with it.
    var model = ""
    /// `"name":`, ready to be copied.
    let key: [UInt8]
    /// For a write path, the names of the children's properties that it leads through; else empty.
    let completes: [String]
    var source: Source
    var relation: Related?
    var conversion: ValueConversion
    var isRequired: Bool
    var defaultValue: [UInt8]?
    var output: Output
    /// Whether it is part of the identity, which is always shown.
    var isIdentity = false
    /// Whether the value comes from what surrounds the object.
    var isFromContext: Bool { if case .context = source { true } else { false } }
    /// How many arrays of a list of related objects may lie in one another, by the steps over arrays of its key path.
    var listLevels: Int {
        guard case .members(_, let tail) = source else { return 1 }
        return max(1, tail.count { $0 == .each })
    }
    /// Of a relation: the properties of the same model that complete it.
    var completedBy: [Int] = []
    /// Of a write path: the default of the property that it completes.
    var completedDefault: [UInt8]?
}

extension PropertyPlan.Output {
    /// The paths within the object itself.
    var ownPaths: [ValuePath] {
        switch self {
        case .place(let place): place.origin == .object ? [place.path] : []
        case .parts(let parts): parts.flatMap(\.output.ownPaths)
        case .none, .itself, .given: []
        }
    }
}
