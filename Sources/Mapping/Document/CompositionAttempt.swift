/// One attempt to compose a document from the objects known so far.
///
/// It walks the pinned bytes in order. The output departs from them only where a declared member has another known
/// value.
struct CompositionAttempt {
    let tree: PinTree
    let models: Models
    /// The states requested so far; a pin of any other object already shows its newest values.
    let known: [ObjectName: KnownObject]
    /// The document's own observation; nil means newer than every mark.
    let observation: Observation?
    let lag: Lag
    /// Whether the document shows any deleted object.
    let mayRemove: Bool
    /// The offsets in the skeleton of objects whose members are the document's objects.
    let keyed: [Int]
    /// The parameters of the document's URL; one that has the name of a member may select the objects shown.
    let filters: QueryParameters
    /// Whether objects of which not all is known are kept as received, instead of giving up.
    let isPartialWanted: Bool
    /// The observations whose values may not be put in.
    let hidden: Set<Int64>
    /// How many bytes may still be read or written.
    var effort: Int

    var output: [UInt8] = []
    /// The objects shown where the document pinned others, or none.
    var added: Set<ObjectName> = []
    /// The observations whose values are in the output in place of those received.
    var sources: Set<Int64> = []
    /// The objects of all pins, computed on first use.
    var pinned: Set<ObjectName>?
    /// By object, the members on which the document contradicts itself; computed on first use.
    var contradicted: [ObjectName: Set<MemberPath>] = [:]
    /// Whether the output departs from the bytes received in the object that is being written, objects within it aside.
    var hasOwnChange = false
    /// The same for the objects that have been written.
    var hasChangedObjects = false
    /// Whether the output departs from the bytes received.
    var isChanged: Bool { hasOwnChange || hasChangedObjects }
    /// By pin, the members whose literal is kept: they fail their checks, or the response contradicts itself about
    /// them.
    var kept: [Int: Set<MemberPath>] = [:]
    /// For each doubtful member that the document shows, the time from which it is to be settled by fetching.
    var doubts: Set<Int64> = []
    /// By text, the containers of objects keyed by name.
    var keyedObjects: [Int: [KeyedObject]] = [:]
    /// Objects whose state is needed for another attempt.
    var missing: Set<ObjectName> = []
    /// The first reason why the result is not fully known.
    var reason: String?
    /// The same, if the objects concerned are as received.
    var shortfall: String?
    /// The style of new elements in each list, by the list's position; computed on first use.
    var styles: [Spot: NewElementStyle] = [:]
    /// How the document separates elements; computed on first use.
    var separatorStyle: SeparatorStyle?

    /// A value within a pinned text, used as the shape of the output.
    struct Shape {
        var text: Int
        var value: JSONSlice

        func at(_ value: JSONSlice) -> Shape { Shape(text: text, value: value) }
    }

    /// The position of a value.
    struct Spot: Hashable {
        var text: Int
        var start: Int

        init(_ shape: Shape) {
            text = shape.text
            start = shape.value.range.lowerBound
        }
    }

    mutating func run() {
        output.reserveCapacity(tree.pins.reduce(tree.skeleton.count) { $0 + $1.count })
        copy(PinTree.skeleton, 0..<tree.skeleton.count)
    }

    mutating func fail(_ reason: String) { if self.reason == nil { self.reason = reason } }

    /// Notes whose values are put in.
    mutating func use(_ sources: Set<Int64>) {
        self.sources.formUnion(sources)
        if !hidden.isDisjoint(with: sources) { fail("newer values are known only for requests with other fields") }
    }

    /// Charges for bytes to be read or written.
    ///
    /// Returns false, and the attempt fails, when the limit is exceeded. Objects that refer to themselves would
    /// otherwise multiply at each level of nesting, and every new element of a long list could be written in a large
    /// shape.
    mutating func spend(_ bytes: Int) -> Bool {
        effort -= bytes
        if effort < 0 { fail("the updated document would be too large") }
        return reason == nil
    }

    // MARK: Pinned bytes

    /// Copies a stretch of a pinned text, with each object in it at its newest values.
    mutating func copy(_ text: Int, _ range: Range<Int>) {
        let source = tree.text(text)
        let places = tree.places(in: text, range)
        var cuts = mayRemove ? cuts(for: places, in: text, range)[...] : []
        var position = range.lowerBound
        for place in places {
            while let cut = cuts.first, cut.upperBound <= place.range.lowerBound {
                output.append(contentsOf: source[position..<cut.lowerBound])
                position = cut.upperBound
                cuts.removeFirst()
            }
            if let cut = cuts.first, cut.contains(place.range.lowerBound) { continue }
            output.append(contentsOf: source[position..<place.range.lowerBound])
            if isPartialWanted { writePinOrKeep(place) } else { writePin(place) }
            position = place.range.upperBound
        }
        for cut in cuts {
            output.append(contentsOf: source[position..<cut.lowerBound])
            position = cut.upperBound
        }
        output.append(contentsOf: source[position..<range.upperBound])
    }

    /// Writes a pin's newest values or, if they are not all known, the pin as received; objects within it have their own.
    private mutating func writePinOrKeep(_ place: PinTree.Place) {
        let (count, changes, former) = (output.count, (hasOwnChange, hasChangedObjects), (added, sources, doubts))
        writePin(place)
        // Past the limit there is no room for another attempt.
        guard let reason, effort >= 0 else { return }
        shortfall = shortfall ?? reason
        self.reason = nil
        output.removeSubrange(count...)
        (hasOwnChange, hasChangedObjects) = changes
        (added, sources, doubts) = former
        // Another response may have shown a newer value than the one received here.
        if let name = tree.looked[place.pin], let object = known[name] {
            doubts.formUnion(object.doubts.values)
            // It has, for requests with other fields: asking settles nothing for this one.
            if !hidden.isDisjoint(with: object.sources) { doubts.insert(.max) }
        }
        copy(place.pin, 0..<tree.pins[place.pin].count)
    }

    private mutating func writePin(_ place: PinTree.Place) {
        let payload = tree.pins[place.pin]
        guard spend(payload.count) else { return }
        guard let name = tree.looked[place.pin] else { return copy(place.pin, 0..<payload.count) }
        switch fate(of: name, shownAs: payload, isEmbedded: tree.isEmbedded(place.pin)) {
        case .shown: break
        case .stale:
            let reason = "a write may have changed \(name) since the document was observed"
            // Members that no model declares are as before the write; with the upstream away, the others are shown as known.
            guard isPartialWanted, known[name]?.isCurrent == true, known[name]?.mark?.isReused == false else {
                return fail(reason)
            }
            shortfall = shortfall ?? reason
        case .gone: return fail("\(name) is deleted")
        case .removed: return fail("\(name) is deleted, and is not an element of a list")
        }
        guard let object = known[name], let resolved = object.resolved,
            // What was known before a write is no longer known.
            object.isCurrent || unseenWrite(to: name, shownBy: place.pin) != nil,
            object.payload != payload || object.isInDoubt || object.isUnseenInPart, let value = JSONSlice(payload)
        else { return copy(place.pin, 0..<payload.count) }
        if let observation, let mark = object.mark, mark.isTombstone, observation.start > mark.time {
            // It may lag behind the deletion, or show what has taken the deleted object's place.
            doubts.insert(mark.time + lag.lists)
        }
        if let member = memberFromBeforeDeletion(of: place.pin, showing: name, value, object, resolved) {
            return fail("\(member) of \(name) may be as it was before the object was deleted")
        }
        keepLiterals(of: place.pin, showing: name, value, object, resolved)
        let isOuterChanged = hasOwnChange
        hasOwnChange = false
        write(Shape(text: place.pin, value: value), showing: resolved, name: name, isStrict: false)
        hasChangedObjects = hasChangedObjects || hasOwnChange
        hasOwnChange = isOuterChanged
    }

    /// A declared member that a pin shows, that is not known, and that may be from before its object was deleted and made again.
    ///
    /// Of a response that may be from before the deletion nothing is merged, so that no write puts such a member in doubt.
    private func memberFromBeforeDeletion(
        of pin: Int,
        showing name: ObjectName,
        _ value: JSONSlice,
        _ object: KnownObject,
        _ resolved: ResolvedObject
    ) -> MemberPath? {
        guard object.mark?.isReused == true, unseenWrite(to: name, shownBy: pin) != nil else { return nil }
        let shown = ObservedMembers(value, model: resolved.model, models: models).sound
        return shown.first { $0.value.isShared && !$0.value.isContainer && resolved[$0.key] == nil }?.key
    }

    /// Records which literals of a pin stay as they are: values that fail their checks, and values on which the
    /// document contradicts itself as long as nothing newer is known (laws 1 and 6).
    private mutating func keepLiterals(
        of pin: Int,
        showing name: ObjectName,
        _ value: JSONSlice,
        _ object: KnownObject,
        _ resolved: ResolvedObject
    ) {
        var literals: Set<MemberPath> = []
        if !models.plain[resolved.model] {
            let versions = object.payload.flatMap { JSONSlice($0) }.map { [$0] } ?? []
            literals = ObservedMembers(value, model: resolved.model, models: models, known: versions).quarantined
        }
        for path in contradictions(on: name) {
            if let observation, object.lo(of: path, lag: lag) > observation.end { continue }
            literals.insert(path)
        }
        if !literals.isEmpty { kept[pin] = literals }
    }

    /// The members on which the document contradicts itself about an object.
    private mutating func contradictions(on name: ObjectName) -> Set<MemberPath> {
        if let known = contradicted[name] { return known }
        let pins = tree.looked.indices.filter { [tree] in tree.looked[$0] == name }
        let payloads = Set(pins.map { [tree] in tree.pins[$0] })
        let found = ObjectState.disagreements(among: Array(payloads), model: name.model, models: models)
        contradicted[name] = Set(found.map { MemberPath(pointer: $0.member) })
        return contradicted[name] ?? []
    }

    /// Whether any pin shows the object.
    mutating func isPinned(_ name: ObjectName) -> Bool {
        let names = pinned ?? Set(tree.pins.indices.compactMap { [tree] in tree.name(of: $0) })
        pinned = names
        return names.contains(name)
    }

    /// The pin of a reference literal within a pinned text.
    func pin(at shape: Shape) -> PinTree.Place? {
        tree.places(in: shape.text, shape.value.range).first { $0.range == shape.value.range }
    }

    /// Writes a relation to objects keyed by name whose newest value differs from the pinned one.
    ///
    /// An object that keeps its key keeps its pin. A new one takes the shape of the others if they share one.
    mutating func writeKeyed(_ newest: ObservedMember, _ shape: Shape) {
        guard let link = newest.link else { return }
        guard newest.value.kind == .object else {
            guard newest.value.kind != .array, !newest.value.containsReference else {
                return fail("objects keyed by name are now something else")
            }
            return writeLiteral(newest.value)
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
        guard newest.value.kind == .array else { return writeLone(newest.value) }
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

    /// Writes null or another plain value in place of a list.
    private mutating func writeLone(_ value: JSONSlice) {
        guard value.kind != .object, !value.containsReference else {
            return fail("a list of objects is now a single object")
        }
        writeLiteral(value)
    }

    /// The style of new elements in a container, computed once.
    mutating func styleOfNew(in container: Shape, _ pinned: @autoclosure () -> [JSONSlice]) -> NewElementStyle {
        let spot = Spot(container)
        if let known = styles[spot] { return known }
        let found = style(of: pinned().map(container.at))
        styles[spot] = found
        return found
    }

    /// The style that elements have in common, for a new element beside them.
    mutating func style(of siblings: [Shape]) -> NewElementStyle {
        // Null shows no style.
        let siblings = siblings.filter { $0.value.target() != nil || $0.value.kind == .object }
        if let first = siblings.first, siblings.allSatisfy({ $0.value.target()?.isBare == true }) {
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
            write(shape, showing: shown, name: nil, isStrict: true)
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
    /// As an object with the members of this one.
    case object(CompositionAttempt.Shape)
    /// Unknown: the other elements give no single style.
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

/// Writes another object in place of the pinned one, as the value of a relation.
extension CompositionAttempt {
    /// Writes an object in the shape of another.
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
        use(object.sources)
        write(shape, showing: resolved, name: name, isStrict: true)
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
            guard !value.containsReference, value.kind != .array, value.kind != .object else {
                return fail("a relation to one object now holds something else")
            }
            return writeLiteral(value)
        }
        if let inner = objectShape(shape) {
            expand(name(of: target, link), in: inner)
        } else if let pinned = shape.value.target(), pinned.isBare {
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
        Reference.appendBare(identity, asNumber: pinned.kind == .number && Reference.isNumber(identity), to: &output)
    }
}
