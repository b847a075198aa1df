/// The way to a value within an object, ready to be compared with JSON byte by byte.
struct ValuePath: Sendable, Hashable {
    /// One step.
    enum Step: Sendable, Hashable {
        /// To the member with this name, as UTF-8: names that are canonically equivalent differ in JSON.
        case member([UInt8])
        /// To each element.
        case each
    }

    var steps: [Step]

    init(_ steps: [Step]) { self.steps = steps }

    /// The path to a member by its plain name.
    init(member name: String) { steps = [.member(Array(name.utf8))] }

    /// Reads a spelling; nil for what is no key path.
    init?(_ text: String) {
        guard let steps = KeyPathSyntax.steps(of: text) else { return nil }
        self.steps = steps.map { step in
            switch step {
            case .name(let name): .member(Array(name.utf8))
            case .elements: .each
            }
        }
    }

    /// The names of the leading steps, up to the first over an array.
    var leadingNames: [[UInt8]] {
        steps.prefix { $0 != .each }.compactMap { if case .member(let name) = $0 { name } else { nil } }
    }

    /// What comes behind the leading names.
    var tail: ArraySlice<Step> { steps.drop { $0 != .each } }

    /// The paths that lead to this one, the outermost first.
    var outer: [ValuePath] { steps.indices.dropFirst().map { ValuePath(Array(steps[..<$0])) } }
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

extension CompiledCondition {
    /// Whether the object at a node fulfils it.
    func holds(for object: Int, in index: JSONIndex) -> Bool {
        index.kind(object) == .object && holds(for: index.slice(object))
    }

    /// The first names of the key paths that it asks for.
    var members: [[UInt8]] {
        switch self {
        case .has(let path), .member(let path, _): path.prefix(1).map { Array($0.utf8) }
        case .all(let conditions), .any(let conditions): conditions.flatMap(\.members)
        case .not(let condition): condition.members
        }
    }
}
