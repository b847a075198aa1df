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
