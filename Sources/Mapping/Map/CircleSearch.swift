/// Finds models that refer to each other without end.
///
/// Children made of their parents' members (`@self`) must not lead back; and objects without identity must not refer to
/// each other by relations to one object, for nothing could tell where such a chain ends. Trees, by way of lists, may.
struct CircleSearch {
    let declarations: [ModelDeclaration]
    /// The properties of each model, those of its bases included.
    let members: [[PlanCompiler.Member]]
    private let indexes: [String: Int]

    init(declarations: [ModelDeclaration], members: [[PlanCompiler.Member]]) {
        self.declarations = declarations
        self.members = members
        indexes = Dictionary(declarations.enumerated().map { ($1.name, $0) }) { first, _ in first }
    }

    mutating func mistakes() -> [(model: Int, error: MappingError)] {
        circles { $0.isItself }.map { ($0[0], error($0, "\"@self\"")) }
            + circles { !$0.isItself && isOne($0.relation) }
            .filter { $0.allSatisfy { isKeyless($0) } }
            .map { ($0[0], error($0, "relations to one object each, and none of them has an identity")) }
    }

    private func error(_ circle: [Int], _ use: String) -> MappingError {
        .circle(circle.map { declarations[$0].name }, use: use)
    }

    private func isOne(_ relation: Relation?) -> Bool { if case .one = relation { true } else { false } }

    private func isKeyless(_ model: Int) -> Bool {
        var index = model
        for _ in declarations.indices {
            if !declarations[index].identity.isEmpty { return false }
            guard let base = declarations[index].base.flatMap({ indexes[$0] }) else { return true }
            index = base
        }
        return true
    }

    /// A circle for each model that is the first, by declaration, of the shortest one through it.
    private func circles(along isEdge: (PropertyDeclaration) -> Bool) -> [[Int]] {
        var circles: [[Int]] = []
        for start in declarations.indices {
            guard let circle = shortestCircle(from: start, along: isEdge), circle.min() == start else { continue }
            circles.append(circle)
        }
        return circles
    }

    private func shortestCircle(from start: Int, along isEdge: (PropertyDeclaration) -> Bool) -> [Int]? {
        var paths = [[start]]
        var seen: Set<Int> = []
        while let path = paths.first {
            paths.removeFirst()
            for member in members[path[path.count - 1]] where isEdge(member.declaration) {
                guard let next = (member.declaration.relation?.model).flatMap({ indexes[$0] }) else { continue }
                if next == start { return path }
                if seen.insert(next).inserted { paths.append(path + [next]) }
            }
        }
        return nil
    }
}
