/// How a bare identity in place of a model's object is read.
struct BareIdentity: Sendable {
    /// The model name in the objects' keys.
    let objectName: String
    /// Whether the number 7 and the string "7" identify different objects.
    let isStrict: Bool
    /// The key paths of the identity in an object, in every spelling.
    let paths: [[String]]

    /// Nil if a single value does not identify an object: the identity has several parts, or comes from the
    /// surroundings.
    init?(_ model: CompiledModel) {
        let identity = model.reading.identity
        guard identity.count == 1, case .member(let paths, _) = identity[0] else { return nil }
        (objectName, isStrict, self.paths) = (model.objectName, model.distinguishesTypes, paths)
    }

    /// The object that a JSON value identifies; nil if the value is no identity.
    func name(_ literal: UnsafeBufferPointer<UInt8>) -> ObjectName? {
        guard case .text(let text) = Identity.read(literal, isStrict: isStrict) else { return nil }
        return ObjectName(model: objectName, identity: text)
    }

    /// The identity of an object, as spelled there.
    func literal(in object: [UInt8]) -> [UInt8]? {
        guard let object = JSONSlice(object) else { return nil }
        return paths.lazy.compactMap { object.value(at: $0[...]) }.first.map { Array($0.bytes) }
    }
}

extension MapRun {
    /// The most bare identities in a body that are expanded to objects.
    static let maximumNamed = 1_000
    /// The size of the output, in bytes, beyond which no more objects are inserted: one object may be named very often.
    static let maximumExpanded = 4 << 20

    /// Writes a bare identity, or if it is known, the object that it names.
    ///
    /// Objects are inserted one level deep. An identity that is spelled differently within the object stays, because
    /// the way back could not restore its spelling.
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
    /// Whether an object was inserted in place of its bare identity.
    func isNamed(_ value: Value) -> Bool {
        guard let synthetic, kind(value) == .object else { return false }
        return pointer(value).map { synthetic.contains($0) } ?? false
    }

    /// Writes the bare identity of an object that was inserted in its place.
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
