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
        isChanged = true
        let pinned = shape.value.elements
        guard !elements.isEmpty, let first = pinned.first, let last = pinned.last else {
            if elements.isEmpty { return output.append(contentsOf: [UInt8(ascii: "["), UInt8(ascii: "]")]) }
            return fail("a list that was empty now has elements, and the document does not say in which shape")
        }
        var keepers = PinnedElements(pinned, isStrict: link.isStrict)
        let text = shape.value.text
        let opening = shape.value.range.lowerBound + 1..<first.range.lowerBound
        let separator = pinned.count > 1 ? Array(text[first.range.upperBound..<pinned[1].range.lowerBound]) : nil
        output.append(UInt8(ascii: "["))
        output.append(contentsOf: text[opening])
        for (index, element) in elements.enumerated() {
            guard reason == nil else { return }
            // A lone element does not show what stands between two; what stands before it comes closest.
            if index > 0 { output.append(contentsOf: separator ?? [UInt8(ascii: ",")] + text[opening]) }
            if let kept = keepers.take(element) {
                copy(shape.text, pinned[kept].range)
            } else {
                writeNew(element, link, siblings: pinned.map(shape.at))
            }
        }
        output.append(contentsOf: text[last.range.upperBound..<shape.value.range.upperBound])
    }

    /// Null or some other plain value in the place of a list.
    private mutating func writeLone(_ value: JSONSlice) {
        guard value.kind != .object, !value.containsReference else {
            return fail("a list of objects is now a single object")
        }
        isChanged = true
        output.append(contentsOf: value.bytes)
    }

    /// Writes an object that the pinned value does not hold, in the shape of those that it does.
    mutating func writeNew(_ element: JSONSlice, _ link: ObservedMember.Link, siblings: [Shape]) {
        let target = element.target(isStrict: link.isStrict)
        guard target != nil || element.kind == .object else {
            guard element.kind != .array else { return fail("a list of objects now holds a list") }
            return output.append(contentsOf: element.bytes)
        }
        // Null says nothing of the style.
        let siblings = siblings.filter { $0.value.target() != nil || $0.value.kind == .object }
        if !siblings.isEmpty, siblings.allSatisfy({ $0.value.target()?.isBare == true }) {
            guard let target else {
                return fail("a list of bare identities now holds an object without one")
            }
            return appendBare(element, target.identity.text, link, like: siblings[0].value)
        }
        guard let shape = commonShape(of: siblings) else {
            return fail("a list has a new element, and its siblings do not share one shape")
        }
        if let target {
            expand(name(of: target, link), in: shape)
        } else {
            let shown = ResolvedObject(element, model: link.model, models: models)
            write(shape, showing: shown, name: nil, isStrict: true)
        }
    }

    /// The shape that all elements show their objects in; nil if they differ or are no objects.
    private func commonShape(of siblings: [Shape]) -> Shape? {
        let shapes = siblings.compactMap(objectShape)
        guard shapes.count == siblings.count, let first = shapes.first else { return nil }
        let signature = signature(of: first)
        return shapes.dropFirst().allSatisfy { self.signature(of: $0) == signature } ? first : nil
    }

    /// The names of the members in order, those of inner objects included.
    private func signature(of shape: Shape) -> String {
        shape.value.members.map { member in
            guard let inner = objectShape(shape.at(member.value)) else { return member.name.text }
            return member.name.text + "{" + signature(of: inner) + "}"
        }.joined(separator: ",")
    }
}

/// The pinned elements of a list, each to be kept at most once.
private struct PinnedElements {
    private let isStrict: Bool
    private var byTarget: [ObjectIdentity: [(index: Int, target: JSONSlice.Target)]] = [:]
    private var literals: [(index: Int, value: JSONSlice)] = []

    init(_ elements: [JSONSlice], isStrict: Bool) {
        self.isStrict = isStrict
        for (index, element) in elements.enumerated().reversed() {
            if let target = element.target(isStrict: isStrict) {
                byTarget[target.identity, default: []].append((index, target))
            } else {
                literals.append((index, element))
            }
        }
        literals.reverse()
    }

    /// The first pinned element not yet taken that shows this one.
    mutating func take(_ element: JSONSlice) -> Int? {
        if let target = element.target(isStrict: isStrict) {
            // The first one is last.
            guard let found = byTarget[target.identity]?.lastIndex(where: { $0.target.isSame(as: target) }) else {
                return nil
            }
            return byTarget[target.identity]?.remove(at: found).index
        }
        guard let found = literals.firstIndex(where: { $0.value.isEqual(to: element) }) else { return nil }
        return literals.remove(at: found).index
    }
}
