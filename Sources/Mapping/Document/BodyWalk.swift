/// Validates a body in one pass and finds where the objects of declared models begin and end.
///
/// Only declared members are examined; everything else is scanned over. Nothing is copied. Reading ahead (for a
/// cluster's choice or a value of the parent) is charged to a budget, so that each byte is read a bounded number of
/// times, whatever the body.
struct BodyWalk {
    /// An object found in the body.
    ///
    /// Objects are stored in the order of their first bytes. The name is nil until the end of the object, and stays nil
    /// if it has no identity. Its bytes then belong to the object around it.
    struct Found {
        var start: Int
        var end = 0
        var model: Int
        /// Whether the rule expects it, so that a missing identity is worth a warning.
        var isExpected: Bool
        /// The index after the last object within this one.
        var subtreeEnd = 0
        var name: ObjectName?
        var keys: [(member: String, value: String)] = []
        /// The enclosing object of a declared model, or -1.
        var parent: Int
        var place: Place
    }

    struct Place {
        /// The index in the list, or -1.
        var index = -1
        /// The quoted member name, for objects keyed by name; else empty.
        var key = 0..<0
    }

    /// The value of an identity or key member.
    struct Capture {
        /// Empty until the member is read.
        var range = 0..<0
        var isRepeated = false
    }

    let body: [UInt8]
    let text: UnsafeBufferPointer<UInt8>
    let scanner: JSONScanner
    let plan: BodyPlan
    let models: Models
    let tree: PathTree.View
    let context: MappingContext
    let objectLimit: Int
    /// How many bytes may still be read out of turn.
    var budget: Int
    /// The captures of all open objects, innermost last.
    var captures: [Capture] = []
    /// The innermost open object, or -1.
    var parent = -1
    /// The first of its captures.
    var firstCapture = 0
    /// Those of its required properties seen so far.
    var seen: UInt64 = 0
    /// The object that the route's captures are bound to, or -1.
    var boundSlot = -1
    var found: [Found] = []
    /// Objects whose identity depends partly on their surroundings, with those parts of it that do not; they are named
    /// at the end of the walk.
    var pending: [(slot: Int, parts: [String?])] = []
    /// The offsets of the route's objects that are keyed by name.
    var keyedStarts: [Int] = []
    /// The offsets of secret values, which must not reach the disk, in order.
    var secrets: [Int] = []
    var notes = WarningNotes()
    /// Values of enclosing objects (-1: the body) that identities use, each looked up once.
    var lookedUp: [Int: [[PathStep]: Identity.Reading]] = [:]

    /// Walks the whole body; returns the offset of its end or a `JSONScanner.Failure`.
    mutating func walk() -> Int {
        let end = envelope(scanner.skipSpace(0), plan.targets.map { ($0, $0.path[...]) }, depth: 0)
        guard end >= 0 else { return end }
        let textEnd = scanner.skipSpace(end)
        guard textEnd == text.count else { return JSONScanner.Failure.malformed }
        namePending()
        return textEnd
    }

    func literal(_ range: Range<Int>) -> UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(rebasing: text[range]) }

    // MARK: Values of declared models

    private mutating func objects(_ open: Int, model: Int, depth: Int, areExpected: Bool) -> Int {
        var place = Place()
        return scanner.scanElements(open, depth: depth) { value in
            place.index += 1
            guard scanner.byte(value) == UInt8(ascii: "{") else { return scanner.scanValue(value, depth: depth + 1) }
            return object(value, model: model, depth: depth + 1, isExpected: areExpected, place)
        }
    }

    /// Walks an object whose members are objects of the model.
    private mutating func keyed(_ open: Int, model: Int, depth: Int, areExpected: Bool) -> Int {
        var place = Place()
        return scanner.scanMembers(open, depth: depth) { nameStart, name, value in
            place = Place(index: place.index + 1, key: nameStart..<name.end)
            guard scanner.byte(value) == UInt8(ascii: "{") else { return scanner.scanValue(value, depth: depth + 1) }
            return object(value, model: model, depth: depth + 1, isExpected: areExpected, place)
        }
    }

    mutating func object(_ start: Int, model: Int, depth: Int, isExpected: Bool, _ place: Place = Place()) -> Int {
        let index = concrete(model, at: start, depth: depth)
        let model = models.compiled[index]
        let slot = found.count
        guard slot < objectLimit else { return JSONScanner.Failure.tooManyObjects }
        found.append(Found(start: start, model: index, isExpected: isExpected, parent: parent, place: place))
        let outer = (parent, firstCapture, seen)
        (parent, firstCapture, seen) = (slot, captures.count, 0)
        for _ in 0..<model.reading.captureCount { captures.append(Capture()) }
        let end = members(start, of: model.root, depth: depth)
        guard end >= 0 else { return end }
        for (bit, property) in model.reading.required.enumerated() where seen & 1 << UInt64(bit) == 0 {
            notes.record(
                .requiredMissing,
                at: start,
                model: model.name,
                property: property,
                "Property \(property) is required and absent."
            )
        }
        close(slot, model, end: end)
        captures.removeLast(captures.count - firstCapture)
        (parent, firstCapture, seen) = outer
        return end
    }

    /// The concrete model of an object: for a cluster, the one that its members select.
    private mutating func concrete(_ model: Int, at start: Int, depth: Int) -> Int {
        guard !models.compiled[model].reading.choices.isEmpty else { return models.compiled[model].fallback }
        let end = scanner.scanValue(start, depth: depth)
        // Malformed text is reported later. When the budget is spent, the object counts as its base model.
        guard end >= 0, budget >= end - start else { return models.compiled[model].fallback }
        budget -= end - start
        return models.concrete(of: model, for: JSONSlice(body, start..<end))
    }

    /// Walks the members of an object at a node of the model's path tree.
    private mutating func members(_ start: Int, of node: Int, depth: Int) -> Int {
        let declared = tree.nodes[node]
        guard declared.hasChildren else { return scanner.scanValue(start, depth: depth) }
        return scanner.scanMembers(start, depth: depth) { nameStart, name, value in
            let (inner, count) = (nameStart + 1, name.end - nameStart - 2)
            let child =
                name.isEscaped
                ? models.tree.child(of: node, spelled: literal(nameStart..<name.end))
                : tree.child(of: declared, scanner.base + inner, count, readable: text.count - inner)
            guard let child else { return scanner.scanValue(value, depth: depth + 1) }
            return member(value, at: child, depth: depth + 1)
        }
    }

    private mutating func member(_ start: Int, at index: Int, depth: Int) -> Int {
        let node = tree.nodes[index]
        let relation = Int(node.relation)
        let end: Int
        switch scanner.byte(start) {
        case UInt8(ascii: "{") where relation >= 0 && node.arity == .keyed:
            end = keyed(start, model: relation, depth: depth, areExpected: false)
        case UInt8(ascii: "{") where relation >= 0:
            if node.isMany { notes.record(.objectForList, at: start, model: models.compiled[relation].name) }
            end = object(start, model: relation, depth: depth, isExpected: false)
        case UInt8(ascii: "[") where relation >= 0 && (node.isMany || node.arity == nil):
            end = objects(start, model: relation, depth: depth, areExpected: false)
        case UInt8(ascii: "{") where node.hasChildren:
            end = members(start, of: index, depth: depth)
        case UInt8(ascii: "[") where node.element >= 0:
            end = scanner.scanElements(start, depth: depth) { member($0, at: Int(node.element), depth: depth + 1) }
        case let first:
            if relation >= 0, first == UInt8(ascii: "[") {
                notes.record(.arrayForObject, at: start, model: models.compiled[relation].name)
            }
            end = scanner.scanValue(start, depth: depth)
        }
        guard node.isWatched, end >= 0 else { return end }
        if node.rule >= 0, !isAllowed(models.rules[Int(node.rule)], start, end) { return end }
        var bits = node.captures
        while bits != 0 {
            let capture = firstCapture + bits.trailingZeroBitCount
            bits &= bits - 1
            captures[capture] = Capture(range: start..<end, isRepeated: !captures[capture].range.isEmpty)
        }
        return end
    }

    /// Whether a value passes its checks; also records required properties and secrets, and notes failed checks.
    @inline(never)
    private mutating func isAllowed(_ rule: MemberRule, _ start: Int, _ end: Int) -> Bool {
        // Nothing but null begins with this letter.
        if rule.isSecret, text[start] != UInt8(ascii: "n") { secrets.append(start) }
        seen |= rule.required
        guard let checked = rule.checked, let fault = checked.fault(in: JSONSlice(body, start..<end)) else {
            return true
        }
        notes.record(
            .quarantined,
            at: start,
            model: models.compiled[found[parent].model].name,
            property: rule.property,
            "Property \(rule.property) fails a check: \(fault)."
        )
        return false
    }
}

/// The way from the body to the objects of the rule.
extension BodyWalk {
    /// A place that objects are taken from, and the rest of the path to it.
    typealias Target = (content: BodyPlan.Content, path: ArraySlice<PathStep>)

    private mutating func envelope(_ position: Int, _ active: [Target], depth: Int) -> Int {
        if let here = active.first(where: { $0.path.isEmpty }) { return content(position, here.content, depth: depth) }
        switch scanner.byte(position) {
        case UInt8(ascii: "{"): return envelopeMembers(position, active, depth: depth)
        case UInt8(ascii: "[") where active.contains { $0.path.first == .elements }:
            let inner = active.filter { $0.path.first == .elements }.map { ($0.content, $0.path.dropFirst()) }
            return scanner.scanElements(position, depth: depth) { envelope($0, inner, depth: depth + 1) }
        default:
            notes.record(.envelopeMissing, at: position)
            return scanner.scanValue(position, depth: depth)
        }
    }

    private mutating func envelopeMembers(_ open: Int, _ active: [Target], depth: Int) -> Int {
        var hits = [Int](repeating: 0, count: active.count)
        let before = (found: found.count, pending: pending.count, keyed: keyedStarts.count)
        let end = scanner.scanMembers(open, depth: depth) { nameStart, name, value in
            let spelled = literal(nameStart..<name.end)
            let inner = active.indices.filter { index in
                active[index].path.first?.name.map { JSONString.content(of: spelled, is: $0.utf8) } ?? false
            }
            guard !inner.isEmpty else { return scanner.scanValue(value, depth: depth + 1) }
            for index in inner { hits[index] += 1 }
            return envelope(value, inner.map { (active[$0].content, active[$0].path.dropFirst()) }, depth: depth + 1)
        }
        let isRepeated = hits.contains { $0 > 1 }
        if isRepeated {
            // A repeated member is no observation (law 6), so everything found below it is discarded.
            found.removeSubrange(before.found...)
            pending.removeSubrange(before.pending...)
            keyedStarts.removeSubrange(before.keyed...)
            boundSlot = -1
        }
        if isRepeated || hits.allSatisfy({ $0 == 0 }) { notes.record(.envelopeMissing, at: open) }
        return end
    }

    /// Walks the value that holds the object or objects of a target.
    private mutating func content(_ position: Int, _ target: BodyPlan.Content, depth: Int) -> Int {
        let name = models.compiled[target.model].name
        switch (scanner.byte(position), target.arity) {
        case (UInt8(ascii: "{"), .keyed):
            keyedStarts.append(position)
            return keyed(position, model: target.model, depth: depth, areExpected: true)
        case (UInt8(ascii: "{"), let arity):
            if arity == .many { notes.record(.objectForList, at: position, model: name) }
            if target.isMain, arity == .one { boundSlot = found.count }
            return object(position, model: target.model, depth: depth, isExpected: true)
        case (UInt8(ascii: "["), .many):
            return objects(position, model: target.model, depth: depth, areExpected: true)
        case (UInt8(ascii: "["), _): notes.record(.arrayForObject, at: position, model: name)
        case (UInt8(ascii: "n"), _): break
        default: notes.record(.notAnObject, at: position, model: name)
        }
        return scanner.scanValue(position, depth: depth)
    }
}
