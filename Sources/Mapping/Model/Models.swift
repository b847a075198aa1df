/// The models of one upstream, checked and compiled once.
public struct Models: Sendable {
    /// The declarations, in order.
    public let declarations: [ModelDeclaration]
    /// The compiled models, beginning with the declared ones in the same order.
    let compiled: [CompiledModel]
    /// The relations between bases, concrete models and choices.
    let clusters: Clusters
    /// Every declared key path.
    let tree: PathTree
    /// The compiled mapped view, which reads no declarations: the plans of the declared models in their order, followed
    /// by additional ones for clusters.
    let plans: [ModelPlan]
    /// Further declarations about members; the tree's nodes refer to them by index.
    let rules: [MemberRule]
    /// Whether any model has members that must not reach the disk.
    public let haveSecrets: Bool
    /// Whether objects of any model can show themselves to be deleted.
    public let haveDeletions: Bool
    /// Whether any relation deletes objects that it no longer names.
    public let deleteFormer: Bool
    /// By declared model, its migrations.
    private let migrations: [[CompiledMigration]]
    /// By declared model, whether it is plain, and has neither deletions nor versions.
    private let simple: [Bool]
    /// By compiled model, whether the known members of its objects are simply the newest.
    let plain: [Bool]
    let indexes: [String: Int]

    /// Checks and compiles the declarations; throws the first mistake found in them.
    public init(_ declarations: [ModelDeclaration]) throws(MappingError) {
        var mistakes = MistakeList()
        try self.init(declarations, &mistakes, stopsEarly: true)
    }

    /// Checks and compiles the declarations; reports every mistake in them, and throws one.
    ///
    /// - Parameter stopsEarly: whether the mapped view is left unchecked after other mistakes.
    init(_ declarations: [ModelDeclaration], _ mistakes: inout MistakeList, stopsEarly: Bool = false)
        throws(MappingError)
    {
        self.declarations = declarations
        indexes = Dictionary(declarations.enumerated().map { ($1.name, $0) }) { first, _ in first }
        let clusters = Clusters(declarations, indexes: indexes, &mistakes)
        // Where the mapped view has the same mistake, it knows the place better.
        var others = MistakeList()
        others.reportNames(of: declarations)
        var migrations: [[CompiledMigration]] = []
        for (index, declaration) in declarations.enumerated() {
            do throws(MappingError) {
                try ModelCompiler.checkNames(of: declaration)
                migrations.append(
                    try declaration.migrations.map { (migration) throws(MappingError) in
                        try CompiledMigration(migration, model: declaration.name)
                    }
                )
            } catch {
                others.report(error, model: index)
            }
        }
        // A mistake in one model would be reported again for its relatives.
        var relatives = MistakeList()
        var tree = PathTree()
        var rules: [MemberRule] = []
        var compiled: [CompiledModel] = []
        // Bases are compiled once more, merged with derived models that no choice names: their objects are read this
        // way.
        let open = declarations.indices.compactMap { index in clusters.open(index).map { (index, $0) } }
        let fallbacks = Dictionary(uniqueKeysWithValues: open.enumerated().map { ($1.0, declarations.count + $0) })
        for (index, declaration) in declarations.indices.map({ ($0, clusters.effective($0)) }) + open {
            let isOpen = compiled.count >= declarations.count
            var compiler = ModelCompiler(
                declaration,
                indexes: indexes,
                objectName: clusters.root(of: index),
                fallback: isOpen ? compiled.count : fallbacks[index] ?? index,
                isOpen: isOpen
            )
            compiled.append(compiler.compile(into: &tree, rules: &rules))
            if isOpen {
                relatives.report(compiler.faults, amongRelativesOf: index, declarations)
            } else {
                others.report(compiler.faults, of: index, declarations[index])
            }
        }
        if stopsEarly, let first = mistakes.first ?? others.first ?? relatives.first { throw first }
        var planner = PlanCompiler(declarations, indexes: indexes, clusters, mistakes)
        planner.compile()
        mistakes = planner.mistakes
        clusters.reportCircularChoices(indexes: indexes, &mistakes)
        mistakes.reportNew(others)
        if mistakes.first == nil { mistakes.reportNew(relatives) }
        if let first = mistakes.first { throw first }
        var plans = planner.plans
        for index in declarations.indices { plans[index].bare = BareIdentity(compiled[index]) }
        (self.clusters, self.plans, self.compiled) = (clusters, plans, compiled)
        (self.tree, self.rules, self.migrations) = (tree, rules, migrations)
        let plain = Self.plain(compiled)
        self.plain = plain
        let deletable = Set(
            declarations.indices.filter { declarations[$0].deletedWhen != nil }.map(clusters.root)
        )
        simple = declarations.indices.map { index in
            plain[index] && declarations[index].version == 0 && !deletable.contains(clusters.root(of: index))
        }
        haveSecrets = compiled.contains(where: \.hasSecrets)
        haveDeletions = compiled.contains { $0.reading.deletedWhen != nil }
        deleteFormer = tree.nodes.contains(where: \.deletesFormer)
    }

    /// By model, whether it has neither checks nor policies, and the same holds for its embedded models and choices.
    private static func plain(_ compiled: [CompiledModel]) -> [Bool] {
        var plain = compiled.map(\.reading.isPlain)
        // By model, those in which it is embedded or chosen.
        var holders = Array(repeating: [Int](), count: compiled.count)
        for (index, model) in compiled.enumerated() {
            let embedded = model.reading.relations.filter { !compiled[$0].hasIdentity }
            for other in embedded.union(model.reading.choices.map(\.model)).union([model.fallback]) {
                holders[other].append(index)
            }
        }
        var rest = plain.indices.filter { !plain[$0] }
        while let index = rest.popLast() {
            for holder in holders[index] where plain[holder] {
                plain[holder] = false
                rest.append(holder)
            }
        }
        return plain
    }

    /// No models: every response stays as it is.
    public static let none: Models = {
        do { return try Models([]) } catch { preconditionFailure("no declaration, but a mistake: \(error)") }
    }()

    /// The index of a model by its name.
    func index(of model: String) -> Int? { indexes[model] }

    /// The model name under which objects are stored: for a cluster, that of the base.
    public func objectName(of model: String) -> String { indexes[model].map { compiled[$0].objectName } ?? model }

    /// Whether objects of a model are simply the newest stored value of each member.
    ///
    /// The model then has no checks, no policies of its own, no deletions and no versions.
    public func isSimple(_ model: String) -> Bool { indexes[model].map { simple[$0] } ?? true }

    /// The declaration of a model, if there is one.
    public func declaration(of model: String) -> ModelDeclaration? { indexes[model].map { declarations[$0] } }

    /// The declared version of a model's objects; 0 by default.
    public func version(of model: String) -> Int { indexes[model].map { declarations[$0].version } ?? 0 }

    /// Whether any model has a version other than 0.
    public var haveVersions: Bool { declarations.contains { $0.version > 0 } }

    /// Migrates a payload that was stored under an earlier version of its model.
    public func migrate(_ payload: [UInt8], of model: String, from version: Int) -> [UInt8] {
        guard let index = indexes[model] else { return payload }
        return migrations[index].reduce(payload) { payload, migration in
            migration.to > version ? migration.apply(to: payload) : payload
        }
    }

    /// The same for the values of members with a policy of their own.
    public func migrate(_ gathered: GatheredValues, of model: String, from version: Int) -> GatheredValues {
        guard let index = indexes[model], !gathered.isEmpty else { return gathered }
        return migrations[index].reduce(gathered) { gathered, migration in
            migration.to > version ? migration.apply(to: gathered) : gathered
        }
    }

    /// The keys by which an object can be found, read from its JSON: the entry of `keys` and the canonical text.
    public func keys(in json: [UInt8], of model: String) -> [(member: String, value: String)] {
        guard let index = indexes[model], let object = JSONSlice(json) else { return [] }
        return compiled[concrete(of: index, for: object)].reading.keys.compactMap { key in
            let found = key.part.paths.compactMap { object.value(at: $0[...]) }
            guard found.count == 1, case .text(let text) = found[0].withBytes({ Identity.read($0) }) else { return nil }
            return (key.name, text)
        }
    }

    /// The number of keys that a model declares.
    public func keyCount(of model: String) -> Int { indexes[model].map { compiled[$0].reading.keys.count } ?? 0 }

    /// Whether an object of a cluster belongs to this concrete model; true for other models.
    public func isObject(_ json: [UInt8], of model: String) -> Bool {
        guard let index = indexes[model], var current = indexes[compiled[index].objectName], current != index,
            declarations.contains(where: { $0.choices.contains { $0.model == model } }), let object = JSONSlice(json)
        else { return true }
        while let next = choice(of: current, for: object) {
            if next == index { return true }
            current = next
        }
        return false
    }

    /// The models whose objects are stored under a name: all models of a cluster, or the one.
    public func names(ofObjectsNamed name: String) -> [String] {
        declarations.indices.filter { compiled[$0].objectName == name }.map { declarations[$0].name }
    }

    /// The model that an object is read as: in a cluster, the concrete one selected by its members.
    func concrete(of model: Int, for object: JSONSlice) -> Int {
        var index = model
        while let choice = choice(of: index, for: object) { index = choice }
        return compiled[index].fallback
    }

    /// The concrete model selected by a cluster's choices; nil if there are none, or none fits.
    func choice(of model: Int, for object: JSONSlice) -> Int? {
        compiled[model].reading.choices.first { $0.condition?.holds(for: object) ?? true }?.model
    }

    /// The merge policy of a member.
    ///
    /// Nil if the member is not declared. In a cluster, the base or any of its concrete models may declare it.
    func merge(of path: MemberPath, model: Int) -> MergePolicy? {
        node(of: path, in: model).map { tree.nodes[$0].merge }
    }

    /// The node of a declared member; in a cluster, the one in the base or the first concrete model that declares it.
    func node(of path: MemberPath, in model: Int) -> Int? {
        guard let names = path.names else { return nil }
        let candidates = reachable(from: [model, compiled[model].fallback]) {
            compiled[$0].reading.choices.map(\.model)
        }
        return candidates.lazy.compactMap { self.node(of: names, from: self.compiled[$0].root) }.first
    }

    private func node(of names: [String], from root: Int) -> Int? {
        var node = root
        for name in names {
            if tree.nodes[node].relation >= 0 { node = compiled[Int(tree.nodes[node].relation)].root }
            guard let child = tree.child(of: node, named: name) else { return nil }
            node = child
        }
        return tree.nodes[node].isProperty ? node : nil
    }

    /// Whether a name is a letter followed by letters, digits and `_`.
    static func isValidName(_ name: some StringProtocol) -> Bool {
        guard let first = name.utf8.first, first.isLetter else { return false }
        return name.utf8.allSatisfy(isNameByte)
    }

    /// The text with an underscore in place of each byte that cannot occur in a name.
    static func sanitised(_ text: String) -> String {
        String(decoding: text.utf8.map { isNameByte($0) ? $0 : UInt8(ascii: "_") }, as: UTF8.self)
    }

    /// Whether a byte may occur in a name.
    private static func isNameByte(_ byte: UInt8) -> Bool {
        byte.isLetter || byte.isDigit || byte == UInt8(ascii: "_")
    }
}

/// One compiled model, ready to be walked along with JSON.
///
/// For a concrete model of a cluster this includes what its bases declare. It is a class, so that the walk, which holds
/// one for every object, copies a reference instead of a dozen fields.
final class CompiledModel: Sendable {
    /// A part of an identity, or a key.
    enum Part: Sendable {
        /// A member of the object at one of these key paths, the spellings of one member.
        ///
        /// It is read by the capture with this number.
        case member(paths: [[String]], capture: Int)
        /// A value from the object's surroundings.
        case context(ContextValue, path: [String])
    }

    /// A concrete model of a cluster.
    struct Choice: Sendable {
        /// Nil for the choice that takes all remaining objects.
        var condition: CompiledCondition?
        var model: Int
    }

    /// The parts of a model other than the places of its members.
    struct Reading: Sendable {
        /// The number of captures: first the identity's members, then the keys'.
        var captureCount = 0
        var identity: [Part] = []
        /// The entries of `identity` for its parts, to which a route binds values.
        var identityNames: [String] = []
        var keys: [(name: String, part: Part)] = []
        /// The key paths of `modified`: the spellings of one member.
        var modifiedPaths: [[String]] = []
        /// The required properties; each has a bit in the set of those seen.
        var required: [String] = []
        var deletedWhen: CompiledCondition?
        var onDelete = DeletionPolicy.usual
        var choices: [Choice] = []
        /// The models that its relations refer to.
        var relations: Set<Int> = []
        /// Whether known members are simply the newest ones: there are no checks, and no policies but `latest` and
        /// `replace`.
        var isPlain = true
    }

    /// The declared name.
    let name: String
    /// The model name of its objects: that of the base whose identity it shares.
    let objectName: String
    /// The node of the object itself.
    let root: Int
    let sharesAll: Bool
    /// Whether the number 7 and the string "7" identify different objects.
    let distinguishesTypes: Bool
    let hasSecrets: Bool
    let reading: Reading
    /// The model for objects that no choice takes.
    ///
    /// It is the model itself, together with the derived models that none of its choices names.
    let fallback: Int
    /// Whether every part of the identity is in the object.
    let hasOwnIdentity: Bool
    /// The key paths of the identity's parts in the object, each in the preferred spelling.
    let identityPaths: [[String]]
    /// The same in every spelling.
    let identityMembers: Set<MemberPath>

    var captureCount: Int { reading.captureCount }
    var modifiedPaths: [[String]] { reading.modifiedPaths }
    var hasIdentity: Bool { !reading.identity.isEmpty }
    var hasRequired: Bool { !reading.required.isEmpty }

    init(_ declaration: ModelDeclaration, objectName: String, root: Int, reading: Reading, fallback: Int) {
        name = declaration.name
        (self.objectName, self.root) = (objectName, root)
        sharesAll = declaration.sharesAll
        distinguishesTypes = declaration.distinguishesTypes
        hasSecrets = !declaration.secret.isEmpty
        (self.reading, self.fallback) = (reading, fallback)
        let spellings = reading.identity.map(\.paths)
        identityPaths = spellings.compactMap(\.first)
        identityMembers = Set(spellings.joined().map { MemberPath($0) })
        hasOwnIdentity = identityPaths.count == reading.identity.count
    }
}

extension CompiledModel.Part {
    /// The key paths within the object, the preferred one first; empty for values from the surroundings.
    var paths: [[String]] {
        guard case .member(let paths, _) = self else { return [] }
        return paths
    }
}

/// The declarations about a member other than its place.
struct MemberRule: Sendable {
    var property: String
    /// The conversion with the checks that a value must pass.
    var checked: ValueConversion?
    /// The bit among the model's required properties.
    var required: UInt64 = 0
    var isSecret = false
}
