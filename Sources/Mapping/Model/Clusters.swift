/// The models that share an identity, and what concrete models inherit from their bases (Mantle's class clusters).
///
/// A chain is a model preceded by its bases, the outermost first.
struct Clusters {
    let declarations: [ModelDeclaration]
    let indexes: [String: Int]
    /// By model, the chain that ends with it.
    let chains: [[Int]]
    /// By model, the models derived from it.
    private let derived: [[Int]]

    /// Reports undeclared bases, and models that are their own base.
    init(_ declarations: [ModelDeclaration], _ mistakes: inout MistakeList) {
        let indexes = Dictionary(declarations.enumerated().map { ($1.name, $0) }) { first, _ in first }
        let bases = declarations.map { $0.base.flatMap { indexes[$0] } }
        for (index, declaration) in declarations.enumerated() {
            guard let base = declaration.base, bases[index] == nil else { continue }
            mistakes.report(.unknownModel(base, property: "base", model: declaration.name), model: index)
        }
        for cycle in cycles(in: bases.map { [$0].compactMap(\.self) }) {
            mistakes.report(.circularCluster(cycle.map { declarations[$0].name }), model: cycle[0])
        }
        chains = declarations.indices.map { index in
            var seen: Set<Int> = []
            let lineage = sequence(first: index) { bases[$0] }.prefix { seen.insert($0).inserted }
            return lineage.reversed()
        }
        var derived = Array(repeating: [Int](), count: declarations.count)
        for (index, chain) in chains.enumerated() { for base in chain.dropLast() { derived[base].append(index) } }
        (self.declarations, self.indexes, self.derived) = (declarations, indexes, derived)
    }

    /// Reports choices that lead back to their own model, unless one of the models has a mistake of this kind already.
    func reportCircularChoices(_ mistakes: inout MistakeList) {
        let edges = declarations.map { $0.choices.compactMap { indexes[$0.model] } }
        for cycle in cycles(in: edges) where !mistakes.concernCluster(ofAny: cycle) {
            mistakes.report(.circularCluster(cycle.map { declarations[$0].name }), model: cycle[0])
        }
    }

    /// The chain of a choice: the concrete model's own if it passes through the cluster's base, else both joined.
    func chain(ofChoice model: Int, within chain: [Int]) -> [Int] {
        if chain.last == model || chains[model].starts(with: chain) { return chains[model] }
        return chain + chains[model].filter { !chain.contains($0) }
    }

    /// The derived models that no choice of a base leads to.
    func unchosen(of base: Int) -> [Int] {
        let chosen = Set(declarations[base].choices.map(\.model))
        return derived[base].filter { model in
            // Models derived from a chosen one are left to it.
            let below = chains[model].drop { $0 != base }.dropFirst()
            return !below.contains { chosen.contains(declarations[$0].name) }
        }
    }

    /// Everything but the properties that a chain declares; the nearer declaration takes precedence.
    ///
    /// `unchosen` are models derived from the last one that no choice leads to: the same for all of them together.
    func declaration(of chain: [Int], with unchosen: [Int] = []) -> ModelDeclaration {
        let base = chain.dropFirst().reduce(declarations[chain[0]]) { merge(declarations[$1], onto: $0) }
        var result = unchosen.reduce(base) { merge($0, onto: declarations[$1]) }
        (result.identity, result.distinguishesTypes) = (base.identity, base.distinguishesTypes)
        return result
    }

    private func merge(_ own: ModelDeclaration, onto base: ModelDeclaration) -> ModelDeclaration {
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

    private func joined(_ base: [String], _ own: [String]) -> [String] {
        let known = Set(base)
        return base + own.filter { !known.contains($0) }
    }

    /// The properties of a chain in display order: one replaces that of the same name in a base.
    ///
    /// Parts of the identity that no property shows come first, under derived names. Those of `unchosen` come last, unless
    /// a name or a source occurs already.
    func members(of chain: [Int], with unchosen: [Int] = []) -> [ModelMember] {
        var members: [ModelMember] = []
        var places: [String: Int] = [:]
        for member in chain.flatMap(ownMembers) {
            if let place = places[member.declaration.name] {
                members[place] = member
            } else {
                places[member.declaration.name] = members.count
                members.append(member)
            }
        }
        members = hiddenIdentity(of: chain, members) + members
        guard !unchosen.isEmpty else { return members }
        var names = Set(members.map(\.foldedName))
        var sources = Set(members.flatMap(\.paths))
        for model in unchosen {
            let new = ownMembers(of: model).filter {
                !names.contains($0.foldedName) && sources.isDisjoint(with: $0.paths)
            }
            names.formUnion(new.map(\.foldedName))
            sources.formUnion(new.flatMap(\.paths))
            members += new
        }
        return members
    }

    private func ownMembers(of model: Int) -> [ModelMember] {
        let naming = declarations[model].naming
        let derivation = MemberNaming(naming)
        return declarations[model].properties.enumerated().map { index, property in
            var member = ModelMember(model: model, index: index, declaration: property, written: property.from)
            if !property.parts.isEmpty { return member }
            member.spellings = [property.from]
            if naming != .exact, property.completes.isEmpty, property.from.isEmpty {
                member.spellings = derivation.members(for: property.name)
                member.written = derivation.output(for: property.name)
            }
            return member
        }
    }

    /// The model of a chain that declares the identity.
    private func identified(in chain: [Int]) -> Int? { chain.last { !declarations[$0].identity.isEmpty } }

    func hasIdentity(_ model: Int) -> Bool { identified(in: chains[model]) != nil }

    private func hiddenIdentity(of chain: [Int], _ members: [ModelMember]) -> [ModelMember] {
        guard let model = identified(in: chain) else { return [] }
        var seen: Set<String> = []
        return declarations[model].identity.filter { seen.insert($0).inserted }.compactMap { entry in
            let isShown = members.contains {
                ($0.declaration.name == entry || $0.declaration.from == entry) && $0.declaration.parts.isEmpty
            }
            guard !isShown, let name = Self.name(forIdentity: entry),
                !members.contains(where: { $0.declaration.name == name })
            else { return nil }
            let (property, naming) = (PropertyDeclaration(name: name, from: entry), declarations[model].naming)
            let spellings = naming.spellings(of: entry)
            let written = spellings.count > 1 ? MemberNaming(naming).output(for: entry) : entry
            return ModelMember(model: model, declaration: property, spellings: spellings, written: written)
        }
    }

    /// The derived name: `id` for `id`, `node_id` for `node.id`, `owner` for `@url.owner`.
    private static func name(forIdentity entry: String) -> String? {
        let names: [String]? =
            switch ContextValue(entry) {
            case .capture(let name), .query(let name), .header(let name): [name]
            case .url, .parent, .root, .index, .key: KeyPathSyntax.components(of: String(entry.dropFirst()))
            case .itself: nil
            case nil: KeyPathSyntax.components(of: entry)
            }
        return names.map { Models.sanitised($0.joined(separator: "_")) }
    }
}

/// One property of a compiled model.
struct ModelMember: Sendable {
    /// The model that declares it.
    var model: Int
    /// The index in that model's declaration; nil for a part of the identity that no property shows.
    var index: Int?
    var declaration: PropertyDeclaration
    /// Its sources, of which the first that is present counts; none if it is combined from several parts.
    var spellings: [String] = []
    /// The source that it is written back to.
    var written: String

    var paths: [[PathStep]] { spellings.compactMap { KeyPathSyntax.steps(of: $0) } }

    fileprivate var foldedName: String { declaration.name.lowercased() }
}

extension ModelDeclaration {
    /// The sources that an entry such as `identity: id` refers to, the preferred one first.
    ///
    /// They are those of the first property with that name. If none is read from members, the entry is a key path.
    func sources(_ members: [ModelMember]) -> @Sendable (_ entry: String) -> [String] {
        let read = members.lazy.filter { $0.index != nil && !$0.spellings.isEmpty }
        let spellings = Dictionary(read.map { ($0.declaration.name, $0.spellings) }) { first, _ in first }
        return { [naming] entry in spellings[entry] ?? naming.spellings(of: entry) }
    }
}
