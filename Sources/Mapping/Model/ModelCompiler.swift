/// Checks one declaration and turns it into paths.
struct ModelCompiler {
    private let declaration: ModelDeclaration
    private let indexes: [String: Int]
    private var root = PathBranch()

    init(_ declaration: ModelDeclaration, indexes: [String: Int]) {
        self.declaration = declaration
        self.indexes = indexes
    }

    mutating func compile(into tree: inout PathTree) throws(MappingError) -> CompiledModel {
        try checkNames()
        try addProperties()
        let identity = try resolve(declaration.identity, as: "identity")
        let keys = try resolve(declaration.keys, as: "keys")
        let modified = try declaration.modified.map { (name) throws(MappingError) in
            try resolve(name, as: "modified")
        }
        for path in try resolve(declaration.local, as: "local") { root.update(path[...]) { $0.isLocal = true } }
        // Sixty-four captures are more than any model has; a key beyond them is not looked up.
        for (index, path) in (identity + keys + (modified.map { [$0] } ?? [])).enumerated() where index < 64 {
            root.update(path[...]) { $0.captures |= 1 << UInt64(index) }
        }
        for (name, path) in zip(declaration.identity, identity) {
            var isList = false
            root.update(path[...]) { isList = $0.relation >= 0 && $0.isMany }
            if isList { throw .identityIsList(name, model: declaration.name) }
        }
        return CompiledModel(
            name: declaration.name,
            root: tree.append(root),
            sharesAll: declaration.sharesAll,
            identityCount: identity.count,
            keys: declaration.keys,
            modifiedPath: modified,
            identityPaths: identity
        )
    }

    private func checkNames() throws(MappingError) {
        var folded: [String: String] = [:]
        for property in declaration.properties {
            guard Models.isValidName(property.name) else {
                throw .invalidName(kind: "property", name: property.name, model: declaration.name)
            }
            if let other = folded.updateValue(property.name, forKey: property.name.lowercased()) {
                throw .duplicateProperty(property.name, other: other, model: declaration.name)
            }
        }
    }

    private mutating func addProperties() throws(MappingError) {
        var readers: [[String]: String] = [:]
        var paths: [(property: PropertyDeclaration, path: [String])] = []
        for property in declaration.properties {
            let path = try components(property.from, "property \(property.name)")
            if let other = readers.updateValue(property.name, forKey: path) {
                throw .sameKeyPath(property.from, properties: [other, property.name], model: declaration.name)
            }
            paths.append((property, path))
        }
        // Outermost relations first: what lies within one is derived from it and has no bytes of its own here.
        for (property, path) in paths.sorted(by: { $0.path.count < $1.path.count }) {
            guard let relation = property.relation else { continue }
            guard let index = indexes[relation.model] else {
                throw .unknownModel(relation.model, property: property.name, model: declaration.name)
            }
            guard root.relationPrefix(of: path) == nil else { continue }
            root.update(path[...]) {
                $0.relation = Int32(index)
                if case .many = relation { $0.isMany = true }
            }
        }
        for (_, path) in paths where root.relationPrefix(of: path) == nil {
            root.update(path[...]) { $0.isProperty = true }
        }
    }

    private func resolve(_ names: [String], as use: String) throws(MappingError) -> [[String]] {
        var paths: [[String]] = []
        for name in names {
            let path = try resolve(name, as: use)
            if paths.contains(path) { throw .namedTwice(name, usedBy: use, model: declaration.name) }
            paths.append(path)
        }
        return paths
    }

    /// The key path that an entry means: a property's, if one is so named, else the entry itself.
    private func resolve(_ name: String, as use: String) throws(MappingError) -> [String] {
        let from = declaration.properties.first { $0.name == name }?.from ?? name
        let path = try components(from, use)
        if let prefix = root.relationPrefix(of: path) {
            let owner = Array(path[..<prefix])
            for property in declaration.properties {
                if let relation = property.relation, KeyPathSyntax.components(of: property.from) == owner {
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

    private func components(_ path: String, _ use: String) throws(MappingError) -> [String] {
        guard let components = KeyPathSyntax.components(of: path) else {
            throw .invalidKeyPath(path, usedBy: use, model: declaration.name)
        }
        return components
    }
}
