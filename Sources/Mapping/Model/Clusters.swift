/// The models that share an identity, and what concrete models inherit from their bases (Mantle's class clusters).
///
/// A chain is a model preceded by its bases, the outermost first.
struct Clusters {
    private let declarations: [ModelDeclaration]
    /// By model, the chain that ends with it.
    private let chains: [[Int]]
    /// By model, the models derived from it.
    private let derived: [[Int]]

    /// Reports undeclared bases, and models that are their own base.
    init(_ declarations: [ModelDeclaration], indexes: [String: Int], _ mistakes: inout MistakeList) {
        self.declarations = declarations
        let edges = declarations.map { declaration in [declaration.base.flatMap { indexes[$0] }].compactMap(\.self) }
        for (index, declaration) in declarations.enumerated() {
            guard let base = declaration.base, edges[index].isEmpty else { continue }
            mistakes.report(.unknownModel(base, property: "base", model: declaration.name), model: index)
        }
        for cycle in cycles(in: edges) {
            mistakes.report(.circularCluster(cycle.map { declarations[$0].name }), model: cycle[0])
        }
        chains = declarations.indices.map { index in
            var lineage = [index]
            var seen: Set<Int> = [index]
            while let base = edges[lineage[lineage.count - 1]].first, seen.insert(base).inserted {
                lineage.append(base)
            }
            return lineage.reversed()
        }
        var derived = Array(repeating: [Int](), count: declarations.count)
        for (index, chain) in chains.enumerated() { for base in chain.dropLast() { derived[base].append(index) } }
        self.derived = derived
    }

    /// Reports choices that lead back to their own model, unless one of the models has a mistake of this kind already.
    func reportCircularChoices(indexes: [String: Int], _ mistakes: inout MistakeList) {
        let edges = declarations.map { $0.choices.compactMap { indexes[$0.model] } }
        for cycle in cycles(in: edges) where !mistakes.concernCluster(ofAny: cycle) {
            mistakes.report(.circularCluster(cycle.map { declarations[$0].name }), model: cycle[0])
        }
    }

    func chain(of model: Int) -> [Int] { chains[model] }

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
    func declaration(of chain: [Int]) -> ModelDeclaration {
        chain.dropFirst().reduce(declarations[chain[0]]) { merge(declarations[$1], onto: $0) }
    }

    /// The same for a base together with derived models that no choice leads to.
    func declaration(of chain: [Int], with unchosen: [Int]) -> ModelDeclaration {
        let base = declaration(of: chain)
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
        if base.isEmpty || own.isEmpty { return base + own }
        let known = Set(base)
        return base + own.filter { !known.contains($0) }
    }

    /// The properties of a chain in display order: one replaces that of the same name in a base.
    ///
    /// Parts of the identity that no property shows come first, under derived names.
    func members(of chain: [Int]) -> [ModelMember] {
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
        return hiddenIdentity(of: chain, members) + members
    }

    /// The same with those of derived models that no choice leads to, unless a name or a source occurs already.
    func members(of chain: [Int], with unchosen: [Int]) -> [ModelMember] {
        var members = members(of: chain)
        var names = Set(members.map { $0.declaration.name.lowercased() })
        var sources = Set(members.flatMap(\.spellings).compactMap { KeyPathSyntax.steps(of: $0) })
        for model in unchosen {
            let new = ownMembers(of: model).filter { member in
                !names.contains(member.declaration.name.lowercased())
                    && !member.spellings.contains { KeyPathSyntax.steps(of: $0).map(sources.contains) ?? false }
            }
            names.formUnion(new.map { $0.declaration.name.lowercased() })
            sources.formUnion(new.flatMap(\.spellings).compactMap { KeyPathSyntax.steps(of: $0) })
            members += new
        }
        return members
    }

    private func ownMembers(of model: Int) -> [ModelMember] {
        let naming = MemberNaming(declarations[model].naming)
        return declarations[model].properties.enumerated().map { index, property in
            let isNamed =
                declarations[model].naming != .exact && property.parts.isEmpty && property.completes.isEmpty
                && property.from.isEmpty
            return ModelMember(
                model: model,
                index: index,
                declaration: property,
                spellings: isNamed
                    ? naming.members(for: property.name) : property.parts.isEmpty ? [property.from] : [],
                written: isNamed ? naming.output(for: property.name) : property.from
            )
        }
    }

    /// The model of a chain that declares the identity; nil if none does.
    private func identified(in chain: [Int]) -> Int? { chain.last { !declarations[$0].identity.isEmpty } }

    func hasIdentity(_ model: Int) -> Bool { identified(in: chains[model]) != nil }

    private func hiddenIdentity(of chain: [Int], _ members: [ModelMember]) -> [ModelMember] {
        guard let model = identified(in: chain) else { return [] }
        var hidden: [ModelMember] = []
        for entry in declarations[model].identity {
            let isShown = members.contains {
                ($0.declaration.name == entry || $0.declaration.from == entry) && $0.declaration.parts.isEmpty
            }
            guard !isShown, !hidden.contains(where: { $0.declaration.from == entry }),
                let name = Self.name(forIdentity: entry), !members.contains(where: { $0.declaration.name == name })
            else { continue }
            let property = PropertyDeclaration(name: name, from: entry)
            let spellings = declarations[model].naming.spellings(of: entry)
            hidden.append(
                ModelMember(
                    model: model,
                    index: nil,
                    declaration: property,
                    spellings: spellings,
                    written: spellings.count > 1 ? MemberNaming(declarations[model].naming).output(for: entry) : entry
                )
            )
        }
        return hidden
    }

    /// The derived name: `id` for `id`, `node_id` for `node.id`, `owner` for `@url.owner`.
    private static func name(forIdentity entry: String) -> String? {
        let names: [String]? =
            switch ContextValue(entry) {
            case .capture(let name), .query(let name), .header(let name): [name]
            case .parent(let path): ["parent"] + (KeyPathSyntax.components(of: path) ?? [])
            case .root(let path): ["root"] + (KeyPathSyntax.components(of: path) ?? [])
            case .url: ["url"]
            case .index: ["index"]
            case .key: ["key"]
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
    var spellings: [String]
    /// The source that it is written back to.
    var written: String
}

extension ModelDeclaration {
    /// The sources that an entry such as `identity: id` refers to, the preferred one first.
    ///
    /// These are the sources of the first property with that name, as far as it is read from members. Without such a
    /// property, the entry is itself a key path.
    func sources(_ members: [ModelMember]) -> @Sendable (_ entry: String) -> [String] {
        let read = members.lazy.filter { $0.index != nil && !$0.spellings.isEmpty }
        let spellings = Dictionary(read.map { ($0.declaration.name, $0.spellings) }) { first, _ in first }
        return { [naming] entry in spellings[entry] ?? naming.spellings(of: entry) }
    }
}

extension PropertyDeclaration {
    /// The names of a write path; empty for a plain property.
    var completes: [String] {
        name.utf8.contains(UInt8(ascii: "."))
            ? name.split(separator: ".", omittingEmptySubsequences: false).map(String.init) : []
    }

    /// Whether the child is made of its parent's own members.
    var isItself: Bool { ContextValue(from) == .itself && parts.isEmpty }
}
