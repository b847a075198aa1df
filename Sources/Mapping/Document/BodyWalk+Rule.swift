/// What the rule speaks of: the way to the objects.
extension BodyWalk {
    /// Goes down the envelope's key paths.
    mutating func envelope(
        _ position: Int,
        _ active: [(target: BodyPlan.Target, path: ArraySlice<PathStep>)],
        depth: Int
    ) -> Int {
        if let here = active.first(where: { $0.path.isEmpty }) { return content(position, here.target, depth: depth) }
        switch scanner.byte(position) {
        case UInt8(ascii: "{"):
            return envelopeMembers(position, active, depth: depth)
        case UInt8(ascii: "[") where active.contains { $0.path.first == .elements }:
            let inner = active.filter { $0.path.first == .elements }.map { ($0.target, $0.path.dropFirst()) }
            return elements(position, depth: depth) { walk, element, _ in
                walk.envelope(element, inner, depth: depth + 1)
            }
        default:
            notes.note(.envelopeMissing, at: position)
            return scanner.scanValue(position, depth: depth)
        }
    }

    private mutating func envelopeMembers(
        _ open: Int,
        _ active: [(target: BodyPlan.Target, path: ArraySlice<PathStep>)],
        depth: Int
    ) -> Int {
        var hits = [Int](repeating: 0, count: active.count)
        let (before, beforePending, beforeKeyed) = (found.count, pending.count, keyedStarts.count)
        let end = members(open, depth: depth) { walk, nameStart, nameEnd, isEscaped, value in
            var inner: [(target: BodyPlan.Target, path: ArraySlice<PathStep>)] = []
            for (index, entry) in active.enumerated() {
                guard case .name(let name) = entry.path.first, walk.isName(nameStart, nameEnd, isEscaped, name) else {
                    continue
                }
                hits[index] += 1
                inner.append((entry.target, entry.path.dropFirst()))
            }
            guard !inner.isEmpty else { return walk.scanner.scanValue(value, depth: depth + 1) }
            return walk.envelope(value, inner, depth: depth + 1)
        }
        if hits.contains(where: { $0 > 1 }) {
            // Twice is no observation: which of the two would it be?
            found.removeSubrange(before...)
            pending.removeSubrange(beforePending...)
            keyedStarts.removeSubrange(beforeKeyed...)
            boundSlot = -1
            notes.note(.envelopeMissing, at: open)
        } else if hits.allSatisfy({ $0 == 0 }) {
            notes.note(.envelopeMissing, at: open)
        }
        return end
    }

    /// The value that the rule says is an object or several.
    mutating func content(_ position: Int, _ target: BodyPlan.Target, depth: Int) -> Int {
        let name = models.compiled[target.model].name
        switch (scanner.byte(position), target.shape) {
        case (UInt8(ascii: "{"), .keyed):
            keyedStarts.append(position)
            return keyed(position, model: target.model, depth: depth, areExpected: true)
        case (UInt8(ascii: "{"), let shape):
            if shape == .many { notes.note(.objectForList, at: position, model: name) }
            if target.isMain, shape == .one { boundSlot = found.count }
            return object(position, model: target.model, depth: depth, isExpected: true)
        case (UInt8(ascii: "["), .many):
            return objects(position, model: target.model, depth: depth, areExpected: true)
        case (UInt8(ascii: "["), _):
            notes.note(.arrayForObject, at: position, model: name)
        case (UInt8(ascii: "n"), _):
            break
        default:
            notes.note(.notAnObject, at: position, model: name)
        }
        return scanner.scanValue(position, depth: depth)
    }
}
