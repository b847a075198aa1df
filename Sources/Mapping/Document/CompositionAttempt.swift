/// One try at composing a document with what is known so far.
///
/// The pinned bytes are walked in order; only where a declared member is known at another value does the output depart
/// from them.
struct CompositionAttempt {
    let tree: PinTree
    let models: Models
    /// What was asked for; a pin of any other object shows its newest.
    let known: [ObjectName: KnownObject]
    /// The document's own; nil: newer than every mark.
    let observation: Observation?
    let lag: Lag
    /// Whether anything that the document shows is known to be gone.
    private let mayRemove: Bool

    var output: [UInt8] = []
    /// The objects that are shown where the document had pinned others, or none.
    var added: Set<ObjectName> = []
    /// Every object that is pinned, once that was asked for.
    private var pinned: Set<ObjectName>?
    /// By object, the members on which the document contradicts itself, once that was asked for.
    private var contradicted: [ObjectName: Set<MemberPath>] = [:]
    /// Whether the output departs from the bytes received.
    var isChanged = false
    /// Members whose literal stays where it came, by pin: they fail their checks, or the response contradicts itself.
    var kept: [Int: Set<MemberPath>] = [:]
    /// From when on each doubt that the document shows is to be settled by asking.
    var doubts: Set<Int64> = []
    /// Where in the skeleton objects begin whose members are the document's objects.
    let keyed: [Int]
    /// By text, the objects in it whose members are objects keyed by name.
    var keyedObjects: [Int: [KeyedObject]] = [:]
    /// Objects to be asked for before trying again.
    var missing: Set<ObjectName> = []
    /// Why the result is not wholly known; the first reason found.
    private(set) var reason: String?
    /// How many bytes may still be looked at or written.
    private(set) var effort: Int
    /// The style of each list that has been asked for it, by where it stands.
    var styles: [Spot: NewElementStyle] = [:]
    /// How the document separates elements, once that was asked for.
    var separatorStyle: SeparatorStyle?

    /// A value within a pinned text, which gives the shape.
    struct Shape {
        var text: Int
        var value: JSONSlice

        func at(_ value: JSONSlice) -> Shape { Shape(text: text, value: value) }
    }

    /// Where a value stands.
    struct Spot: Hashable {
        var text: Int
        var start: Int

        init(_ shape: Shape) {
            text = shape.text
            start = shape.value.range.lowerBound
        }
    }

    /// - Parameter effort: how many bytes may be looked at or written, all in all.
    init(
        tree: PinTree,
        keyed: [Int],
        models: Models,
        known: [ObjectName: KnownObject],
        observation: Observation?,
        lag: Lag,
        effort: Int
    ) {
        self.tree = tree
        self.keyed = keyed
        self.models = models
        self.known = known
        self.observation = observation
        self.lag = lag
        self.effort = effort
        mayRemove = observation != nil && known.values.contains(where: \.isGone)
    }

    mutating func run() {
        output.reserveCapacity(tree.pins.reduce(tree.skeleton.count) { $0 + $1.count })
        copy(PinTree.skeleton, 0..<tree.skeleton.count)
    }

    mutating func fail(_ reason: String) {
        if self.reason == nil { self.reason = reason }
    }

    /// Accounts for bytes to be looked at or written; false, and the attempt has failed, when that is too much.
    ///
    /// Objects that refer to themselves, shown nested, would multiply at each level; a list of many new elements has each
    /// of them written in a shape of any size.
    mutating func spend(_ bytes: Int) -> Bool {
        effort -= bytes
        if effort < 0 { fail("the document would grow out of all proportion") }
        return reason == nil
    }

    // MARK: Pinned bytes

    /// Copies a stretch of a pinned text, each object in it at its own newest.
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
            writePin(place)
            position = place.range.upperBound
        }
        for cut in cuts {
            output.append(contentsOf: source[position..<cut.lowerBound])
            position = cut.upperBound
        }
        output.append(contentsOf: source[position..<range.upperBound])
    }

    private mutating func writePin(_ place: PinTree.Place) {
        let payload = tree.pins[place.pin]
        guard spend(payload.count) else { return }
        guard let name = tree.looked[place.pin] else { return copy(place.pin, 0..<payload.count) }
        switch fate(of: name, shownAs: payload, isEmbedded: tree.isEmbedded(place.pin)) {
        case .shown: break
        case .stale: return fail("a write may have changed \(name) since the document was observed")
        case .gone: return fail("\(name) is deleted")
        case .removed: return fail("\(name) is deleted, and does not stand in a list")
        }
        guard let object = known[name], let resolved = object.resolved, object.payload != payload || object.isInDoubt,
            let value = JSONSlice(payload)
        else { return copy(place.pin, 0..<payload.count) }
        keepLiterals(of: place.pin, showing: name, value, object, resolved)
        write(Shape(text: place.pin, value: value), showing: resolved, name: name, isStrict: false)
    }

    /// Notes which literals of a pin stay as they are: what fails its checks, and what the document itself shows otherwise
    /// elsewhere, as long as nothing newer is known (laws 1 and 6).
    private mutating func keepLiterals(
        of pin: Int,
        showing name: ObjectName,
        _ value: JSONSlice,
        _ object: KnownObject,
        _ resolved: ResolvedObject
    ) {
        var literals: Set<MemberPath> = []
        if !models.plain[resolved.model] {
            literals = ObservedMembers(value, model: resolved.model, models: models).quarantined
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

    /// Whether an object is pinned anywhere.
    mutating func isPinned(_ name: ObjectName) -> Bool {
        let names = pinned ?? Set(tree.pins.indices.compactMap { [tree] in tree.name(of: $0) })
        pinned = names
        return names.contains(name)
    }

    /// The pin that a reference literal within a pinned text stands for.
    func pin(at shape: Shape) -> PinTree.Place? {
        tree.places(in: shape.text, shape.value.range).first { $0.range == shape.value.range }
    }
}
