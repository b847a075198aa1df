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

/// The cycles of a directed graph, given by node the nodes that it leads to.
///
/// For each node on no cycle before: the shortest cycle through it, if it is the lowest node on that cycle.
func cycles(in edges: [[Int]]) -> [[Int]] {
    var cycles: [[Int]] = []
    var reported: Set<Int> = []
    for start in edges.indices where !reported.contains(start) {
        guard let cycle = shortestCycle(from: start, edges), cycle.min() == start else { continue }
        cycles.append(cycle)
        reported.formUnion(cycle)
    }
    return cycles
}

/// The shortest cycle that begins at a node; nil if there is none.
private func shortestCycle(from start: Int, _ edges: [[Int]]) -> [Int]? {
    // By node found, the one that leads to it.
    var before: [Int: Int] = [:]
    var queue = [start]
    var position = 0
    while before[start] == nil, position < queue.count {
        let node = queue[position]
        position += 1
        for next in edges[node] where before[next] == nil {
            before[next] = node
            queue.append(next)
        }
    }
    guard let last = before[start] else { return nil }
    return sequence(first: last) { $0 == start ? nil : before[$0] }.reversed()
}
