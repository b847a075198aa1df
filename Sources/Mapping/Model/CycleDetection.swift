/// These nodes of a graph and all that they lead to, each once, in the order of discovery.
func reachable(from start: [Int], _ edges: (Int) -> [Int]) -> [Int] {
    var nodes = start
    var position = 0
    while position < nodes.count {
        for next in edges(nodes[position]) where !nodes.contains(next) { nodes.append(next) }
        position += 1
    }
    return nodes
}

/// Finds the cycles of a directed graph.
struct CycleDetection {
    /// By node, the nodes that it leads to.
    private let edges: [[Int]]
    /// By node, whether it is on a cycle or between two.
    private var remains: [Bool]

    /// Drops nodes that nothing leads to, or that lead nowhere, until there are none.
    init(_ edges: [[Int]]) {
        self.edges = edges
        remains = Array(repeating: true, count: edges.count)
        var sources = Array(repeating: [Int](), count: edges.count)
        for (node, targets) in edges.enumerated() { for target in targets { sources[target].append(node) } }
        var (outgoing, incoming) = (edges.map(\.count), sources.map(\.count))
        var queue = edges.indices.filter { outgoing[$0] == 0 || incoming[$0] == 0 }
        while let node = queue.popLast() {
            guard remains[node] else { continue }
            remains[node] = false
            for target in edges[node] {
                incoming[target] -= 1
                if incoming[target] == 0 { queue.append(target) }
            }
            for source in sources[node] {
                outgoing[source] -= 1
                if outgoing[source] == 0 { queue.append(source) }
            }
        }
    }

    /// For each node on no cycle before: the shortest cycle through it, if it is the lowest node on that cycle.
    func cycles() -> [[Int]] {
        var cycles: [[Int]] = []
        var reported: Set<Int> = []
        for start in edges.indices where remains[start] && !reported.contains(start) {
            guard let cycle = shortestCycle(from: start), cycle.min() == start else { continue }
            cycles.append(cycle)
            reported.formUnion(cycle)
        }
        return cycles
    }

    /// The shortest cycle through a node; nil for a node between two cycles.
    private func shortestCycle(from start: Int) -> [Int]? {
        var before: [Int: Int] = [:]
        var queue = [start]
        var position = 0
        while position < queue.count {
            let node = queue[position]
            position += 1
            for next in edges[node] where remains[next] {
                if next == start { return way(to: node, before, from: start) }
                if before[next] == nil {
                    before[next] = node
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

/// Finds models that refer to each other in endless circles.
///
/// Children made of their parents' members (`@self`) must not lead back. Models without an identity must not form a
/// circle of relations to one object, because such a chain would have no end. Circles through lists (trees) are
/// allowed.
struct RelationCycles {
    let declarations: [ModelDeclaration]
    /// The properties of each model, including those of its bases.
    let members: [[ModelMember]]
    /// By model, whether its objects have no identity.
    let isKeyless: [Bool]
    let indexes: [String: Int]

    func mistakes() -> [(model: Int, error: MappingError)] {
        let ownMembers = edges { _, property in property.isItself }
        let keyless = edges { model, property in
            guard let relation = property.relation, relation.arity == .one, !property.isItself, isKeyless[model] else {
                return false
            }
            return indexes[relation.model].map { isKeyless[$0] } ?? false
        }
        return CycleDetection(ownMembers).cycles().map { ($0[0], error($0, "\"@self\"")) }
            + CycleDetection(keyless).cycles().map {
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
}
