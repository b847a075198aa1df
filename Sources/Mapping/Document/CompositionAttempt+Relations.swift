/// Writes relations whose newest values differ from the pinned ones.
extension CompositionAttempt {
    /// Writes a relation to objects keyed by name whose newest value differs from the pinned one.
    ///
    /// An object that keeps its key keeps its pin. A new one takes the shape of the others if they share one.
    mutating func writeKeyed(_ newest: ObservedMember, _ shape: Shape) {
        guard let link = newest.link else { return }
        guard newest.value.kind == .object else {
            return writePlain(newest.value, else: "objects keyed by name are now something else")
        }
        let members = newest.value.members.filter { !isRemoved($0.value, link.one) }
        guard shape.value.kind == .object || members.isEmpty else {
            return fail(
                "a relation now holds objects keyed by name, and this document does not show which members to write for it"
            )
        }
        guard spend(shape.value.range.count + newest.value.range.count) else { return }
        hasOwnChange = true
        let pinned = shape.value.members
        let byName = Dictionary(pinned.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let places = pinned.map { $0.nameRange.lowerBound..<$0.value.range.upperBound }
        guard !pinned.isEmpty || members.isEmpty else {
            return fail(
                "an object that was empty now has members, and this document does not show which members to write for it"
            )
        }
        writeBracketed("{", "}", members.count, in: shape, pinned: places) { attempt, index in
            let (member, text) = (members[index], shape.value.text)
            let known = byName[member.name]
            attempt.output.append(contentsOf: known.map { text[$0.nameRange] } ?? newest.value.text[member.nameRange])
            attempt.output.append(contentsOf: text[pinned[0].nameRange.upperBound..<pinned[0].value.range.lowerBound])
            if let known, known.value.isEqual(to: member.value, as: link.one) {
                attempt.copy(shape.text, known.value.range)
            } else {
                // An object under a pinned key reuses the shape there; a new one looks like the others.
                let ownStyle = known.map { attempt.style(of: [shape.at($0.value)]) }
                attempt.writeNew(member.value, link.one, ownStyle ?? attempt.styleOfNew(in: shape, pinned.map(\.value)))
            }
        }
    }

    /// Writes a container with the brackets, white space and separators of the pinned one.
    ///
    /// - Parameters:
    ///   - count: how many members or elements to write.
    ///   - pinned: the ranges of the pinned ones.
    ///   - write: writes the one with the given index.
    private mutating func writeBracketed(
        _ open: Unicode.Scalar,
        _ close: Unicode.Scalar,
        _ count: Int,
        in shape: Shape,
        pinned: [Range<Int>],
        _ write: (inout CompositionAttempt, Int) -> Void
    ) {
        guard count > 0, let first = pinned.first, let last = pinned.last else {
            return output.append(contentsOf: [UInt8(ascii: open), UInt8(ascii: close)])
        }
        let (text, range) = (shape.value.text, shape.value.range)
        let opening = text[range.lowerBound + 1..<first.lowerBound]
        let shown = pinned.count > 1 ? text[first.upperBound..<pinned[1].lowerBound] : nil
        guard let separator = separator(shown, afterOpening: opening, between: count) else { return }
        output.append(UInt8(ascii: open))
        output.append(contentsOf: opening)
        for index in 0..<count {
            guard reason == nil else { return }
            if index > 0 { output.append(contentsOf: separator) }
            write(&self, index)
        }
        output.append(contentsOf: text[last.upperBound..<range.upperBound])
    }

    /// Writes a relation to several objects whose newest value differs from the pinned one.
    ///
    /// Elements that remain keep their own pins. New ones take the shape of their siblings if these share one.
    mutating func writeList(_ newest: ObservedMember, _ shape: Shape) {
        guard let link = newest.link else { return }
        guard newest.value.kind == .array else {
            return writePlain(newest.value, else: "a list of objects is now a single object")
        }
        let elements = newest.value.elements.filter { !isRemoved($0, link) }
        guard shape.value.kind == .array || elements.isEmpty else {
            return fail("a relation is now a list, and this document does not show which members to write for it")
        }
        guard spend(shape.value.range.count + newest.value.range.count) else { return }
        hasOwnChange = true
        let pinned = shape.value.elements
        guard !pinned.isEmpty || elements.isEmpty else {
            return fail(
                "a list that was empty now has elements, and this document does not show which members to write for it"
            )
        }
        var keepers = PinnedElements(pinned, isStrict: link.isStrict)
        writeBracketed("[", "]", elements.count, in: shape, pinned: pinned.map(\.range)) { attempt, index in
            let (kept, effort) = keepers.take(elements[index])
            guard attempt.spend(effort) else { return }
            if let kept {
                attempt.copy(shape.text, pinned[kept].range)
            } else {
                attempt.writeNew(elements[index], link, attempt.styleOfNew(in: shape, pinned))
            }
        }
    }

    /// Writes null or another plain value in place of one object or several; the attempt fails if it is no plain value.
    private mutating func writePlain(_ value: JSONSlice, else reason: String) {
        guard value.kind != .object, value.kind != .array, !value.containsReference else { return fail(reason) }
        writeLiteral(value)
    }

    /// The style of new elements in a container, computed once.
    mutating func styleOfNew(in container: Shape, _ pinned: @autoclosure () -> [JSONSlice]) -> NewElementStyle {
        let spot = [container.text, container.value.range.lowerBound]
        if let known = styles[spot] { return known }
        let found = style(of: pinned().map(container.at))
        styles[spot] = found
        return found
    }

    /// The style that elements have in common, for a new element beside them.
    mutating func style(of siblings: [Shape]) -> NewElementStyle {
        // Null shows no style.
        let siblings = siblings.filter { $0.value.target() != nil || $0.value.kind == .object }
        if let first = siblings.first, siblings.allSatisfy({ $0.value.target().map { $0.name == nil } ?? false }) {
            return .bare(like: first.value)
        }
        return commonShape(of: siblings).map { .object($0) } ?? .unknown
    }

    /// Writes an object that the pinned value does not contain, in the style of its other elements.
    mutating func writeNew(_ element: JSONSlice, _ link: ObservedMember.Link, _ style: NewElementStyle) {
        let target = element.target(isStrict: link.isStrict)
        guard target != nil || element.kind == .object else {
            guard element.kind != .array else { return fail("a list of objects now holds a list") }
            return writeLiteral(element)
        }
        switch style {
        case .bare(let pinned):
            guard let target else { return fail("a list of bare identities now holds an object without one") }
            guard spend(element.range.count) else { return }
            appendBare(element, target.identity, link, like: pinned)
        case .object(let shape):
            if let target { return expand(name(of: target, link), in: shape) }
            guard spend(element.range.count) else { return }
            let shown = ResolvedObject(element, model: link.model, models: models)
            write(shape, showing: Subject(resolved: shown, name: nil, isStrict: true))
        case .unknown: fail("a list has a new element, and its siblings do not share one shape")
        }
    }

    /// The shape common to the objects of all elements; nil if they differ or are not all objects.
    private mutating func commonShape(of siblings: [Shape]) -> Shape? {
        let shapes = siblings.compactMap(objectShape)
        guard shapes.count == siblings.count, let first = shapes.first else { return nil }
        let common = signature(of: first)
        return shapes.dropFirst().allSatisfy { signature(of: $0) == common } ? first : nil
    }

    /// The names of the members in order, including those of inner objects.
    private mutating func signature(of shape: Shape) -> String {
        guard spend(shape.value.range.count) else { return "" }
        return shape.value.members.map { member in
            guard let inner = objectShape(shape.at(member.value)) else { return member.name.text }
            return member.name.text + "{" + signature(of: inner) + "}"
        }.joined(separator: ",")
    }
}

/// How a container shows an object that it does not contain yet.
enum NewElementStyle {
    /// By its bare identity, spelled like this one.
    case bare(like: JSONSlice)
    case object(CompositionAttempt.Shape)
    case unknown
}

/// The pinned elements of a list; each can be kept at most once.
private struct PinnedElements {
    private let elements: [JSONSlice]
    private let isStrict: Bool
    // In reverse order: the first element is last.
    private var byTarget: [[UInt8]: [(index: Int, target: JSONSlice.Target)]] = [:]
    private var bySpelling: [ArraySlice<UInt8>: [Int]] = [:]
    private var literals: [Int] = []
    private var isTaken: [Bool]

    init(_ elements: [JSONSlice], isStrict: Bool) {
        (self.elements, self.isStrict) = (elements, isStrict)
        isTaken = Array(repeating: false, count: elements.count)
        for (index, element) in elements.enumerated().reversed() {
            if let target = element.target(isStrict: isStrict) {
                byTarget[Array(target.identity.utf8), default: []].append((index, target))
            } else {
                bySpelling[element.bytes, default: []].append(index)
                literals.append(index)
            }
        }
        literals.reverse()
    }

    /// The first unused pinned element that shows the same as this one, and how many bytes were compared.
    mutating func take(_ element: JSONSlice) -> (index: Int?, effort: Int) {
        if let target = element.target(isStrict: isStrict) {
            let identity = Array(target.identity.utf8)
            guard let found = byTarget[identity]?.lastIndex(where: { $0.target.isSame(as: target) }) else {
                return (nil, 0)
            }
            return (byTarget[identity]?.remove(at: found).index, 0)
        }
        var effort = 0
        var found: Int?
        while found == nil, let index = bySpelling[element.bytes]?.popLast() {
            if !isTaken[index] { found = index }
        }
        if found == nil {
            found = literals.first { index in
                guard !isTaken[index] else { return false }
                effort += elements[index].range.count
                return elements[index].isEqual(to: element)
            }
        }
        if let found { isTaken[found] = true }
        return (found, effort)
    }
}

/// Writes another object in place of the pinned one, as the value of a relation.
extension CompositionAttempt {
    mutating func expand(_ name: ObjectName, in shape: Shape) {
        hasOwnChange = true
        guard let object = known[name] else {
            missing.insert(name)
            return
        }
        guard let resolved = object.resolved, object.isCurrent else {
            return fail("there are no current values of \(name)")
        }
        added.insert(name)
        use(object.state.sources)
        write(shape, showing: Subject(resolved: resolved, name: name, isStrict: true))
    }

    /// The object literal that a pinned value shows: the value itself, or the payload of the pin it refers to.
    func objectShape(_ shape: Shape) -> Shape? {
        if shape.value.kind == .object { return shape }
        guard let place = pin(at: shape), let payload = JSONSlice(tree.pins[place.pin]) else { return nil }
        return Shape(text: place.pin, value: payload)
    }

    /// Writes a relation to one object whose newest value differs from the pinned one.
    mutating func write(related newest: ObservedMember, _ shape: Shape) {
        let value = newest.value
        guard let link = newest.link, let target = value.target(isStrict: link.isStrict) else {
            return writePlain(value, else: "a relation to one object now holds something else")
        }
        if let inner = objectShape(shape) {
            expand(name(of: target, link), in: inner)
        } else if let pinned = shape.value.target(), pinned.name == nil {
            hasOwnChange = true
            appendBare(value, target.identity, link, like: shape.value)
        } else {
            fail("a relation now points to an object, and this document does not show which members to write for it")
        }
    }

    /// The object that a value of a relation refers to; a bare identity is one of the declared model.
    func name(of target: JSONSlice.Target, _ link: ObservedMember.Link) -> ObjectName {
        target.name ?? ObjectName(model: models.compiled[link.model].objectName, identity: target.identity)
    }

    /// Writes a bare identity: as the upstream spells it, or else with the type of the pinned one.
    mutating func appendBare(
        _ value: JSONSlice,
        _ identity: String,
        _ link: ObservedMember.Link,
        like pinned: JSONSlice
    ) {
        if !value.isReference { return output.append(contentsOf: value.bytes) }
        if link.isStrict { return output.append(contentsOf: Reference.strict(identity)) }
        Reference.appendBare(identity, asNumber: pinned.kind == .number && JSONBody.isNumber(identity), to: &output)
    }
}
