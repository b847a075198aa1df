/// Checks one declaration and compiles it to paths.
struct ModelCompiler {
    let declaration: ModelDeclaration
    private let indexes: [String: Int]
    private let objectName: String
    private let fallback: Int
    /// Whether this is a base merged with its derived models, none of which knows the others.
    let isOpen: Bool
    private var relations: Set<Int> = []
    var root = PathBranch()
    private var rules: [(path: [PathStep], rule: MemberRule)] = []
    private var rulePlaces: [[PathStep]: Int] = [:]
    private var required: [String] = []
    /// The first property of each name.
    let properties: [String: PropertyDeclaration]
    let sources: PropertySources
    /// The key paths of relations to several objects.
    let listPaths: Set<String>
    /// The mistakes found; the part with a mistake counts as empty for what follows it.
    private(set) var faults: [MappingError] = []

    /// Creates a compiler for one declaration.
    ///
    /// - Parameters:
    ///   - declaration: merged with its bases, with explicit sources for all properties.
    ///   - objectName: the model name of its objects.
    ///   - fallback: the index of the model for objects that no choice takes.
    ///   - isOpen: whether it is a base merged with its derived models.
    init(
        _ declaration: ModelDeclaration,
        indexes: [String: Int],
        objectName: String,
        fallback: Int,
        isOpen: Bool
    ) {
        (self.isOpen, self.declaration, self.indexes) = (isOpen, declaration, indexes)
        (self.objectName, self.fallback) = (objectName, fallback)
        sources = PropertySources(declaration.properties)
        properties = Dictionary(declaration.properties.map { ($0.name, $0) }) { first, _ in first }
        listPaths = Set(
            declaration.properties.compactMap { property in
                property.relation?.arity == .many ? property.from : nil
            }
        )
    }

    /// Runs one step and collects a mistake in it.
    private mutating func step(_ work: (inout ModelCompiler) throws(MappingError) -> Void) { step(orElse: (), work) }

    /// Runs one step; collects a mistake in it and then returns `empty`.
    private mutating func step<Value>(
        orElse empty: Value,
        _ work: (inout ModelCompiler) throws(MappingError) -> Value
    ) -> Value {
        do throws(MappingError) {
            return try work(&self)
        } catch {
            faults.append(error)
            return empty
        }
    }

    /// Appends the model's members to the table of paths and its rules to the other table.
    mutating func compile(into tree: inout PathTree, rules table: inout [MemberRule]) -> CompiledModel {
        step { (compiler) throws(MappingError) in try compiler.checkMigrations() }
        addProperties()
        let identity = step(orElse: []) { (compiler) throws(MappingError) in
            try compiler.parts(compiler.declaration.identity, as: "identity", from: 0)
        }
        let memberCount = identity.count { !$0.paths.isEmpty }
        let keys = step(orElse: []) { (compiler) throws(MappingError) in
            try compiler.parts(compiler.declaration.keys, as: "keys", from: memberCount)
        }
        let modified: [[String]] = step(orElse: []) { (compiler) throws(MappingError) in
            guard let modified = compiler.declaration.modified else { return [] }
            return try compiler.spellings(of: modified, as: "modified")
        }
        for path in modified { root.update(path.map(PathStep.name)[...]) { $0.isAsked = true } }
        step { (compiler) throws(MappingError) in
            for path in try compiler.resolve(compiler.declaration.local, as: "local") {
                compiler.root.update(path[...]) { $0.isLocal = true }
            }
        }
        step { (compiler) throws(MappingError) in
            for path in try compiler.resolve(compiler.declaration.secret, as: "secret") {
                compiler.addRule(at: path) { $0.isSecret = true }
            }
            try compiler.checkSecrets(identity, keys)
        }
        let captures = (identity + keys).map(\.paths).filter { !$0.isEmpty }
        // No model has more than 64 captures. A key beyond them is not read.
        for (index, paths) in captures.enumerated() where index < 64 {
            for path in paths { root.update(path.map(PathStep.name)[...]) { $0.captures |= 1 << UInt64(index) } }
        }
        step { (compiler) throws(MappingError) in try compiler.checkNoList(in: identity) }
        for (path, rule) in rules {
            root.update(path[...]) { $0.rule = Int32(table.count) }
            table.append(rule)
        }
        let deletedWhen: CompiledCondition? = step(orElse: nil) { (compiler) throws(MappingError) in
            try compiler.compile(compiler.declaration.deletedWhen, as: "deleted_when")
        }
        var reading = CompiledModel.Reading(
            captureCount: captures.count,
            identity: identity,
            identityNames: declaration.identity,
            keys: Array(zip(declaration.keys, keys)).map { (name: $0.0, part: $0.1) },
            modifiedPaths: modified,
            required: required,
            deletedWhen: deletedWhen,
            onDelete: declaration.onDelete ?? .usual,
            relations: relations
        )
        reading.isPlain =
            !rules.contains { $0.rule.checked != nil }
            && declaration.properties.allSatisfy { $0.merge == .latest || $0.merge == .replace }
        reading.choices = step(orElse: []) { (compiler) throws(MappingError) in try compiler.choices() }
        return CompiledModel(
            declaration,
            objectName: objectName,
            root: tree.append(root),
            reading: reading,
            fallback: fallback
        )
    }

    private mutating func choices() throws(MappingError) -> [CompiledModel.Choice] {
        var choices: [CompiledModel.Choice] = []
        for choice in declaration.choices {
            guard let model = indexes[choice.model] else {
                throw .unknownModel(choice.model, property: "cluster", model: declaration.name)
            }
            choices.append(CompiledModel.Choice(condition: try compile(choice.condition, as: "cluster"), model: model))
        }
        return choices
    }

    /// An identity is one value.
    private mutating func checkNoList(in identity: [CompiledModel.Part]) throws(MappingError) {
        for (name, part) in zip(declaration.identity, identity) {
            for path in part.paths {
                var isList = false
                root.update(path.map(PathStep.name)[...]) { isList = $0.relation >= 0 && $0.arity != .one }
                if isList { throw .identityIsList(name, model: declaration.name) }
            }
        }
    }

    /// Identities and keys are stored to name objects, so they cannot be secret.
    private func checkSecrets(_ identity: [CompiledModel.Part], _ keys: [CompiledModel.Part]) throws(MappingError) {
        let secret = try resolve(declaration.secret, as: "secret")
        let uses = [("identity", declaration.identity, identity), ("keys", declaration.keys, keys)]
        for (use, names, parts) in uses {
            for (name, part) in zip(names, parts) {
                for path in part.paths.map({ $0.map(PathStep.name) })
                where secret.contains(where: { path.starts(with: $0) }) {
                    throw .secretIdentity(name, usedBy: use, model: declaration.name)
                }
            }
        }
    }

    /// Throws for invalid property names, and for two that are equal or differ only in case.
    static func checkNames(of declaration: ModelDeclaration) throws(MappingError) {
        var folded: [String: String] = [:]
        for property in declaration.properties {
            // A name with dots is a write path into a child.
            let parts = property.name.split(separator: ".", omittingEmptySubsequences: false)
            guard parts.allSatisfy(Models.isValidName) else {
                throw .invalidName(kind: "property", name: property.name, model: declaration.name)
            }
            if let other = folded.updateValue(property.name, forKey: property.name.lowercased()) {
                throw .duplicateProperty(property.name, other: other, model: declaration.name)
            }
        }
    }

    private func checkMigrations() throws(MappingError) {
        if let base = declaration.base, declaration.version > 0 || !declaration.migrations.isEmpty {
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
        var readers: [[PathStep]: PropertyDeclaration] = [:]
        var paths: [(property: PropertyDeclaration, path: [PathStep])] = []
        for property in declaration.properties {
            for source in property.parts.isEmpty ? [property.from] : property.parts.map(\.from) {
                step { (compiler) throws(MappingError) in
                    // A value from the surroundings is not a member.
                    guard let path = try compiler.member(source, of: property) else { return }
                    if let other = readers[path], other.name != property.name,
                        // A read-only property does not compete for the way back.
                        other.output != .none, property.output != .none,
                        // Nor do the properties of two models.
                        !compiler.isOpen
                    {
                        let (names, model) = ([other.name, property.name], compiler.declaration.name)
                        throw .sameKeyPath(source, properties: names, model: model)
                    }
                    if readers[path] == nil || property.output != .none { readers[path] = property }
                    paths.append((property, path))
                }
            }
        }
        // Outer relations come first: a property within one is derived from it and has no bytes of its own here.
        for (property, path) in paths.sorted(by: { $0.path.count < $1.path.count }) {
            guard let relation = property.relation, property.parts.isEmpty else { continue }
            step { (compiler) throws(MappingError) in
                try compiler.addRelation(relation, of: property, at: path)
            }
        }
        for (property, path) in paths where root.relationPrefix(of: path) == nil {
            step { (compiler) throws(MappingError) in
                try compiler.checkMerge(of: property)
                compiler.root.update(path[...]) {
                    $0.isProperty = true
                    $0.merge = property.merge
                }
                try compiler.addRules(of: property, at: path)
            }
        }
    }

    /// The path to one of a property's sources; nil for a value from the surroundings.
    private func member(_ source: String, of property: PropertyDeclaration) throws(MappingError) -> [PathStep]? {
        guard ContextValue.isSpelled(source) else { return try steps(source, "property \(property.name)") }
        guard ContextValue(source) != nil else {
            throw .unknownContext(source, property: property.name, model: declaration.name)
        }
        return nil
    }

    private mutating func addRelation(_ relation: Relation, of property: PropertyDeclaration, at path: [PathStep])
        throws(MappingError)
    {
        guard let index = indexes[relation.model] else {
            throw .unknownModel(relation.model, property: property.name, model: declaration.name)
        }
        let isNested = path.contains(.elements)
        let isDerived = root.relationPrefix(of: path) != nil
        if property.former == .delete, isNested || isDerived {
            let place = isDerived ? "lies within another relation" : "leads over the elements of a list"
            throw .contradiction(
                "its key path \(place), so it is unknown which object lost one; "
                    + "declare \"former: delete\" in the model of the object that holds them",
                property: property.name,
                model: declaration.name
            )
        }
        guard !isDerived else { return }
        relations.insert(index)
        root.update(path[...]) {
            $0.relation = Int32(index)
            $0.deletesFormer = property.former == .delete
            $0.arity = relation.arity == .many && isNested ? nil : relation.arity
        }
    }

    private func checkMerge(of property: PropertyDeclaration) throws(MappingError) {
        let reason: String? =
            switch (property.merge, property.relation?.arity) {
            case (.union, .one), (.union, .keyed):
                "\"union\" joins lists, and this is "
                    + (property.relation?.arity == .one ? "one object" : "an object keyed by name")
            case (.sum, .some): "\"sum\" adds numbers, and this is a relation"
            case (.sum, nil) where !property.mayBe([.number, .integer]):
                "\"sum\" adds numbers, which its \"type\" rules out"
            case (.union, nil) where !property.mayBe([.array]): "\"union\" joins lists, which its \"type\" rules out"
            default: nil
            }
        if let reason { throw .invalidMerge(reason, property: property.name, model: declaration.name) }
    }

    private mutating func addRules(of property: PropertyDeclaration, at path: [PathStep]) throws(MappingError) {
        // A value combined from several sources is checked as a whole, and the wire does not contain it.
        if !property.checks.isEmpty, property.parts.isEmpty {
            let checked = try ValueConversion(property)
            addRule(at: path) {
                $0.property = property.name
                $0.checked = checked
            }
        }
        guard property.isRequired, property.parts.isEmpty, !path.contains(.elements) else { return }
        let bit = required.firstIndex(of: property.name) ?? required.count
        guard bit < 64 else { return }
        if bit == required.count { required.append(property.name) }
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

extension PropertyDeclaration {
    /// Whether the checks allow a value of one of these types.
    fileprivate func mayBe(_ types: [ValueCheck.JSONType]) -> Bool {
        checks.allSatisfy { check in
            guard case .type(let allowed) = check else { return true }
            return allowed.contains(where: types.contains)
        }
    }
}

/// Resolves entries of a declaration to members.
extension ModelCompiler {
    func parts(_ entries: [String], as use: String, from first: Int) throws(MappingError) -> [CompiledModel.Part] {
        var parts: [CompiledModel.Part] = []
        var capture = first
        var seen: Set<[PathStep]> = []
        for entry in entries {
            // The name of a property read from the context means that context value.
            let source = properties[entry]?.from ?? entry
            if ContextValue.isSpelled(source) {
                parts.append(try contextPart(source, as: use))
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

    func contextPart(_ source: String, as use: String) throws(MappingError) -> CompiledModel.Part {
        guard let value = ContextValue(source), let path = value.names else {
            throw .invalidKeyPath(source, usedBy: use, model: declaration.name)
        }
        return .context(value, path: path)
    }

    mutating func compile(_ condition: Condition?, as use: String) throws(MappingError) -> CompiledCondition? {
        guard let condition else { return nil }
        var asked: [[String]] = []
        let compiled = try CompiledCondition(condition.spelled(by: sources)) { (path) throws(MappingError) in
            let path = try names(at: path, entry: path, as: use)
            asked.append(path)
            return path
        }
        for path in asked { root.update(path.map(PathStep.name)[...]) { $0.isAsked = true } }
        return compiled
    }

    func resolve(_ entries: [String], as use: String) throws(MappingError) -> [[PathStep]] {
        var paths: [[PathStep]] = []
        var seen: Set<[PathStep]> = []
        for entry in entries {
            for source in sources[entry] {
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
    func spellings(of entry: String, as use: String) throws(MappingError) -> [[String]] {
        var spellings: [[String]] = []
        for source in sources[entry] { spellings.append(try names(at: source, entry: entry, as: use)) }
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
        if let prefix = root.relationPrefix(of: path) {
            let owner = Array(path[..<prefix])
            for property in declaration.properties {
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
        }
        return path
    }

    func steps(_ path: String, _ use: String) throws(MappingError) -> [PathStep] {
        guard let steps = KeyPathSyntax.steps(of: path) else {
            throw .invalidKeyPath(path, usedBy: use, model: declaration.name)
        }
        // The elements of a list of objects are addressed by the list.
        return steps.last == .elements && steps.dropLast().last != .elements && listPaths.contains(path)
            ? steps.dropLast() : steps
    }
}
