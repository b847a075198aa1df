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

    /// What only taking bodies apart minds: the first mistake of each model.
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
                var compiler = ModelCompiler(
                    clusters.effective(index),
                    indexes: indexes,
                    objectName: clusters.root(of: index),
                    fallback: index
                )
                _ = try compiler.compile(into: &tree, rules: &rules)
                for migration in declaration.migrations {
                    _ = try CompiledMigration(migration, model: declaration.name)
                }
            } catch {
                list.add(error, model: index)
            }
        }
    }
}

/// Mistakes, each told once.
private struct MistakeList {
    var mistakes: [ModelMistake]

    mutating func add(_ error: MappingError, model: Int) {
        if !mistakes.contains(where: { $0.error == error }) {
            mistakes.append(ModelMistake(model: model, property: nil, error: error))
        }
    }
}
