/// How one property is read, shown and written back.
struct CompiledProperty: Sendable {
    /// The source of a value.
    indirect enum Source: Sendable {
        /// The first of these members that is present; then the steps over arrays, if any.
        case members(slots: [Int], tail: ArraySlice<PathStep>)
        /// A value from the object's surroundings, with its key path if it is in an outer object.
        case context(ContextValue, path: [PathStep])
        /// The object itself: a child made of its parent's members.
        case itself
        /// Several sources, combined into one object.
        case parts([(name: [UInt8], source: Source)])
    }

    struct Related: Sendable {
        var arity: Arity
        var model: Int
        /// The key that stands in place of an object; nil for its identity.
        var key: String?
    }

    /// Where a value is written back to.
    enum Output: Sendable {
        case none
        case place(Place)
        case itself
        /// For each part of a combined object.
        indirect case parts([(name: [UInt8], output: Output)])
        /// Nowhere: the value follows from the response, or from the list or the object around the object.
        case given(ContextValue)

        /// The paths within the object itself.
        var ownPaths: [[PathStep]] {
            switch self {
            case .place(let place): place.origin == .object ? [place.path] : []
            case .parts(let parts): parts.flatMap(\.output.ownPaths)
            case .none, .itself, .given: []
            }
        }
    }

    /// A place in the upstream's JSON, and the object in which its path begins.
    struct Place: Sendable {
        enum Origin: Sendable { case object, parent, root }
        var origin: Origin
        var path: [PathStep]
    }

    let name: String
    /// The name of the model under which it is shown.
    let model: String
    /// `"name":`, ready to be copied.
    let key: [UInt8]
    /// For a write path, the names of the children's properties on it; otherwise empty.
    let completes: [String]
    let source: Source
    var relation: Related?
    var conversion: ValueConversion
    let isRequired: Bool
    let defaultValue: [UInt8]?
    /// Whether the mapped view shows each element of a list once.
    let isUnique: Bool
    let output: Output
    /// The identity is always shown.
    let isIdentity: Bool
    /// For a relation, the properties of the same model that complete it.
    var completedBy: [Int] = []
    /// For a write path, the default of the property that it completes.
    var completedDefault: [UInt8]?

    var isFromContext: Bool { if case .context = source { true } else { false } }

    /// The maximum nesting of arrays in a list of related objects: the number of `[]` steps in its key path.
    var listLevels: Int {
        guard case .members(_, let tail) = source else { return 1 }
        return max(1, tail.count { $0 == .elements })
    }
}
