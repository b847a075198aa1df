extension MapRun {
    /// The result of one pass over an object's members.
    struct Members {
        /// The value of each slot, from the object itself or from one that a key path reached through a reference.
        var values: [Value?]
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

    /// Reads the members of an object that its model's sources name.
    mutating func members(of object: Value?, _ model: CompiledModel) -> Members {
        var members = Members(values: [Value?](repeating: nil, count: model.shown.slotCount))
        guard let object, object.kind == .object else { return members }
        read(object, at: model.root, of: model.root, model, &members)
        return members
    }

    /// Reads what the sources at a node name.
    ///
    /// - Parameter own: the node of the object in its own model, which knows its relations; -1 if it is of no model.
    private mutating func read(
        _ object: Value,
        at node: Int,
        of own: Int,
        _ model: CompiledModel,
        _ members: inout Members
    ) {
        let index = object.document.index
        index.forEachMember(of: object.node) { name, member in
            let literal = index.slice(name)
            guard let child = literal.withBytes({ models.tree.child(of: node, spelled: $0) }) else { return }
            let value = object.at(member)
            let place = models.tree.nodes[child]
            guard place.isShown else { return }
            let slot = Int(place.slot)
            if slot >= 0 ? members.values[slot] != nil : members.entered.contains(child) {
                warnOfRepetition(at: value, model.name)
                // The values found below the earlier member go too.
                forget(child, &members)
            }
            if slot >= 0 { members.values[slot] = value }
            guard place.hasChildren else { return }
            if slot < 0 { members.entered.append(child) }
            let inner = own < 0 ? nil : literal.withBytes { models.tree.child(of: own, spelled: $0) }
            let related = inner.map { Int(models.tree.nodes[$0].relation) } ?? -1
            if value.kind == .object {
                read(value, at: child, of: related < 0 ? inner ?? -1 : root(of: value, as: related), model, &members)
                guard related >= 0, isLoneIdentity(value, of: related) else { return }
                readKnown(value, at: child, as: related, model, &members)
            } else if value.isNull {
                fill(child, with: value, &members)
            } else if let name = reference(value) {
                // Nothing is shown of an unknown object, and it is no fault.
                guard let object = referred(by: name, at: value) else { return }
                let own = models.index(of: name.model).map { root(of: object, as: $0) } ?? -1
                read(object, at: child, of: own, model, &members)
            } else if isBare(value, related) {
                readKnown(value, at: child, as: related, model, &members)
            } else {
                members.isBlocked = true
                let message = "The key path expects an object here."
                warn(.pathBlocked, message, at: value, model: model.name)
            }
        }
    }

    /// Follows key paths through the identity of an object, into what is known of that object.
    private mutating func readKnown(
        _ identity: Value,
        at node: Int,
        as related: Int,
        _ model: CompiledModel,
        _ members: inout Members
    ) {
        guard let object = referred(byIdentity: identity, as: related) else { return }
        var found = Members(values: [Value?](repeating: nil, count: members.values.count))
        read(object, at: node, of: root(of: object, as: related), model, &found)
        for (slot, value) in found.values.enumerated() where value != nil && members.values[slot] == nil {
            members.values[slot] = value
            if resolve == nil { members.known.insert(slot) }
        }
    }

    mutating func warnOfRepetition(at value: Value, _ model: String) {
        warn(.keyCollision, "A member occurs twice in one object; the last counts.", at: value, model: model)
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

    /// The object that a reference literal names; nil for other values.
    private func reference(_ value: Value) -> ObjectName? {
        guard resolve != nil, value.kind == .string else { return nil }
        return value.withBytes { Reference.isReference($0, at: 0) ? Reference.name(at: 0..<$0.count, in: $0) : nil }
    }

    /// The object that a reference on a key path names, if it is known.
    mutating func referred(by name: ObjectName, at value: Value) -> Value? {
        guard expansions < Self.maximumExpansions, let payload = resolve?(name), let object = Value(payload, of: value),
            object.kind == .object
        else { return nil }
        expansions += 1
        return object
    }

    /// The node of an object of a model, or of a concrete model of its cluster.
    private func root(of object: Value, as index: Int) -> Int {
        models.compiled[models.concrete(of: index, for: object.slice)].root
    }

    private func isBare(_ value: Value, _ related: Int) -> Bool {
        guard related >= 0, models.compiled[related].hasIdentity else { return false }
        if case .unusable = value.withBytes({ Identity.read($0) }) { return false }
        return true
    }

    // MARK: The value of a property

    /// The value of a source, if there is one.
    mutating func find(_ source: CompiledProperty.Source, _ members: Members, _ model: String) -> Value? {
        switch source {
        case .members(let slots, let tail): find(slots, tail, members, model)
        case .context(let value, let path): find(value, path)
        case .itself: frames.last?.object
        case .parts(let parts): fold(parts, members, model)
        }
    }

    private mutating func find(_ slots: [Int], _ tail: ArraySlice<PathStep>, _ members: Members, _ model: String)
        -> Value?
    {
        var first: Value?
        for slot in slots {
            guard let value = members.values[slot] else { continue }
            if first == nil {
                first = value
            } else {
                warn(.keyCollision, "A property occurs under two names; the exact one counts.", at: value, model: model)
            }
        }
        guard let first, !tail.isEmpty else { return first }
        return list(at: first, tail, model)
    }

    /// Combines several sources into one object; nil if none of them has a value.
    private mutating func fold(
        _ parts: [(name: [UInt8], source: CompiledProperty.Source)],
        _ members: Members,
        _ model: String
    ) -> Value? {
        var folded: [UInt8] = [UInt8(ascii: "{")]
        for (name, source) in parts {
            guard let value = find(source, members, model) else { continue }
            folded.appendComma()
            JSONString.append(String(decoding: name, as: UTF8.self), to: &folded)
            folded.append(UInt8(ascii: ":"))
            folded += value.bytes
        }
        guard folded.count > 1 else { return nil }
        folded.append(UInt8(ascii: "}"))
        return Value(folded, of: frames.last?.object)
    }

    // MARK: Context

    private func find(_ value: ContextValue, _ path: [PathStep]) -> Value? {
        switch value {
        case .url, .capture, .query, .header:
            return context.text(of: value).flatMap { Value(JSONString.literal($0), of: nil) }
        case .parent: return parent.flatMap { find(path, of: $0) }
        case .root: return root.flatMap { find(path, of: $0) }
        case .index: return frames.last?.standing.position.flatMap { Value(Array(String($0).utf8), of: nil) }
        case .key: return frames.last?.standing.key
        case .itself: return nil
        }
    }

    /// The enclosing object of a declared model; the wrapper of a body counts only if `envelope` names its model.
    private var parent: Value? { frames.count > 1 ? frames[frames.count - 2].object : nil }

    private var root: Value? { body.kind == .object ? body : frames.first?.object }

    /// Reads a path; null in the middle of it is null at its end, as in the object itself.
    private func find(_ path: [PathStep], of object: Value) -> Value? {
        let index = object.document.index
        var value = object.node
        for case .name(let name) in path {
            if index.kind(value) == .null { break }
            guard let next = index.member(name.utf8, of: value) else { return nil }
            value = next
        }
        return object.at(value)
    }

    // MARK: Steps over arrays

    /// The list that a path over arrays collects from a value.
    ///
    /// It keeps the array's positions, with null for elements without the member.
    private mutating func list(at value: Value, _ steps: ArraySlice<PathStep>, _ model: String) -> Value? {
        if value.isNull || (value.kind == .array && steps.count == 1) { return value }
        guard value.kind == .array || value.kind == .object else {
            warn(.pathBlocked, "The key path expects a list here.", at: value, model: model)
            return nil
        }
        var list: [UInt8] = []
        collect(value, steps, model, into: &list)
        return Value(list, of: value)
    }

    private mutating func collect(
        _ value: Value,
        _ steps: ArraySlice<PathStep>,
        _ model: String,
        into list: inout [UInt8]
    ) {
        let index = value.document.index
        guard let step = steps.first else { return list.append(contentsOf: index.bytes(value.node)) }
        let (kind, rest) = (value.kind, steps.dropFirst())
        switch step {
        case .elements where kind == .array:
            list.append(UInt8(ascii: "["))
            index.forEachElement(of: value.node) { _, element in
                list.appendComma()
                collect(value.at(element), rest, model, into: &list)
            }
            list.append(UInt8(ascii: "]"))
            return
        case .elements where kind == .object:
            warn(.objectForList, at: value, model: model)
            list.append(UInt8(ascii: "["))
            collect(value, rest, model, into: &list)
            list.append(UInt8(ascii: "]"))
            return
        case .name(let name) where kind == .object:
            if let (node, isRepeated) = index.lastMember(name.utf8, of: value.node) {
                let member = value.at(node)
                if isRepeated { warnOfRepetition(at: member, model) }
                return collect(member, rest, model, into: &list)
            }
        default:
            guard !value.isNull else { break }
            warn(.pathBlocked, "The key path cannot continue through this value.", at: value, model: model)
        }
        list.append(contentsOf: "null".utf8)
    }
}
