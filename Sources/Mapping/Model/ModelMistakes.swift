extension Models {
    /// Every mistake in the declarations that can be found independently of the others, in the order of the
    /// declarations.
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
    mutating func report(_ error: MappingError, model: Int, property: Int? = nil) {
        let mistake = ModelMistake(model: model, property: property, error: error)
        errors.insert(error)
        if known.insert(mistake).inserted { mistakes.append(mistake) }
    }

    /// Adds a mistake, unless it is known from another place.
    mutating func reportNew(_ error: MappingError, model: Int, property: Int? = nil) {
        if !errors.contains(error) { report(error, model: model, property: property) }
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
            let owner = declarations.firstIndex { fault.entry.map($0.names) ?? false } ?? base
            reportNew(fault.attributed(to: declarations[owner].name), model: owner)
        }
    }

    /// Adds what another list found, unless it is known from another place.
    mutating func reportNew(_ other: MistakeList) {
        for mistake in other.mistakes { reportNew(mistake.error, model: mistake.model, property: mistake.property) }
    }

    /// The first mistake found.
    var first: MappingError? { mistakes.first?.error }

    /// Whether a circle or an undeclared model is already reported for one of these models.
    func concernCluster(ofAny models: [Int]) -> Bool {
        mistakes.contains { mistake in
            switch mistake.error {
            case .circularCluster, .unknownModel: models.contains(mistake.model)
            default: false
            }
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
            case "deleted_when": deletedWhen?.paths ?? []
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
    public var error: MappingError

    /// A mistake in the model, or the property, at this index.
    public init(model: Int, property: Int? = nil, error: MappingError) {
        (self.model, self.property, self.error) = (model, property, error)
    }
}
