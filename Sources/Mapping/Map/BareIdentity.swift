extension CompiledModel {
    /// Whether the whole identity of an object is its name in the object that contains it (`@key`).
    var isIdentifiedByKey: Bool {
        if case .context(.key, _)? = reading.identity.first { reading.identity.count == 1 } else { false }
    }

    /// The object that a JSON value identifies, by its members or as a bare identity.
    ///
    /// Nil if it is no identity, or of a model whose identity is not a single value, or not in the object.
    func object(identifiedBy value: MappedValue) -> ObjectName? {
        if value.kind == .object { return object(identifiedByMembersOf: value.slice) }
        let isStrict = distinguishesTypes && !isIdentifiedByKey
        guard hasOwnIdentity || isIdentifiedByKey, reading.identity.count == 1,
            case .text(let text) = value.withBytes({ Identity.read($0, isStrict: isStrict) })
        else { return nil }
        return ObjectName(model: objectName, identity: text)
    }

    /// The object that the members of a JSON object identify; nil if its identity is not in these.
    func object(identifiedByMembersOf object: JSONSlice) -> ObjectName? {
        guard let parts = identityLiterals(in: object) else { return nil }
        let texts = parts.compactMap { part -> String? in
            let reading = part.withUnsafeBufferPointer { Identity.read($0, isStrict: distinguishesTypes) }
            return if case .text(let text) = reading { text } else { nil }
        }
        return texts.count == parts.count ? ObjectName(model: objectName, identity: Identity.join(texts)) : nil
    }

    /// The parts of an object's identity as spelled there; nil if they are not all in the object.
    func identityLiterals(in object: JSONSlice) -> [[UInt8]]? {
        guard hasOwnIdentity, hasIdentity else { return nil }
        let literals = reading.identity.compactMap { Self.literal(at: $0.paths, in: object) }
        return literals.count == reading.identity.count ? literals : nil
    }

    /// The identity of an object as spelled there; nil if it is not a single member of the object.
    func identityLiteral(in object: [UInt8]) -> [UInt8]? {
        let literals = JSONSlice(object).flatMap(identityLiterals)
        return literals?.count == 1 ? literals?[0] : nil
    }

    /// The value of a key as spelled in an object.
    func keyLiteral(_ key: String, in object: [UInt8]) -> [UInt8]? {
        let part = reading.keys.first { $0.name == key }?.part
        return part.flatMap { part in JSONSlice(object).flatMap { Self.literal(at: part.paths, in: $0) } }
    }

    private static func literal(at paths: [[String]], in object: JSONSlice) -> [UInt8]? {
        paths.lazy.compactMap { object.value(at: $0[...]) }.first?.json
    }
}

/// Objects in place of what the body says of them: an identity, a key, or an object that shows nothing else.
extension MapRun {
    /// The most bare identities in a body that are expanded to objects.
    static let maximumNamed = 1_000
    /// The size of the output, in bytes, beyond which no more objects are inserted: one object may be named very often.
    static let maximumExpanded = 4 << 20

    /// Writes a bare identity or a key, or if it is known, the object that it names.
    ///
    /// Objects are inserted one level deep. What is spelled differently within the object stays, because the way back
    /// could not restore its spelling.
    mutating func bare(_ value: Value, _ selection: Selection, _ standing: Standing) {
        let (model, key) = (models.compiled[selection.model], selection.relation.key)
        guard mayInsert, let json = knownObject(namedBy: value, model, key),
            key.map({ model.keyLiteral($0, in: json) == value.bytes })
                ?? (model.isIdentifiedByKey || model.identityLiteral(in: json) == value.bytes),
            let object = Value(json, of: nil)
        else { return appendLiteral(value) }
        record(.synthetic)
        let name = model.isIdentifiedByKey ? value : standing.key
        insert(object, selection, Standing(position: standing.position, key: name))
    }

    /// Writes what is known of an object that shows nothing but its identity; returns false if nothing is known.
    mutating func loneIdentity(_ value: Value, _ selection: Selection, _ standing: Standing) -> Bool {
        let model = models.compiled[selection.model]
        guard mayInsert, isLoneIdentity(value, of: model), let name = model.object(identifiedByMembersOf: value.slice),
            let json = knownObject(BoundObject(name)),
            JSONSlice(json).flatMap(model.identityLiterals) == model.identityLiterals(in: value.slice),
            let object = Value(json, of: nil)
        else { return false }
        syntheticDepth = frames.count + 1
        insert(object, selection, standing)
        syntheticDepth = nil
        return true
    }

    /// Whether an object shows nothing but its identity, in members of its own.
    func isLoneIdentity(_ object: Value, of model: CompiledModel) -> Bool {
        // Each member is two nodes, its name and a plain value.
        let end = object.node + 1 + 2 * model.reading.identity.count
        return Int(object.index.nodes[object.node].next) == end && model.identityLiterals(in: object.slice) != nil
    }

    private mutating func insert(_ object: Value, _ selection: Selection, _ standing: Standing) {
        expansions += 1
        isWithinNamed = true
        self.object(object, as: selection.model, standing: standing, mask: selection.mask)
        isWithinNamed = false
    }

    private var mayInsert: Bool { output.count < Self.maximumExpanded && frames.count < Self.maximumNesting }

    /// What is known of the object that a bare identity or a key in the body names.
    private mutating func knownObject(namedBy value: Value, _ model: CompiledModel, _ key: String?) -> [UInt8]? {
        guard key != nil else { return model.object(identifiedBy: value).flatMap { knownObject(BoundObject($0)) } }
        guard case .text(let text) = value.withBytes({ Identity.read($0) }) else { return nil }
        return knownObject(BoundObject(model: model.objectName, keys: [text]))
    }

    /// What is known of an object of a cluster that does not show the members by which its model is chosen.
    mutating func knownChoice(_ index: Int, for object: JSONSlice) -> JSONSlice? {
        let model = models.compiled[index]
        guard !isWithinNamed, resolve == nil,
            model.reading.choices.contains(where: { $0.condition?.isOpen(for: object) ?? false }),
            let name = model.object(identifiedByMembersOf: object)
        else { return nil }
        return knownObject(BoundObject(name)).flatMap { JSONSlice($0) }
    }

    /// What is known of an object that the body names; notes that it does.
    private mutating func knownObject(_ object: BoundObject) -> [UInt8]? {
        guard !isWithinNamed, expansions < Self.maximumExpansions else { return nil }
        if named.count < Self.maximumNamed { named.insert(object) }
        return known[object]
    }

    /// The object that a reference or an identity on a key path names, if it is known.
    mutating func referred(by name: ObjectName, at value: Value) -> Value? {
        guard expansions < Self.maximumExpansions,
            let json = resolve == nil ? knownObject(BoundObject(name)) : resolve?(name),
            let object = Value(json, of: resolve == nil ? nil : value), object.kind == .object
        else { return nil }
        expansions += 1
        return object
    }
}

extension BoundObject {
    /// Names an object by its identity.
    public init(_ name: ObjectName) { self.init(model: name.model, identity: name.identity) }
}
