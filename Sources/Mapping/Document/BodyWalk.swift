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
        /// The index after the last object within this one.
        var subtreeEnd = 0
        var name: ObjectName?
        var keys: [(member: String, value: String)] = []
        /// The enclosing object of a declared model, or -1.
        var parent = -1
        var place = Place()
    }

    /// The position of an object in its container.
    struct Place {
        /// The index in the list, or -1.
        var index = -1
        /// The range of the quoted member name, for objects keyed by name.
        var keyStart = 0
        var keyEnd = 0
    }

    /// The value of an identity or key member.
    struct Capture {
        var start = 0
        var end = 0
        var isRepeated = false
    }

    let body: [UInt8]
    let text: UnsafeBufferPointer<UInt8>
    let scanner: JSONScanner
    let models: Models
    let context: MappingContext
    private let tree: PathTree.View
    /// The captures of all open objects, innermost last.
    var captures: [Capture] = []
    /// For each open object whose model has required properties: those seen so far.
    var seen: [UInt64] = []
    /// The innermost open object, or -1.
    var parent = -1
    /// The object that the route's captures are bound to, or -1.
    var boundSlot = -1
    /// How many bytes may still be read out of turn.
    var budget: Int
    var found: [Found] = []
    /// Objects whose identity depends partly on their surroundings; they are named at the end of the walk.
    var pending: [PendingName] = []
    /// The offsets of the route's objects that are keyed by name.
    var keyedStarts: [Int] = []
    /// The offsets of secret values, which must not reach the disk, in order.
    var secrets: [Int] = []
    var notes = WarningNotes()
    /// Values of enclosing objects that identities use, each looked up once.
    var lookedUp: [Lookup: Identity.Reading] = [:]
    let hasEnvelope: Bool
    private let targets: [BodyPlan.Content]
    private let objectLimit: Int

    init(
        _ body: [UInt8],
        _ text: UnsafeBufferPointer<UInt8>,
        plan: BodyPlan,
        models: Models,
        tree: PathTree.View,
        context: MappingContext,
        objectLimit: Int
    ) {
        (self.objectLimit, self.body, self.text) = (objectLimit, body, text)
        (self.models, self.tree, self.context) = (models, tree, context)
        targets = plan.targets
        hasEnvelope = plan.envelope != nil && targets.allSatisfy { !$0.path.isEmpty }
        budget = text.count * 8
        scanner = JSONScanner(text, allowsReferences: false)
    }

    /// Walks the whole body; returns the offset of its end or a `JSONScanner.Failure`.
    mutating func walk() -> Int {
        let start = scanner.skipSpace(0)
        let end =
            targets[0].path.isEmpty
            ? content(start, targets[0], depth: 0)
            : envelope(start, targets.map { ($0, $0.path[...]) }, depth: 0)
        guard end >= 0 else { return end }
        let textEnd = scanner.skipSpace(end)
        guard textEnd == text.count else { return JSONScanner.Failure.malformed }
        if !pending.isEmpty { namePending() }
        return textEnd
    }

    // MARK: Values of declared models

    mutating func objects(_ open: Int, model: Int, depth: Int, areExpected: Bool) -> Int {
        var index = 0
        return scanner.scanElements(open, depth: depth) { element in
            defer { index += 1 }
            guard scanner.byte(element) == UInt8(ascii: "{") else {
                return scanner.scanValue(element, depth: depth + 1)
            }
            let place = Place(index: index)
            return object(element, model: model, depth: depth + 1, isExpected: areExpected, place: place)
        }
    }

    /// Walks an object whose members are objects of the model.
    mutating func keyed(_ open: Int, model: Int, depth: Int, areExpected: Bool) -> Int {
        var index = 0
        return scanner.scanMembers(open, depth: depth) { nameStart, name, value in
            defer { index += 1 }
            guard scanner.byte(value) == UInt8(ascii: "{") else { return scanner.scanValue(value, depth: depth + 1) }
            let place = Place(index: index, keyStart: nameStart, keyEnd: name.end)
            return object(value, model: model, depth: depth + 1, isExpected: areExpected, place: place)
        }
    }

    mutating func object(
        _ start: Int,
        model declared: Int,
        depth: Int,
        isExpected: Bool,
        place: Place = Place()
    ) -> Int {
        let index = concrete(declared, at: start, depth: depth)
        let model = models.compiled[index]
        let slot = found.count
        guard slot < objectLimit else { return JSONScanner.Failure.tooManyObjects }
        let firstCapture = captures.count
        found.append(Found(start: start, model: index, parent: parent, place: place))
        for _ in 0..<model.reading.captureCount { captures.append(Capture()) }
        if model.hasRequired { seen.append(0) }
        let outer = parent
        parent = slot
        let end = members(start, of: model.root, firstCapture: firstCapture, depth: depth)
        parent = outer
        guard end >= 0 else { return end }
        if model.hasRequired { checkRequired(model, seen.removeLast(), at: start) }
        close(slot, model, end: end, firstCapture: firstCapture, isExpected: isExpected)
        captures.removeLast(captures.count - firstCapture)
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
    private mutating func members(_ start: Int, of node: Int, firstCapture: Int, depth: Int) -> Int {
        let declared = tree.nodes[node]
        guard declared.hasChildren else { return scanner.scanValue(start, depth: depth) }
        return scanner.scanMembers(start, depth: depth) { nameStart, name, value in
            guard let child = child(of: declared, nameStart, name.end, name.isEscaped) else {
                return scanner.scanValue(value, depth: depth + 1)
            }
            return member(value, at: child, firstCapture: firstCapture, depth: depth + 1)
        }
    }

    private mutating func member(_ start: Int, at index: Int, firstCapture: Int, depth: Int) -> Int {
        let node = tree.nodes[index]
        let end: Int
        switch scanner.byte(start) {
        case UInt8(ascii: "{") where node.relation >= 0:
            if node.arity == .keyed {
                end = keyed(start, model: Int(node.relation), depth: depth, areExpected: false)
            } else {
                if node.isMany {
                    notes.note(.objectForList, at: start, model: models.compiled[Int(node.relation)].name)
                }
                end = object(start, model: Int(node.relation), depth: depth, isExpected: false)
            }
        case UInt8(ascii: "[") where node.relation >= 0 && (node.isMany || node.arity == nil):
            end = objects(start, model: Int(node.relation), depth: depth, areExpected: false)
        case UInt8(ascii: "{") where node.hasChildren:
            end = members(start, of: index, firstCapture: firstCapture, depth: depth)
        case UInt8(ascii: "[") where node.element >= 0:
            let element = Int(node.element)
            end = scanner.scanElements(start, depth: depth) { position in
                member(position, at: element, firstCapture: firstCapture, depth: depth + 1)
            }
        default:
            if node.relation >= 0, scanner.byte(start) == UInt8(ascii: "[") {
                notes.note(.arrayForObject, at: start, model: models.compiled[Int(node.relation)].name)
            }
            end = scanner.scanValue(start, depth: depth)
        }
        guard node.isWatched, end >= 0 else { return end }
        if node.rule >= 0, !isAllowed(models.rules[Int(node.rule)], start, end) { return end }
        var bits = node.captures
        while bits != 0 {
            let capture = firstCapture + bits.trailingZeroBitCount
            bits &= bits - 1
            captures[capture].isRepeated = captures[capture].end > 0
            captures[capture].start = start
            captures[capture].end = end
        }
        return end
    }

    // MARK: Names

    @inline(__always)
    private func child(of node: PathTree.Node, _ open: Int, _ end: Int, _ isEscaped: Bool) -> Int? {
        isEscaped
            ? escapedChild(of: node, open, end)
            : tree.child(of: node, scanner.base + open + 1, end - open - 2, readable: text.count - open - 1)
    }

    @inline(never)
    private func escapedChild(of node: PathTree.Node, _ open: Int, _ end: Int) -> Int? {
        guard var name = JSONString.text(UnsafeBufferPointer(rebasing: text[open..<end])), !name.isEmpty else {
            return nil
        }
        return name.withUTF8 { tree.child(of: node, $0.baseAddress!, $0.count, readable: $0.count) }
    }
}

/// Checks, required properties and secrets.
extension BodyWalk {
    /// Whether a value passes its checks; also records required properties and secrets, and notes failed checks.
    @inline(never)
    mutating func isAllowed(_ rule: MemberRule, _ start: Int, _ end: Int) -> Bool {
        // Nothing but null begins with this letter.
        if rule.isSecret, text[start] != UInt8(ascii: "n") { secrets.append(start) }
        if rule.required != 0, !seen.isEmpty { seen[seen.count - 1] |= rule.required }
        guard let checked = rule.checked, let fault = checked.fault(in: JSONSlice(body, start..<end)) else {
            return true
        }
        notes.note(
            .quarantined,
            at: start,
            model: parent >= 0 ? models.compiled[found[parent].model].name : nil,
            property: rule.property,
            "Property \(rule.property) fails a check: \(fault)."
        )
        return false
    }

    mutating func checkRequired(_ model: CompiledModel, _ seen: UInt64, at start: Int) {
        for (index, property) in model.reading.required.enumerated() where seen & 1 << UInt64(index) == 0 {
            notes.note(
                .requiredMissing,
                at: start,
                model: model.name,
                property: property,
                "Property \(property) is required and absent."
            )
        }
    }
}

/// The way from the body to the objects of the rule.
extension BodyWalk {
    mutating func envelope(
        _ position: Int,
        _ active: [(target: BodyPlan.Content, path: ArraySlice<PathStep>)],
        depth: Int
    ) -> Int {
        if let here = active.first(where: { $0.path.isEmpty }) { return content(position, here.target, depth: depth) }
        switch scanner.byte(position) {
        case UInt8(ascii: "{"): return envelopeMembers(position, active, depth: depth)
        case UInt8(ascii: "[") where active.contains { $0.path.first == .elements }:
            let inner = active.filter { $0.path.first == .elements }.map { ($0.target, $0.path.dropFirst()) }
            return scanner.scanElements(position, depth: depth) { envelope($0, inner, depth: depth + 1) }
        default:
            notes.note(.envelopeMissing, at: position)
            return scanner.scanValue(position, depth: depth)
        }
    }

    private mutating func envelopeMembers(
        _ open: Int,
        _ active: [(target: BodyPlan.Content, path: ArraySlice<PathStep>)],
        depth: Int
    ) -> Int {
        var hits = [Int](repeating: 0, count: active.count)
        let (before, beforePending, beforeKeyed) = (found.count, pending.count, keyedStarts.count)
        let end = scanner.scanMembers(open, depth: depth) { nameStart, name, value in
            var inner: [(target: BodyPlan.Content, path: ArraySlice<PathStep>)] = []
            let literal = UnsafeBufferPointer(rebasing: text[nameStart..<name.end])
            for (index, entry) in active.enumerated() {
                guard case .name(let step) = entry.path.first, JSONString.content(of: literal, is: step.utf8) else {
                    continue
                }
                hits[index] += 1
                inner.append((entry.target, entry.path.dropFirst()))
            }
            guard !inner.isEmpty else { return scanner.scanValue(value, depth: depth + 1) }
            return envelope(value, inner, depth: depth + 1)
        }
        if hits.contains(where: { $0 > 1 }) {
            // A repeated member is no observation (law 6), so everything found below it is discarded.
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

    /// Walks the value that holds the object or objects of a target.
    mutating func content(_ position: Int, _ target: BodyPlan.Content, depth: Int) -> Int {
        let name = models.compiled[target.model].name
        switch (scanner.byte(position), target.arity) {
        case (UInt8(ascii: "{"), .keyed):
            keyedStarts.append(position)
            return keyed(position, model: target.model, depth: depth, areExpected: true)
        case (UInt8(ascii: "{"), let arity):
            if arity == .many { notes.note(.objectForList, at: position, model: name) }
            if target.isMain, arity == .one { boundSlot = found.count }
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
