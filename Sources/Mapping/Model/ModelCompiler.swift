/// Compiles one chain of declarations: a model with what it inherits from its bases.
///
/// A part with a mistake counts as empty for what follows it.
///
/// It is a class, so that a step can be a closure that changes it.
final class ModelCompiler {
    let clusters: Clusters
    /// The model preceded by its bases.
    let chain: [Int]
    let model: Int
    /// Everything but the properties, merged with the bases.
    let declaration: ModelDeclaration
    let members: [ModelMember]
    /// Whether this is a base merged with its derived models, none of which knows the others.
    let isOpen: Bool
    var root = PathBranch()
    private(set) var reading = CompiledModel.Reading()
    var properties = CompiledModel.Properties()
    /// By compiled property, its declaration.
    private(set) var places: [ModelMember] = []
    private(set) var mistakes: [ModelMistake] = []
    private let sources: @Sendable (_ entry: String) -> [String]
    /// The key paths of relations to several objects.
    private let listPaths: Set<String>

    /// With `unchosen`, the model is for the objects of a base that no choice takes: they are read as all of these at once.
    init(_ chain: [Int], with unchosen: [Int] = [], _ clusters: Clusters) {
        (self.clusters, self.chain, model) = (clusters, chain, chain[chain.count - 1])
        isOpen = !unchosen.isEmpty
        declaration = clusters.declaration(of: chain, with: unchosen)
        members = clusters.members(of: chain, with: unchosen)
        sources = declaration.sources(members)
        listPaths = Set(members.map(\.declaration).compactMap { $0.relation?.arity == .many ? $0.from : nil })
    }

    /// The declaration of the first property with a name, even one with a mistake.
    func property(named name: String) -> PropertyDeclaration? {
        members.first { $0.declaration.name == name }?.declaration
    }

    /// Runs one step; a mistake ends it, and is reported at the property or else at the model.
    private func attempt(at member: ModelMember? = nil, _ step: () throws(MappingError) -> Void) {
        do throws(MappingError) {
            try step()
        } catch {
            // A mistake in an identity that no property shows is reported there.
            if let member, member.index == nil { return }
            mistakes.append(ModelMistake(model: member?.model ?? model, property: member?.index, error: error))
        }
    }

    /// Compiles the model, given the compiled models of its choices.
    func compile(choices: [ModelsCompiler.Choice]) {
        attempt { () throws(MappingError) in try checkMigrations() }
        addProperties()
        attempt { () throws(MappingError) in reading.identity = try parts(declaration.identity, as: "identity") }
        attempt { () throws(MappingError) in
            let keys = try parts(declaration.keys, as: "keys")
            reading.keys = zip(declaration.keys, keys).map { (name: $0, part: $1) }
        }
        attempt { () throws(MappingError) in
            guard let modified = declaration.modified else { return }
            reading.modifiedPaths = try spellings(of: modified, as: "modified")
        }
        for path in reading.modifiedPaths { root.update(path) { $0.node.isAsked = true } }
        attempt { () throws(MappingError) in
            let local = try resolve(declaration.local, as: "local")
            for path in local { root.update(path[...]) { $0.node.isLocal = true } }
        }
        attempt { () throws(MappingError) in
            let secret = try resolve(declaration.secret, as: "secret")
            for path in secret { changeRule(at: path) { $0.isSecret = true } }
            try check(secret, use: "identity", zip(declaration.identity, reading.identity))
            try check(secret, use: "keys", reading.keys.lazy.map { ($0.name, $0.part) })
        }
        attempt { () throws(MappingError) in
            reading.deletedWhen = try compile(declaration.deletedWhen, as: "deleted_when")
        }
        for path in reading.deletedWhen?.paths ?? [] { root.update(path) { $0.node.isAsked = true } }
        attempt { () throws(MappingError) in
            reading.choices = try choices.map { (condition, model, shown) throws(MappingError) in
                CompiledModel.Choice(condition: try compile(condition, as: "cluster"), model: model, shown: shown)
            }
        }
        attempt { () throws(MappingError) in
            reading.migrations = try declaration.migrations.map { (migration) throws(MappingError) in
                try CompiledMigration(migration, model: declaration.name)
            }
        }
        if members.contains(where: { !$0.declaration.merge.takesNewest }) { reading.isPlain = false }
    }

    /// Identities and keys are stored to name objects, so they cannot be secret.
    private func check(_ secret: [[PathStep]], use: String, _ parts: some Sequence<(String, CompiledModel.Part)>)
        throws(MappingError)
    {
        for (name, part) in parts {
            for path in part.paths.map({ $0.map(PathStep.name) })
            where secret.contains(where: { path.starts(with: $0) }) {
                throw .secretIdentity(name, usedBy: use, model: declaration.name)
            }
        }
    }

    private func checkMigrations() throws(MappingError) {
        if let base = declaration.base, clusters.indexes[base] != nil,
            declaration.version > 0 || !declaration.migrations.isEmpty
        {
            throw .versionWithinCluster(model: declaration.name, base: base)
        }
        let versions = declaration.migrations.map(\.to)
        for (last, version) in zip([0] + versions, versions) where version <= last || version > declaration.version {
            throw .invalidMigration(version, model: declaration.name, version: declaration.version)
        }
    }

    // MARK: Properties

    private func addProperties() {
        var read: [(member: ModelMember, property: CompiledProperty, path: [PathStep])] = []
        for member in members {
            attempt(at: member) { () throws(MappingError) in
                let property = try property(member)
                if property.completes.isEmpty, properties.places[property.name] == nil {
                    properties.places[property.name] = properties.all.count
                }
                properties.all.append(property)
                places.append(member)
                guard member.index != nil else { return }
                let declaration = member.declaration
                for source in declaration.parts.isEmpty ? member.spellings : declaration.parts.map(\.from)
                where !ContextValue.isSpelled(source) {
                    read.append((member, property, try steps(source, "property \(declaration.name)")))
                }
            }
        }
        // Outer relations come first: what lies within one is derived from it, and has no bytes of its own here.
        for (member, property, path) in read.sorted(by: { $0.path.count < $1.path.count }) {
            attempt(at: member) { () throws(MappingError) in try addRelation(property, member.declaration, at: path) }
        }
        for (member, property, path) in read where root.relationPrefix(of: path) == nil {
            for outer in path.contains(.elements) ? [] : path.outer {
                root.update(outer[...]) { $0.node.holdsProperty = true }
            }
            root.update(path[...]) {
                $0.node.isProperty = true
                $0.node.merge = member.declaration.merge
            }
            addRules(of: property, member.declaration, at: path)
        }
    }

    private func addRelation(_ property: CompiledProperty, _ declaration: PropertyDeclaration, at path: [PathStep])
        throws(MappingError)
    {
        // A key is a plain value: objects are stored by their identities.
        guard let relation = property.relation, relation.key == nil, declaration.parts.isEmpty else { return }
        let isNested = path.contains(.elements)
        let isDerived = root.relationPrefix(of: path) != nil
        if declaration.former == .delete, isNested || isDerived {
            let place = isDerived ? "lies within another relation" : "leads over the elements of a list"
            throw .contradiction(
                "its key path \(place), so it is unknown which object lost one; "
                    + "declare \"former: delete\" in the model of the object that holds them",
                property: declaration.name,
                model: property.model
            )
        }
        if !isDerived { reading.relations.insert(relation.model) }
        root.update(path[...]) {
            $0.node.relation = Int32(relation.model)
            $0.node.deletesFormer = declaration.former == .delete
            $0.node.arity = relation.arity == .many && isNested ? nil : relation.arity
        }
    }

    private func addRules(of property: CompiledProperty, _ declaration: PropertyDeclaration, at path: [PathStep]) {
        // A value combined from several sources is checked as a whole, and the wire does not contain it.
        guard declaration.parts.isEmpty else { return }
        if !declaration.checks.isEmpty {
            reading.isPlain = false
            changeRule(at: path) { ($0.property, $0.checked) = (property.name, property.conversion) }
        }
        guard property.isRequired, !path.contains(.elements) else { return }
        let bit = reading.required.firstIndex(of: property.name) ?? reading.required.count
        guard bit < 64 else { return }
        if bit == reading.required.count { reading.required.append(property.name) }
        changeRule(at: path) { ($0.property, $0.required) = (property.name, 1 << UInt64(bit)) }
    }

    private func changeRule(at path: [PathStep], _ change: (inout MemberRule) -> Void) {
        root.update(path[...]) { branch in
            var rule = branch.rule ?? MemberRule()
            change(&rule)
            branch.rule = rule
        }
    }

    // MARK: Entries

    /// The parts of the identity or the keys, whose members are marked in the tree.
    private func parts(_ entries: [String], as use: String) throws(MappingError) -> [CompiledModel.Part] {
        var seen: Set<[PathStep]> = []
        return try entries.map { (entry) throws(MappingError) in
            // The name of a property read from the context means that context value.
            let source = sources(entry)[0]
            if ContextValue.isSpelled(source) {
                guard let value = ContextValue(source), let path = value.names else {
                    throw .invalidKeyPath(source, usedBy: use, model: declaration.name)
                }
                return .context(value, path: path)
            }
            let paths = try spellings(of: entry, as: use)
            // Two models derived from one base may each name the same member.
            guard seen.insert(paths[0].map(PathStep.name)).inserted || isOpen else {
                throw .namedTwice(entry, usedBy: use, model: declaration.name)
            }
            let capture = reading.captureCount
            reading.captureCount += 1
            for path in paths {
                var isList = false
                root.update(path) {
                    isList = $0.node.relation >= 0 && $0.node.arity != .one
                    // No model has more than 64 captures. A key beyond them is not read.
                    guard capture < 64 else { return }
                    $0.node.captures |= 1 << UInt64(capture)
                    $0.node.isIdentity = $0.node.isIdentity || use == "identity"
                }
                if isList, use == "identity" { throw .identityIsList(entry, model: declaration.name) }
            }
            return .member(paths: paths, capture: capture)
        }
    }

    private func compile(_ condition: Condition?, as use: String) throws(MappingError) -> CompiledCondition? {
        try condition?.spelled(by: sources).compiled { (path) throws(MappingError) in
            try names(at: path, entry: path, as: use)
        }
    }

    private func resolve(_ entries: [String], as use: String) throws(MappingError) -> [[PathStep]] {
        var paths: [[PathStep]] = []
        var seen: Set<[PathStep]> = []
        for entry in entries {
            for source in sources(entry) {
                let path = try resolve(source, as: use)
                if seen.insert(path).inserted {
                    paths.append(path)
                } else if !isOpen {
                    // Two models derived from one base may each name the same member.
                    throw .namedTwice(entry, usedBy: use, model: declaration.name)
                }
            }
        }
        return paths
    }

    /// The member names of an entry in each spelling, the preferred one first; no array may be on the path.
    private func spellings(of entry: String, as use: String) throws(MappingError) -> [[String]] {
        try sources(entry).map { (source) throws(MappingError) in try names(at: source, entry: entry, as: use) }
    }

    private func names(at path: String, entry: String, as use: String) throws(MappingError) -> [String] {
        guard let names = try resolve(path, as: use).names else {
            throw .invalidKeyPath(entry, usedBy: use, model: declaration.name)
        }
        return names
    }

    /// The steps of a key path, which must not lead into another model's objects.
    private func resolve(_ from: String, as use: String) throws(MappingError) -> [PathStep] {
        let path = try steps(from, use)
        guard let owner = root.relationPrefix(of: path).map({ Array(path[..<$0]) }) else { return path }
        for property in members.map(\.declaration) where KeyPathSyntax.steps(of: property.from) == owner {
            guard let other = property.relation?.model else { continue }
            let model = declaration.name
            throw .crossesRelation(from, usedBy: use, property: property.name, model: model, other: other)
        }
        return path
    }

    private func steps(_ path: String, _ use: String) throws(MappingError) -> [PathStep] {
        let steps = try KeyPathSyntax.steps(of: path, usedBy: use, model: declaration.name)
        // The elements of a list of objects are addressed by the list.
        return steps.last == .elements && steps.dropLast().last != .elements && listPaths.contains(path)
            ? steps.dropLast() : steps
    }
}
