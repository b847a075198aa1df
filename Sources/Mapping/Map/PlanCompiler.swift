/// Compiles the declared models into plans and collects every mistake.
///
/// A plan is made of a chain of models, from the outermost base to the concrete one. A property replaces one of the
/// same name in an earlier model.
struct PlanCompiler {
    /// One property of a plan and its declaration.
    struct Member {
        var model: Int
        /// The index in the model's declaration; nil for a hidden identity.
        var index: Int?
        var declaration: PropertyDeclaration
    }

    let declarations: [ModelDeclaration]
    let indexes: [String: Int]
    var plans: [ModelPlan] = []
    private(set) var mistakes: MistakeList
    /// The models that make up each plan; those of the declared models come first, in their order.
    private var chains: [[Int]]
    private var plansOfChains: [[Int]: Int] = [:]
    /// By declared model, its own and its bases' properties by name.
    private var declared: [Int: [String: Member]] = [:]

    /// Creates a compiler that adds to the mistakes found so far.
    init(
        _ declarations: [ModelDeclaration],
        indexes: [String: Int],
        _ clusters: Clusters,
        _ mistakes: MistakeList
    ) {
        (self.declarations, self.indexes, self.mistakes) = (declarations, indexes, mistakes)
        chains = declarations.indices.map(clusters.chain)
    }

    mutating func compile() {
        for (index, chain) in chains.enumerated() { plansOfChains[chain] = index }
        // Choices of a cluster may add plans while the loop runs.
        while plans.count < chains.count { plans.append(plan(of: chains[plans.count])) }
        for index in plans.indices { adoptCompleted(in: index) }
        let cycles = RelationCycles(
            declarations: declarations,
            members: declarations.indices.map { members(of: chains[$0]) },
            isKeyless: declarations.indices.map { !hasIdentity($0) },
            indexes: indexes
        )
        for (model, error) in cycles.mistakes() { mistakes.report(error, model: model) }
    }

    // MARK: Chains

    private mutating func planIndex(of chain: [Int]) -> Int {
        if let index = plansOfChains[chain] { return index }
        plansOfChains[chain] = chains.count
        chains.append(chain)
        return chains.count - 1
    }

    /// The identity of a chain: the last declared one.
    func identity(of chain: [Int]) -> [String] {
        chain.last { !declarations[$0].identity.isEmpty }.map { declarations[$0].identity } ?? []
    }

    /// Whether objects of a model have an identity, declared by itself or by a base.
    func hasIdentity(_ model: Int) -> Bool { !identity(of: chains[model]).isEmpty }

    /// The properties of a declared model and its bases, by name.
    mutating func membersByName(of model: Int) -> [String: Member] {
        if let known = declared[model] { return known }
        let members = Self.byName(members(of: chains[model]))
        declared[model] = members
        return members
    }

    static func byName(_ members: [Member]) -> [String: Member] {
        Dictionary(members.map { ($0.declaration.name, $0) }) { first, _ in first }
    }

    /// The properties of a chain in display order.
    func members(of chain: [Int]) -> [Member] {
        var members: [Member] = []
        var places: [String: Int] = [:]
        for model in chain {
            for (index, declaration) in declarations[model].properties.enumerated() {
                let member = Member(model: model, index: index, declaration: declaration)
                if let place = places[declaration.name] {
                    members[place] = member
                } else {
                    places[declaration.name] = members.count
                    members.append(member)
                }
            }
        }
        return hiddenIdentity(of: chain, members) + members
    }

    /// Parts of the identity that no property shows; they are shown first, under derived names.
    private func hiddenIdentity(of chain: [Int], _ members: [Member]) -> [Member] {
        var hidden: [Member] = []
        for entry in identity(of: chain) {
            let isShown = members.contains {
                ($0.declaration.name == entry || $0.declaration.from == entry) && $0.declaration.parts.isEmpty
            }
            guard !isShown, !hidden.contains(where: { $0.declaration.from == entry }), let last = chain.last,
                let name = Self.name(forIdentity: entry), !members.contains(where: { $0.declaration.name == name })
            else { continue }
            hidden.append(Member(model: last, index: nil, declaration: PropertyDeclaration(name: name, from: entry)))
        }
        return hidden
    }

    /// The derived name: `id` for `id`, `node_id` for `node.id`, `owner` for `@url.owner`.
    private static func name(forIdentity entry: String) -> String? {
        switch ContextValue(entry) {
        case .capture(let name), .header(let name): return sanitised([name])
        case .parent(let path): return sanitised(["parent"] + (KeyPathSyntax.components(of: path) ?? []))
        case .root(let path): return sanitised(["root"] + (KeyPathSyntax.components(of: path) ?? []))
        case .url: return "url"
        case .index: return "index"
        case .key: return "key"
        case .itself: return nil
        case nil: return KeyPathSyntax.components(of: entry).map(sanitised)
        }
    }

    private static func sanitised(_ components: [String]) -> String {
        Models.sanitised(components.joined(separator: "_"))
    }

    // MARK: One plan

    private mutating func plan(of chain: [Int]) -> ModelPlan {
        let model = chain[chain.count - 1]
        let members = members(of: chain)
        let identity = identity(of: chain)
        var plan = ModelPlan(
            name: declarations[model].name,
            sharesAll: chain.contains { declarations[$0].sharesAll },
            hasIdentity: !identity.isEmpty
        )
        var sources = PathBranch()
        // The declaration of each property in the plan. Properties with mistakes are not in it.
        var places: [Member] = []
        for member in members {
            do throws(MappingError) {
                var property = try property(member, into: &sources, &plan.slotCount)
                property.isIdentity = identity.contains {
                    $0 == member.declaration.name || $0 == member.declaration.from
                }
                plan.append(property)
                places.append(member)
            } catch {
                mistakes.report(error, model: member.model, property: member.index)
            }
        }
        _ = plan.sources.append(sources)
        connectCompletions(of: &plan, places, members)
        orderWriting(of: &plan, places)
        plan.choices = choices(of: chain)
        return plan
    }

    /// Orders properties within others' values last; two properties with one place are a mistake.
    private mutating func orderWriting(of plan: inout ModelPlan, _ places: [Member]) {
        var outputs: [(property: Int, path: [PathStep])] = []
        for (index, property) in plan.properties.enumerated() {
            outputs += property.output.ownPaths.map { (index, $0) }
        }
        var writers: [[PathStep]: [Int]] = [:]
        for output in outputs {
            if let other = writers[output.path]?.first {
                reportSameOutput(output.path, places[other], places[output.property])
            }
            writers[output.path, default: []].append(output.property)
        }
        checkWithin(outputs, writers, of: plan, places)
        for output in outputs {
            let lies = output.path.outer.contains { writers[$0]?.contains { $0 != output.property } ?? false }
            if lies { plan.derived.insert(output.property) }
        }
        plan.writingOrder = plan.properties.indices.filter { !plan.derived.contains($0) } + plan.derived.sorted()
    }

    private mutating func reportSameOutput(_ path: [PathStep], _ first: Member, _ second: Member) {
        let names = [first.declaration.name, second.declaration.name]
        let model = declarations[second.model].name
        // If neither has a `to:`, they collide at the place they are read from.
        let isDerived = first.declaration.output == .derived && second.declaration.output == .derived
        let error: MappingError =
            isDerived
            ? .sameKeyPath(Self.text(of: path), properties: names, model: model)
            : .sameOutput(Self.text(of: path), properties: names, model: model)
        mistakes.report(error, model: second.model, property: second.index)
    }

    /// Reports `to:` places that overlap a value which another property writes whole.
    private mutating func checkWithin(
        _ outputs: [(property: Int, path: [PathStep])],
        _ writers: [[PathStep]: [Int]],
        of plan: ModelPlan,
        _ places: [Member]
    ) {
        for inner in outputs {
            let candidates = inner.path.outer.flatMap { path in (writers[path] ?? []).map { (property: $0, path: path) }
            }
            let outer = candidates.first { outer in
                outer.property != inner.property && plan.properties[outer.property].relation == nil
                    && [outer.property, inner.property].contains { places[$0].declaration.output != .derived }
            }
            guard let outer else { continue }
            let (first, second) = (places[outer.property], places[inner.property])
            let error = MappingError.outputWithin(
                Self.text(of: inner.path),
                outer: Self.text(of: outer.path),
                properties: [second.declaration.name, first.declaration.name],
                model: declarations[second.model].name
            )
            mistakes.report(error, model: second.model, property: second.index)
        }
    }

    private static func text(of path: [PathStep]) -> String {
        path.reduce(into: "") { text, step in
            switch step {
            case .name(let name): text += (text.isEmpty ? "" : ".") + name
            case .elements: text += "[]"
            }
        }
    }

    // MARK: Clusters

    private mutating func choices(of chain: [Int]) -> [ModelPlan.Choice] {
        let model = chain[chain.count - 1]
        var choices: [ModelPlan.Choice] = []
        let members = PropertySources(declarations[model].choices.isEmpty ? [] : spelledMembers(of: chain))
        for choice in declarations[model].choices {
            guard let index = indexes[choice.model] else {
                mistakes.report(
                    .unknownModel(choice.model, property: "cluster", model: declarations[model].name),
                    model: model
                )
                continue
            }
            do throws(MappingError) {
                let condition = try choice.condition.map { (condition) throws(MappingError) in
                    try CompiledCondition(condition.spelled(by: members)) { (path) throws(MappingError) in
                        guard let names = KeyPathSyntax.steps(of: path)?.names else {
                            throw .invalidKeyPath(path, usedBy: "cluster", model: declarations[model].name)
                        }
                        return names
                    }
                }
                guard let plan = planIndex(ofChoice: index, within: chain) else { continue }
                choices.append(ModelPlan.Choice(condition: condition, plan: plan))
            } catch {
                mistakes.report(error, model: model)
            }
        }
        return choices
    }

    /// The properties of a chain, one for each spelling of its source.
    private func spelledMembers(of chain: [Int]) -> [PropertyDeclaration] {
        members(of: chain).flatMap { $0.declaration.spelled(by: declarations[$0.model].naming) }
    }

    /// The plan of a choice: the concrete model's own chain if it passes through the cluster's base, else both chains
    /// joined.
    private mutating func planIndex(ofChoice model: Int, within chain: [Int]) -> Int? {
        if chain.last == model { return planIndex(of: chain) }
        guard !chain.contains(model) else {
            mistakes.report(.circularCluster(chain.map { declarations[$0].name }), model: model)
            return nil
        }
        let own = chains[model]
        if own.starts(with: chain) { return planIndex(of: own) }
        let above = Set(chain)
        return planIndex(of: chain + own.filter { !above.contains($0) })
    }

    /// Finds the relation that each write path completes.
    mutating func connectCompletions(of plan: inout ModelPlan, _ places: [Member], _ members: [Member]) {
        guard plan.properties.contains(where: { !$0.completes.isEmpty }) else { return }
        let members = Self.byName(members)
        for (index, property) in plan.properties.enumerated() where !property.completes.isEmpty {
            let child = plan.property(named: property.completes[0])
            guard let child, plan.properties[child].relation?.arity == .one,
                leads(property.completes[...], from: members)
            else {
                let error = MappingError.writesIntoNothing(property.name, model: declarations[places[index].model].name)
                mistakes.report(error, model: places[index].model, property: places[index].index)
                continue
            }
            plan.update(child) { $0.completedBy.append(index) }
        }
    }

    /// Gives each write path the default of the property it completes, and its relation and conversion unless it has
    /// its own.
    mutating func adoptCompleted(in index: Int) {
        for (position, property) in plans[index].properties.enumerated() where !property.completes.isEmpty {
            guard let completed = target(of: property.completes[...], in: index, depth: 0) else { continue }
            plans[index].update(position) {
                $0.completedDefault = completed.defaultValue
                guard $0.relation == nil, $0.conversion.isTrivial else { return }
                ($0.relation, $0.conversion) = (completed.relation, completed.conversion)
            }
        }
    }

    private func target(of path: ArraySlice<String>, in index: Int, depth: Int) -> PropertyPlan? {
        let plan = plans[index]
        if let name = path.first, let property = plan.property(named: name).map({ plan.properties[$0] }) {
            guard path.count > 1 else { return property }
            return property.relation.flatMap { target(of: path.dropFirst(), in: $0.plan, depth: depth) }
        }
        guard depth < 4 else { return nil }
        return plan.choices.lazy.compactMap { target(of: path, in: $0.plan, depth: depth + 1) }.first
    }

    /// Whether a path of property names leads through relations to one object each.
    private mutating func leads(_ path: ArraySlice<String>, from members: [String: Member], depth: Int = 0) -> Bool {
        guard let name = path.first, let member = members[name] else { return false }
        guard path.count > 1 else { return true }
        guard let relation = member.declaration.relation, relation.arity == .one, let index = indexes[relation.model]
        else { return false }
        return leads(path.dropFirst(), toModel: index, depth: depth)
    }

    /// The same, starting from a model or one of its cluster's choices.
    private mutating func leads(_ path: ArraySlice<String>, toModel model: Int, depth: Int) -> Bool {
        if leads(path, from: membersByName(of: model), depth: depth) { return true }
        // Circular clusters are reported elsewhere.
        guard depth < 4 else { return false }
        for choice in declarations[model].choices {
            if let index = indexes[choice.model], leads(path, toModel: index, depth: depth + 1) { return true }
        }
        return false
    }
}
