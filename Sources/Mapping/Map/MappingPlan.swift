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

/// Where the properties of one model are read, as a tree of member names to be walked along with an object.
struct SourceTree: Sendable {
    /// One place of the object.
    struct Node: Sendable {
        /// A bit for each hash of a child's name: most members of an object are rejected by this alone.
        var filter: UInt64 = 0
        /// The nodes of the children by their names.
        var children: [[UInt8]: Int] = [:]
        /// The number of the value that is read here, else -1.
        var slot = -1
        /// Whether a bare identity may stand here, so that there is nothing below it.
        var mayBeBare = false
    }

    private(set) var nodes = [Node()]
    private(set) var slotCount = 0

    /// The slot of the value at these names, made if it is not there.
    mutating func slot(at names: [[UInt8]]) -> Int {
        let node = insert(names)
        if nodes[node].slot < 0 {
            nodes[node].slot = slotCount
            slotCount += 1
        }
        return nodes[node].slot
    }

    /// Notes that a bare identity may stand at these names.
    mutating func allowBare(at names: [[UInt8]]) { nodes[insert(names)].mayBeBare = true }

    /// The child of a node by its unescaped name.
    @inline(__always)
    func child(of node: Int, named name: UnsafeBufferPointer<UInt8>) -> Int? {
        nodes[node].filter & Self.bit(name) == 0 ? nil : nodes[node].children[Array(name)]
    }

    private mutating func insert(_ names: [[UInt8]]) -> Int {
        var node = 0
        for name in names {
            if let child = nodes[node].children[name] {
                node = child
            } else {
                nodes[node].filter |= name.withUnsafeBufferPointer(Self.bit)
                nodes[node].children[name] = nodes.count
                node = nodes.count
                nodes.append(Node())
            }
        }
        return node
    }

    private static func bit(_ name: UnsafeBufferPointer<UInt8>) -> UInt64 {
        guard let first = name.first, let last = name.last else { return 1 }
        return 1 << ((UInt64(name.count) &* 5 &+ UInt64(first) &* 3 &+ UInt64(last)) & 63)
    }
}

/// The way to a value within an object, ready to be compared with JSON byte by byte.
struct ValuePath: Sendable, Hashable {
    /// One step.
    enum Step: Sendable, Hashable {
        /// To the member with this name, as UTF-8: names that are canonically equivalent differ in JSON.
        case member([UInt8])
        /// To each element.
        case each
    }

    var steps: [Step]

    init(_ steps: [Step]) { self.steps = steps }

    /// The path to a member by its plain name.
    init(member name: String) { steps = [.member(Array(name.utf8))] }

    /// Reads a spelling; nil for what is no key path.
    init?(_ text: String) {
        guard let steps = KeyPathSyntax.steps(of: text) else { return nil }
        self.steps = steps.map { step in
            switch step {
            case .name(let name): .member(Array(name.utf8))
            case .elements: .each
            }
        }
    }

    /// The names of the leading steps, up to the first over an array.
    var leadingNames: [[UInt8]] {
        steps.prefix { $0 != .each }.compactMap { if case .member(let name) = $0 { name } else { nil } }
    }

    /// What comes behind the leading names.
    var tail: ArraySlice<Step> { steps.drop { $0 != .each } }

    /// The paths that lead to this one, the outermost first.
    var outer: [ValuePath] { steps.indices.dropFirst().map { ValuePath(Array(steps[..<$0])) } }
}

extension JSONIndex {
    /// The value at a key path of an object; nil if a member on the way is missing or no object.
    func value(at path: ValuePath, of object: Int) -> Int? {
        var value = object
        for case .member(let name) in path.steps {
            guard let next = member(name, of: value) else { return nil }
            value = next
        }
        return value
    }
}

extension CompiledCondition {
    /// Whether the object at a node fulfils it.
    func holds(for object: Int, in index: JSONIndex) -> Bool {
        index.kind(object) == .object && holds(for: index.slice(object))
    }

    /// The first names of the key paths that it asks for.
    var members: [[UInt8]] {
        switch self {
        case .has(let path), .member(let path, _): path.prefix(1).map { Array($0.utf8) }
        case .all(let conditions), .any(let conditions): conditions.flatMap(\.members)
        case .not(let condition): condition.members
        }
    }
}
