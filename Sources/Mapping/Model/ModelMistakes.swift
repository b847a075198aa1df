extension Models {
    /// Every mistake in the declarations that can be found independently of the others, in the order of the
    /// declarations.
    ///
    /// `init` throws one of them, if there are any.
    public static func mistakes(in declarations: [ModelDeclaration]) -> [ModelMistake] {
        var compiler = PlanCompiler(declarations)
        compiler.compile()
        var list = MistakeList(compiler.mistakes)
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

    /// Adds the mistakes that matter only for decomposing bodies.
    ///
    /// Every mistake of a model is found in one run of its compiler.
    private static func addWireMistakes(in declarations: [ModelDeclaration], to list: inout MistakeList) {
        let indexes = Dictionary(declarations.enumerated().map { ($1.name, $0) }) { first, _ in first }
        var declarations = declarations
        guard let clusters = soundClusters(of: &declarations, indexes, &list) else { return }
        for (index, declaration) in declarations.enumerated() {
            do throws(MappingError) {
                try ModelCompiler.checkNames(of: declaration)
                for migration in declaration.migrations {
                    _ = try CompiledMigration(migration, model: declaration.name)
                }
            } catch {
                list.add(error, model: index)
            }
            let places = Dictionary(declaration.properties.enumerated().map { ($1.name, $0) }) { _, last in last }
            for fault in faults(in: clusters.effective(index), at: index, clusters, indexes) {
                let blamed = fault.blamed.map { places[$0] }
                // A mistake inherited from a base is reported there.
                if blamed != .some(nil) { list.add(fault, model: index, property: blamed ?? nil) }
            }
        }
        if list.mistakes.isEmpty { addMistakesAmongRelatives(in: declarations, clusters, indexes, to: &list) }
    }

    /// Adds contradictions between models derived from one base, each sound in itself.
    ///
    /// If no choice decides, an object is read with the declarations of all of them.
    private static func addMistakesAmongRelatives(
        in declarations: [ModelDeclaration],
        _ clusters: Clusters,
        _ indexes: [String: Int],
        to list: inout MistakeList
    ) {
        for index in declarations.indices {
            guard let open = clusters.open(index) else { continue }
            for fault in faults(in: open, at: index, clusters, indexes, isOpen: true) {
                let owner = declarations.firstIndex { fault.entry.map($0.names) ?? false } ?? index
                list.add(fault.attributed(to: declarations[owner].name), model: owner)
            }
        }
    }

    /// All mistakes in a declaration.
    private static func faults(
        in declaration: ModelDeclaration,
        at index: Int,
        _ clusters: Clusters,
        _ indexes: [String: Int],
        isOpen: Bool = false
    ) -> [MappingError] {
        let root = clusters.root(of: index)
        var compiler = ModelCompiler(declaration, indexes: indexes, objectName: root, fallback: index, isOpen: isOpen)
        return compiler.check()
    }

    /// The clusters without undeclared or circular bases and choices, so that everything else can still be checked.
    private static func soundClusters(
        of declarations: inout [ModelDeclaration],
        _ indexes: [String: Int],
        _ list: inout MistakeList
    ) -> Clusters? {
        // Each round removes at least one base or choice.
        for _ in 0...declarations.count {
            do throws(MappingError) {
                return try Clusters(declarations, indexes: indexes)
            } catch {
                let wrong: [Int]
                switch error {
                case .circularCluster(let names): wrong = names.compactMap { indexes[$0] }
                case .unknownModel(_, _, let name): wrong = [indexes[name]].compactMap(\.self)
                default: wrong = []
                }
                guard let first = wrong.first else { return nil }
                // The plan compiler has already reported circular bases and undeclared models.
                if !list.reportsAny(of: wrong) { list.add(error, model: first) }
                for index in wrong { (declarations[index].base, declarations[index].choices) = (nil, []) }
            }
        }
        return nil
    }
}

/// A list of mistakes without duplicates.
private struct MistakeList {
    private(set) var mistakes: [ModelMistake]
    private var reported: Set<MappingError>

    init(_ mistakes: [ModelMistake]) {
        self.mistakes = mistakes
        reported = Set(mistakes.map(\.error))
    }

    /// Whether a circle or an undeclared model is already reported for one of these models.
    func reportsAny(of models: [Int]) -> Bool {
        mistakes.contains { mistake in
            switch mistake.error {
            case .circularCluster, .unknownModel: models.contains(mistake.model)
            default: false
            }
        }
    }

    mutating func add(_ error: MappingError, model: Int, property: Int? = nil) {
        if reported.insert(error).inserted {
            mistakes.append(ModelMistake(model: model, property: property, error: error))
        }
    }
}

extension MappingError {
    /// The entry that contradicts another model, and the part of the declaration it is in.
    fileprivate var entry: (use: String, text: String)? {
        switch self {
        case .crossesRelation(let text, let use, _, _, _), .invalidKeyPath(let text, let use, _): (use, text)
        case .secretIdentity(let text, let use, _): (use, text)
        default: nil
        }
    }

    /// The same error for another model.
    fileprivate func attributed(to name: String) -> MappingError {
        switch self {
        case .crossesRelation(let path, let use, let property, _, let other):
            .crossesRelation(path, usedBy: use, property: property, model: name, other: other)
        case .invalidKeyPath(let path, let use, _): .invalidKeyPath(path, usedBy: use, model: name)
        case .secretIdentity(let path, let use, _): .secretIdentity(path, usedBy: use, model: name)
        default: self
        }
    }

    /// The property to blame, if there is exactly one.
    fileprivate var blamed: String? {
        switch self {
        case .sameKeyPath(_, let properties, _): properties.last
        case .invalidMerge(_, let property, _), .unknownContext(_, let property, _), .contradiction(_, let property, _):
            property
        case .invalidKeyPath(_, let use, _): use.hasPrefix("property ") ? String(use.dropFirst(9)) : nil
        default: nil
        }
    }
}

extension ModelDeclaration {
    /// Whether the model itself has this entry, directly or by the name of a property.
    fileprivate func names(_ entry: (use: String, text: String)) -> Bool {
        let entries: [String] =
            switch entry.use {
            case "identity": identity
            case "keys": keys
            case "local": local
            case "secret": secret
            case "modified": [modified].compactMap(\.self)
            case "deleted_when": deletedWhen?.entries ?? []
            default: []
            }
        return entries.contains { name in
            name == entry.text || properties.contains { $0.name == name && $0.from == entry.text }
        }
    }
}

/// A mistake in a declaration, with its place.
public struct ModelMistake: Sendable, Hashable {
    /// The index of the model's declaration.
    public var model: Int
    /// The index of the property within it, if one is to blame.
    public var property: Int?
    /// The mistake.
    public var error: MappingError

    /// Describes a mistake.
    public init(model: Int, property: Int? = nil, error: MappingError) {
        (self.model, self.property, self.error) = (model, property, error)
    }
}
