extension Models {
    /// Every mistake in the declarations that can be found independently of the others, in their order.
    ///
    /// `init` throws one of them, if there are any.
    public static func mistakes(in declarations: [ModelDeclaration]) -> [ModelMistake] {
        var list = MistakeList()
        _ = try? Models(declarations, &list)
        return list.mistakes.sorted { ($0.model, $0.property ?? .max) < ($1.model, $1.property ?? .max) }
    }
}

/// The mistakes found so far.
struct MistakeList {
    private(set) var mistakes: [ModelMistake] = []
    private var known: Set<ModelMistake> = []
    private var errors: Set<MappingError> = []

    /// Adds a mistake, once for each place.
    mutating func report(_ mistake: ModelMistake) {
        errors.insert(mistake.error)
        if known.insert(mistake).inserted { mistakes.append(mistake) }
    }

    mutating func report(_ error: MappingError, model: Int, property: Int? = nil) {
        report(ModelMistake(model: model, property: property, error: error))
    }

    /// Adds a mistake, unless it is known from another place.
    mutating func reportNew(_ error: MappingError, model: Int) {
        if !errors.contains(error) { report(error, model: model) }
    }

    /// Adds names of models and properties that are invalid, or equal except for case.
    mutating func reportNames(of declarations: [ModelDeclaration]) {
        var folded: [String: String] = [:]
        for (index, declaration) in declarations.enumerated() {
            let name = declaration.name
            if !Models.isValidName(name) {
                reportNew(.invalidName(kind: "model", name: name, model: nil), model: index)
            }
            if let other = folded.updateValue(name, forKey: name.lowercased()) {
                reportNew(.duplicateModel(name, other: other), model: index)
            }
            var properties: [String: String] = [:]
            for property in declaration.properties.map(\.name) {
                guard let other = properties.updateValue(property, forKey: property.lowercased()) else { continue }
                reportNew(.duplicateProperty(property, other: other, model: name), model: index)
            }
        }
    }

    /// Adds contradictions between models derived from one base, each sound in itself.
    ///
    /// If no choice decides, an object is read with the declarations of all of them.
    mutating func report(_ faults: [MappingError], amongRelativesOf base: Int, _ declarations: [ModelDeclaration]) {
        for fault in faults {
            let entry = fault.entry
            let owner = entry.flatMap { entry in declarations.firstIndex { $0.names(entry.text, in: entry.use) } }
            reportNew(entry?.attributed(declarations[owner ?? base].name) ?? fault, model: owner ?? base)
        }
    }

    /// Whether a circle or an undeclared model is already reported for one of these models.
    func concernCluster(ofAny models: [Int]) -> Bool {
        mistakes.contains {
            switch $0.error {
            case .circularCluster, .unknownModel: models.contains($0.model)
            default: false
            }
        }
    }
}

extension MappingError {
    /// The entry that contradicts another model, the part of the declaration it is in, and the same error for another
    /// model.
    fileprivate var entry: (text: String, use: String, attributed: (_ model: String) -> MappingError)? {
        switch self {
        case .crossesRelation(let text, let use, let property, _, let other):
            (text, use, { .crossesRelation(text, usedBy: use, property: property, model: $0, other: other) })
        case .invalidKeyPath(let text, let use, _): (text, use, { .invalidKeyPath(text, usedBy: use, model: $0) })
        case .secretIdentity(let text, let use, _): (text, use, { .secretIdentity(text, usedBy: use, model: $0) })
        default: nil
        }
    }
}

extension ModelDeclaration {
    /// Whether the model itself has this entry, directly or by the name of a property.
    fileprivate func names(_ entry: String, in use: String) -> Bool {
        let lists = [
            "identity": identity, "keys": keys, "local": local, "secret": secret,
            "modified": modified.map { [$0] } ?? [], "deleted_when": deletedWhen?.paths ?? [],
        ]
        return lists[use, default: []].contains { name in
            name == entry || properties.contains { $0.name == name && $0.from == entry }
        }
    }
}

/// A mistake in a declaration, with its place.
public struct ModelMistake: Sendable, Hashable {
    /// The index of the model's declaration.
    public var model: Int
    /// The index of the property within it, if one is to blame.
    public var property: Int?
    public var error: MappingError
}
