/// One attempt to compose a document from the objects known so far.
///
/// It walks the pinned bytes in order. The output departs from them only where a declared member has another value.
struct CompositionAttempt {
    let tree: PinTree
    let models: Models
    /// The document's own observation; nil means newer than every mark.
    let observation: Observation?
    let lag: Lag
    /// The offsets in the skeleton of objects whose members are the document's objects.
    let keyed: [Int]
    /// The parameters of the document's URL; one that has the name of a member may select the objects shown.
    let filters: QueryParameters
    /// Whether objects of which not all is known are kept as received, instead of giving up.
    let isPartialWanted: Bool
    /// How many bytes may still be read or written.
    var effort: Int
    /// The objects whose state was requested so far; a pin of any other already shows its newest values.
    var known: [ObjectName: KnownObject] = [:]
    /// The observations whose values may not be put in.
    var hidden: Set<Int64> = []
    /// Whether the document shows any deleted object.
    var mayRemove = false

    var output: [UInt8] = []
    /// The objects shown where the document pinned others, or none.
    var added: Set<ObjectName> = []
    /// The observations whose values are in the output in place of those received.
    var sources: Set<Int64> = []
    /// Whether the output departs from the bytes received in the object that is being written, objects within it aside.
    var hasOwnChange = false
    /// The same for the objects that have been written.
    var hasChangedObjects = false
    var isChanged: Bool { hasOwnChange || hasChangedObjects }
    /// By pin, the members whose literal is kept: they fail their checks, or the response contradicts itself on them.
    var kept: [Int: Set<MemberPath>] = [:]
    /// For each doubtful member that the document shows, the time from which it is to be settled by fetching.
    var doubts: Set<Int64> = []
    /// Objects whose state is needed for another attempt.
    var missing: Set<ObjectName> = []
    /// The first reason why the result is not fully known.
    var reason: String?
    /// The same, if the objects concerned are as received.
    var shortfall: String?

    // Computed on first use:

    /// The objects of all pins.
    lazy var pinned = Set(tree.pins.indices.compactMap { [tree] in tree.name(of: $0) })
    /// By object, the members on which the document contradicts itself.
    var contradicted: [ObjectName: Set<MemberPath>] = [:]
    /// By text, the containers of objects keyed by name.
    var keyedObjects: [Int: [KeyedObject]] = [:]
    /// The style of new elements in each list, by its text and its position there.
    var styles: [[Int]: NewElementStyle] = [:]
    var separatorStyle: SeparatorStyle?

    typealias Link = ObservedMember.Link

    /// A value within a pinned text, used as the shape of the output.
    struct Shape {
        var text: Int
        var value: JSONSlice

        func at(_ value: JSONSlice) -> Shape { Shape(text: text, value: value) }
    }

    mutating func run() {
        output.reserveCapacity(tree.pins.reduce(tree.skeleton.count) { $0 + $1.count })
        copy(PinTree.skeleton, 0..<tree.skeleton.count)
    }

    mutating func fail(_ reason: String) { if self.reason == nil { self.reason = reason } }

    /// Fails because of a change to a form of which the document has no example.
    mutating func failUnshown(_ change: String) {
        fail("\(change), and this document does not show which members to write for it")
    }

    mutating func use(_ sources: Set<Int64>) {
        self.sources.formUnion(sources)
        if !hidden.isDisjoint(with: sources) { fail("newer values are known only for requests with other fields") }
    }

    /// Charges for bytes to be read or written; returns false, and the attempt fails, when the limit is exceeded.
    ///
    /// Objects that refer to themselves would multiply, and every new element of a long list could have a large shape.
    mutating func spend(_ bytes: Int) -> Bool {
        effort -= bytes
        if effort < 0 { fail("the updated document would be too large") }
        return reason == nil
    }

    // MARK: Pinned bytes

    mutating func copy(_ shape: Shape) { copy(shape.text, shape.value.range) }

    /// Copies a stretch of a pinned text, with each object in it at its newest values.
    mutating func copy(_ text: Int, _ range: Range<Int>) {
        let source = tree.text(text)
        let places = tree.places(in: text, range)
        var cuts = mayRemove ? cuts(for: places, in: text, range)[...] : []
        var position = range.lowerBound
        for place in places {
            while let cut = cuts.first, cut.upperBound <= place.range.lowerBound { cuts.removeFirst() }
            let cut = cuts.first.flatMap { $0.contains(place.range.lowerBound) ? $0 : nil }
            if position == cut?.upperBound { continue }
            output.append(contentsOf: source[position..<(cut ?? place.range).lowerBound])
            position = (cut ?? place.range).upperBound
            guard cut == nil else { continue }
            if isPartialWanted { writePinOrKeep(place) } else { writePin(place) }
        }
        output.append(contentsOf: source[position..<range.upperBound])
    }

    /// Writes a pin's newest values or, if not all are known, the pin as received; objects within it have their own.
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
            if !hidden.isDisjoint(with: object.state.sources) { doubts.insert(.max) }
        }
        copy(place.pin, 0..<tree.pins[place.pin].count)
    }

    private mutating func writePin(_ place: PinTree.Place) {
        let payload = tree.pins[place.pin]
        guard spend(payload.count) else { return }
        guard let object = tree.looked[place.pin].flatMap({ known[$0] }) else {
            return copy(place.pin, 0..<payload.count)
        }
        let name = object.name
        switch fate(of: object, shownAs: payload, isEmbedded: tree.isEmbedded(place.pin)) {
        case .shown: break
        case .outdated:
            let reason = "a write may have changed \(name) since the document was observed"
            // With the upstream away it is shown as before the write, which is no older than this document (law 3).
            // Members that no model declares are as received.
            guard isPartialWanted, object.state.mark?.isReused == false else { return fail(reason) }
            shortfall = shortfall ?? reason
        case .gone: return fail("\(name) is deleted")
        case .removed: return fail("\(name) is deleted, and is not an element of a list")
        }
        let write = unseenWrite(to: object, shownBy: place.pin)
        guard let resolved = object.resolved,
            // What was known before a write is no longer known.
            object.isCurrent || write != nil,
            object.state.payload != payload || !object.doubts.isEmpty || object.state.mark?.isTombstone == false,
            let value = JSONSlice(payload)
        else { return copy(place.pin, 0..<payload.count) }
        if let observation, let mark = object.state.mark, mark.isTombstone, observation.start > mark.time {
            // It may lag behind the deletion, or show what has taken the deleted object's place.
            doubts.insert(mark.time + lag.lists)
        }
        if write != nil, object.state.mark?.isReused == true {
            // A response that may be from before the deletion is not merged, so no write puts its members in doubt.
            let shown = ObservedMembers(value, model: resolved.model, models: models).sound
            let unknown = shown.first { $0.value.isShared && !$0.value.isContainer && resolved[$0.key] == nil }
            if let member = unknown?.key {
                return fail("\(member) of \(name) may be as it was before the object was deleted")
            }
        }
        let shape = Shape(text: place.pin, value: value)
        keepLiterals(of: object, resolved, in: shape)
        let isOuterChanged = hasOwnChange
        hasOwnChange = false
        self.write(shape, showing: Subject(resolved: resolved, object: object, isStrict: false))
        hasChangedObjects = hasChangedObjects || hasOwnChange
        hasOwnChange = isOuterChanged
    }

    /// Records which literals of a pin stay: those that fail their checks, and those on which the document contradicts
    /// itself as long as nothing newer is known (laws 1 and 6).
    private mutating func keepLiterals(of object: KnownObject, _ resolved: ResolvedObject, in shape: Shape) {
        var literals: Set<MemberPath> = []
        if !models.plain[resolved.model] {
            let versions = object.state.payload.flatMap { JSONSlice($0) }.map { [$0] } ?? []
            literals = ObservedMembers(shape.value, model: resolved.model, models: models, known: versions).quarantined
        }
        for path in contradictions(on: object.name) {
            if let observation, object.state.lo(of: path, lag: lag) > observation.end { continue }
            literals.insert(path)
        }
        if !literals.isEmpty { kept[shape.text] = literals }
    }

    private mutating func contradictions(on name: ObjectName) -> Set<MemberPath> {
        if let known = contradicted[name] { return known }
        let payloads = Set(zip(tree.looked, tree.pins).lazy.filter { $0.0 == name }.map(\.1))
        let disagreements = ObjectState.disagreements(among: Array(payloads), model: name.model, models: models)
        let found = Set(disagreements.map { MemberPath(pointer: $0.member) })
        contradicted[name] = found
        return found
    }

    /// The pin of a reference literal within a pinned text.
    func pin(at shape: Shape) -> PinTree.Place? {
        tree.places(in: shape.text, shape.value.range).first { $0.range == shape.value.range }
    }
}
