/// The models of one upstream, checked and compiled once.
public struct Models: Sendable {
    /// What was declared, in order.
    public let declarations: [ModelDeclaration]
    /// The compiled models: first those declared, in the same order.
    let compiled: [CompiledModel]
    /// What belongs together by base and choice.
    let clusters: Clusters
    /// Every declared key path.
    let tree: PathTree
    /// How the mapped view is made.
    let plan: MappingPlan
    /// What else is declared of members; the tree's nodes name them by index.
    let rules: [MemberRule]
    /// Whether any model has members that must not reach a disk.
    public let haveSecrets: Bool
    /// Whether objects of any model can say that they are deleted.
    public let haveDeletions: Bool
    /// Whether any relation deletes the objects that it names no more.
    public let deleteFormer: Bool
    /// By declared model, what became of older objects.
    private let migrations: [[CompiledMigration]]
    /// Of each declared model, whether it is plain, and has neither deletions nor versions.
    private let simple: [Bool]
    /// Of each compiled model, whether the known members of its objects are simply the newest.
    let plain: [Bool]
    let indexes: [String: Int]

    /// Checks and compiles.
    public init(_ declarations: [ModelDeclaration]) throws(MappingError) {
        self.declarations = declarations
        indexes = try Self.index(declarations)
        let clusters = try Clusters(declarations, indexes: indexes)
        var tree = PathTree()
        var rules: [MemberRule] = []
        var compiled: [CompiledModel] = []
        for declaration in declarations { try ModelCompiler.checkNames(of: declaration) }
        // Bases once more, with what their unconditional relatives declare: as such their objects are read.
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
            compiled.append(try compiler.compile(into: &tree, rules: &rules))
        }
        self.clusters = clusters
        self.tree = tree
        self.rules = rules
        self.compiled = compiled
        migrations = try declarations.map { (declaration) throws(MappingError) in
            try declaration.migrations.map { (migration) throws(MappingError) in
                try CompiledMigration(migration, model: declaration.name)
            }
        }
        let plain = Self.plain(compiled)
        self.plain = plain
        let deletable = Set(
            declarations.indices.filter { declarations[$0].deletedWhen != nil }.map { clusters.root(of: $0) }
        )
        simple = declarations.indices.map { index in
            plain[index] && declarations[index].version == 0 && !deletable.contains(clusters.root(of: index))
        }
        haveSecrets = compiled.contains(where: \.hasSecrets)
        haveDeletions = compiled.contains { $0.reading.deletedWhen != nil }
        deleteFormer = tree.nodes.contains(where: \.deletesFormer)
        var plan = try MappingPlan(declarations)
        for index in declarations.indices { plan.models[index].bare = BareIdentity(compiled[index]) }
        self.plan = plan
    }

    /// Which models have neither checks nor policies, those included that stand embedded in them or are their choices.
    private static func plain(_ compiled: [CompiledModel]) -> [Bool] {
        var plain = compiled.map(\.reading.isPlain)
        // By model, those that it stands in.
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

    /// No models: every answer stays as it is.
    public static let none = Models()

    private init() {
        (declarations, compiled, clusters) = ([], [], Clusters())
        (tree, plan, rules, indexes) = (PathTree(), .none, [], [:])
        (migrations, simple, plain) = ([], [], [])
        (haveSecrets, haveDeletions, deleteFormer) = (false, false, false)
    }

    /// The index of a model by its name.
    func index(of model: String) -> Int? { indexes[model] }

    /// The name that objects of a model have in the store: a cluster's is its base's.
    public func objectName(of model: String) -> String {
        indexes[model].map { compiled[$0].objectName } ?? model
    }

    /// Whether all that is to be known of a model's objects is the newest of each member as it was stored: without checks,
    /// policies of its own, deletions and versions.
    public func isSimple(_ model: String) -> Bool { indexes[model].map { simple[$0] } ?? true }

    /// How a model is declared; nil if it is not.
    public func declaration(of model: String) -> ModelDeclaration? { indexes[model].map { declarations[$0] } }

    /// The version that objects of this name are declared at; 0 where nothing is.
    public func version(of model: String) -> Int {
        indexes[model].map { declarations[$0].version } ?? 0
    }

    /// Whether any model has a version other than 0.
    public var haveVersions: Bool { declarations.contains { $0.version > 0 } }

    /// A payload that was stored at an earlier version of its model as it is understood today.
    public func migrate(_ payload: [UInt8], of model: String, from version: Int) -> [UInt8] {
        guard let index = indexes[model] else { return payload }
        return migrations[index].reduce(payload) { payload, migration in
            migration.to > version ? migration.apply(to: payload) : payload
        }
    }

    /// The same of what an object's members with a policy of their own had come to.
    public func migrate(_ gathered: GatheredValues, of model: String, from version: Int) -> GatheredValues {
        guard let index = indexes[model], !gathered.isEmpty else { return gathered }
        return migrations[index].reduce(gathered) { gathered, migration in
            migration.to > version ? migration.apply(to: gathered) : gathered
        }
    }

    /// The keys by which an object can be looked up, out of its JSON: the entry of `keys` and the canonical text.
    public func keys(in json: [UInt8], of model: String) -> [(member: String, value: String)] {
        guard let index = indexes[model], let object = JSONSlice(json) else { return [] }
        return compiled[concrete(of: index, for: object)].reading.keys.compactMap { key in
            let found = key.part.paths.compactMap { object.value(at: $0[...]) }
            guard found.count == 1, case .text(let text) = found[0].withBytes({ Identity.read($0) }) else { return nil }
            return (key.name, text)
        }
    }

    /// Whether an object of a cluster is of one of its concrete models, or of the model at all.
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

    /// The models whose objects have a name in the store: of a cluster all of its models, else the one.
    public func names(ofObjectsNamed name: String) -> [String] {
        declarations.indices.filter { compiled[$0].objectName == name }.map { declarations[$0].name }
    }

    /// The model that an object is read as: of a cluster, the concrete one that the object's members choose.
    func concrete(of model: Int, for object: JSONSlice) -> Int {
        var index = model
        while let choice = choice(of: index, for: object) { index = choice }
        return compiled[index].fallback
    }

    /// The concrete model that the choices of a cluster's base give; nil where there are none, or none is wanted.
    func choice(of model: Int, for object: JSONSlice) -> Int? {
        compiled[model].reading.choices.first { $0.condition?.holds(for: object) ?? true }?.model
    }

    /// How new values of a member meet known ones; nil for what is not declared.
    ///
    /// Of a cluster, whatever its base or one of its concrete models says.
    func merge(of path: MemberPath, model: Int) -> MergePolicy? {
        node(of: path, in: model).map { tree.nodes[$0].merge }
    }

    /// Where a member of a model's objects is declared; of a cluster, in its base or the first concrete model that does.
    func node(of path: MemberPath, in model: Int) -> Int? {
        let names = path.text.split(separator: "/", omittingEmptySubsequences: false).map {
            MemberPath(pointer: String($0)).name
        }
        var candidates = [model, compiled[model].fallback]
        var position = 0
        while position < candidates.count {
            for choice in compiled[candidates[position]].reading.choices where !candidates.contains(choice.model) {
                candidates.append(choice.model)
            }
            position += 1
        }
        return candidates.lazy.compactMap { self.node(of: names[...], from: self.compiled[$0].root) }.first
    }

    private func node(of names: ArraySlice<String?>, from root: Int) -> Int? {
        var node = root
        for name in names {
            if tree.nodes[node].relation >= 0 { node = compiled[Int(tree.nodes[node].relation)].root }
            guard let name, let child = tree.child(of: node, named: name) else { return nil }
            node = child
        }
        return tree.nodes[node].isProperty ? node : nil
    }

    private static func index(_ declarations: [ModelDeclaration]) throws(MappingError) -> [String: Int] {
        var indexes: [String: Int] = [:]
        var folded: [String: String] = [:]
        for (index, declaration) in declarations.enumerated() {
            let name = declaration.name
            guard isValidName(name) else { throw .invalidName(kind: "model", name: name, model: nil) }
            if let other = folded.updateValue(name, forKey: name.lowercased()) {
                throw .duplicateModel(name, other: other)
            }
            indexes[name] = index
        }
        return indexes
    }

    /// Whether a name is a letter followed by letters, digits and `_`.
    static func isValidName(_ name: some StringProtocol) -> Bool {
        guard let first = name.utf8.first, isLetter(first) else { return false }
        return name.utf8.allSatisfy(isNameByte)
    }

    /// Whether a byte may occur in a name.
    static func isNameByte(_ byte: UInt8) -> Bool {
        isLetter(byte) || byte &- UInt8(ascii: "0") < 10 || byte == UInt8(ascii: "_")
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- 0x61 < 26 }
}
