/// One declared member as shown by one payload.
struct ObservedMember: Sendable {
    /// The target of a relation.
    struct Link: Sendable, Equatable {
        var model: Int
        var arity: Arity?
        /// Whether the number 7 and the string "7" identify different objects of the target.
        var isStrict = false

        var isMany: Bool { arity == .many }
        var one: Link { Link(model: model, arity: .one, isStrict: isStrict) }
    }

    var value: JSONSlice
    /// Whether this is an object literal whose members are observed one by one; its own value is only that it is one.
    var isContainer = false
    /// Whether it may move into other responses; identities, keys and `modified` members are observed in any case.
    var isShared: Bool
    /// Whether only members of its value are declared: other values than objects and null stay with their documents.
    var isHolder = false
    var link: Link?
    /// Whether it replaces any other value, whatever members either has (`merge: replace`).
    var isWhole = false

    func agrees(with other: ObservedMember) -> Bool {
        if isContainer || other.isContainer { return isContainer && other.isContainer }
        return value.isEqual(to: other.value, as: link)
    }
}

/// Reads the payloads of one object with the current models.
struct ObjectReader {
    let models: Models
    /// The object's model; for a cluster, that of the base.
    let model: Int
    /// Versions of the object; they choose the models of clusters whose members a payload does not show.
    var known: [JSONSlice] = []

    func observed(_ value: JSONSlice, withRest: Bool = false) -> ObservedMembers {
        ObservedMembers(value, model: model, models: models, known: known, withRest: withRest)
    }

    /// The members that occur once in a payload; nil if it is damaged.
    func sound(_ payload: [UInt8]) -> [MemberPath: ObservedMember]? { JSONSlice(payload).map { observed($0).sound } }

    /// How new values of a member are merged with known ones; nil if it is not declared.
    func policy(of path: MemberPath) -> MergePolicy? { models.merge(of: path, model: model) }

    /// The value of the model's `modified` member among these.
    func stamp(in members: [MemberPath: ObservedMember]) -> ModificationTime? {
        models.compiled[model].reading.modifiedPaths.lazy.compactMap { members[MemberPath($0)] }.first.flatMap {
            ModificationTime($0.value)
        }
    }
}

/// The declared members in a payload.
struct ObservedMembers {
    private(set) var members: [MemberPath: ObservedMember] = [:]
    /// Members with the policy `keep`, `union` or `sum`, as shown here.
    private(set) var gathered: [MemberPath: Gathered] = [:]
    /// Members that fail their checks, and so are no observations.
    private(set) var quarantined: Set<MemberPath> = []
    /// Members that occur twice in one object, and so are no observations (law 6).
    private var repeated: Set<MemberPath> = []
    private let models: Models
    /// What else is known of the object; it chooses the models of clusters whose members a value does not show.
    private let known: [JSONSlice]
    /// Whether that has chosen another model than the one as which the body was taken apart.
    private let isOfKnownModel: Bool
    /// If requested, the members that belong to the response, and why.
    private(set) var rest: [(path: MemberPath, value: JSONSlice, standing: Provenance.Standing)]?

    /// The members that occur once.
    var sound: [MemberPath: ObservedMember] {
        guard !repeated.isEmpty else { return members }
        return members.filter { path, _ in !repeated.contains(path) && !repeated.contains(where: path.isWithin) }
    }

    /// A member for `GatheredValues`.
    struct Gathered {
        var value: JSONSlice
        var policy: MergePolicy
        var link: ObservedMember.Link?
    }

    /// Reads the object literal `value` as an object of the model with this index, or of the cluster's concrete model.
    ///
    /// - Parameter known: other versions of the object, which show what the value may not.
    init(_ value: JSONSlice, model: Int, models: Models, known: [JSONSlice] = [], withRest: Bool = false) {
        (self.models, self.known) = (models, known)
        rest = withRest ? [] : nil
        let own = models.concrete(of: model, for: value)
        let concrete = known.isEmpty ? own : models.concrete(of: model, for: value, else: known)
        isOfKnownModel = concrete != own
        let compiled = models.compiled[concrete]
        read(value, node: compiled.root, shared: compiled.sharesAll, at: .root)
        if compiled.asked >= 0 {
            let isOpen = models.isOpen(model, for: value, else: known)
            readAsked(value, node: isOpen ? compiled.candidates : compiled.asked, at: .root)
        }
    }

    /// `shared` is whether undeclared members move too (`share: all`, or within a declared property).
    private mutating func read(_ object: JSONSlice, node: Int, shared: Bool, at prefix: MemberPath) {
        let tree = models.tree
        object.forEachMember { name, _, range in
            // Most members are undeclared: comparing bytes rejects them before any text is created.
            let child = tree.child(of: node, spelled: name)
            guard child != nil || shared || rest != nil else { return }
            let path = prefix.appending(MemberPath(literal: name))
            let value = JSONSlice(object.text, range)
            if let child {
                read(value, child: child, shared: shared, at: path)
            } else if shared {
                add(ObservedMember(value: value, isShared: true), at: path)
            } else {
                rest?.append((path, value, .undeclared))
            }
        }
    }

    /// Reads the members by which the models of a cluster are chosen, or which may be properties as long as the model is
    /// not known; they move nowhere, unless they are properties.
    private mutating func readAsked(_ object: JSONSlice, node: Int, at prefix: MemberPath) {
        var asked: Set<MemberPath> = []
        object.forEachMember { name, _, range in
            guard let child = models.tree.child(of: node, spelled: name) else { return }
            let (path, value) = (prefix.appending(MemberPath(literal: name)), JSONSlice(object.text, range))
            let place = models.tree.nodes[child]
            let isContainer = place.hasChildren && value.kind == .object
            if place.isAsked || isContainer, members[path] == nil || asked.contains(path) {
                asked.insert(path)
                add(ObservedMember(value: value, isContainer: isContainer, isShared: false), at: path)
            }
            // A value that is observed as a whole contains the members.
            if members[path]?.isContainer == true { readAsked(value, node: child, at: path) }
        }
    }

    private mutating func read(_ value: JSONSlice, child: Int, shared: Bool, at path: MemberPath) {
        let node = models.tree.nodes[child]
        if node.isLocal {
            rest?.append((path, value, .local))
            return
        }
        if node.rule >= 0, let checked = models.rules[Int(node.rule)].checked, !Self.isSound(value, checked) {
            quarantined.insert(path)
            return
        }
        let link = node.relation >= 0 ? link(of: node) : nil
        let isWhole = node.merge == .replace
        guard isWhole || node.merge == .latest else {
            // A member that occurs twice is not gathered.
            let known = gathered.updateValue(Gathered(value: value, policy: node.merge, link: link), forKey: path)
            if known != nil { quarantined.insert(path) }
            return
        }
        let isShared = shared || node.isProperty
        let isHolder = !isShared && node.holdsProperty
        if let link {
            read(value, link: link, isWhole: isWhole, at: path)
        } else if node.hasChildren, value.kind == .object, !isWhole {
            let isMoved = isShared || isHolder
            add(ObservedMember(value: value, isContainer: true, isShared: isMoved, isHolder: isHolder), at: path)
            read(value, node: child, shared: isShared, at: path)
        } else if node.isIdentity, case .text = value.withBytes({ Identity.read($0) }) {
            // Each document spells an identity in its own way.
            add(ObservedMember(value: value, isShared: false), at: path)
        } else if isHolder, value.isNull {
            // Null in the middle of a key path is null at its end.
            add(ObservedMember(value: value, isShared: true, isHolder: true), at: path)
        } else if isShared || node.captures != 0 || node.isAsked {
            add(ObservedMember(value: value, isShared: isShared, isWhole: isShared && isWhole), at: path)
        } else {
            rest?.append((path, value, .undeclared))
        }
    }

    /// `isWhole` makes an embedded object count as one value.
    private mutating func read(_ value: JSONSlice, link: ObservedMember.Link, isWhole: Bool, at path: MemberPath) {
        // The objects in such a value were not taken apart, so that it does not show which they are.
        if isOfKnownModel, models.compiled[link.model].hasIdentity, value.bytes.contains(UInt8(ascii: "{")) { return }
        let isContainer = value.kind == .object && link.arity == .one
        if isContainer, isWhole, !models.compiled[link.model].hasIdentity {
            return add(ObservedMember(value: value, isShared: true), at: path)
        }
        add(ObservedMember(value: value, isContainer: isContainer, isShared: true, link: link), at: path)
        guard isContainer else { return }
        let known = known.compactMap { other in path.names.flatMap { other.value(at: $0[...]) } }
        let target = models.compiled[models.concrete(of: link.model, for: value, else: known)]
        // Members that belong to the response are not listed within embedded objects.
        let outer = rest
        rest = nil
        read(value, node: target.root, shared: target.sharesAll, at: path)
        rest = outer
    }

    private func link(of node: PathTree.Node) -> ObservedMember.Link {
        let model = Int(node.relation)
        return ObservedMember.Link(model: model, arity: node.arity, isStrict: models.compiled[model].distinguishesTypes)
    }

    private mutating func add(_ member: ObservedMember, at path: MemberPath) {
        if members.updateValue(member, forKey: path) != nil { repeated.insert(path) }
    }

    /// Whether a value passes its checks; references count as objects, which the upstream sent in their place.
    private static func isSound(_ value: JSONSlice, _ checked: ValueConversion) -> Bool {
        guard value.containsReference else { return checked.fault(in: value) == nil }
        let plain = Reference.plain(value.json) { _ in Array("{}".utf8) }
        return JSONSlice(plain).map { checked.fault(in: $0) == nil } ?? true
    }
}

/// The settled value of each declared member of one object.
struct ResolvedObject {
    private let members: [MemberPath: ObservedMember]
    let model: Int

    init(_ value: JSONSlice, model: Int, models: Models) {
        self.model = model
        members = ObservedMembers(value, model: model, models: models).sound
    }

    subscript(path: MemberPath) -> ObservedMember? { members[path] }
}

/// What one response shows of one object, at one place or several.
struct Sighting {
    let observation: Observation
    /// The observation of each member, except those on which the places disagree (law 6).
    private(set) var members: [MemberPath: KnownMembers.Settled.Observed] = [:]
    private(set) var contradicted: Set<MemberPath> = []
    /// By contribution, the members of its version.
    let versions: [[MemberPath: ObservedMember]]
    /// Whether it is the response to a write of this very object.
    let isWritten: Bool

    init?(_ contributions: [Contribution], _ reader: ObjectReader, lag: Lag) {
        guard let observation = contributions.first?.observation else { return nil }
        self.observation = observation
        isWritten = contributions.contains { $0.kind == .write }
        versions = contributions.map { reader.sound($0.payload) ?? [:] }
        for (contribution, version) in zip(contributions, versions) {
            let stamp = reader.stamp(in: version)
            let lo = contribution.lo(lag: lag)
            for (path, value) in version {
                if let known = members[path] {
                    if !known.value.agrees(with: value) { contradicted.insert(path) }
                    // A place of its own has more weight than an embedded one.
                    guard known.lo < lo else { continue }
                }
                members[path] = .init(
                    value: value,
                    lo: lo,
                    hi: observation.hi,
                    stamp: stamp,
                    kind: contribution.kind,
                    word: contribution.word,
                    source: observation.sequence
                )
            }
        }
        for path in contradicted { members = members.filter { $0.key != path && !$0.key.isWithin(path) } }
    }

    /// The members, each after the object that contains it.
    var outermostFirst: [(key: MemberPath, value: KnownMembers.Settled.Observed)] {
        members.sorted { $0.key.text.utf8.count < $1.key.text.utf8.count }
    }
}

extension [MemberPath: ObservedMember] {
    /// Sets a value that does not come from a response.
    mutating func put(_ value: [UInt8], at path: MemberPath) {
        guard let slice = JSONSlice(value) else { return }
        self[path] = ObservedMember(value: slice, isShared: false)
    }
}
