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
    let lag: Int64
    /// Whether anything that the document shows is known to be gone.
    private let mayRemove: Bool

    var output: [UInt8] = []
    private(set) var objects: Set<ObjectName> = []
    /// Whether the output departs from the bytes received.
    var isChanged = false
    /// Members of pins that fail their checks, by pin: such a literal stays where it came.
    private var quarantined: [Int: Set<MemberPath>] = [:]
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
        lag: Int64,
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
        objects.insert(place.name)
        let payload = tree.pins[place.pin]
        guard spend(payload.count) else { return }
        switch fate(of: place.name, shownAs: payload) {
        case .shown: break
        case .stale: return fail("a write may have changed \(place.name) since the document was observed")
        case .gone: return fail("\(place.name) is deleted")
        case .removed: return fail("\(place.name) is deleted, and does not stand in a list")
        }
        guard let object = known[place.name], let resolved = object.resolved, object.only != payload,
            let value = JSONSlice(payload)
        else { return copy(place.pin, 0..<payload.count) }
        if !models.plain[resolved.model] {
            let failing = ObservedMembers(value, model: resolved.model, models: models).quarantined
            if !failing.isEmpty { quarantined[place.pin] = failing }
        }
        write(Shape(text: place.pin, value: value), showing: resolved, name: place.name, isStrict: false)
    }

    /// The pin that a reference literal within a pinned text stands for.
    func pin(at shape: Shape) -> PinTree.Place? {
        tree.places(in: shape.text, shape.value.range).first { $0.range == shape.value.range }
    }

    // MARK: Objects

    /// Writes an object in the shape of another, which may be itself at an earlier time.
    ///
    /// `isStrict`: the shape is a stranger's, so that every member of it must be known of this object (law 6); else what
    /// is not known newer stays as pinned.
    mutating func write(
        _ shape: Shape,
        showing resolved: ResolvedObject,
        name: ObjectName?,
        isStrict: Bool,
        at prefix: MemberPath = .root
    ) {
        guard spend(shape.value.range.count) else { return }
        let members = shape.value.members
        var repeated: Set<MemberPath> = []
        var seen: Set<MemberPath> = []
        for member in members where !seen.insert(member.name).inserted { repeated.insert(member.name) }
        var position = shape.value.range.lowerBound
        for member in members {
            guard reason == nil else { return }
            output.append(contentsOf: shape.value.text[position..<member.value.range.lowerBound])
            position = member.value.range.upperBound
            let path = prefix.appending(member.name)
            if repeated.contains(member.name) {
                if isStrict { return fail("\(path.text) occurs twice in the shape for \(describe(name))") }
                copy(shape.text, member.value.range)
            } else {
                write(shape.at(member.value), member: path, of: resolved, name: name, isStrict: isStrict)
            }
        }
        output.append(contentsOf: shape.value.text[position..<shape.value.range.upperBound])
    }

    private mutating func write(
        _ shape: Shape,
        member path: MemberPath,
        of resolved: ResolvedObject,
        name: ObjectName?,
        isStrict: Bool
    ) {
        if !isStrict,
            quarantined[shape.text]?.contains(path) == true
                || resolved.isKept(path, in: tree.text(shape.text), of: observation?.sequence)
        {
            return copy(shape.text, shape.value.range)
        }
        guard case .value(let newest) = resolved[path], mayShow(newest, at: path, of: resolved, isStrict: isStrict)
        else {
            if isStrict { return fail("\(path.text) is not known of \(describe(name))") }
            return copy(shape.text, shape.value.range)
        }
        if newest.isContainer {
            writeContainer(newest, shape, member: path, of: resolved, name: name, isStrict: isStrict)
        } else if shape.value.kind == .object, newest.link?.arity == .one {
            // Pinned as an embedded literal; now null, or an object of its own.
            write(related: newest, shape)
        } else if ObservedMember(value: shape.value, isShared: true, link: newest.link).agrees(with: newest) {
            copy(shape.text, shape.value.range)
        } else if newest.link?.isMany == true {
            writeList(newest, shape)
        } else if newest.link?.arity == .keyed {
            writeKeyed(newest, shape)
        } else if newest.link != nil {
            write(related: newest, shape)
        } else if newest.value.containsReference {
            fail("\(path.text) of \(describe(name)) now holds objects that no model relates to it")
        } else {
            writeLiteral(newest.value)
        }
    }

    /// Writes a value that holds no objects in place of the pinned one.
    mutating func writeLiteral(_ value: JSONSlice) {
        guard spend(value.range.count) else { return }
        isChanged = true
        output.append(contentsOf: value.bytes)
    }

    /// Shared members move; an identity is shown wherever its object is.
    private func mayShow(
        _ newest: ObservedMember,
        at path: MemberPath,
        of resolved: ResolvedObject,
        isStrict: Bool
    ) -> Bool {
        newest.isShared || newest.isContainer
            || isStrict && models.compiled[resolved.model].identityPaths.contains { MemberPath($0) == path }
    }

    private mutating func writeContainer(
        _ newest: ObservedMember,
        _ shape: Shape,
        member path: MemberPath,
        of resolved: ResolvedObject,
        name: ObjectName?,
        isStrict: Bool
    ) {
        if shape.value.kind == .object {
            write(shape, showing: resolved, name: name, isStrict: isStrict, at: path)
        } else if let place = pin(at: shape), let child = JSONSlice(tree.pins[place.pin]) {
            // Pinned as an object of its own, now embedded without an identity.
            isChanged = true
            write(
                Shape(text: place.pin, value: child),
                showing: resolved,
                name: name,
                isStrict: true,
                at: path
            )
        } else if isStrict || newest.isShared {
            fail("\(path.text) of \(describe(name)) is now an object, and the document does not say in which shape")
        } else {
            copy(shape.text, shape.value.range)
        }
    }

    func describe(_ name: ObjectName?) -> String { name?.description ?? "an embedded object" }

    // MARK: Other objects

    /// Writes an object in a shape that is not its own.
    mutating func expand(_ name: ObjectName, in shape: Shape) {
        isChanged = true
        guard let object = known[name] else {
            missing.insert(name)
            return
        }
        guard let resolved = object.resolved else { return fail("nothing current is known of \(name)") }
        objects.insert(name)
        write(shape, showing: resolved, name: name, isStrict: true)
    }

    /// The object literal that a pinned value shows: itself, or the payload of the pin it refers to.
    func objectShape(_ shape: Shape) -> Shape? {
        if shape.value.kind == .object { return shape }
        guard let place = pin(at: shape), let payload = JSONSlice(tree.pins[place.pin]) else { return nil }
        return Shape(text: place.pin, value: payload)
    }

    /// Writes the newest value of a relation to one object where the pinned one differs.
    private mutating func write(related newest: ObservedMember, _ shape: Shape) {
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
            isChanged = true
            appendBare(value, target.identity.text, link, like: shape.value)
        } else {
            fail("a relation now points to an object, and the document does not say in which shape")
        }
    }

    /// The object that a value of a relation points to; a bare identity is one of the declared model.
    func name(of target: JSONSlice.Target, _ link: ObservedMember.Link) -> ObjectName {
        target.name
            ?? ObjectName(model: models.compiled[link.model].objectName, identity: target.identity.text)
    }

    /// Writes a bare identity: in its own spelling if it has one, else of the kind that stands beside it.
    mutating func appendBare(
        _ value: JSONSlice,
        _ identity: String,
        _ link: ObservedMember.Link,
        like pinned: JSONSlice
    ) {
        if !value.isReference { return output.append(contentsOf: value.bytes) }
        if link.isStrict { return Reference.appendStrict(identity, to: &output) }
        Reference.appendBare(identity, asNumber: pinned.kind == .number && Reference.isNumber(identity), to: &output)
    }
}
