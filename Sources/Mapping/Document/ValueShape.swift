/// The members that a value has, regardless of their values.
///
/// For a member without a model, an object that lacks a member may have lost it, or may only be shown in part. So a
/// value replaces another one in a document only if both have the same members.
indirect enum ValueShape: Hashable {
    /// Null, a string, a number, true or false.
    case plain
    case object([MemberPath: ValueShape])
    /// The distinct shapes of the elements.
    case list(Set<ValueShape>)

    init(_ value: JSONSlice) {
        switch value.kind {
        case .object:
            self = .object(Dictionary(value.members.map { ($0.name, ValueShape($0.value)) }) { first, _ in first })
        case .array:
            self = .list(Set(value.elements.map { ValueShape($0) }))
        case .string, .number, .word:
            self = .plain
        }
    }

    private static let comparisons = 1_024

    /// Whether a value of this shape has exactly the members of the other in its place.
    ///
    /// A value without members fits anywhere. Each element of a list must fit some element of the other.
    func fits(_ other: ValueShape) -> Bool {
        switch (self, other) {
        case (.plain, _):
            true
        case (.object(let mine), .object(let theirs)):
            mine.count == theirs.count
                && mine.allSatisfy { name, shape in theirs[name].map { shape.fits($0) } ?? false }
        case (.list(let mine), .list(let theirs)):
            // The limit is for lists whose elements all differ: each would be compared with each.
            mine.allSatisfy { shape in
                shape == .plain || theirs.contains(shape)
                    || mine.count * theirs.count <= Self.comparisons && theirs.contains { shape.fits($0) }
            }
        case (.list(let mine), _):
            mine.allSatisfy { $0 == .plain }
        case (.object, _):
            false
        }
    }
}
