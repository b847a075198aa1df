/// What happens to an object that a relation no longer names (RestKit's replacing of children).
public enum FormerPolicy: String, Sendable, CaseIterable {
    /// The object is unlinked, but stays.
    case keep
    /// The object counts as deleted, as if its own address had said so.
    ///
    /// The upstream keeps such objects within their owner, and the owner always shows all of them.
    case delete
}

extension Models {
    /// The objects that a change removes from a relation with `former: delete`.
    ///
    /// None if the new value has an element that is not identified: it may be the object that seems to be missing.
    ///
    /// - Parameter model: the name of the object's model, or of its cluster's base.
    public func formerObjects(in change: MemberChange, of model: String) -> [ObjectName] {
        guard deleteFormer, let index = index(of: model),
            let node = node(of: MemberPath(pointer: change.member), in: index)
        else { return [] }
        let place = tree.nodes[node]
        guard place.deletesFormer, let old = JSONSlice(change.old), let new = JSONSlice(change.new),
            let known = named(by: old, at: place), let named = named(by: new, at: place)
        else { return [] }
        let left = Set(named)
        var seen: Set<ObjectName> = []
        return known.filter { !left.contains($0) && seen.insert($0).inserted }
    }

    /// The objects that the value of a relation names; nil if it contains anything but names and nulls.
    private func named(by value: JSONSlice, at node: PathTree.Node) -> [ObjectName]? {
        let values: [JSONSlice]
        switch (node.arity, value.kind) {
        case _ where value.isNull: values = []
        case (.one, .string), (.one, .number): values = [value]
        case (.many, .array): values = value.elements
        case (.keyed, .object): values = value.members.map(\.value)
        default: return nil
        }
        let model = compiled[Int(node.relation)]
        var names: [ObjectName] = []
        for value in values where !value.isNull {
            guard let target = value.target(isStrict: model.distinguishesTypes) else { return nil }
            names.append(target.name ?? ObjectName(model: model.objectName, identity: target.identity))
        }
        return names
    }
}
