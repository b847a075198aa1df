/// Writes values to their places in the upstream's JSON.
extension UnmapRun {
    /// Writes a value, or a part of it, to its output.
    mutating func put(_ value: Value, _ output: CompiledProperty.Output, _ target: Target, into node: Int) {
        switch output {
        case .none: break
        case .parts(let parts):
            // Of a related object, the upstream has the identity there.
            let related = value.kind == .object ? target.selection?.model : nil
            let whole = related.flatMap { Value(json(of: value, as: $0, identityOnly: true), of: nil) } ?? value
            for (name, output) in parts {
                let part = whole.isNull ? whole : whole.member(String(decoding: name, as: UTF8.self))
                if let part { put(part, output, target, into: node) }
            }
        case .given(let source): compare(value, with: source, target)
        case .place(let place):
            guard let origin = place.origin == .object ? node : self.node(of: place.origin) else {
                let message = "The surrounding object that this value belongs to is missing; it is not written back."
                return warn(.notWritten, message, at: target.shown, as: target.model)
            }
            if place.origin == .object, !target.isDerived {
                return self.place(value, at: place.path[...], target, node)
            }
            // The value is built separately and then merged into the existing one.
            let child = builder.makeDetached()
            self.place(value, at: place.path[...], target, child)
            if place.origin != .object {
                surroundings.append((child, origin, target))
            } else if !builder.fill(origin, from: child) {
                warn(.notWritten, at: target.shown, as: target.model)
            }
        case .itself:
            guard let selection = target.selection, value.kind == .object else {
                return warn(.notWritten, at: value, as: target.model)
            }
            let child = builder.makeDetached()
            object(value, as: selection.model, into: child, mask: selection.mask)
            if !builder.fill(node, from: child) { warn(.notWritten, at: value, as: target.model) }
        }
    }

    /// The upstream's form of an object by itself.
    private mutating func json(of object: Value, as index: Int, identityOnly: Bool) -> [UInt8] {
        let names = models.compiled[index].properties.filter(\.isIdentity).map(\.name)
        let whole = builder.makeDetached()
        self.object(object, as: index, into: whole, mask: identityOnly ? MemberMask(names) : .all)
        return builder.json(of: whole)
    }

    /// Writes a value at a path.
    mutating func place(_ value: Value, at steps: Steps, _ target: Target, _ node: Int, position: Int? = nil) {
        let rest = steps.dropFirst()
        switch steps.first {
        case nil:
            guard let selection = target.selection else { return set(node, value, target.model) }
            related(value, selection, into: node, Standing(position: position))
        case .name(let name):
            guard let member = builder.member(Array(name.utf8), of: node) else {
                return warn(.notWritten, at: value, as: target.model)
            }
            place(value, at: rest, target, member, position: position)
        case .elements:
            if value.isNull { return set(node, value, target.model) }
            guard value.kind == .array else {
                let message = "Only the elements of a list have a place here; the value is not written back."
                return warn(.notWritten, message, at: value, as: target.model)
            }
            let values = value.children
            // Mapping may have left elements out of a list of objects; the remaining ones' places are then unknown.
            if let count = builder.elementCount(of: node), count != values.count {
                let message = "The list whose elements these belong to has another length; they are not written back."
                return warn(.notWritten, message, at: value, as: target.model)
            }
            guard let elements = builder.elements(values.count, of: node) else {
                return warn(.notWritten, at: value, as: target.model)
            }
            for (position, (element, inner)) in zip(elements, values).enumerated() {
                place(inner, at: rest, target, element, position: position)
            }
        }
    }

    // MARK: Related objects

    /// Writes the value of a relation.
    private mutating func related(_ value: Value, _ selection: Selection, into node: Int, _ standing: Standing) {
        switch (selection.relation.arity, value.kind) {
        case (.keyed, .object): keyed(value, selection, into: node)
        case (.many, .array):
            let values = value.children
            guard let elements = builder.elements(values.count, of: node), elements.count == values.count else {
                return warn(.notWritten, at: value, as: selection.model)
            }
            for (position, (place, inner)) in zip(elements, values).enumerated() {
                element(inner, selection, into: place, Standing(position: position))
            }
        default:
            element(value, selection, into: node, standing)
            // If the upstream had nothing but completions of this child, the child has no place of its own.
            let isCompleted = selection.mask.completed.contains { $0.first.map { value.member($0) != nil } ?? false }
            if isCompleted { builder.reopenIfEmpty(node) }
        }
    }

    private mutating func keyed(_ value: Value, _ selection: Selection, into node: Int) {
        let text = value.index
        guard builder.openObject(node) else { return warn(.notWritten, at: value, as: selection.model) }
        text.forEachMember(of: value.node) { name, member in
            let inner = value.at(member)
            guard let key = text.name(name), let place = builder.member(Array(key.utf8), of: node) else {
                let message = "A name is not Unicode; its member is not written back."
                return warn(MappingWarning(.notWritten, message), at: inner)
            }
            element(inner, selection, into: place, Standing(key: value.at(name)))
        }
    }

    private mutating func element(_ value: Value, _ selection: Selection, into node: Int, _ standing: Standing) {
        if value.kind != .object {
            set(node, value, selection.model)
        } else if isSynthetic(value) {
            bare(value, selection.relation, into: node)
        } else {
            object(value, as: selection.model, into: node, mask: selection.mask, standing: standing)
        }
    }

    /// Writes the bare identity or the key of an object that was inserted in its place.
    private mutating func bare(_ value: Value, _ related: CompiledProperty.Related, into node: Int) {
        let model = models.compiled[related.model]
        // An object identified by its name does not contain it.
        let name = model.isIdentifiedByKey ? model.properties.first(where: \.isIdentity)?.name : nil
        let key = name.flatMap { value.member($0) }
        let json = json(of: value, as: related.model, identityOnly: related.key == nil)
        let literal =
            related.key.map { model.keyLiteral($0, in: json) } ?? key?.bytes ?? model.identityLiteral(in: json)
        guard let literal, builder.set(node, literal) else { return warn(.notWritten, at: value, as: related.model) }
    }

    // MARK: Surroundings

    /// The node of the object in which a path begins, if it exists.
    private func node(of origin: CompiledProperty.Place.Origin) -> Int? {
        switch origin {
        case .object: frames.last?.node
        case .parent: frames.dropLast().last?.node ?? (isEnveloped ? WireBuilder.root : nil)
        case .root: builder.isObject(WireBuilder.root) ? WireBuilder.root : frames.first?.node
        }
    }

    /// Whether a property is written back, to the object itself or to an enclosing object that exists.
    func isWritten(_ property: CompiledProperty) -> Bool {
        switch property.output {
        case .none, .given: false
        case .place(let place): node(of: place.origin) != nil
        case .itself, .parts: true
        }
    }

    /// Warns if a value contradicts what the response, or the container of its object, gives.
    private mutating func compare(_ value: Value, with source: ContextValue, _ target: Target) {
        let (given, owner): (JSONSlice?, String)
        switch source {
        case .index:
            given = frames.last?.standing.position.flatMap { JSONSlice(Array(String($0).utf8)) }
            owner = "The object has another position"
        case .key:
            given = frames.last?.standing.key?.slice
            owner = "The object has another name"
        case .url, .capture, .query, .header:
            guard let context else { return }
            given = context.text(of: source).flatMap { JSONSlice(JSONString.literal($0)) }
            owner = given == nil ? "The response has no such value" : "The response has another value"
        case .parent, .root, .itself: return
        }
        if let given, value.slice.isEqual(to: given) { return }
        warn(.notWritten, "\(owner) than this; it is not written back.", at: target.shown, as: target.model)
    }
}
