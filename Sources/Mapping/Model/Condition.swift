/// A condition on an object's JSON: as declared, with key paths and JSON texts.
public typealias Condition = ConditionTree<String, [UInt8]>

/// The same with split key paths and parsed values.
typealias CompiledCondition = ConditionTree<[String], JSONSlice>

/// A condition on single members, joined by `all`, `any` and `not`.
public indirect enum ConditionTree<Path: Sendable, Value: Sendable>: Sendable {
    /// The object has a member at a key path, null or not.
    case has(Path)
    /// The member at a key path equals one of these values.
    case member(Path, isOneOf: [Value])
    case all([ConditionTree])
    case any([ConditionTree])
    case not(ConditionTree)

    var paths: [Path] {
        switch self {
        case .has(let path), .member(let path, _): [path]
        case .all(let conditions), .any(let conditions): conditions.flatMap(\.paths)
        case .not(let condition): condition.paths
        }
    }

    /// The condition with others in place of those on single members.
    func replacing<P, V, Failure>(
        _ change: (Path, [Value]?) throws(Failure) -> ConditionTree<P, V>
    ) throws(Failure) -> ConditionTree<P, V> {
        switch self {
        case .has(let path): try change(path, nil)
        case .member(let path, let values): try change(path, values)
        case .all(let conditions): .all(try conditions.map { (each) throws(Failure) in try each.replacing(change) })
        case .any(let conditions): .any(try conditions.map { (each) throws(Failure) in try each.replacing(change) })
        case .not(let condition): .not(try condition.replacing(change))
        }
    }
}

extension ConditionTree: Equatable where Path: Equatable, Value: Equatable {}

extension Condition {
    /// The condition with key paths in place of property names.
    func spelled(by spellings: (String) -> [String]) -> Condition {
        replacing { entry, values in
            let conditions = spellings(entry).map { path in
                values.map { .member(path, isOneOf: $0) } ?? Condition.has(path)
            }
            return conditions.count == 1 ? conditions[0] : .any(conditions)
        }
    }

    /// The condition ready to be decided; `path` checks and splits each key path.
    func compiled(path: (String) throws(MappingError) -> [String]) throws(MappingError) -> CompiledCondition {
        try replacing { (member, values) throws(MappingError) in
            guard let values else { return .has(try path(member)) }
            let slices = values.compactMap { JSONSlice($0) }
            guard slices.count == values.count else {
                throw .invalidCheck("a condition on \"\(member)\" compares with what is no JSON value")
            }
            return .member(try path(member), isOneOf: slices)
        }
    }
}

extension CompiledCondition {
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

    /// Whether neither an object nor `known` shows a member whose value the condition compares.
    func isOpen(for object: JSONSlice, else known: [JSONSlice] = []) -> Bool {
        switch self {
        case .has: false
        case .member(let path, _): object.value(at: path[...], else: known) == nil
        case .all(let conditions), .any(let conditions): conditions.contains { $0.isOpen(for: object, else: known) }
        case .not(let condition): condition.isOpen(for: object, else: known)
        }
    }
}

/// One concrete model of a cluster, and the condition for its objects (Mantle's class clusters).
public struct ModelChoice: Sendable, Equatable {
    public var model: String
    /// Nil for the choice that takes all objects left by the choices before it.
    var condition: Condition?

    /// A choice of `model` for the objects that fulfil `condition`.
    public init(model: String, condition: Condition?) { (self.model, self.condition) = (model, condition) }
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
