/// The declared key paths of all models, as a flat table of plain values that is walked along with JSON.
struct PathTree: Sendable {
    /// The declarations for one place of a model's JSON.
    struct Node: Sendable {
        /// A bit for each hash of a child's name; it rejects most members of a body by itself.
        var filter: UInt64 = 0
        var firstChild: Int32 = 0
        var childCount: Int32 = 0
        /// The index of the model that the relation here refers to, or -1.
        var relation: Int32 = -1
        /// The node of the elements, if the value here is an array, or -1.
        var element: Int32 = -1
        /// The index of the `MemberRule` for the value here, or -1.
        var rule: Int32 = -1
        /// The slot of the value that the mapped view reads here, or -1.
        var slot: Int32 = -1
        /// Whether the mapped view reads the value here or one below it.
        var isShown = false
        /// A bit for each capture of the model (identity, keys) that reads the value here.
        var captures: UInt64 = 0
        /// The arity of the relation here; nil if it is one or many, because the key path crosses arrays.
        var arity: Arity? = .one
        /// Whether a property is declared for exactly this place.
        var isProperty = false
        /// Whether a property is declared for a place below this one, within the same object.
        var holdsProperty = false
        var isLocal = false
        var isIdentity = false
        /// Whether a condition or `modified` reads the value here; it is then observed, although it may not move.
        var isAsked = false
        var merge = MergePolicy.latest
        /// Whether the relation here deletes objects that it no longer names.
        var deletesFormer = false

        var hasChildren: Bool { childCount > 0 }
        var isMany: Bool { arity == .many }
        /// Whether the value is read, not only walked over.
        var isWatched: Bool { captures != 0 || rule >= 0 }
    }

    struct Child: Sendable {
        /// The first eight bytes of the name, padded with zeros.
        var head: UInt64
        var nameStart: Int32
        var nameLength: Int32
        var node: Int32
    }

    private(set) var nodes: [Node] = []
    /// Further declarations about members; the nodes refer to them by index.
    private(set) var rules: [MemberRule] = []
    private(set) var children: [Child] = []
    private(set) var names: [UInt8] = []

    /// Appends a tree and returns the index of its root.
    mutating func append(_ branch: PathBranch) -> Int {
        let root = nodes.count
        nodes.append(branch.node)
        fill(root, from: branch)
        return root
    }

    private mutating func fill(_ index: Int, from branch: PathBranch) {
        if let rule = branch.rule {
            nodes[index].rule = Int32(rules.count)
            rules.append(rule)
        }
        let firstChild = children.count
        var named: [PathBranch] = []
        for case (.name(let name), let branch) in branch.children {
            let name = Array(name.utf8)
            nodes[index].filter |= 1 << name.withUnsafeBufferPointer { Self.hash($0.baseAddress!, $0.count) }
            children.append(
                Child(
                    head: name.withUnsafeBufferPointer { Self.head($0.baseAddress!, $0.count, readable: $0.count) },
                    nameStart: Int32(names.count),
                    nameLength: Int32(name.count),
                    node: Int32(nodes.count)
                )
            )
            names += name
            nodes.append(branch.node)
            named.append(branch)
        }
        nodes[index].firstChild = Int32(firstChild)
        nodes[index].childCount = Int32(named.count)
        for (offset, branch) in named.enumerated() { fill(Int(children[firstChild + offset].node), from: branch) }
        for case (.elements, let element) in branch.children {
            nodes[index].element = Int32(append(element))
        }
    }

    func children(of node: Node) -> [Int] {
        children[Int(node.firstChild)..<Int(node.firstChild + node.childCount)].map { Int($0.node) }
    }

    /// The child of a node by its unescaped name.
    func child(of node: Int, named name: String) -> Int? {
        guard nodes[node].hasChildren, !name.isEmpty else { return nil }
        var name = name
        return name.withUTF8 { name in
            withView { $0.child(of: $0.nodes[node], name.baseAddress!, name.count, readable: name.count) }
        }
    }

    /// The child of a node by its name as a valid literal.
    func child(of node: Int, spelled literal: UnsafeBufferPointer<UInt8>) -> Int? {
        guard nodes[node].hasChildren, literal.count > 2, let base = literal.baseAddress else { return nil }
        if literal.contains(UInt8(ascii: "\\")) {
            return JSONString.text(literal).flatMap { child(of: node, named: $0) }
        }
        let count = literal.count - 2
        return withView { $0.child(of: $0.nodes[node], base + 1, count, readable: count) }
    }

    @inline(__always)
    static func hash(_ name: UnsafePointer<UInt8>, _ count: Int) -> UInt64 {
        guard count > 0 else { return 0 }
        return (UInt64(count) &* 5 &+ UInt64(name[0]) &* 3 &+ UInt64(name[count - 1])) & 63
    }

    /// The first eight bytes of a name, of which `readable` bytes may be read.
    @inline(__always)
    static func head(_ name: UnsafePointer<UInt8>, _ count: Int, readable: Int) -> UInt64 {
        if readable >= 8 {
            let word = UInt64(littleEndian: UnsafeRawPointer(name).loadUnaligned(as: UInt64.self))
            return count >= 8 ? word : word & ((1 << UInt64(count * 8)) - 1)
        }
        var word: UInt64 = 0
        for index in 0..<min(count, 8) { word |= UInt64(name[index]) << UInt64(index * 8) }
        return word
    }

    /// The table as pointers, for loops that look up every member of a body; valid only within `withView`.
    struct View {
        let nodes: UnsafeBufferPointer<Node>
        let children: UnsafeBufferPointer<Child>
        let names: UnsafeBufferPointer<UInt8>

        /// The index of the child with this name.
        @inline(__always)
        func child(of node: Node, _ name: UnsafePointer<UInt8>, _ count: Int, readable: Int) -> Int? {
            guard node.filter & (1 << PathTree.hash(name, count)) != 0 else { return nil }
            let head = PathTree.head(name, count, readable: readable)
            for index in Int(node.firstChild)..<Int(node.firstChild + node.childCount) {
                let child = children[index]
                guard child.head == head, Int(child.nameLength) == count else { continue }
                var place = 8
                while place < count, names[Int(child.nameStart) + place] == name[place] { place += 1 }
                if place >= count { return Int(child.node) }
            }
            return nil
        }
    }

    func withView<Result>(_ body: (View) -> Result) -> Result {
        nodes.withUnsafeBufferPointer { nodes in
            children.withUnsafeBufferPointer { children in
                names.withUnsafeBufferPointer { names in body(View(nodes: nodes, children: children, names: names)) }
            }
        }
    }
}

/// One node of a model's path tree under construction.
struct PathBranch {
    var node = PathTree.Node()
    var rule: MemberRule?
    private(set) var children: [(step: PathStep, branch: PathBranch)] = []
    private var positions: [PathStep: Int] = [:]

    /// Changes the branch at a path; creates it if needed.
    mutating func update(_ path: ArraySlice<PathStep>, _ change: (inout PathBranch) -> Void) {
        guard let step = path.first else { return change(&self) }
        let position = positions[step] ?? children.count
        if position == children.count {
            positions[step] = position
            children.append((step, PathBranch()))
        }
        children[position].branch.update(path.dropFirst(), change)
    }

    mutating func update(_ names: [String], _ change: (inout PathBranch) -> Void) {
        update(names.map(PathStep.name)[...], change)
    }

    /// The slot of the value at these names; creates it if needed, after `count` others.
    mutating func slot(at names: [String], count: inout Int) -> Int {
        var slot = 0
        for length in names.indices { update(Array(names[...length])) { $0.node.isShown = true } }
        update(names) {
            if $0.node.slot < 0 {
                $0.node.slot = Int32(count)
                count += 1
            }
            slot = Int($0.node.slot)
        }
        return slot
    }

    /// The number of steps to the first relation on a path, if there is one before its end.
    func relationPrefix(of path: [PathStep]) -> Int? {
        var branch = self
        for (offset, step) in path.enumerated() {
            guard let position = branch.positions[step] else {
                // The elements of a list of objects are the objects.
                return step == .elements && branch.node.relation >= 0 ? offset : nil
            }
            branch = branch.children[position].branch
            if branch.node.relation >= 0, offset + 1 < path.count { return offset + 1 }
        }
        return nil
    }
}
