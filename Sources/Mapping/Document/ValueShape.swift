/// Which members a value shows, whatever their values are.
///
/// Nobody knows of a member without a model whether an object in it that lacks a member is one that has lost it, or one that
/// is shown in part. So such a value takes the place of another only where both show the same.
indirect enum ValueShape: Hashable {
    /// Null, a string, a number, true or false.
    case plain
    case object([MemberPath: ValueShape])
    /// What the elements look like, each shape once.
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

    /// Whether a value of this shape shows all that one of the other does, and no more, in its place.
    ///
    /// What has no members fits anywhere; elements of a list fit if some element of the other looks like them.
    func fits(_ other: ValueShape) -> Bool {
        switch (self, other) {
        case (.plain, _):
            true
        case (.object(let mine), .object(let theirs)):
            mine.count == theirs.count
                && mine.allSatisfy { name, shape in theirs[name].map { shape.fits($0) } ?? false }
        case (.list(let mine), .list(let theirs)):
            // Lists whose elements all look different would be compared each with each.
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
