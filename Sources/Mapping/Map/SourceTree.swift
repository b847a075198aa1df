/// Where the properties of one model are read, as a tree of member names to be walked along with an object.
struct SourceTree: Sendable {
    /// One place of the object.
    struct Node: Sendable {
        /// A bit for each hash of a child's name: most members of an object are rejected by this alone.
        var filter: UInt64 = 0
        /// The nodes of the children by their names.
        var children: [[UInt8]: Int] = [:]
        /// The number of the value that is read here, else -1.
        var slot = -1
        /// Whether a bare identity may stand here, so that there is nothing below it.
        var mayBeBare = false
    }

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
        nodes[node].filter & Self.bit(name) == 0 ? nil : nodes[node].children[Array(name)]
    }

    private mutating func insert(_ names: [[UInt8]]) -> Int {
        var node = 0
        for name in names {
            if let child = nodes[node].children[name] {
                node = child
            } else {
                nodes[node].filter |= name.withUnsafeBufferPointer(Self.bit)
                nodes[node].children[name] = nodes.count
                node = nodes.count
                nodes.append(Node())
            }
        }
        return node
    }

    private static func bit(_ name: UnsafeBufferPointer<UInt8>) -> UInt64 {
        guard let first = name.first, let last = name.last else { return 1 }
        return 1 << ((UInt64(name.count) &* 5 &+ UInt64(first) &* 3 &+ UInt64(last)) & 63)
    }
}
