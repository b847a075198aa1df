/// Which models share an identity, and what a concrete model has from its base (Mantle's class clusters).
struct Clusters {
    private let declarations: [ModelDeclaration]
    private let indexes: [String: Int]
    /// The way from each model to the last of its bases, itself first.
    private let lineages: [[Int]]

    /// Fails for bases and choices that are not declared, and for models that are their own base or choice.
    init(_ declarations: [ModelDeclaration], indexes: [String: Int]) throws(MappingError) {
        self.declarations = declarations
        self.indexes = indexes
        var lineages: [[Int]] = []
        for index in declarations.indices {
            var lineage = [index]
            while let base = declarations[lineage[lineage.count - 1]].base {
                guard let next = indexes[base] else {
                    throw .unknownModel(base, property: "base", model: declarations[lineage[lineage.count - 1]].name)
                }
                if lineage.contains(next) { throw .circularCluster(lineage.map { declarations[$0].name }) }
                lineage.append(next)
            }
            lineages.append(lineage)
        }
        self.lineages = lineages
        for index in declarations.indices { try checkChoices(of: index, above: []) }
    }

    private func checkChoices(of index: Int, above: [Int]) throws(MappingError) {
        let above = above + [index]
        for choice in declarations[index].choices {
            guard let model = indexes[choice.model] else {
                throw .unknownModel(choice.model, property: "cluster", model: declarations[index].name)
            }
            if above.contains(model) { throw .circularCluster(above.map { declarations[$0].name }) }
            try checkChoices(of: model, above: above)
        }
    }

    /// The name of the base that a model's objects are known by.
    func root(of index: Int) -> String { declarations[lineages[index].last ?? index].name }

    /// The models that have a model's identity, itself included.
    func relatives(of index: Int) -> [Int] {
        declarations.indices.filter { lineages[$0].last == lineages[index].last }
    }

    /// What a model declares together with its bases; the nearer declaration wins.
    func effective(_ index: Int) -> ModelDeclaration {
        var lineage = lineages[index][...]
        var result = Self.spelled(declarations[lineage.removeFirst()])
        for base in lineage { result = Self.merge(result, onto: Self.spelled(declarations[base])) }
        return result
    }

    /// A base as its objects are read where no choice decides: with the concrete models that no choice names; nil where
    /// that is the base itself.
    func open(_ index: Int) -> ModelDeclaration? {
        let chosen = Set(declarations[index].choices.map(\.model))
        let rest = declarations.indices.filter {
            $0 != index && lineages[$0].contains(index) && !chosen.contains(declarations[$0].name)
                // What belongs to a chosen model is its own matter.
                && !lineages[$0].prefix { $0 != index }.contains { chosen.contains(declarations[$0].name) }
        }
        guard !rest.isEmpty else { return nil }
        return rest.reduce(effective(index)) { result, concrete in
            var added = Self.merge(result, onto: Self.spelled(declarations[concrete]))
            added.name = result.name
            added.choices = result.choices
            added.base = result.base
            added.identity = result.identity
            return added
        }
    }

    /// The declaration with every property's source said, which depends on the naming of the model it stands in.
    private static func spelled(_ declaration: ModelDeclaration) -> ModelDeclaration {
        guard declaration.naming != .exact,
            declaration.properties.contains(where: { $0.from.isEmpty && $0.parts.isEmpty })
        else { return declaration }
        var declaration = declaration
        declaration.properties = declaration.properties.flatMap { property -> [PropertyDeclaration] in
            guard property.from.isEmpty, property.parts.isEmpty else { return [property] }
            return declaration.naming.members(for: property.name).map { name in
                var spelled = property
                spelled.from = name
                return spelled
            }
        }
        return declaration
    }

    private static func merge(_ own: ModelDeclaration, onto base: ModelDeclaration) -> ModelDeclaration {
        var result = own
        let names = Set(own.properties.map { $0.name.lowercased() })
        let sources = Set(own.properties.compactMap { KeyPathSyntax.steps(of: $0.from) })
        result.properties =
            base.properties.filter { property in
                !names.contains(property.name.lowercased())
                    && KeyPathSyntax.steps(of: property.from).map { !sources.contains($0) } ?? true
            } + own.properties
        if own.identity.isEmpty { result.identity = base.identity }
        result.keys = base.keys + own.keys.filter { !base.keys.contains($0) }
        result.local = base.local + own.local.filter { !base.local.contains($0) }
        result.secret = base.secret + own.secret.filter { !base.secret.contains($0) }
        result.sharesAll = base.sharesAll || own.sharesAll
        result.distinguishesTypes = base.distinguishesTypes
        result.modified = own.modified ?? base.modified
        result.deletedWhen = own.deletedWhen ?? base.deletedWhen
        result.onDelete = own.onDelete ?? base.onDelete
        return result
    }
}
