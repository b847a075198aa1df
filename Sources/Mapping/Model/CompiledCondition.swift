/// A condition with its key paths taken apart and its values read.
indirect enum CompiledCondition: Sendable {
    case has([String])
    case member([String], isOneOf: [JSONSlice])
    case all([CompiledCondition])
    case any([CompiledCondition])
    case not(CompiledCondition)

    /// Compiles a condition; `path` checks and splits each key path, and throws for one that cannot be asked.
    init(_ condition: Condition, path: (String) throws(MappingError) -> [String]) throws(MappingError) {
        switch condition {
        case .has(let member):
            self = .has(try path(member))
        case .member(let member, let values):
            var slices: [JSONSlice] = []
            for value in values {
                guard let slice = JSONSlice(value) else {
                    throw .invalidCheck("a condition on \"\(member)\" compares with what is not JSON value")
                }
                slices.append(slice)
            }
            self = .member(try path(member), isOneOf: slices)
        case .all(let conditions):
            self = .all(try Self.compile(conditions, path: path))
        case .any(let conditions):
            self = .any(try Self.compile(conditions, path: path))
        case .not(let condition):
            self = .not(try CompiledCondition(condition, path: path))
        }
    }

    private static func compile(
        _ conditions: [Condition],
        path: (String) throws(MappingError) -> [String]
    ) throws(MappingError) -> [CompiledCondition] {
        var compiled: [CompiledCondition] = []
        for condition in conditions { compiled.append(try CompiledCondition(condition, path: path)) }
        return compiled
    }

    /// Whether an object fulfils it; a member that occurs twice counts as absent (law 6).
    func holds(for object: JSONSlice) -> Bool {
        switch self {
        case .has(let path):
            object.value(at: path[...]) != nil
        case .member(let path, let values):
            object.value(at: path[...]).map { value in values.contains { value.isEqual(to: $0) } } ?? false
        case .all(let conditions):
            conditions.allSatisfy { $0.holds(for: object) }
        case .any(let conditions):
            conditions.contains { $0.holds(for: object) }
        case .not(let condition):
            !condition.holds(for: object)
        }
    }
}

extension JSONSlice {
    /// The value at a path of names; nil if there is none, or two.
    func value(at path: ArraySlice<String>) -> JSONSlice? {
        guard let name = path.first else { return self }
        var found: JSONSlice?
        var count = 0
        forEachMember { literal, _, range in
            let isMeant =
                literal.contains(UInt8(ascii: "\\"))
                ? JSONString.text(literal).map { $0.utf8.elementsEqual(name.utf8) } ?? false
                : literal.dropFirst().dropLast().elementsEqual(name.utf8)
            guard isMeant else { return }
            count += 1
            found = JSONSlice(text, range)
        }
        return count == 1 ? found?.value(at: path.dropFirst()) : nil
    }
}
