extension Models {
    /// Every mistake in the declarations that can be told from the others, in the order of the declarations.
    ///
    /// `init` throws one of them, if there are any.
    public static func mistakes(in declarations: [ModelDeclaration]) -> [ModelMistake] {
        var compiler = PlanCompiler(declarations)
        compiler.compile()
        var list = MistakeList(mistakes: compiler.mistakes)
        var folded: [String: String] = [:]
        for (index, declaration) in declarations.enumerated() {
            let name = declaration.name
            if !isValidName(name) { list.add(.invalidName(kind: "model", name: name, model: nil), model: index) }
            if let other = folded.updateValue(name, forKey: name.lowercased()) {
                list.add(.duplicateModel(name, other: other), model: index)
            }
        }
        addWireMistakes(in: declarations, to: &list)
        return list.mistakes.sorted { ($0.model, $0.property ?? .max) < ($1.model, $1.property ?? .max) }
    }

    /// What only taking bodies apart minds: of each model one mistake after the other, each time without what was told of.
    private static func addWireMistakes(in declarations: [ModelDeclaration], to list: inout MistakeList) {
        let indexes = Dictionary(declarations.enumerated().map { ($1.name, $0) }) { first, _ in first }
        let clusters: Clusters
        do throws(MappingError) {
            clusters = try Clusters(declarations, indexes: indexes)
        } catch {
            // The plans have told of it, unless it is news.
            if list.mistakes.isEmpty { list.add(error, model: 0) }
            return
        }
        var (tree, rules) = (PathTree(), [MemberRule]())
        for (index, declaration) in declarations.enumerated() {
            do throws(MappingError) {
                try ModelCompiler.checkNames(of: declaration)
                for migration in declaration.migrations {
                    _ = try CompiledMigration(migration, model: declaration.name)
                }
            } catch {
                list.add(error, model: index)
            }
            var rest: ModelDeclaration? = clusters.effective(index)
            while let attempt = rest {
                do throws(MappingError) {
                    var compiler = ModelCompiler(
                        attempt,
                        indexes: indexes,
                        objectName: clusters.root(of: index),
                        fallback: index
                    )
                    _ = try compiler.compile(into: &tree, rules: &rules)
                    rest = nil
                } catch {
                    let blamed = error.blamed.map { name in declaration.properties.lastIndex { $0.name == name } }
                    // What a base declares wrongly is told of there.
                    if blamed != .some(nil) { list.add(error, model: index, property: blamed ?? nil) }
                    rest = attempt.without(error)
                }
            }
        }
    }
}

/// Mistakes, each told once.
private struct MistakeList {
    var mistakes: [ModelMistake]

    mutating func add(_ error: MappingError, model: Int, property: Int? = nil) {
        if !mistakes.contains(where: { $0.error == error }) {
            mistakes.append(ModelMistake(model: model, property: property, error: error))
        }
    }
}

extension MappingError {
    /// The property that is to blame, if one alone is.
    fileprivate var blamed: String? {
        switch self {
        case .sameKeyPath(_, let properties, _): properties.last
        case .invalidMerge(_, let property, _), .unknownContext(_, let property, _): property
        case .invalidKeyPath(_, let use, _): use.hasPrefix("property ") ? String(use.dropFirst(9)) : nil
        default: nil
        }
    }
}

extension ModelDeclaration {
    /// The same without what an error speaks of; nil where nothing can be taken out.
    fileprivate func without(_ error: MappingError) -> ModelDeclaration? {
        var copy = self
        if let name = error.blamed {
            guard let index = properties.lastIndex(where: { $0.name == name }) else { return nil }
            copy.properties.remove(at: index)
            return copy
        }
        switch error {
        case .invalidMigration, .versionWithinCluster: (copy.version, copy.migrations) = (0, [])
        case .identityIsList: copy.identity = []
        case .secretIdentity: copy.secret = []
        case .invalidKeyPath(_, let use, _), .crossesRelation(_, let use, _, _, _), .namedTwice(_, let use, _):
            switch use {
            case "identity": copy.identity = []
            case "keys": copy.keys = []
            case "local": copy.local = []
            case "secret": copy.secret = []
            case "modified": copy.modified = nil
            case "deleted_when": copy.deletedWhen = nil
            case "cluster": copy.choices = []
            default: return nil
            }
        default: return nil
        }
        return copy == self ? nil : copy
    }
}
