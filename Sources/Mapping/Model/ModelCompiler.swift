/// Compiles one chain of declarations: a model with what it inherits from its bases.
///
/// A part with a mistake counts as empty for what follows it.
struct ModelCompiler {
    /// Everything but the properties, merged with the bases.
    let declaration: ModelDeclaration
    let members: [ModelMember]
    let declarations: [ModelDeclaration]
    let indexes: [String: Int]
    let clusters: Clusters
    /// Whether this is a base merged with its derived models, none of which knows the others.
    let isOpen: Bool
    var root = PathBranch()
    private(set) var reading = CompiledModel.Reading()
    var properties = CompiledModel.Properties()
    /// By compiled property, its declaration.
    private(set) var places: [ModelMember] = []
    private var rules: [(path: [PathStep], rule: MemberRule)] = []
    private var rulePlaces: [[PathStep]: Int] = [:]
    /// The sources of an entry of the declaration.
    private let sources: @Sendable (_ entry: String) -> [String]
    /// The key paths of relations to several objects.
    private let listPaths: Set<String>
    private(set) var mistakes: [ModelMistake] = []
    private let model: Int

    /// Creates a compiler.
    ///
    /// - Parameters:
    ///   - chain: the model preceded by its bases.
    ///   - unchosen: for the objects of a base that no choice takes, the derived models to read them as, all at once.
    init(
        _ chain: [Int],
        with unchosen: [Int] = [],
        _ declarations: [ModelDeclaration],
        indexes: [String: Int],
        _ clusters: Clusters
    ) {
        (self.declarations, self.indexes, self.clusters) = (declarations, indexes, clusters)
        model = chain[chain.count - 1]
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

    /// Runs one step; collects a mistake in it and then returns `empty`.
    private mutating func step<Value>(
        orElse empty: Value,
        _ work: (inout ModelCompiler) throws(MappingError) -> Value
    ) -> Value {
        do throws(MappingError) {
            return try work(&self)
        } catch {
            mistakes.append(ModelMistake(model: model, error: error))
            return empty
        }
    }

    mutating func report(_ error: MappingError, at member: ModelMember) {
        mistakes.append(ModelMistake(model: member.model, property: member.index, error: error))
    }

    /// Compiles the model.
    ///
    /// - Parameters:
    ///   - choices: the compiled models of its choices.
    mutating func compile(choices: [ModelsCompiler.Choice]) {
        step(orElse: ()) { (compiler) throws(MappingError) in try compiler.checkMigrations() }
        addProperties()
        reading.identity = step(orElse: []) { (compiler) throws(MappingError) in
            try compiler.parts(compiler.declaration.identity, as: "identity", from: 0)
        }
        let memberCount = reading.identity.count { !$0.paths.isEmpty }
        let keys = step(orElse: []) { (compiler) throws(MappingError) in
            try compiler.parts(compiler.declaration.keys, as: "keys", from: memberCount)
        }
        reading.keys = zip(declaration.keys, keys).map { (name: $0.0, part: $0.1) }
        reading.modifiedPaths = step(orElse: []) { (compiler) throws(MappingError) in
            guard let modified = compiler.declaration.modified else { return [] }
            return try compiler.spellings(of: modified, as: "modified")
        }
        for path in reading.modifiedPaths { root.update(path.map(PathStep.name)[...]) { $0.isAsked = true } }
        step(orElse: ()) { (compiler) throws(MappingError) in
            for path in try compiler.resolve(compiler.declaration.local, as: "local") {
                compiler.root.update(path[...]) { $0.isLocal = true }
            }
        }
        step(orElse: ()) { (compiler) throws(MappingError) in
            let secret = try compiler.resolve(compiler.declaration.secret, as: "secret")
            for path in secret { compiler.addRule(at: path) { $0.isSecret = true } }
            try compiler.check(secret, use: "identity", compiler.declaration.identity, compiler.reading.identity)
            try compiler.check(secret, use: "keys", compiler.declaration.keys, keys)
        }
        capture((reading.identity + keys).map(\.paths).filter { !$0.isEmpty }, identityCount: memberCount)
        step(orElse: ()) { (compiler) throws(MappingError) in try compiler.checkNoList() }
        reading.deletedWhen = step(orElse: nil) { (compiler) throws(MappingError) in
            try compiler.compile(compiler.declaration.deletedWhen, as: "deleted_when")
        }
        for path in reading.deletedWhen?.paths ?? [] { root.update(path.map(PathStep.name)[...]) { $0.isAsked = true } }
        reading.choices = step(orElse: []) { (compiler) throws(MappingError) in
            var compiled: [CompiledModel.Choice] = []
            for choice in choices {
                let condition = try compiler.compile(choice.condition, as: "cluster")
                compiled.append(CompiledModel.Choice(condition: condition, model: choice.model, shown: choice.shown))
            }
            return compiled
        }
        reading.isPlain =
            !rules.contains { $0.rule.checked != nil }
            && members.allSatisfy { [.latest, .replace].contains($0.declaration.merge) }
    }

    /// Appends the model's members to the table of paths, and its rules to the other table; returns the node of the
    /// object itself.
    mutating func append(to tree: inout PathTree, rules table: inout [MemberRule]) -> Int {
        for (path, rule) in rules {
            root.update(path[...]) { $0.rule = Int32(table.count) }
            table.append(rule)
        }
        return tree.append(root)
    }

    /// Marks the members of the identity and the keys.
    private mutating func capture(_ captures: [[[String]]], identityCount: Int) {
        reading.captureCount = captures.count
        // No model has more than 64 captures. A key beyond them is not read.
        for (index, paths) in captures.enumerated() where index < 64 {
            for path in paths {
                root.update(path.map(PathStep.name)[...]) { node in
                    node.captures |= 1 << UInt64(index)
                    node.isIdentity = node.isIdentity || index < identityCount
                }
            }
        }
    }

    /// An identity is one value.
    private mutating func checkNoList() throws(MappingError) {
        for (name, part) in zip(declaration.identity, reading.identity) {
            for path in part.paths {
                var isList = false
                root.update(path.map(PathStep.name)[...]) { isList = $0.relation >= 0 && $0.arity != .one }
                if isList { throw .identityIsList(name, model: declaration.name) }
            }
        }
    }

    /// Identities and keys are stored to name objects, so they cannot be secret.
    private func check(_ secret: [[PathStep]], use: String, _ names: [String], _ parts: [CompiledModel.Part])
        throws(MappingError)
    {
        for (name, part) in zip(names, parts) {
            for path in part.paths.map({ $0.map(PathStep.name) })
            where secret.contains(where: { path.starts(with: $0) }) {
                throw .secretIdentity(name, usedBy: use, model: declaration.name)
            }
        }
    }

    private func checkMigrations() throws(MappingError) {
        if let base = declaration.base, indexes[base] != nil, declaration.version > 0 || !declaration.migrations.isEmpty
        {
            throw .versionWithinCluster(model: declaration.name, base: base)
        }
        var last = 0
        for migration in declaration.migrations {
            guard migration.to > last, migration.to <= declaration.version else {
                throw .invalidMigration(migration.to, model: declaration.name, version: declaration.version)
            }
            last = migration.to
        }
    }

    // MARK: Properties

    private mutating func addProperties() {
        var read: [(member: ModelMember, property: CompiledProperty, path: [PathStep])] = []
        for member in members {
            do throws(MappingError) {
                let property = try property(member)
                if property.completes.isEmpty, properties.places[property.name] == nil {
                    properties.places[property.name] = properties.all.count
                }
                properties.all.append(property)
                places.append(member)
                guard member.index != nil else { continue }
                let declaration = member.declaration
                for source in declaration.parts.isEmpty ? member.spellings : declaration.parts.map(\.from)
                where !ContextValue.isSpelled(source) {
                    read.append((member, property, try steps(source, "property \(declaration.name)")))
                }
            } catch {
                // A mistake in an identity that no property shows is reported there.
                if member.index != nil { report(error, at: member) }
            }
        }
        // Outer relations come first: what lies within one is derived from it, and has no bytes of its own here.
        for (member, property, path) in read.sorted(by: { $0.path.count < $1.path.count }) {
            do throws(MappingError) {
                try addRelation(property, member.declaration, at: path)
            } catch {
                report(error, at: member)
            }
        }
        for (member, property, path) in read where root.relationPrefix(of: path) == nil {
            for outer in path.contains(.elements) ? [] : path.outer {
                root.update(outer[...]) { $0.holdsProperty = true }
            }
            root.update(path[...]) {
                $0.isProperty = true
                $0.merge = member.declaration.merge
            }
            addRules(of: property, member.declaration, at: path)
        }
    }

    private mutating func addRelation(
        _ property: CompiledProperty,
        _ declaration: PropertyDeclaration,
        at path: [PathStep]
    ) throws(MappingError) {
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
            $0.relation = Int32(relation.model)
            $0.deletesFormer = declaration.former == .delete
            $0.arity = relation.arity == .many && isNested ? nil : relation.arity
        }
    }

    private mutating func addRules(
        of property: CompiledProperty,
        _ declaration: PropertyDeclaration,
        at path: [PathStep]
    ) {
        // A value combined from several sources is checked as a whole, and the wire does not contain it.
        guard declaration.parts.isEmpty else { return }
        if !declaration.checks.isEmpty {
            addRule(at: path) {
                $0.property = property.name
                $0.checked = property.conversion
            }
        }
        guard property.isRequired, !path.contains(.elements) else { return }
        let bit = reading.required.firstIndex(of: property.name) ?? reading.required.count
        guard bit < 64 else { return }
        if bit == reading.required.count { reading.required.append(property.name) }
        addRule(at: path) {
            $0.property = property.name
            $0.required = 1 << UInt64(bit)
        }
    }

    private mutating func addRule(at path: [PathStep], _ change: (inout MemberRule) -> Void) {
        if let index = rulePlaces[path] { return change(&rules[index].rule) }
        var rule = MemberRule(property: "")
        change(&rule)
        rulePlaces[path] = rules.count
        rules.append((path, rule))
    }
}

/// Resolves entries of a declaration to members.
extension ModelCompiler {
    private func parts(_ entries: [String], as use: String, from first: Int) throws(MappingError) -> [CompiledModel
        .Part]
    {
        var parts: [CompiledModel.Part] = []
        var capture = first
        var seen: Set<[PathStep]> = []
        for entry in entries {
            // The name of a property read from the context means that context value.
            let source = sources(entry)[0]
            if ContextValue.isSpelled(source) {
                guard let value = ContextValue(source), let path = value.names else {
                    throw .invalidKeyPath(source, usedBy: use, model: declaration.name)
                }
                parts.append(.context(value, path: path))
                continue
            }
            let paths = try spellings(of: entry, as: use)
            // Two models derived from one base may each name the same member.
            guard seen.insert(paths[0].map(PathStep.name)).inserted || isOpen else {
                throw .namedTwice(entry, usedBy: use, model: declaration.name)
            }
            parts.append(.member(paths: paths, capture: capture))
            capture += 1
        }
        return parts
    }

    private mutating func compile(_ condition: Condition?, as use: String) throws(MappingError) -> CompiledCondition? {
        guard let condition else { return nil }
        return try condition.spelled(by: sources).compiled { (path) throws(MappingError) in
            try names(at: path, entry: path, as: use)
        }
    }

    private func resolve(_ entries: [String], as use: String) throws(MappingError) -> [[PathStep]] {
        var paths: [[PathStep]] = []
        var seen: Set<[PathStep]> = []
        for entry in entries {
            for source in sources(entry) {
                let path = try resolve(source, as: use)
                // Two models derived from one base may each name the same member.
                if isOpen, seen.contains(path) { continue }
                guard seen.insert(path).inserted else { throw .namedTwice(entry, usedBy: use, model: declaration.name) }
                paths.append(path)
            }
        }
        return paths
    }

    /// The member names of an entry in each spelling, the preferred one first; no array may be on the path.
    private func spellings(of entry: String, as use: String) throws(MappingError) -> [[String]] {
        var spellings: [[String]] = []
        for source in sources(entry) { spellings.append(try names(at: source, entry: entry, as: use)) }
        return spellings
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
        guard let prefix = root.relationPrefix(of: path) else { return path }
        let owner = Array(path[..<prefix])
        for property in members.map(\.declaration) {
            if let relation = property.relation, KeyPathSyntax.steps(of: property.from) == owner {
                throw .crossesRelation(
                    from,
                    usedBy: use,
                    property: property.name,
                    model: declaration.name,
                    other: relation.model
                )
            }
        }
        return path
    }

    private func steps(_ path: String, _ use: String) throws(MappingError) -> [PathStep] {
        guard let steps = KeyPathSyntax.steps(of: path) else {
            throw .invalidKeyPath(path, usedBy: use, model: declaration.name)
        }
        // The elements of a list of objects are addressed by the list.
        return steps.last == .elements && steps.dropLast().last != .elements && listPaths.contains(path)
            ? steps.dropLast() : steps
    }
}
