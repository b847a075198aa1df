/// Where the properties of one model are read, as a tree of member names to be walked along with an object.
struct SourceTree: Sendable {
    /// One place of the object.
    struct Node: Sendable {
        /// A bit for each hash of a child's name: most members of an object are rejected by this alone.
        var filter: UInt64 = 0
        var children: [Child] = []
        /// The children by their names, where there are many.
        var table: [[UInt8]: Int] = [:]
        /// The number of the value that is read here, else -1.
        var slot = -1
        /// Whether a bare identity may stand here, so that there is nothing below it.
        var mayBeBare = false
    }

    struct Child: Sendable {
        var name: [UInt8]
        var node: Int
    }

    /// From so many children on, a node has a table of them.
    private static let tableSize = 24

    private(set) var nodes = [Node()]
    private(set) var slotCount = 0

    /// The slot of the value at these names, made if it is not there.
    mutating func slot(at names: [[UInt8]]) -> Int {
        let node = insert(names)
        if nodes[node].slot < 0 {
            nodes[node].slot = slotCount
            slotCount += 1
        }
        return nodes[node].slot
    }

    /// Notes that a bare identity may stand at these names.
    mutating func allowBare(at names: [[UInt8]]) { nodes[insert(names)].mayBeBare = true }

    /// The child of a node by its unescaped name.
    @inline(__always)
    func child(of node: Int, named name: UnsafeBufferPointer<UInt8>) -> Int? {
        guard nodes[node].filter & Self.bit(name) != 0 else { return nil }
        if nodes[node].children.count >= Self.tableSize { return nodes[node].table[Array(name)] }
        for child in nodes[node].children where child.name.count == name.count {
            if child.name.elementsEqual(name) { return child.node }
        }
        return nil
    }

    private mutating func insert(_ names: [[UInt8]]) -> Int {
        var node = 0
        for name in names {
            if let child = name.withUnsafeBufferPointer({ child(of: node, named: $0) }) {
                node = child
            } else {
                nodes[node].filter |= name.withUnsafeBufferPointer(Self.bit)
                nodes[node].children.append(Child(name: name, node: nodes.count))
                note(Child(name: name, node: nodes.count), in: node)
                node = nodes.count
                nodes.append(Node())
            }
        }
        return node
    }

    private mutating func note(_ child: Child, in node: Int) {
        let count = nodes[node].children.count
        if count > Self.tableSize {
            nodes[node].table[child.name] = child.node
        } else if count == Self.tableSize {
            nodes[node].table = Dictionary(uniqueKeysWithValues: nodes[node].children.map { ($0.name, $0.node) })
        }
    }

    private static func bit(_ name: UnsafeBufferPointer<UInt8>) -> UInt64 {
        guard let first = name.first, let last = name.last else { return 1 }
        return 1 << ((UInt64(name.count) &* 5 &+ UInt64(first) &* 3 &+ UInt64(last)) & 63)
    }
}
