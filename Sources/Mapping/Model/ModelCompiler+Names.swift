/// The members that entries of a declaration mean.
extension ModelCompiler {
    func parts(
        _ entries: [String],
        as use: String,
        from first: Int
    ) throws(MappingError) -> [CompiledModel.Part] {
        var parts: [CompiledModel.Part] = []
        var capture = first
        var seen: Set<[PathStep]> = []
        for entry in entries {
            // A property that is read from the context stands for what it is read from.
            let source = properties[entry]?.from ?? entry
            if ContextValue.isSpelled(source) {
                parts.append(try contextPart(source, as: use))
                continue
            }
            let paths = try spellings(of: entry, as: use)
            // Two models upon one base may each name what the other does.
            guard seen.insert(paths[0].map(PathStep.name)).inserted || isOpen else {
                throw .namedTwice(entry, usedBy: use, model: declaration.name)
            }
            parts.append(.member(paths: paths, capture: capture))
            capture += 1
        }
        return parts
    }

    func contextPart(_ source: String, as use: String) throws(MappingError) -> CompiledModel.Part {
        guard let value = ContextValue(source) else {
            throw .invalidKeyPath(source, usedBy: use, model: declaration.name)
        }
        switch value {
        case .parent(let path), .root(let path):
            guard let path = KeyPathSyntax.steps(of: path)?.names else {
                throw .invalidKeyPath(source, usedBy: use, model: declaration.name)
            }
            return .context(value, path: path)
        default:
            return .context(value, path: [])
        }
    }

    mutating func compile(_ condition: Condition, as use: String) throws(MappingError) -> CompiledCondition {
        var asked: [[String]] = []
        let compiled = try CompiledCondition(condition.spelled(by: sources)) {
            (path) throws(MappingError) in
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
                // Two models upon one base may each name what the other does.
                if isOpen, seen.contains(path) { continue }
                guard seen.insert(path).inserted else { throw .namedTwice(entry, usedBy: use, model: declaration.name) }
                paths.append(path)
            }
        }
        return paths
    }

    /// The member names of an entry in each spelling, that no array may be on the way to; the preferred one first.
    func spellings(of entry: String, as use: String) throws(MappingError) -> [[String]] {
        var spellings: [[String]] = []
        for source in sources[entry] {
            spellings.append(try names(at: source, entry: entry, as: use))
        }
        return spellings
    }

    private func names(at path: String, entry: String, as use: String) throws(MappingError) -> [String] {
        guard let names = try resolve(path, as: use).names else {
            throw .invalidKeyPath(entry, usedBy: use, model: declaration.name)
        }
        return names
    }

    /// The steps of a key path, which may not lie within another model's objects.
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
        // The elements of a list of objects are named by the list.
        return steps.last == .elements && steps.dropLast().last != .elements && listPaths.contains(path)
            ? steps.dropLast() : steps
    }
}
