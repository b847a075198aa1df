extension UnmapRun {
    /// Writes the value of one property to where it was read, or to where the config says.
    ///
    /// - Parameters:
    ///   - index: the property's in its model.
    ///   - node: the object that the property is of.
    ///   - completed: names of properties of the value, one below another, whose values belong to an outer object.
    mutating func write(
        _ value: Value,
        _ index: Int,
        of model: ModelPlan,
        into node: Int,
        mask: MemberMask,
        completed: [ArraySlice<String>]
    ) throws(UnmapError) {
        let property = model.properties[index]
        let madeBefore = documents.count
        defer { documents.removeLast(documents.count - madeBefore) }
        let target = Target(
            property: property,
            model: model.name,
            shown: value,
            isDerived: model.derived.contains(index),
            mask: mask,
            completed: completed
        )
        if case .given(let source) = property.output {
            // What has no way back is not compared.
            guard let transformer = property.conversion.transformer else {
                return compare(bytes(value), with: source, target)
            }
            if let json = transformer.reverse(bytes(value)).json { compare(json, with: source, target) }
            return
        }
        guard isWritten(property) else { return warnIfUnreachable(property.output, target) }
        guard let reversed = try reverse(value, of: property, model.name) else { return }
        switch property.output {
        case .parts(let parts):
            for (name, output) in parts {
                let part =
                    isNull(reversed)
                    ? reversed : member(String(decoding: name, as: UTF8.self), of: reversed)
                if let part { try put(part, output, target, into: node) }
            }
        case .none, .place, .itself, .given:
            try put(reversed, property.output, target, into: node)
        }
    }

    /// What is known of a value on the way to its place.
    struct Target {
        var property: PropertyPlan
        var model: String
        /// The value as it is shown.
        var shown: Value
        /// Whether it lies within what another property writes.
        var isDerived: Bool
        var mask: MemberMask
        var completed: [ArraySlice<String>]
    }

    /// Puts a value, or a part of it, where it belongs.
    private mutating func put(
        _ value: Value,
        _ output: PropertyPlan.Output,
        _ target: Target,
        into node: Int
    ) throws(UnmapError) {
        switch output {
        case .none, .parts:
            break
        case .given(let source):
            compare(bytes(value), with: source, target)
        case .place(let place) where place.origin == .object && !target.isDerived:
            try self.place(value, at: place.path.steps[...], target, node)
        case .place(let place):
            guard let origin = place.origin == .object ? node : self.node(of: place.origin) else {
                return warnIfUnreachable(output, target)
            }
            // Put together apart, and laid into what is there.
            let child = builder.makeDetached()
            try self.place(value, at: place.path.steps[...], target, child)
            if place.origin != .object {
                surroundings.append(
                    Surrounding(node: child, origin: origin, pointer: pointer(target.shown), model: target.model)
                )
            } else if !builder.fill(origin, from: child) {
                warnOfNoPlace(target.shown, target.model)
            }
        case .itself:
            guard let relation = target.property.relation, kind(value) == .object else {
                return warnOfNoPlace(value, target.model)
            }
            let child = builder.makeDetached()
            try object(value, as: relation.plan, into: child, mask: target.mask, completed: target.completed)
            if !builder.fill(node, from: child) { warnOfNoPlace(value, target.model) }
        }
    }

    /// Whether a value is one that the model gave, not the upstream.
    mutating func isSynthetic(_ value: Value, _ property: PropertyPlan, _ model: String) -> Bool {
        let shown = property.completes.isEmpty ? property.defaultValue : property.completedDefault
        guard let json = shown, let known = JSONSlice(json),
            documents[value.document].slice(value.node).isEqual(to: known)
        else { return false }
        if let synthetic { return pointer(value).map { synthetic.contains($0) } ?? false }
        warn(
            .notWritten,
            "The value equals the default of \(property.name), so it counts as one and is not written back; "
                + "it is written if it is asked for by name, or together with all defaults.",
            at: value,
            model: model
        )
        return true
    }

    /// The upstream's form of a mapped value; nil if it is not written.
    private mutating func reverse(
        _ value: Value,
        of property: PropertyPlan,
        _ model: String
    ) throws(UnmapError) -> Value? {
        guard let transformer = property.conversion.transformer else { return value }
        let json: [UInt8]
        switch transformer.reverse(bytes(value)) {
        case .value(let result), .coerced(let result):
            json = result
        case .partial(let result, let faults):
            json = result
            for fault in faults {
                warn(.transformFailed, "Property \(property.name): \(fault.reason).", at: value, model: model)
            }
        case .failed(let reason):
            throw UnmapError(
                reason: reason,
                pointer: pointer(value),
                property: property.name,
                model: model,
                value: bytes(value)
            )
        case .dropped:
            return nil
        }
        guard let index = try? JSONIndex(json) else { return nil }
        documents.append(index)
        return Value(document: documents.count - 1, node: 0)
    }

    /// Puts a value at a path.
    private mutating func place(
        _ value: Value,
        at steps: ArraySlice<ValuePath.Step>,
        _ target: Target,
        _ node: Int,
        standing: Standing = Standing()
    ) throws(UnmapError) {
        switch steps.first {
        case nil:
            guard let relation = target.property.relation else { return set(node, value, target.model) }
            try related(value, relation, target, node, standing)
        case .member(let name):
            guard let member = builder.member(name, of: node) else { return warnOfNoPlace(value, target.model) }
            try place(value, at: steps.dropFirst(), target, member, standing: standing)
        case .each:
            if isNull(value) { return set(node, value, target.model) }
            guard kind(value) == .array else {
                throw UnmapError(
                    reason: "a list is expected, whose elements go to the elements of another",
                    pointer: pointer(value),
                    property: target.property.name,
                    model: target.model,
                    value: bytes(value)
                )
            }
            let values = documents[value.document].children(of: value.node)
            // Of a list of objects elements may have been left out on the way in: then none knows its place.
            if let count = builder.elementCount(of: node), count != values.count {
                return warn(
                    .notWritten,
                    "The list whose elements these belong to has another length; they are not written back.",
                    at: value,
                    model: target.model
                )
            }
            guard let elements = builder.elements(values.count, of: node) else {
                return warnOfNoPlace(value, target.model)
            }
            for (position, (element, inner)) in zip(elements, values).enumerated() {
                let inner = Value(document: value.document, node: inner)
                try place(inner, at: steps.dropFirst(), target, element, standing: Standing(position: position))
            }
        }
    }
}
