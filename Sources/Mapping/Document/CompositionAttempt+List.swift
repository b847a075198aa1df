extension CompositionAttempt {
    /// Writes the newest value of a relation to several objects where the pinned one differs.
    ///
    /// Elements that stay keep their own pins; new ones take the shape of their siblings if these share one.
    mutating func writeList(_ newest: ObservedMember, _ shape: Shape) {
        guard let link = newest.link else { return }
        guard newest.value.kind == .array else { return writeLone(newest.value) }
        let elements = newest.value.elements.filter { !isRemoved($0, link) }
        guard shape.value.kind == .array || elements.isEmpty else {
            return fail("a relation is now a list, and the document does not say in which shape")
        }
        guard spend(shape.value.range.count + newest.value.range.count) else { return }
        isChanged = true
        let pinned = shape.value.elements
        guard !elements.isEmpty, let first = pinned.first, let last = pinned.last else {
            if elements.isEmpty { return output.append(contentsOf: [UInt8(ascii: "["), UInt8(ascii: "]")]) }
            return fail("a list that was empty now has elements, and the document does not say in which shape")
        }
        var keepers = PinnedElements(pinned, isStrict: link.isStrict)
        let text = shape.value.text
        let opening = shape.value.range.lowerBound + 1..<first.range.lowerBound
        let shownSeparator = pinned.count > 1 ? text[first.range.upperBound..<pinned[1].range.lowerBound] : nil
        guard let separator = separator(shownSeparator, afterOpening: text[opening], between: elements.count)
        else { return }
        output.append(UInt8(ascii: "["))
        output.append(contentsOf: text[opening])
        for (index, element) in elements.enumerated() {
            guard reason == nil else { return }
            if index > 0 { output.append(contentsOf: separator) }
            let (kept, effort) = keepers.take(element)
            guard spend(effort) else { return }
            if let kept {
                copy(shape.text, pinned[kept].range)
            } else {
                writeNew(element, link, styleOfNew(in: shape, pinned))
            }
        }
        output.append(contentsOf: text[last.range.upperBound..<shape.value.range.upperBound])
    }

    /// Null or some other plain value in the place of a list.
    private mutating func writeLone(_ value: JSONSlice) {
        guard value.kind != .object, !value.containsReference else {
            return fail("a list of objects is now a single object")
        }
        writeLiteral(value)
    }

    /// How what stands at a place shows objects that it does not hold yet, found once.
    mutating func styleOfNew(in container: Shape, _ pinned: @autoclosure () -> [JSONSlice]) -> NewElementStyle {
        let spot = Spot(container)
        if let known = styles[spot] { return known }
        let found = style(of: pinned().map(container.at))
        styles[spot] = found
        return found
    }

    /// What elements have in common, so that another may look like them.
    mutating func style(of siblings: [Shape]) -> NewElementStyle {
        // Null says nothing of the style.
        let siblings = siblings.filter { $0.value.target() != nil || $0.value.kind == .object }
        if let first = siblings.first, siblings.allSatisfy({ $0.value.target()?.isBare == true }) {
            return .bare(like: first.value)
        }
        return commonShape(of: siblings).map { .object($0) } ?? .unknown
    }

    /// Writes an object that the pinned value does not hold, in the style of those that it does.
    mutating func writeNew(_ element: JSONSlice, _ link: ObservedMember.Link, _ style: NewElementStyle) {
        let target = element.target(isStrict: link.isStrict)
        guard target != nil || element.kind == .object else {
            guard element.kind != .array else { return fail("a list of objects now holds a list") }
            return writeLiteral(element)
        }
        switch style {
        case .bare(let pinned):
            guard let target else {
                return fail("a list of bare identities now holds an object without one")
            }
            guard spend(element.range.count) else { return }
            appendBare(element, target.identity.text, link, like: pinned)
        case .object(let shape):
            if let target { return expand(name(of: target, link), in: shape) }
            guard spend(element.range.count) else { return }
            let shown = ResolvedObject(element, model: link.model, models: models)
            write(shape, showing: shown, name: nil, isStrict: true)
        case .unknown:
            fail("a list has a new element, and its siblings do not share one shape")
        }
    }

    /// The shape that all elements show their objects in; nil if they differ or are no objects.
    private mutating func commonShape(of siblings: [Shape]) -> Shape? {
        let shapes = siblings.compactMap(objectShape)
        guard shapes.count == siblings.count, let first = shapes.first else { return nil }
        let common = signature(of: first)
        return shapes.dropFirst().allSatisfy { signature(of: $0) == common } ? first : nil
    }

    /// The names of the members in order, those of inner objects included.
    private mutating func signature(of shape: Shape) -> String {
        guard spend(shape.value.range.count) else { return "" }
        return shape.value.members.map { member in
            guard let inner = objectShape(shape.at(member.value)) else { return member.name.text }
            return member.name.text + "{" + signature(of: inner) + "}"
        }.joined(separator: ",")
    }
}

/// How a container shows an object that it does not hold yet.
enum NewElementStyle {
    /// By its identity alone, spelled like this one.
    case bare(like: JSONSlice)
    /// With the members of this one.
    case object(CompositionAttempt.Shape)
    /// What it holds does not tell.
    case unknown
}

/// The pinned elements of a list, each to be kept at most once.
private struct PinnedElements {
    private let elements: [JSONSlice]
    private let isStrict: Bool
    // The first one is last.
    private var byTarget: [ObjectIdentity: [(index: Int, target: JSONSlice.Target)]] = [:]
    private var bySpelling: [ArraySlice<UInt8>: [Int]] = [:]
    private var literals: [Int] = []
    private var isTaken: [Bool]

    init(_ elements: [JSONSlice], isStrict: Bool) {
        self.elements = elements
        self.isStrict = isStrict
        isTaken = Array(repeating: false, count: elements.count)
        for (index, element) in elements.enumerated().reversed() {
            if let target = element.target(isStrict: isStrict) {
                byTarget[target.identity, default: []].append((index, target))
            } else {
                bySpelling[element.bytes, default: []].append(index)
                literals.append(index)
            }
        }
        literals.reverse()
    }

    /// The first pinned element not yet taken that shows this one, and how many bytes were looked at in vain.
    mutating func take(_ element: JSONSlice) -> (index: Int?, effort: Int) {
        if let target = element.target(isStrict: isStrict) {
            guard let found = byTarget[target.identity]?.lastIndex(where: { $0.target.isSame(as: target) }) else {
                return (nil, 0)
            }
            return (byTarget[target.identity]?.remove(at: found).index, 0)
        }
        while let index = bySpelling[element.bytes]?.popLast() {
            if !isTaken[index] { return take(index, effort: 0) }
        }
        var effort = 0
        for index in literals where !isTaken[index] {
            effort += elements[index].range.count
            if elements[index].isEqual(to: element) { return take(index, effort: effort) }
        }
        return (nil, effort)
    }

    private mutating func take(_ index: Int, effort: Int) -> (index: Int?, effort: Int) {
        isTaken[index] = true
        return (index, effort)
    }
}
