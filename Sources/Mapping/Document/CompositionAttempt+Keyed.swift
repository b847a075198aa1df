extension CompositionAttempt {
    /// Writes the newest value of a relation to objects keyed by name where the pinned one differs.
    ///
    /// What stays under its key keeps its own pin; what is new takes the shape of the others if these share one.
    mutating func writeKeyed(_ newest: ObservedMember, _ shape: Shape) {
        guard let link = newest.link else { return }
        guard newest.value.kind == .object else {
            guard newest.value.kind != .array, !newest.value.containsReference else {
                return fail("objects keyed by name are now something else")
            }
            return writeLiteral(newest.value)
        }
        let one = ObservedMember.Link(model: link.model, arity: .one, isStrict: link.isStrict)
        let members = newest.value.members.filter { !isRemoved($0.value, one) }
        guard shape.value.kind == .object || members.isEmpty else {
            return fail("a relation now holds objects keyed by name, and the document does not say in which shape")
        }
        guard spend(shape.value.range.count + newest.value.range.count) else { return }
        isChanged = true
        let pinned = shape.value.members
        let byName = Dictionary(pinned.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        guard !members.isEmpty, let first = pinned.first, let last = pinned.last else {
            if members.isEmpty { return output.append(contentsOf: [UInt8(ascii: "{"), UInt8(ascii: "}")]) }
            return fail("an object that was empty now has members, and the document does not say in which shape")
        }
        let text = shape.value.text
        let opening = shape.value.range.lowerBound + 1..<first.nameRange.lowerBound
        let colon = first.nameRange.upperBound..<first.value.range.lowerBound
        let shownSeparator =
            pinned.count > 1 ? text[first.value.range.upperBound..<pinned[1].nameRange.lowerBound] : nil
        guard let separator = separator(shownSeparator, afterOpening: text[opening], between: members.count)
        else { return }
        output.append(UInt8(ascii: "{"))
        output.append(contentsOf: text[opening])
        for (index, member) in members.enumerated() {
            guard reason == nil else { return }
            if index > 0 { output.append(contentsOf: separator) }
            let known = byName[member.name]
            output.append(contentsOf: known.map { text[$0.nameRange] } ?? newest.value.text[member.nameRange])
            output.append(contentsOf: text[colon])
            if let known, known.value.isEqual(to: member.value, as: one) {
                copy(shape.text, known.value.range)
            } else {
                // Under its own key it has a shape already; what is new looks like the others.
                let ownStyle = known.map { self.style(of: [shape.at($0.value)]) }
                writeNew(member.value, one, ownStyle ?? styleOfNew(in: shape, pinned.map(\.value)))
            }
        }
        output.append(contentsOf: text[last.value.range.upperBound..<shape.value.range.upperBound])
    }
}
