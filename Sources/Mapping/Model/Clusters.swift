/// The models that share an identity, and what concrete models inherit from their bases (Mantle's class clusters).
struct Clusters {
    private let declarations: [ModelDeclaration]
    /// By model, the chain from itself to its outermost base.
    private let lineages: [[Int]]
    /// By model, the concrete models derived from it.
    private let derived: [[Int]]
    /// By model, its declaration merged with those of its bases.
    private let effectives: [ModelDeclaration]

    /// Reports undeclared bases, and models that are their own base.
    init(_ declarations: [ModelDeclaration], indexes: [String: Int], _ mistakes: inout MistakeList) {
        self.declarations = declarations
        var lineages: [[Int]] = []
        var derived = Array(repeating: [Int](), count: declarations.count)
        for index in declarations.indices {
            let lineage = Self.lineage(of: index, declarations, indexes, &mistakes)
            for base in lineage.dropFirst() { derived[base].append(index) }
            lineages.append(lineage)
        }
        (self.lineages, self.derived) = (lineages, derived)
        effectives = Self.effectives(declarations, lineages)
    }

    private static func lineage(
        of index: Int,
        _ declarations: [ModelDeclaration],
        _ indexes: [String: Int],
        _ mistakes: inout MistakeList
    ) -> [Int] {
        var lineage = [index]
        var places = [index: 0]
        var last = index
        while let base = declarations[last].base {
            guard let next = indexes[base] else {
                let error = MappingError.unknownModel(base, property: "base", model: declarations[last].name)
                mistakes.report(error, model: last)
                break
            }
            if let start = places.updateValue(lineage.count, forKey: next) {
                reportCircle(lineage[start...], declarations, &mistakes)
                break
            }
            lineage.append(next)
            last = next
        }
        return lineage
    }

    /// Reports a circle of bases, starting with its first declared model, so that it is the same mistake each time.
    private static func reportCircle(
        _ circle: ArraySlice<Int>,
        _ declarations: [ModelDeclaration],
        _ mistakes: inout MistakeList
    ) {
        guard let first = circle.min(), let start = circle.firstIndex(of: first) else { return }
        let names = (circle[start...] + circle[..<start]).map { declarations[$0].name }
        mistakes.report(.circularCluster(names), model: first)
    }

    /// Reports choices that lead back to their own model, unless one of the models has a mistake of this kind already.
    func reportCircularChoices(indexes: [String: Int], _ mistakes: inout MistakeList) {
        let edges = declarations.map { $0.choices.compactMap { indexes[$0.model] } }
        for cycle in CycleDetection(edges).cycles() where !mistakes.concernCluster(ofAny: cycle) {
            mistakes.report(.circularCluster(cycle.map { declarations[$0].name }), model: cycle[0])
        }
    }

    /// The model, preceded by its bases, the outermost first.
    func chain(of index: Int) -> [Int] { lineages[index].reversed() }

    /// The name of a model's outermost base, which its objects are stored under.
    func root(of index: Int) -> String { declarations[lineages[index].last ?? index].name }

    /// A model's declaration merged with those of its bases; the nearer declaration wins.
    func effective(_ index: Int) -> ModelDeclaration { effectives[index] }

    /// Merges each model with its already merged base, bases first.
    private static func effectives(_ declarations: [ModelDeclaration], _ lineages: [[Int]]) -> [ModelDeclaration] {
        var effectives = declarations.map(spelled)
        let basesFirst = declarations.indices.sorted { lineages[$0].count < lineages[$1].count }
        for index in basesFirst {
            guard lineages[index].count > 1, !lineages[lineages[index][1]].contains(index) else {
                // An undeclared base is none, nor is one that leads back.
                effectives[index].base = nil
                continue
            }
            effectives[index] = merge(effectives[index], onto: effectives[lineages[index][1]])
        }
        return effectives
    }

    /// A base together with its derived models that no choice names, for objects that no choice decides.
    ///
    /// Nil if there are none.
    func open(_ index: Int) -> ModelDeclaration? {
        guard !derived[index].isEmpty else { return nil }
        let chosen = Set(declarations[index].choices.map(\.model))
        let rest = derived[index].filter {
            !chosen.contains(declarations[$0].name)
                // Models derived from a chosen one are left to it.
                && !lineages[$0].prefix { $0 != index }.contains { chosen.contains(declarations[$0].name) }
        }
        guard !rest.isEmpty else { return nil }
        var result = effective(index)
        var known = Properties(result.properties)
        // Groups found later come before earlier ones.
        var groups = [result.properties]
        for concrete in rest {
            let own = Self.spelled(declarations[concrete])
            groups.append(known.new(in: own.properties))
            result = Self.mergeRest(of: result, onto: own)
        }
        result.properties = groups.reversed().flatMap(\.self)
        let base = effective(index)
        (result.name, result.choices, result.base, result.identity) = (
            base.name, base.choices, base.base, base.identity
        )
        result.distinguishesTypes = base.distinguishesTypes
        return result
    }

    /// The declaration with explicit sources for all properties, according to the naming of its own model.
    private static func spelled(_ declaration: ModelDeclaration) -> ModelDeclaration {
        guard declaration.naming != .exact,
            declaration.properties.contains(where: { $0.from.isEmpty && $0.parts.isEmpty })
        else { return declaration }
        var declaration = declaration
        declaration.properties = declaration.properties.flatMap { $0.spelled(by: declaration.naming) }
        return declaration
    }

    private static func merge(_ own: ModelDeclaration, onto base: ModelDeclaration) -> ModelDeclaration {
        var result = mergeRest(of: own, onto: base)
        var known = Properties(own.properties)
        result.properties = known.new(in: base.properties) + own.properties
        return result
    }

    /// Merges everything but the properties, which stay those of `own`.
    private static func mergeRest(of own: ModelDeclaration, onto base: ModelDeclaration) -> ModelDeclaration {
        var result = own
        if own.identity.isEmpty { result.identity = base.identity }
        result.keys = joined(base.keys, own.keys)
        result.local = joined(base.local, own.local)
        result.secret = joined(base.secret, own.secret)
        result.sharesAll = base.sharesAll || own.sharesAll
        result.distinguishesTypes = base.distinguishesTypes
        result.modified = own.modified ?? base.modified
        result.deletedWhen = own.deletedWhen ?? base.deletedWhen
        result.onDelete = own.onDelete ?? base.onDelete
        return result
    }

    private static func joined(_ base: [String], _ own: [String]) -> [String] {
        if base.isEmpty || own.isEmpty { return base + own }
        let known = Set(base)
        return base + own.filter { !known.contains($0) }
    }
}

extension PropertyDeclaration {
    /// The property with an explicit source, once for each spelling that its model's naming allows.
    func spelled(by naming: Naming) -> [PropertyDeclaration] {
        guard from.isEmpty, parts.isEmpty else { return [self] }
        return naming.members(for: name).map { member in
            var spelled = self
            spelled.from = member
            return spelled
        }
    }
}

/// Properties that override others with the same name or source.
private struct Properties {
    private var names: Set<String> = []
    private var sources: Set<[PathStep]> = []

    init(_ properties: [PropertyDeclaration]) { for property in properties { add(property) } }

    /// The properties that are not overridden; from now on they override others themselves.
    mutating func new(in properties: [PropertyDeclaration]) -> [PropertyDeclaration] {
        let new = properties.filter { property in
            !names.contains(property.name.lowercased())
                && KeyPathSyntax.steps(of: property.from).map { !sources.contains($0) } ?? true
        }
        for property in new { add(property) }
        return new
    }

    private mutating func add(_ property: PropertyDeclaration) {
        names.insert(property.name.lowercased())
        if let steps = KeyPathSyntax.steps(of: property.from) { sources.insert(steps) }
    }
}
