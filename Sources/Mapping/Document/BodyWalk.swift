/// One pass over a body that validates it and notes where the objects of declared models begin and end.
///
/// Only members that a model declares are looked at; everything else is scanned over. Nothing is copied. What has to be
/// looked at before its turn (a cluster's choice, a value of the parent) is paid from a budget, so that each byte is
/// visited a bounded number of times whatever the body looks like.
struct BodyWalk {
    /// An object met on the way, in the order of first bytes.
    ///
    /// Its name is nil while it is being read, and stays so if it
    /// has no identity: then its bytes belong to whatever it lies in.
    struct Found {
        var start: Int
        var end = 0
        var model: Int
        /// The index behind the last object within this one.
        var subtreeEnd = 0
        var name: ObjectName?
        var keys: [(member: String, value: String)] = []
        /// The object of a declared model that this one stands in; -1: none.
        var parent = -1
        var place = Place()
    }

    /// Where an object stands in what holds it.
    struct Place {
        /// The position in the list; -1: none.
        var index = -1
        /// The quoted name of the member that the object is the value of, as one of several under a key.
        var keyStart = 0
        var keyEnd = 0
    }

    /// The value of a member that the model reads: identity or key.
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
    /// The captures of all objects that are open, innermost last.
    var captures: [Capture] = []
    /// The required properties seen of each open object whose model has some.
    var seen: [UInt64] = []
    /// The innermost open object; -1: none.
    var parent = -1
    /// The object that the route's captures are bound to; -1: none.
    var boundSlot = -1
    /// How many bytes may still be looked at out of turn.
    var budget: Int
    var found: [Found] = []
    /// Objects whose identity is partly around them, to be named when everything has been seen.
    var pending: [PendingName] = []
    /// Where bodies, or what their envelopes hold, begin that are objects keyed by name.
    var keyedStarts: [Int] = []
    /// Where values begin that must not reach a disk, in order.
    var secrets: [Int] = []
    var notes = WarningNotes()
    /// The values of parents that identities ask for, looked up once.
    var lookedUp: [Lookup: Identity.Reading] = [:]
    let hasEnvelope: Bool
    /// How many objects are taken out of one body at most.
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
        self.objectLimit = objectLimit
        self.body = body
        self.text = text
        self.models = models
        self.tree = tree
        self.context = context
        hasEnvelope = plan.hasEnvelope && plan.targets.allSatisfy { !$0.path.isEmpty }
        budget = text.count * 8
        scanner = JSONScanner(text, allowsReferences: false)
    }

    /// Walks the whole body; the offset of its end or a `JSONScanner.Failure`.
    mutating func walk(_ plan: BodyPlan) -> Int {
        let start = scanner.skipSpace(0)
        let end =
            plan.targets[0].path.isEmpty
            ? content(start, plan.targets[0], depth: 0)
            : envelope(start, plan.targets.map { ($0, $0.path[...]) }, depth: 0)
        guard end >= 0 else { return end }
        let textEnd = scanner.skipSpace(end)
        guard textEnd == text.count else { return JSONScanner.Failure.malformed }
        if !pending.isEmpty { namePending() }
        return textEnd
    }

    // MARK: Values of declared models

    mutating func objects(_ open: Int, model: Int, depth: Int, areExpected: Bool) -> Int {
        elements(open, depth: depth) { walk, element, index in
            guard walk.scanner.byte(element) == UInt8(ascii: "{") else {
                return walk.scanner.scanValue(element, depth: depth + 1)
            }
            let place = Place(index: index)
            return walk.object(element, model: model, depth: depth + 1, isExpected: areExpected, place: place)
        }
    }

    /// An object whose members are objects of the model.
    mutating func keyed(_ open: Int, model: Int, depth: Int, areExpected: Bool) -> Int {
        var index = 0
        return members(open, depth: depth) { walk, nameStart, nameEnd, _, value in
            defer { index += 1 }
            guard walk.scanner.byte(value) == UInt8(ascii: "{") else {
                return walk.scanner.scanValue(value, depth: depth + 1)
            }
            let place = Place(index: index, keyStart: nameStart, keyEnd: nameEnd)
            return walk.object(value, model: model, depth: depth + 1, isExpected: areExpected, place: place)
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
        for _ in 0..<model.captureCount { captures.append(Capture()) }
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

    /// The model that an object is of: of a cluster, the one that its members choose.
    private mutating func concrete(_ model: Int, at start: Int, depth: Int) -> Int {
        guard !models.compiled[model].reading.choices.isEmpty else { return models.compiled[model].fallback }
        let end = scanner.scanValue(start, depth: depth)
        // What is malformed will be told of; what is nested too often is taken as its base.
        guard end >= 0, budget >= end - start else { return models.compiled[model].fallback }
        budget -= end - start
        return models.concrete(of: model, for: JSONSlice(body, start..<end))
    }

    /// The members of an object at a node of a model's paths.
    private mutating func members(_ start: Int, of node: Int, firstCapture: Int, depth: Int) -> Int {
        let declared = tree.nodes[node]
        guard declared.hasChildren else { return scanner.scanValue(start, depth: depth) }
        return members(start, depth: depth) { walk, nameStart, nameEnd, isEscaped, value in
            guard let child = walk.child(of: declared, nameStart, nameEnd, isEscaped) else {
                return walk.scanner.scanValue(value, depth: depth + 1)
            }
            return walk.member(value, at: child, firstCapture: firstCapture, depth: depth + 1)
        }
    }

    /// The value of a declared member.
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
        case UInt8(ascii: "[") where node.relation >= 0 && (node.isMany || node.arity == .either):
            end = objects(start, model: Int(node.relation), depth: depth, areExpected: false)
        case UInt8(ascii: "{") where node.hasChildren:
            end = members(start, of: index, firstCapture: firstCapture, depth: depth)
        case UInt8(ascii: "[") where node.element >= 0:
            let element = Int(node.element)
            end = elements(start, depth: depth) { walk, position, _ in
                walk.member(position, at: element, firstCapture: firstCapture, depth: depth + 1)
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

    // MARK: Members and elements

    /// Goes over the members of the object that begins here; `value` scans each value and returns its end.
    @inline(__always)
    mutating func members(
        _ open: Int,
        depth: Int,
        _ value: (inout BodyWalk, _ nameStart: Int, _ nameEnd: Int, _ isEscaped: Bool, _ value: Int) -> Int
    ) -> Int {
        guard depth < JSONScanner.maximumDepth else { return JSONScanner.Failure.tooDeep }
        var position = scanner.skipSpace(open + 1)
        if scanner.byte(position) == UInt8(ascii: "}") { return position + 1 }
        while true {
            guard scanner.byte(position) == UInt8(ascii: "\"") else { return JSONScanner.Failure.malformed }
            let name = scanner.scanName(position)
            guard name.end >= 0 else { return name.end }
            let valueStart = scanner.skipColon(name.end)
            guard valueStart >= 0 else { return valueStart }
            position = value(&self, position, name.end, name.isEscaped, valueStart)
            guard position >= 0 else { return position }
            position = scanner.skipSpace(position)
            let byte = scanner.byte(position)
            guard byte == UInt8(ascii: ",") else {
                return byte == UInt8(ascii: "}") ? position + 1 : JSONScanner.Failure.malformed
            }
            position = scanner.skipSpace(position + 1)
        }
    }

    /// Goes over the elements of the array that begins here; `element` scans each and returns its end.
    @inline(__always)
    mutating func elements(
        _ open: Int,
        depth: Int,
        _ element: (inout BodyWalk, _ position: Int, _ index: Int) -> Int
    ) -> Int {
        guard depth < JSONScanner.maximumDepth else { return JSONScanner.Failure.tooDeep }
        var position = scanner.skipSpace(open + 1)
        if scanner.byte(position) == UInt8(ascii: "]") { return position + 1 }
        var index = 0
        while true {
            position = element(&self, position, index)
            guard position >= 0 else { return position }
            position = scanner.skipSpace(position)
            let byte = scanner.byte(position)
            guard byte == UInt8(ascii: ",") else {
                return byte == UInt8(ascii: "]") ? position + 1 : JSONScanner.Failure.malformed
            }
            position = scanner.skipSpace(position + 1)
            index += 1
        }
    }

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

    func isName(_ open: Int, _ end: Int, _ isEscaped: Bool, _ name: String) -> Bool {
        if isEscaped {
            return JSONString.text(UnsafeBufferPointer(rebasing: text[open..<end]))
                .map { $0.utf8.elementsEqual(name.utf8) } ?? false
        }
        return name.utf8.elementsEqual(text[open + 1..<end - 1])
    }
}

/// What else a model says of its members: checks, what is required, what is secret.
extension BodyWalk {
    /// Whether a value may be read; notes what is required, secret, or fails a check.
    @inline(never)
    mutating func isAllowed(_ rule: MemberRule, _ start: Int, _ end: Int) -> Bool {
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
            reason: fault
        )
        return false
    }

    mutating func checkRequired(_ model: CompiledModel, _ seen: UInt64, at start: Int) {
        for (index, property) in model.reading.required.enumerated() where seen & 1 << UInt64(index) == 0 {
            notes.note(.requiredMissing, at: start, model: model.name, property: property)
        }
    }
}

/// The way to the objects that the rule maps.
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
