/// Finds models that refer to each other in endless circles.
///
/// Children made of their parents' members (`@self`) must not lead back. Models without an identity must not form a
/// circle of relations to one object, because such a chain would have no end. Circles through lists (trees) are
/// allowed.
struct CircleSearch {
    let declarations: [ModelDeclaration]
    /// The properties of each model, including those of its bases.
    private let members: [[PlanCompiler.Member]]
    /// By model, whether its objects have no identity.
    private let isKeyless: [Bool]
    private let indexes: [String: Int]

    init(declarations: [ModelDeclaration], members: [[PlanCompiler.Member]], isKeyless: [Bool]) {
        (self.declarations, self.members, self.isKeyless) = (declarations, members, isKeyless)
        indexes = Dictionary(declarations.enumerated().map { ($1.name, $0) }) { first, _ in first }
    }

    func mistakes() -> [(model: Int, error: MappingError)] {
        let ownMembers = edges { _, property in property.isItself }
        let keyless = edges { model, property in
            guard case .one(let other) = property.relation, !property.isItself, isKeyless[model] else { return false }
            return indexes[other].map { isKeyless[$0] } ?? false
        }
        return circles(along: ownMembers).map { ($0[0], error($0, "\"@self\"")) }
            + circles(along: keyless).map {
                ($0[0], error($0, "relations to one object each, and none of them has an identity"))
            }
    }

    private func error(_ circle: [Int], _ use: String) -> MappingError {
        .circle(circle.map { declarations[$0].name }, use: use)
    }

    /// By model, the models that it refers to.
    private func edges(_ isEdge: (Int, PropertyDeclaration) -> Bool) -> [[Int]] {
        members.enumerated().map { model, members in
            var seen: Set<Int> = []
            return members.compactMap { member in
                guard isEdge(model, member.declaration) else { return nil }
                return (member.declaration.relation?.model).flatMap { indexes[$0] }
            }.filter { seen.insert($0).inserted }
        }
    }

    /// The circles to report.
    ///
    /// For each model on no circle before: the shortest circle through it, if it is the first declared model on that circle.
    private func circles(along edges: [[Int]]) -> [[Int]] {
        // Most models are on no circle, and the models of a circle all reach each other.
        let groups = ReachableGroups(edges)
        var circles: [[Int]] = []
        var reported: Set<Int> = []
        for start in declarations.indices where groups.isCircular(start) && !reported.contains(start) {
            guard let circle = shortestCircle(from: start, along: edges, within: groups), circle.min() == start else {
                continue
            }
            circles.append(circle)
            reported.formUnion(circle)
        }
        return circles
    }

    private func shortestCircle(from start: Int, along edges: [[Int]], within groups: ReachableGroups) -> [Int]? {
        var before: [Int: Int] = [:]
        var queue = [start]
        var position = 0
        while position < queue.count {
            let model = queue[position]
            position += 1
            for next in edges[model] where groups.areTogether(start, next) {
                if next == start { return way(to: model, before, from: start) }
                if before[next] == nil {
                    before[next] = model
                    queue.append(next)
                }
            }
        }
        return nil
    }

    private func way(to end: Int, _ before: [Int: Int], from start: Int) -> [Int] {
        var way = [end]
        while way[way.count - 1] != start, let last = before[way[way.count - 1]] { way.append(last) }
        return way.reversed()
    }
}

/// The strongly connected components of a graph, found in one walk by Tarjan's algorithm.
struct ReachableGroups {
    private let edges: [[Int]]
    private var group: [Int]
    private var sizes: [Int] = []

    init(_ edges: [[Int]]) {
        self.edges = edges
        group = Array(repeating: -1, count: edges.count)
        var numbers = Array(repeating: -1, count: edges.count)
        var lowest = numbers
        var open: [Int] = []
        var count = 0
        // The nodes of the current path, each with the next edge to examine. There is no recursion, however long the
        // chain.
        var way: [(node: Int, edge: Int)] = []
        for start in edges.indices where numbers[start] < 0 {
            way.append((start, 0))
            while let (node, edge) = way.last {
                if numbers[node] < 0 {
                    (numbers[node], lowest[node]) = (count, count)
                    count += 1
                    open.append(node)
                }
                if edge < edges[node].count {
                    way[way.count - 1].edge += 1
                    let next = edges[node][edge]
                    if numbers[next] < 0 {
                        way.append((next, 0))
                    } else if group[next] < 0 {
                        lowest[node] = min(lowest[node], numbers[next])
                    }
                    continue
                }
                way.removeLast()
                if let above = way.last?.node { lowest[above] = min(lowest[above], lowest[node]) }
                guard lowest[node] == numbers[node] else { continue }
                var size = 0
                while let member = open.popLast() {
                    group[member] = sizes.count
                    size += 1
                    if member == node { break }
                }
                sizes.append(size)
            }
        }
    }

    /// Whether two nodes reach each other.
    func areTogether(_ one: Int, _ other: Int) -> Bool { group[one] == group[other] }

    /// Whether a node reaches itself.
    func isCircular(_ node: Int) -> Bool { sizes[group[node]] > 1 || edges[node].contains(node) }
}
