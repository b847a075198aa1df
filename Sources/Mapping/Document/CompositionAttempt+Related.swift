/// Where a relation leads: another object in the place of the pinned one.
extension CompositionAttempt {
    /// Writes an object in a shape that is not its own.
    mutating func expand(_ name: ObjectName, in shape: Shape) {
        isChanged = true
        guard let object = known[name] else {
            missing.insert(name)
            return
        }
        guard let resolved = object.resolved else { return fail("nothing current is known of \(name)") }
        added.insert(name)
        write(shape, showing: resolved, name: name, isStrict: true)
    }

    /// The object literal that a pinned value shows: itself, or the payload of the pin it refers to.
    func objectShape(_ shape: Shape) -> Shape? {
        if shape.value.kind == .object { return shape }
        guard let place = pin(at: shape), let payload = JSONSlice(tree.pins[place.pin]) else { return nil }
        return Shape(text: place.pin, value: payload)
    }

    /// Writes the newest value of a relation to one object where the pinned one differs.
    mutating func write(related newest: ObservedMember, _ shape: Shape) {
        let value = newest.value
        guard let link = newest.link, let target = value.target(isStrict: link.isStrict) else {
            guard !value.containsReference, value.kind != .array, value.kind != .object else {
                return fail("a relation to one object now holds something else")
            }
            return writeLiteral(value)
        }
        if let inner = objectShape(shape) {
            expand(name(of: target, link), in: inner)
        } else if let pinned = shape.value.target(), pinned.isBare {
            isChanged = true
            appendBare(value, target.identity.text, link, like: shape.value)
        } else {
            fail("a relation now points to an object, and the document does not say in which shape")
        }
    }

    /// The object that a value of a relation points to; a bare identity is one of the declared model.
    func name(of target: JSONSlice.Target, _ link: ObservedMember.Link) -> ObjectName {
        target.name
            ?? ObjectName(model: models.compiled[link.model].objectName, identity: target.identity.text)
    }

    /// Writes a bare identity: in its own spelling if it has one, else of the kind that stands beside it.
    mutating func appendBare(
        _ value: JSONSlice,
        _ identity: String,
        _ link: ObservedMember.Link,
        like pinned: JSONSlice
    ) {
        if !value.isReference { return output.append(contentsOf: value.bytes) }
        if link.isStrict { return Reference.appendStrict(identity, to: &output) }
        Reference.appendBare(identity, asNumber: pinned.kind == .number && Reference.isNumber(identity), to: &output)
    }
}
