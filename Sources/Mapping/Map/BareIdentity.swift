/// What a bare identity in the place of a model's object says.
struct BareIdentity: Sendable {
    /// The name that the model's objects have in the store.
    let objectName: String
    /// Whether the number 7 and the string "7" name different objects.
    let isStrict: Bool
    /// The key paths of the identity in an object, in every spelling.
    let paths: [[String]]

    /// Nil where one value does not identify an object: the identity has several parts, or stands around the object.
    init?(_ model: CompiledModel) {
        let identity = model.reading.identity
        guard identity.count == 1, case .member(let paths, _) = identity[0] else { return nil }
        (objectName, isStrict, self.paths) = (model.objectName, model.distinguishesTypes, paths)
    }

    /// The object that a JSON value names; nil if it is no identity.
    func name(_ literal: UnsafeBufferPointer<UInt8>) -> ObjectName? {
        guard case .text(let text) = Identity.read(literal, isStrict: isStrict) else { return nil }
        return ObjectName(model: objectName, identity: text)
    }

    /// The identity of an object, as it is spelled there.
    func literal(in object: [UInt8]) -> [UInt8]? {
        guard let object = JSONSlice(object) else { return nil }
        return paths.lazy.compactMap { object.value(at: $0[...]) }.first.map { Array($0.bytes) }
    }
}

extension MapRun {
    /// How many objects a body may name to have them shown.
    static let maximumNamed = 1_000
    /// Past so many bytes of the view, no more objects are put in: one object may be named very often.
    static let maximumExpanded = 4 << 20

    /// Writes a bare identity, or the object that it names, where that is known: one level deep.
    ///
    /// What is spelled otherwise than in the object stays, or nobody could write it back as it was.
    mutating func bare(_ value: Value, as index: Int, position: Int?, key: Value?, mask: MemberMask) {
        guard !isWithinNamed, let identity = plan.models[index].bare, let name = withBytes(value, identity.name) else {
            return appendLiteral(value)
        }
        if named.count < Self.maximumNamed { named.insert(name) }
        guard let json = known[name], identity.literal(in: json) == bytes(value),
            expansions < Self.maximumExpansions, output.count < Self.maximumExpanded,
            frames.count < Self.maximumNesting, let object = make(json, of: nil)
        else { return appendLiteral(value) }
        expansions += 1
        synthetic.append(outputPointer)
        isWithinNamed = true
        self.object(object, as: index, position: position, key: key, mask: mask)
        isWithinNamed = false
        documents.removeLast()
    }
}

extension UnmapRun {
    /// Whether an object is shown in the place of its bare identity.
    func isNamed(_ value: Value) -> Bool {
        guard let synthetic, kind(value) == .object else { return false }
        return pointer(value).map { synthetic.contains($0) } ?? false
    }

    /// Writes the bare identity of an object that is shown in the place of it.
    mutating func bare(_ value: Value, as index: Int, into node: Int) throws(UnmapError) {
        let model = plan.models[index]
        let whole = builder.makeDetached()
        let identity = MemberMask(model.properties.filter(\.isIdentity).map(\.name))
        try object(value, as: index, into: whole, mask: identity)
        guard let literal = model.bare?.literal(in: builder.json(of: whole)), builder.set(node, literal) else {
            return warnOfNoPlace(value, model.name)
        }
    }
}
