/// One declared member as one payload shows it.
struct ObservedMember: Sendable {
    /// Where a relation leads.
    struct Link: Sendable, Equatable {
        var model: Int
        var isMany: Bool
    }

    var value: JSONSlice
    /// An object literal whose members are observed one by one; its own value is only that it is an object.
    var isContainer = false
    /// Whether it may move into other answers; identity, keys and `modified` are observed even if they may not.
    var isShared: Bool
    var link: Link?
    /// Occurring twice is no observation.
    var isRepeated = false

    /// Whether two observations of one member agree.
    func agrees(with other: ObservedMember) -> Bool {
        if isContainer || other.isContainer { return isContainer && other.isContainer }
        if let link { return value.isEqual(to: other.value, asRelation: link.isMany) }
        return value.isEqual(to: other.value)
    }
}

/// What a payload says of an object: its declared members, found with the models of today.
struct ObservedMembers {
    private(set) var members: [MemberPath: ObservedMember] = [:]
    private let models: Models
    private var hasRepeated = false

    /// Reads the object literal `value` as one of the model with this index.
    init(_ value: JSONSlice, model: Int, models: Models) {
        self.models = models
        let compiled = models.compiled[model]
        read(value, node: compiled.root, shared: compiled.sharesAll, at: .root)
        guard hasRepeated else { return }
        let repeated = members.filter(\.value.isRepeated).map(\.key)
        for path in members.keys where repeated.contains(where: path.isWithin) { members[path]?.isRepeated = true }
    }

    /// `shared`: whether members move without being declared themselves.
    private mutating func read(_ object: JSONSlice, node: Int, shared: Bool, at prefix: MemberPath) {
        for member in object.members {
            let path = prefix.appending(member.name)
            guard let child = member.name.name.flatMap({ models.tree.child(of: node, named: $0) }) else {
                if shared { add(ObservedMember(value: member.value, isShared: true), at: path) }
                continue
            }
            read(member.value, child: child, shared: shared, at: path)
        }
    }

    private mutating func read(_ value: JSONSlice, child: Int, shared: Bool, at path: MemberPath) {
        let node = models.tree.nodes[child]
        guard !node.isLocal else { return }
        let isObject = value.kind == .object
        if node.relation >= 0 {
            let link = ObservedMember.Link(model: Int(node.relation), isMany: node.isMany)
            let isContainer = isObject && !node.isMany
            add(ObservedMember(value: value, isContainer: isContainer, isShared: true, link: link), at: path)
            guard isContainer else { return }
            let target = models.compiled[link.model]
            read(value, node: target.root, shared: target.sharesAll, at: path)
        } else if node.hasChildren, isObject {
            let shared = shared || node.isProperty
            add(ObservedMember(value: value, isContainer: true, isShared: shared), at: path)
            read(value, node: child, shared: shared, at: path)
        } else if shared || node.isProperty {
            add(ObservedMember(value: value, isShared: true), at: path)
        } else if node.captures != 0 {
            add(ObservedMember(value: value, isShared: false), at: path)
        }
    }

    private mutating func add(_ member: ObservedMember, at path: MemberPath) {
        if members.updateValue(member, forKey: path) != nil {
            members[path]?.isRepeated = true
            hasRepeated = true
        }
    }
}
