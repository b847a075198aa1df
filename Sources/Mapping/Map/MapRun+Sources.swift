extension MapRun {
    /// What there is of an object's properties.
    struct Members {
        /// The value of each slot, from the object itself or from one that a key path reached through a reference.
        var values: [Value?]
        /// Values of outer objects for its properties.
        var completions: [Completion] = []
        /// The slots whose values come from what is known of an object that the body only names.
        var known: Set<Int> = []
        /// Whether a key path was blocked; the object then contained something after all.
        var isBlocked = false
        /// The inner nodes of the source tree that were visited.
        var entered: [Int] = []

        var isEmpty: Bool { !isBlocked && values.allSatisfy { $0 == nil } }

        /// Whether the value of a source comes from what is known of an object that the body only names.
        func isKnown(_ source: CompiledProperty.Source) -> Bool {
            guard !known.isEmpty else { return false }
            switch source {
            case .members(let slots, _): return slots.contains(where: known.contains)
            case .parts(let parts): return parts.contains { isKnown($0.source) }
            case .context, .itself: return false
            }
        }
    }

    /// Reads the members of the current object that its model's sources name.
    mutating func members(of object: Value?, _ model: CompiledModel, _ completions: [Completion]) -> Members {
        var members = Members(values: Array(repeating: nil, count: model.shown.slotCount), completions: completions)
        if let object, object.kind == .object { read(object, at: model.root, of: model.root, &members) }
        return members
    }

    /// Reads what the sources at a node name.
    ///
    /// - Parameter own: the node of the object in its own model, which knows its relations; -1 if it is of no model.
    private mutating func read(_ object: Value, at node: Int, of own: Int, _ members: inout Members) {
        let index = object.index
        index.forEachMember(of: object.node) { name, member in
            let literal = index.slice(name)
            guard let child = literal.withBytes({ models.tree.child(of: node, spelled: $0) }) else { return }
            let value = object.at(member)
            let place = models.tree.nodes[child]
            guard place.isShown else { return }
            let slot = Int(place.slot)
            if slot >= 0 ? members.values[slot] != nil : members.entered.contains(child) {
                warnOfRepetition(at: value, as: currentModel)
                // The values found below the earlier member go too.
                forget(child, &members)
            }
            if slot >= 0 { members.values[slot] = value }
            guard place.hasChildren else { return }
            if slot < 0 { members.entered.append(child) }
            let inner = own < 0 ? nil : literal.withBytes { models.tree.child(of: own, spelled: $0) }
            let related = inner.map { Int(models.tree.nodes[$0].relation) } ?? -1
            if value.kind == .object {
                read(value, at: child, of: related < 0 ? inner ?? -1 : root(of: value, as: related), &members)
                guard related >= 0, isLoneIdentity(value, of: models.compiled[related]) else { return }
                readKnown(value, at: child, as: related, &members)
            } else if value.isNull {
                fill(child, with: value, &members)
            } else if resolve != nil, value.slice.isReference, let name = value.slice.target()?.name {
                // Nothing is shown of an unknown object, and it is no fault.
                guard let object = referred(by: name, at: value) else { return }
                let own = models.index(of: name.model).map { root(of: object, as: $0) } ?? -1
                read(object, at: child, of: own, &members)
            } else if related >= 0, models.compiled[related].hasIdentity,
                value.withBytes({ Identity.read($0) }) != .unusable
            {
                readKnown(value, at: child, as: related, &members)
            } else {
                members.isBlocked = true
                warn(.pathBlocked, "The key path expects an object here.", at: value, as: currentModel)
            }
        }
    }

    /// Follows key paths through the identity of an object, into what is known of that object.
    private mutating func readKnown(_ identity: Value, at node: Int, as related: Int, _ members: inout Members) {
        guard let name = models.compiled[related].object(identifiedBy: identity),
            let object = referred(by: name, at: identity)
        else { return }
        var found = Members(values: Array(repeating: nil, count: members.values.count))
        read(object, at: node, of: root(of: object, as: related), &found)
        for (slot, value) in found.values.enumerated() where value != nil && members.values[slot] == nil {
            members.values[slot] = value
            if resolve == nil { members.known.insert(slot) }
        }
    }

    /// The model of the current object.
    var currentModel: Int { frames[frames.count - 1].model }

    mutating func warnOfRepetition(at value: Value, as index: Int) {
        warn(.keyCollision, "A member occurs twice in one object; the last counts.", at: value, as: index)
    }

    /// Discards the values found at a node and below it.
    private func forget(_ node: Int, _ members: inout Members) {
        let place = models.tree.nodes[node]
        if place.slot >= 0 { members.values[Int(place.slot)] = nil } else { members.entered.removeAll { $0 == node } }
        for child in models.tree.children(of: place) { forget(child, &members) }
    }

    /// Null in the middle of a path makes the values below it null: the upstream says that there are none.
    private func fill(_ node: Int, with null: Value, _ members: inout Members) {
        for child in models.tree.children(of: models.tree.nodes[node]) {
            let slot = Int(models.tree.nodes[child].slot)
            if slot >= 0, members.values[slot] == nil { members.values[slot] = null }
            fill(child, with: null, &members)
        }
    }

    /// The node of an object of a model, or of a concrete model of its cluster.
    private func root(of object: Value, as index: Int) -> Int {
        models.compiled[models.concrete(of: index, for: object.slice)].root
    }

    // MARK: The value of a property

    /// The value of a source, if there is one.
    mutating func find(_ source: CompiledProperty.Source, _ members: Members) -> Value? {
        switch source {
        case .members(let slots, let tail): return find(slots, tail, members)
        case .context(let value, let path): return find(value, path)
        case .itself: return frames.last?.object
        case .parts(let parts):
            var folded: [UInt8] = [UInt8(ascii: "{")]
            for (name, source) in parts {
                guard let value = find(source, members) else { continue }
                folded.appendComma()
                JSONString.append(String(decoding: name, as: UTF8.self), to: &folded)
                folded.append(UInt8(ascii: ":"))
                folded += value.bytes
            }
            return folded.count > 1 ? Value(folded + [UInt8(ascii: "}")], of: frames.last?.object) : nil
        }
    }

    private mutating func find(_ slots: [Int], _ tail: Steps, _ members: Members) -> Value? {
        var first: Value?
        for slot in slots {
            guard let value = members.values[slot] else { continue }
            if first != nil {
                let message = "A property occurs under two names; the exact one counts."
                warn(.keyCollision, message, at: value, as: currentModel)
            }
            first = first ?? value
        }
        return tail.isEmpty ? first : first.flatMap { list(at: $0, tail) }
    }

    private func find(_ value: ContextValue, _ path: [PathStep]) -> Value? {
        switch value {
        case .url, .capture, .query, .header: context.text(of: value).flatMap { Value(JSONString.literal($0), of: nil) }
        // The enclosing object of a declared model; the wrapper of a body counts only if `envelope` names its model.
        case .parent: frames.dropLast().last?.object.flatMap { find(path, of: $0) }
        case .root: (body.kind == .object ? body : frames.first?.object).flatMap { find(path, of: $0) }
        case .index: frames.last?.standing.position.flatMap { Value(Array(String($0).utf8), of: nil) }
        case .key: frames.last?.standing.key
        case .itself: nil
        }
    }

    /// Reads a path; null in the middle of it is null at its end, as in the object itself.
    private func find(_ path: [PathStep], of object: Value) -> Value? {
        let index = object.index
        var value = object.node
        for case .name(let name) in path {
            if index.kind(value) == .null { break }
            guard let next = index.member(name.utf8, of: value) else { return nil }
            value = next
        }
        return object.at(value)
    }

    // MARK: Steps over arrays

    /// The list that a path over arrays collects from a value, with null for elements without the member.
    private mutating func list(at value: Value, _ steps: Steps) -> Value? {
        if value.isNull || (value.kind == .array && steps.count == 1) { return value }
        guard value.kind == .array || value.kind == .object else {
            warn(.pathBlocked, "The key path expects a list here.", at: value, as: currentModel)
            return nil
        }
        var list: [UInt8] = []
        collect(value, steps, into: &list)
        return Value(list, of: value)
    }

    private mutating func collect(_ value: Value, _ steps: Steps, into list: inout [UInt8]) {
        let index = value.index
        guard let step = steps.first else { return list += index.bytes(value.node) }
        let rest = steps.dropFirst()
        switch (step, value.kind) {
        case (.elements, .array):
            list.append(UInt8(ascii: "["))
            index.forEachElement(of: value.node) { _, element in
                list.appendComma()
                collect(value.at(element), rest, into: &list)
            }
            return list.append(UInt8(ascii: "]"))
        case (.elements, .object):
            warn(.objectForList, at: value, as: currentModel)
            list.append(UInt8(ascii: "["))
            collect(value, rest, into: &list)
            return list.append(UInt8(ascii: "]"))
        case (.name(let name), .object):
            if let (node, isRepeated) = index.lastMember(name.utf8, of: value.node) {
                let member = value.at(node)
                if isRepeated { warnOfRepetition(at: member, as: currentModel) }
                return collect(member, rest, into: &list)
            }
        default:
            guard !value.isNull else { break }
            warn(.pathBlocked, "The key path cannot continue through this value.", at: value, as: currentModel)
        }
        list += "null".utf8
    }
}
