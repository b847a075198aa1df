/// A condition on an object's JSON.
public indirect enum Condition: Sendable, Equatable {
    /// The object has a member at a key path, null or not.
    case has(String)
    /// The member at a key path equals one of these JSON values.
    case member(String, isOneOf: [[UInt8]])
    case all([Condition])
    case any([Condition])
    case not(Condition)

    /// The condition with key paths in place of property names.
    func spelled(by spellings: (String) -> [String]) -> Condition {
        func each(_ entry: String, _ condition: (String) -> Condition) -> Condition {
            let sources = spellings(entry)
            return sources.count == 1 ? condition(sources[0]) : .any(sources.map(condition))
        }
        switch self {
        case .has(let entry): return each(entry) { .has($0) }
        case .member(let entry, let values): return each(entry) { .member($0, isOneOf: values) }
        case .all(let conditions): return .all(conditions.map { $0.spelled(by: spellings) })
        case .any(let conditions): return .any(conditions.map { $0.spelled(by: spellings) })
        case .not(let condition): return .not(condition.spelled(by: spellings))
        }
    }

    /// The property names and key paths in the condition, as declared.
    var entries: [String] {
        switch self {
        case .has(let entry), .member(let entry, _): [entry]
        case .all(let conditions), .any(let conditions): conditions.flatMap(\.entries)
        case .not(let condition): condition.entries
        }
    }
}

/// One concrete model of a cluster, and the condition for its objects (Mantle's class clusters).
public struct ModelChoice: Sendable, Equatable {
    /// The name of the concrete model.
    public var model: String
    /// The condition; nil for the choice that takes all objects left by the choices before it.
    public var condition: Condition?

    /// Declares a choice.
    public init(model: String, condition: Condition?) { (self.model, self.condition) = (model, condition) }
}

/// A condition with split key paths and parsed values.
indirect enum CompiledCondition: Sendable {
    case has([String])
    case member([String], isOneOf: [JSONSlice])
    case all([CompiledCondition])
    case any([CompiledCondition])
    case not(CompiledCondition)

    /// Compiles a condition; `path` checks and splits each key path, and throws if it cannot be used.
    init(_ condition: Condition, path: (String) throws(MappingError) -> [String]) throws(MappingError) {
        switch condition {
        case .has(let member): self = .has(try path(member))
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

    /// Whether an object fulfils the condition; a repeated member counts as absent (law 6).
    ///
    /// Members that it does not show are taken from the first of `known` that does.
    func holds(for object: JSONSlice, else known: [JSONSlice] = []) -> Bool {
        switch self {
        case .has(let path): object.value(at: path[...], else: known) != nil
        case .member(let path, let values):
            object.value(at: path[...], else: known).map { value in values.contains { value.isEqual(to: $0) } } ?? false
        case .all(let conditions): conditions.allSatisfy { $0.holds(for: object, else: known) }
        case .any(let conditions): conditions.contains { $0.holds(for: object, else: known) }
        case .not(let condition): !condition.holds(for: object, else: known)
        }
    }

    /// Whether an object lacks a member whose value the condition compares.
    func isOpen(for object: JSONSlice) -> Bool {
        switch self {
        case .has: false
        case .member(let path, _): object.value(at: path[...]) == nil
        case .all(let conditions), .any(let conditions): conditions.contains { $0.isOpen(for: object) }
        case .not(let condition): condition.isOpen(for: object)
        }
    }

    /// The key paths that the condition reads.
    var paths: [[String]] {
        switch self {
        case .has(let path), .member(let path, _): [path]
        case .all(let conditions), .any(let conditions): conditions.flatMap(\.paths)
        case .not(let condition): condition.paths
        }
    }
}

extension JSONSlice {
    /// The value at a path of names, here or in the first of the others that has one.
    fileprivate func value(at path: ArraySlice<String>, else others: [JSONSlice]) -> JSONSlice? {
        value(at: path) ?? others.lazy.compactMap { $0.value(at: path) }.first
    }

    /// The value at a path of names; nil if there is none or more than one.
    func value(at path: ArraySlice<String>) -> JSONSlice? {
        guard let name = path.first else { return self }
        var found: JSONSlice?
        var count = 0
        forEachMember { literal, _, range in
            guard JSONString.content(of: literal, is: name.utf8) else { return }
            count += 1
            found = JSONSlice(text, range)
        }
        return count == 1 ? found?.value(at: path.dropFirst()) : nil
    }
}
