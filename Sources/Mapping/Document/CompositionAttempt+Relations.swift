/// Writes relations whose newest values differ from the pinned ones.
extension CompositionAttempt {
    /// Writes objects keyed by name: one that keeps its key keeps its pin, a new one takes the shape of the others.
    mutating func writeKeyed(_ newest: JSONSlice, _ link: Link, _ shape: Shape) {
        guard newest.kind == .object else {
            return writePlain(newest, else: "objects keyed by name are now something else")
        }
        let members = newest.members.filter { !isRemoved($0.value, link.one) }
        guard shape.value.kind == .object || members.isEmpty else {
            return failUnshown("a relation now holds objects keyed by name")
        }
        guard spend(shape.value.range.count + newest.range.count) else { return }
        hasOwnChange = true
        let pinned = shape.value.members
        let byName = Dictionary(pinned.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let places = pinned.map { $0.nameRange.lowerBound..<$0.value.range.upperBound }
        guard !pinned.isEmpty || members.isEmpty else {
            return failUnshown("an object that was empty now has members")
        }
        writeBracketed("{", "}", members.count, in: shape, pinned: places) { attempt, index in
            let (member, text) = (members[index], shape.value.text)
            let known = byName[member.name]
            attempt.output.append(contentsOf: known.map { text[$0.nameRange] } ?? newest.text[member.nameRange])
            attempt.output.append(contentsOf: text[pinned[0].nameRange.upperBound..<pinned[0].value.range.lowerBound])
            if let known, known.value.isEqual(to: member.value, as: link.one) {
                attempt.copy(shape.at(known.value))
            } else {
                // An object under a pinned key reuses the shape there; a new one looks like the others.
                let ownStyle = known.map { attempt.style(of: [shape.at($0.value)]) }
                attempt.writeNew(member.value, link.one, ownStyle ?? attempt.styleOfNew(in: shape, pinned.map(\.value)))
            }
        }
    }

    /// Writes a container of `count` entries with the white space and separators of the one with entries at `pinned`.
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

    /// Writes a list of objects: those that remain keep their pins, new ones take the shape that their siblings share.
    mutating func writeList(_ newest: JSONSlice, _ link: Link, _ shape: Shape) {
        guard newest.kind == .array else { return writePlain(newest, else: "a list of objects is now a single object") }
        let elements = newest.elements.filter { !isRemoved($0, link) }
        guard shape.value.kind == .array || elements.isEmpty else {
            return failUnshown("a relation is now a list")
        }
        guard spend(shape.value.range.count + newest.range.count) else { return }
        hasOwnChange = true
        let pinned = shape.value.elements
        guard !pinned.isEmpty || elements.isEmpty else {
            return failUnshown("a list that was empty now has elements")
        }
        var keepers = PinnedElements(pinned, isStrict: link.isStrict)
        writeBracketed("[", "]", elements.count, in: shape, pinned: pinned.map(\.range)) { attempt, index in
            let (kept, effort) = keepers.take(elements[index])
            guard attempt.spend(effort) else { return }
            if let kept {
                attempt.copy(shape.at(pinned[kept]))
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
        let style = styles[spot] ?? style(of: pinned().map(container.at))
        styles[spot] = style
        return style
    }

    /// The style that elements have in common, for a new element beside them.
    mutating func style(of siblings: [Shape]) -> NewElementStyle {
        // Null shows no style.
        let siblings = siblings.filter { $0.value.target() != nil || $0.value.kind == .object }
        guard let first = siblings.first else { return .unknown }
        if siblings.allSatisfy({ $0.value.target().map { $0.name == nil } ?? false }) {
            return .bare(like: first.value)
        }
        let shapes = siblings.compactMap(objectShape)
        guard shapes.count == siblings.count else { return .unknown }
        let common = signature(of: shapes[0])
        return shapes.dropFirst().allSatisfy { signature(of: $0) == common } ? .object(shapes[0]) : .unknown
    }

    /// Writes an object that the pinned value does not contain, in the style of its other elements.
    mutating func writeNew(_ element: JSONSlice, _ link: Link, _ style: NewElementStyle) {
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
            write(shape, showing: Subject(resolved: shown, object: nil, isStrict: true))
        case .unknown: fail("a list has a new element, and its siblings do not share one shape")
        }
    }

    /// The names of the members in order, including those of inner objects.
    private mutating func signature(of shape: Shape) -> String {
        guard spend(shape.value.range.count) else { return "" }
        return shape.value.members.map { member in
            guard let inner = objectShape(shape.at(member.value)) else { return member.name.text }
            return member.name.text + "{" + signature(of: inner) + "}"
        }.joined(separator: ",")
    }

    // MARK: Another object in place of the pinned one

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
        write(shape, showing: Subject(resolved: resolved, object: object, isStrict: true))
    }

    /// The object literal that a pinned value shows: the value itself, or the payload of the pin it refers to.
    func objectShape(_ shape: Shape) -> Shape? {
        if shape.value.kind == .object { return shape }
        guard let place = pin(at: shape), let payload = JSONSlice(tree.pins[place.pin]) else { return nil }
        return Shape(text: place.pin, value: payload)
    }

    /// Writes a relation to one object whose newest value differs from the pinned one.
    mutating func write(related value: JSONSlice, _ link: Link, _ shape: Shape) {
        guard let target = value.target(isStrict: link.isStrict) else {
            return writePlain(value, else: "a relation to one object now holds something else")
        }
        if let inner = objectShape(shape) {
            expand(name(of: target, link), in: inner)
        } else if let pinned = shape.value.target(), pinned.name == nil {
            hasOwnChange = true
            appendBare(value, target.identity, link, like: shape.value)
        } else {
            failUnshown("a relation now points to an object")
        }
    }

    /// The object that a value of a relation refers to; a bare identity is one of the declared model.
    func name(of target: JSONSlice.Target, _ link: Link) -> ObjectName {
        target.name ?? ObjectName(model: models.compiled[link.model].objectName, identity: target.identity)
    }

    /// Writes a bare identity: as the upstream spells it, or else with the type of the pinned one.
    mutating func appendBare(_ value: JSONSlice, _ identity: String, _ link: Link, like pinned: JSONSlice) {
        if !value.isReference { return output.append(contentsOf: value.bytes) }
        if link.isStrict { return output.append(contentsOf: Reference.strict(identity)) }
        Reference.appendBare(identity, asNumber: pinned.kind == .number && JSONBody.isNumber(identity), to: &output)
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
    private var taken: Set<Int> = []

    init(_ elements: [JSONSlice], isStrict: Bool) {
        (self.elements, self.isStrict) = (elements, isStrict)
        for (index, element) in elements.enumerated().reversed() {
            if let target = element.target(isStrict: isStrict) {
                byTarget[Array(target.identity.utf8), default: []].append((index, target))
            } else {
                bySpelling[element.bytes, default: []].append(index)
                literals.append(index)
            }
        }
    }

    /// The first unused pinned element that shows the same as this one, and how many bytes were compared.
    mutating func take(_ element: JSONSlice) -> (index: Int?, effort: Int) {
        if let target = element.target(isStrict: isStrict) {
            let identity = Array(target.identity.utf8)
            let found = byTarget[identity]?.lastIndex { $0.target.isSame(as: target) }
            return (found.flatMap { byTarget[identity]?.remove(at: $0).index }, 0)
        }
        while let index = bySpelling[element.bytes]?.popLast() {
            if taken.insert(index).inserted { return (index, 0) }
        }
        var effort = 0
        let found = literals.last { index in
            guard !taken.contains(index) else { return false }
            effort += elements[index].range.count
            return elements[index].isEqual(to: element)
        }
        if let found { taken.insert(found) }
        return (found, effort)
    }
}
