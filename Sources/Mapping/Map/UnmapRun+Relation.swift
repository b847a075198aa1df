extension UnmapRun {
    /// Writes the value of a relation.
    mutating func related(
        _ value: Value,
        _ relation: PropertyPlan.Related,
        _ target: Target,
        _ node: Int,
        _ standing: Standing
    ) throws(UnmapError) {
        let (mask, completed) = (target.mask, target.completed)
        switch (relation.shape, kind(value)) {
        case (.keyed, .object):
            try keyed(value, as: relation.plan, into: node, mask: mask)
        case (.many, .array):
            try list(value, as: relation.plan, into: node, mask: mask)
        case (_, .object) where isNamed(value):
            try bare(value, as: relation.plan, into: node)
        case (_, .object):
            try object(value, as: relation.plan, into: node, mask: mask, standing: standing, completed: completed)
            // If the upstream had nothing but completions of this child, the child has no place of its own.
            let isCompleted = completed.contains { $0.first.map { member($0, of: value) != nil } ?? false }
            if isCompleted, builder.isEmptyObject(node) { builder.reopen(node) }
        default:
            set(node, value, target.model)
        }
    }

    mutating func list(_ value: Value, as index: Int, into node: Int, mask: MemberMask) throws(UnmapError) {
        let values = documents[value.document].children(of: value.node)
        guard let elements = builder.elements(values.count, of: node), elements.count == values.count else {
            return warnOfNoPlace(value, plan.models[index].name)
        }
        for (position, (place, inner)) in zip(elements, values).enumerated() {
            let inner = Value(document: value.document, node: inner)
            try element(inner, as: index, into: place, mask: mask, standing: Standing(position: position))
        }
    }

    mutating func keyed(_ value: Value, as index: Int, into node: Int, mask: MemberMask) throws(UnmapError) {
        let text = documents[value.document]
        guard builder.openObject(node) else { return warnOfNoPlace(value, plan.models[index].name) }
        var name = value.node + 1
        while name < Int(text.nodes[value.node].next) {
            let inner = Value(document: value.document, node: name + 1)
            if let key = text.name(name), let member = builder.member(Array(key.utf8), of: node) {
                let standing = Standing(key: Value(document: value.document, node: name))
                try element(inner, as: index, into: member, mask: mask, standing: standing)
            } else {
                warn(.notWritten, "A name is not Unicode; its member is not written back.", at: inner, model: nil)
            }
            name = Int(text.nodes[name + 1].next)
        }
    }

    private mutating func element(
        _ value: Value,
        as index: Int,
        into node: Int,
        mask: MemberMask,
        standing: Standing
    ) throws(UnmapError) {
        if isNamed(value) {
            try bare(value, as: index, into: node)
        } else if kind(value) == .object {
            try object(value, as: index, into: node, mask: mask, standing: standing)
        } else {
            set(node, value, plan.models[index].name)
        }
    }
}
