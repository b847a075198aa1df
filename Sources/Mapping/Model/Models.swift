/// The models of one upstream, checked and compiled once.
public struct Models: Sendable {
    public let declarations: [ModelDeclaration]
    /// The compiled models, beginning with the declared ones in the same order.
    let compiled: [CompiledModel]
    let tree: PathTree
    /// The tree's.
    let rules: [MemberRule]
    /// Whether any model has members that must not reach the disk.
    public let haveSecrets: Bool
    /// Whether objects of any model can show themselves to be deleted.
    let haveDeletions: Bool
    /// Whether any relation deletes objects that it no longer names.
    public let deleteFormer: Bool
    /// By declared model, whether it is plain, and has neither deletions nor versions.
    private let simple: [Bool]
    /// By compiled model, whether the known members of its objects are simply the newest.
    let plain: [Bool]
    /// By compiled model, whether its objects, or those embedded in them, are of one of several models.
    let choosing: [Bool]
    let indexes: [String: Int]

    /// Checks and compiles the declarations; throws one of the mistakes in them.
    public init(_ declarations: [ModelDeclaration]) throws(MappingError) {
        var mistakes = MistakeList()
        try self.init(declarations, &mistakes)
    }

    /// Reports every mistake, and throws one.
    init(_ declarations: [ModelDeclaration], _ mistakes: inout MistakeList) throws(MappingError) {
        let clusters = Clusters(declarations, &mistakes)
        var compiler = ModelsCompiler(clusters, mistakes)
        let compiled = compiler.compile()
        mistakes = compiler.mistakes
        clusters.reportCircularChoices(&mistakes)
        mistakes.reportNames(of: declarations)
        // A mistake in one model would be reported again for its relatives.
        if mistakes.mistakes.isEmpty { mistakes = compiler.relatives }
        if let first = mistakes.mistakes.first { throw first.error }
        (self.declarations, self.compiled, indexes) = (declarations, compiled, clusters.indexes)
        (tree, rules) = (compiler.tree, compiler.tree.rules)
        plain = Self.spread(compiled.map { !$0.reading.isPlain }, over: compiled).map { !$0 }
        choosing = Self.spread(compiled.map { !$0.reading.choices.isEmpty }, over: compiled)
        let deletable = Set(zip(declarations, compiled).filter { $0.0.deletedWhen != nil }.map(\.1.objectName))
        simple = zip(plain, compiled).map { $0 && $1.declaration.version == 0 && !deletable.contains($1.objectName) }
        haveSecrets = compiled.contains { !$0.declaration.secret.isEmpty }
        haveDeletions = compiled.contains { $0.reading.deletedWhen != nil }
        deleteFormer = tree.nodes.contains(where: \.deletesFormer)
    }

    /// By model, whether something is so of it, of a model embedded in its objects, or of one of its choices.
    private static func spread(_ isSo: [Bool], over compiled: [CompiledModel]) -> [Bool] {
        // By model, those in which it is embedded or chosen.
        var holders = Array(repeating: [Int](), count: compiled.count)
        for (index, model) in compiled.enumerated() {
            let embedded = model.reading.relations.filter { !compiled[$0].hasIdentity }
            for other in embedded.union(model.reading.choices.map(\.model)).union([model.fallback]) {
                holders[other].append(index)
            }
        }
        let found = Set(reachable(from: isSo.indices.filter { isSo[$0] }) { holders[$0] })
        return isSo.indices.map(found.contains)
    }

    /// No models: every response stays as it is.
    public static let none: Models = {
        do { return try Models([]) } catch { preconditionFailure("no declaration, but a mistake: \(error)") }
    }()

    func index(of model: String) -> Int? { indexes[model] }

    /// The declaration of a model by its name; nil if there is no such model.
    public func declaration(of model: String) -> ModelDeclaration? { indexes[model].map { declarations[$0] } }

    /// The model name under which objects are stored: for a cluster, that of the base.
    public func objectName(of model: String) -> String { indexes[model].map { compiled[$0].objectName } ?? model }

    /// Whether objects are simply the newest stored values: without checks, policies, deletions and versions.
    public func isSimple(_ model: String) -> Bool { indexes[model].map { simple[$0] } ?? true }

    /// The declared version of a model's objects; 0 by default.
    public func version(of model: String) -> Int { indexes[model].map { declarations[$0].version } ?? 0 }

    public var haveVersions: Bool { declarations.contains { $0.version > 0 } }

    /// Migrates a payload that was stored under an earlier version of its model.
    public func migrate(_ payload: [UInt8], of model: String, from version: Int) -> [UInt8] {
        migrations(of: model, after: version).reduce(payload) { $1.apply(to: $0) }
    }

    /// The same for the values of members with a policy of their own.
    public func migrate(_ gathered: GatheredValues, of model: String, from version: Int) -> GatheredValues {
        migrations(of: model, after: version).reduce(gathered) { $1.apply(to: $0) }
    }

    private func migrations(of model: String, after version: Int) -> [CompiledMigration] {
        indexes[model].map { compiled[$0].reading.migrations.filter { $0.to > version } } ?? []
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

    /// How many key properties a model has; 0 if there is no such model.
    public func keyCount(of model: String) -> Int { indexes[model].map { compiled[$0].reading.keys.count } ?? 0 }

    /// Whether an object of a cluster belongs to this concrete model; true for other models.
    public func isObject(_ json: [UInt8], of model: String) -> Bool {
        guard let index = indexes[model], let base = indexes[compiled[index].objectName], base != index,
            declarations.contains(where: { $0.choices.contains { $0.model == model } }), let object = JSONSlice(json)
        else { return true }
        return sequence(first: base) { choice(of: $0, for: object)?.model }.contains(index)
    }

    /// The models whose objects are stored under a name: all models of a cluster, or the one.
    public func names(ofObjectsNamed name: String) -> [String] {
        declarations.indices.filter { compiled[$0].objectName == name }.map { declarations[$0].name }
    }

    /// The model that an object is read as: in a cluster, the concrete one selected by its members, or by `known` ones.
    func concrete(of model: Int, for object: JSONSlice, else known: [JSONSlice] = []) -> Int {
        var index = model
        while let choice = choice(of: index, for: object, else: known) { index = choice.model }
        return compiled[index].fallback
    }

    /// The choice of a cluster that fits an object; nil if there are none, or none fits.
    func choice(of model: Int, for object: JSONSlice, else known: [JSONSlice] = []) -> CompiledModel.Choice? {
        compiled[model].reading.choices.first { $0.condition?.holds(for: object, else: known) ?? true }
    }

    /// Whether an object of a cluster may turn out to be of another model than `concrete` says.
    func isOpen(_ model: Int, for object: JSONSlice, else known: [JSONSlice] = []) -> Bool {
        compiled[model].reading.choices.contains { $0.condition?.isOpen(for: object, else: known) ?? false }
            || choice(of: model, for: object, else: known).map { isOpen($0.model, for: object, else: known) } ?? false
    }

    /// The merge policy of a member; nil if the member is not declared.
    func merge(of path: MemberPath, model: Int) -> MergePolicy? {
        node(of: path, in: model).map { tree.nodes[$0].merge }
    }

    /// The node of a declared member; in a cluster, the one in the base or the first concrete model that declares it.
    func node(of path: MemberPath, in model: Int) -> Int? {
        guard let names = path.names else { return nil }
        let family = reachable(from: [model, compiled[model].fallback]) { compiled[$0].reading.choices.map(\.model) }
        return family.lazy.compactMap { self.node(of: names, from: self.compiled[$0].root) }.first
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
        name.utf8.first?.isLetter == true && name.utf8.allSatisfy(isNameByte)
    }

    /// The text with an underscore in place of each byte that cannot occur in a name.
    static func sanitised(_ text: String) -> String {
        String(decoding: text.utf8.map { isNameByte($0) ? $0 : UInt8(ascii: "_") }, as: UTF8.self)
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        byte.isLetter || byte.isDigit || byte == UInt8(ascii: "_")
    }
}
