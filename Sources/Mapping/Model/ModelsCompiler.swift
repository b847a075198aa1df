/// Compiles all declared models and collects every mistake in them.
struct ModelsCompiler {
    /// A choice of a cluster before it is compiled.
    typealias Choice = (condition: Condition?, model: Int, shown: Int)

    private let clusters: Clusters
    private var declarations: [ModelDeclaration] { clusters.declarations }
    private(set) var mistakes: MistakeList
    /// Contradictions between models derived from one base, each sound in itself.
    private(set) var relatives = MistakeList()
    /// The chains of the compiled models; those of the declared models come first, in their order.
    private var chains: [[Int]]
    /// By chain.
    private var choices: [[Choice]] = []
    private var compilers: [ModelCompiler] = []
    private(set) var tree = PathTree()
    /// By the bases with choices in a chain.
    private var askedTrees: [[Int]: (asked: Int, candidates: Int)] = [:]

    /// It adds to the mistakes found so far.
    init(_ clusters: Clusters, _ mistakes: MistakeList) {
        (self.clusters, self.mistakes, chains) = (clusters, mistakes, clusters.chains)
    }

    /// The compiled models: the declared ones in their order, then those of choices that are derived from no base, and
    /// those for objects that no choice takes.
    mutating func compile() -> [CompiledModel] {
        // Choices may add chains while the loop runs.
        while choices.count < chains.count { choices.append(choices(of: chains[choices.count])) }
        for (chain, choices) in zip(chains, choices) { compile(ModelCompiler(chain, clusters), choices) }
        var fallbacks: [Int: Int] = [:]
        for index in declarations.indices {
            let unchosen = clusters.unchosen(of: index)
            guard !unchosen.isEmpty else { continue }
            fallbacks[index] = compilers.count
            compile(ModelCompiler(chains[index], with: unchosen, clusters), choices[index])
        }
        for index in chains.indices { connectCompletions(of: index) }
        for index in chains.indices { orderWriting(of: compilers[index]) }
        reportCircles()
        return compilers.enumerated().map { index, compiler in
            let root = tree.append(compiler.root)
            let (asked, candidates) = asked(of: compiler.chain)
            let fallback = fallbacks[index] ?? index
            return CompiledModel(compiler, root: root, asked: asked, candidates: candidates, fallback: fallback)
        }
    }

    /// The tree of the members that the conditions of a chain's clusters read, which are known of each object; and the same
    /// with the plain properties of all their models.
    private mutating func asked(of chain: [Int]) -> (asked: Int, candidates: Int) {
        let bases = chain.filter { !declarations[$0].choices.isEmpty }
        guard !bases.isEmpty else { return (-1, -1) }
        if let known = askedTrees[bases] { return known }
        var branch = PathBranch()
        for path in bases.flatMap({ compilers[$0].reading.choices.compactMap(\.condition) }).flatMap(\.paths) {
            branch.update(path) { $0.node.isAsked = true }
        }
        let asked = tree.append(branch)
        let family = reachable(from: bases) { compilers[$0].reading.choices.map(\.model) }
        for member in family.flatMap({ compilers[$0].members })
        where member.declaration.relation == nil && member.declaration.merge.takesNewest {
            for source in member.spellings where !ContextValue.isSpelled(source) {
                guard let path = KeyPathSyntax.steps(of: source), !path.contains(.elements) else { continue }
                branch.update(path[...]) { $0.node.isAsked = true }
            }
        }
        let trees = (asked, tree.append(branch))
        askedTrees[bases] = trees
        return trees
    }

    private mutating func compile(_ compiler: ModelCompiler, _ choices: [Choice]) {
        compiler.compile(choices: choices)
        if compiler.isOpen {
            relatives.report(compiler.mistakes.map(\.error), amongRelativesOf: compiler.model, declarations)
        } else {
            for mistake in compiler.mistakes { mistakes.report(mistake) }
        }
        compilers.append(compiler)
    }

    // MARK: Clusters

    private mutating func choices(of chain: [Int]) -> [Choice] {
        let model = chain[chain.count - 1]
        var choices: [Choice] = []
        for choice in declarations[model].choices {
            guard let index = clusters.indexes[choice.model] else {
                let name = declarations[model].name
                mistakes.report(.unknownModel(choice.model, property: "cluster", model: name), model: model)
                continue
            }
            guard index == model || !chain.contains(index) else {
                mistakes.report(.circularCluster(chain.map { declarations[$0].name }), model: index)
                continue
            }
            let own = clusters.chain(ofChoice: index, within: chain)
            let known = own == clusters.chains[index] ? index : chains.firstIndex(of: own)
            if known == nil { chains.append(own) }
            choices.append((choice.condition, index, known ?? chains.count - 1))
        }
        return choices
    }

    /// Reports models that refer to each other in endless circles.
    ///
    /// Children made of their parents' members (`@self`) must not lead back. Relations to one object must not form a circle
    /// of models without an identity: it would have no end. Circles through lists (trees) are allowed.
    private mutating func reportCircles() {
        func report(_ use: String, _ isEdge: (_ from: Int, PropertyDeclaration, _ to: Int) -> Bool) {
            let edges = declarations.indices.map { model in
                compilers[model].members.map(\.declaration).compactMap { property in
                    (property.relation?.model).flatMap { clusters.indexes[$0] }
                        .flatMap { isEdge(model, property, $0) ? $0 : nil }
                }
            }
            for cycle in cycles(in: edges) {
                mistakes.report(.circle(cycle.map { declarations[$0].name }, use: use), model: cycle[0])
            }
        }
        report("\"@self\"") { _, property, _ in property.isItself }
        report("relations to one object each, and none of them has an identity") { model, property, target in
            property.relation?.arity == .one && !property.isItself && !clusters.hasIdentity(model)
                && !clusters.hasIdentity(target)
        }
    }

    // MARK: Completing a child

    /// Finds the relation that each write path completes, and the property there.
    ///
    /// The write path has the default of that property, and its relation and conversion unless it has its own.
    private mutating func connectCompletions(of index: Int) {
        let compiler = compilers[index]
        for (position, property) in compiler.properties.all.enumerated() where !property.completes.isEmpty {
            guard let child = compiler.properties.places[property.completes[0]],
                compiler.properties.all[child].relation?.arity == .one,
                let (model, name) = target(of: property.completes[...], in: index)
            else {
                let member = compiler.places[position]
                report(.writesIntoNothing(property.name, model: declarations[member.model].name), at: member)
                continue
            }
            compiler.properties.all[child].completedBy.append(position)
            guard let place = compilers[model].properties.places[name] else { continue }
            let completed = compilers[model].properties.all[place]
            compiler.properties.all[position].completedDefault = completed.defaultValue
            guard property.relation == nil, property.conversion.isTrivial else { continue }
            compiler.properties.all[position].relation = completed.relation
            compiler.properties.all[position].conversion = completed.conversion
        }
    }

    private mutating func report(_ error: MappingError, at member: ModelMember) {
        mistakes.report(error, model: member.model, property: member.index)
    }

    /// The model in which a path of property names ends, and the property there: it leads through relations to one object
    /// each, from a compiled model or one of its choices.
    private func target(of path: ArraySlice<String>, in index: Int, depth: Int = 0) -> (model: Int, name: String)? {
        if let name = path.first, let property = compilers[index].property(named: name) {
            if path.count == 1 { return (index, name) }
            if let relation = property.relation, relation.arity == .one, let next = clusters.indexes[relation.model],
                let found = target(of: path.dropFirst(), in: next, depth: depth)
            {
                return found
            }
        }
        // Circular clusters are reported elsewhere.
        guard depth < 4 else { return nil }
        return choices[index].lazy.compactMap { target(of: path, in: $0.shown, depth: depth + 1) }.first
    }

    // MARK: The way back

    /// Orders properties within others' values last; two properties with one place are a mistake.
    private mutating func orderWriting(of compiler: ModelCompiler) {
        let (properties, places) = (compiler.properties.all, compiler.places)
        let outputs = properties.enumerated().flatMap { index, property in
            property.output.ownPaths.map { (property: index, path: $0) }
        }
        let writers = Dictionary(grouping: outputs, by: \.path)
        var seen: Set<[PathStep]> = []
        for (property, path) in outputs where !seen.insert(path).inserted {
            let (first, second) = (places[writers[path]?.first?.property ?? property], places[property])
            let names = [first.declaration.name, second.declaration.name]
            let (path, model) = (KeyPathSyntax.text(of: path), declarations[second.model].name)
            // If neither has a `to:`, they collide at the place they are read from.
            let isDerived = [first, second].allSatisfy { $0.declaration.output == .derived }
            let error = MappingError.sameOutput(path, properties: names, model: model)
            report(isDerived ? .sameKeyPath(path, properties: names, model: model) : error, at: second)
        }
        var derived: Set<Int> = []
        for inner in outputs {
            let outer = inner.path.outer.flatMap { writers[$0] ?? [] }.filter { $0.property != inner.property }
            if !outer.isEmpty { derived.insert(inner.property) }
            // A `to:` must not lie within a value which another property writes whole, nor the other way round.
            let overlap = outer.first { outer in
                properties[outer.property].relation == nil
                    && [outer.property, inner.property].contains { places[$0].declaration.output != .derived }
            }
            guard let overlap else { continue }
            let (first, second) = (places[overlap.property], places[inner.property])
            let names = [second.declaration.name, first.declaration.name]
            let (path, outerPath) = (KeyPathSyntax.text(of: inner.path), KeyPathSyntax.text(of: overlap.path))
            let model = declarations[second.model].name
            report(.outputWithin(path, outer: outerPath, properties: names, model: model), at: second)
        }
        compiler.properties.derived = derived
        compiler.properties.writingOrder = properties.indices.filter { !derived.contains($0) } + derived.sorted()
    }
}
