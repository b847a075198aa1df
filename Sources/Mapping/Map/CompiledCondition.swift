/// A condition with its key paths and values read once.
indirect enum CompiledCondition: Sendable {
    case has(ValuePath)
    case member(ValuePath, isOneOf: [JSONSlice])
    case all([CompiledCondition])
    case any([CompiledCondition])
    case not(CompiledCondition)

    /// Compiles a condition; the error says which of its paths or values is wrong.
    init(_ condition: Condition, usedBy use: String, model: String) throws(MappingError) {
        switch condition {
        case .has(let path):
            self = .has(try Self.path(path, use, model))
        case .member(let path, let values):
            var slices: [JSONSlice] = []
            for value in values {
                guard !JSONBody.isMalformed(value), let slice = JSONSlice(value) else {
                    throw .notJSON(use, property: nil, model: model)
                }
                slices.append(slice)
            }
            self = .member(try Self.path(path, use, model), isOneOf: slices)
        case .all(let conditions):
            self = .all(try Self.each(conditions, use, model))
        case .any(let conditions):
            self = .any(try Self.each(conditions, use, model))
        case .not(let condition):
            self = .not(try CompiledCondition(condition, usedBy: use, model: model))
        }
    }

    /// Whether the object at a node fulfils it.
    func holds(for object: Int, in index: JSONIndex) -> Bool {
        switch self {
        case .has(let path):
            return index.value(at: path, of: object) != nil
        case .member(let path, let values):
            guard let value = index.value(at: path, of: object).map(index.slice) else { return false }
            return values.contains { $0.isEqual(to: value) }
        case .all(let conditions):
            return conditions.allSatisfy { $0.holds(for: object, in: index) }
        case .any(let conditions):
            return conditions.contains { $0.holds(for: object, in: index) }
        case .not(let condition):
            return !condition.holds(for: object, in: index)
        }
    }

    /// The first names of the key paths that it asks for.
    var members: [[UInt8]] {
        switch self {
        case .has(let path), .member(let path, _): Array(path.leadingNames.prefix(1))
        case .all(let conditions), .any(let conditions): conditions.flatMap(\.members)
        case .not(let condition): condition.members
        }
    }

    private static func path(_ text: String, _ use: String, _ model: String) throws(MappingError) -> ValuePath {
        guard let path = ValuePath(text), path.tail.isEmpty else {
            throw .invalidKeyPath(text, usedBy: use, model: model)
        }
        return path
    }

    private static func each(
        _ conditions: [Condition],
        _ use: String,
        _ model: String
    ) throws(MappingError) -> [CompiledCondition] {
        var compiled: [CompiledCondition] = []
        for condition in conditions { compiled.append(try CompiledCondition(condition, usedBy: use, model: model)) }
        return compiled
    }
}

extension JSONIndex {
    /// The value at a key path of an object; nil if a member on the way is missing or no object.
    func value(at path: ValuePath, of object: Int) -> Int? {
        var value = object
        for case .member(let name) in path.steps {
            guard let next = member(name, of: value) else { return nil }
            value = next
        }
        return value
    }
}
