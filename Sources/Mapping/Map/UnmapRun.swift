/// One way back: from mapped JSON to the upstream's.
struct UnmapRun {
    typealias Value = MapRun.Value

    /// An object that is being written.
    struct Frame {
        /// Where it is written.
        var node: Int
        var standing: Standing
    }

    /// What holds an object: a list, or an object of objects by name.
    struct Standing {
        var position: Int?
        var key: Value?
    }

    let plan: MappingPlan
    /// Pointers of values that are synthetic; nil: whatever equals its default is.
    let synthetic: Set<String>?
    /// The mapped text, and what conversions make of its values.
    var documents: [JSONIndex]
    var builder = WireBuilder()
    var warnings: [MappingWarning] = []
    var frames: [Frame] = []
    /// Whether the body is an object of a model around the one being written, and so its parent: an envelope with a
    /// model, or the main content where others stand in it.
    var isEnveloped = false
    /// Values that belong to the objects around, in the order in which they were met.
    var surroundings: [Surrounding] = []

    init(_ plan: MappingPlan, mapped: JSONIndex, synthetic: [String]?) {
        self.plan = plan
        self.synthetic = synthetic.map { Set($0) }
        documents = [mapped]
    }

    func kind(_ value: Value) -> JSONSlice.Kind { documents[value.document].kind(value.node) }

    func isNull(_ value: Value) -> Bool { documents[value.document].isNull(value.node) }

    func bytes(_ value: Value) -> [UInt8] { Array(documents[value.document].bytes(value.node)) }

    func member(_ name: String, of object: Value) -> Value? {
        documents[object.document].member(Array(name.utf8), of: object.node)
            .map { Value(document: object.document, node: $0) }
    }

    func pointer(_ value: Value) -> String? {
        value.document == 0 ? documents[0].pointer(to: value.node) : nil
    }

    mutating func warn(_ kind: MappingWarning.Kind, _ message: String, at value: Value, model: String?) {
        warn(kind, message, at: pointer(value), model: model)
    }

    mutating func warn(_ kind: MappingWarning.Kind, _ message: String, at pointer: String?, model: String?) {
        guard warnings.count < MapRun.maximumWarnings else { return }
        warnings.append(MappingWarning(kind, message, pointer: pointer, model: model))
    }

    // MARK: Objects

    /// Writes a mapped object into a place of the upstream's JSON.
    ///
    /// - Parameters:
    ///   - completed: names of properties, one below another, whose values belong to an outer object.
    ///   - besides: names of members that are not of the object.
    mutating func object(
        _ object: Value,
        as index: Int,
        into node: Int,
        mask: MemberMask = .all,
        standing: Standing = Standing(),
        completed: [ArraySlice<String>] = [],
        besides: [String] = []
    ) throws(UnmapError) {
        let model = plan.models[choose(index, for: object)]
        guard frames.count < MapRun.maximumNesting else { return set(node, object, model.name) }
        frames.append(Frame(node: node, standing: standing))
        defer { frames.removeLast() }
        guard builder.openObject(node) else { return warnOfNoPlace(object, model.name) }
        for index in model.writingOrder {
            let property = model.properties[index]
            if property.completes.isEmpty {
                guard let inner = mask.member(property.name), let value = member(property.name, of: object),
                    !completed.contains(where: { $0.count == 1 && $0.first == property.name })
                else { continue }
                var below = completed.filter { $0.count > 1 && $0.first == property.name }.map { $0.dropFirst() }
                below += property.completedBy.map { model.properties[$0] }.filter(isWritten).map {
                    $0.completes.dropFirst()
                }
                guard mask.names(property.name) || !isSynthetic(value, property, model.name) else { continue }
                try write(value, index, of: model, into: node, mask: inner, completed: below)
            } else if !completed.contains(where: { $0.elementsEqual(property.completes) }),
                let value = value(of: property, in: object, mask: mask), !isSynthetic(value, property, model.name)
            {
                try write(value, index, of: model, into: node, mask: .all, completed: [])
            }
        }
        passUndeclared(object, model, into: node, mask: mask, besides: besides)
    }

    /// The value that a write path completes a child by.
    private func value(of property: PropertyPlan, in object: Value, mask: MemberMask) -> Value? {
        var (value, mask) = (object, mask)
        for name in property.completes {
            guard let inner = mask.member(name), let next = member(name, of: value) else { return nil }
            (value, mask) = (next, inner)
        }
        return value
    }

    /// Passes on what is no property where the model shares everything; else it has no place to go to.
    private mutating func passUndeclared(
        _ object: Value,
        _ model: ModelPlan,
        into node: Int,
        mask: MemberMask,
        besides: [String]
    ) {
        let text = documents[object.document]
        text.forEachMember(of: object.node) { nameNode, valueNode in
            let name = text.name(nameNode)
            if let name, besides.contains(name) || model.property(named: name) != nil || mask.member(name) == nil {
                return
            }
            let value = Value(document: object.document, node: valueNode)
            guard let name, model.sharesAll, let member = builder.member(Array(name.utf8), of: node) else {
                return warn(
                    .undeclaredMember,
                    "A member is not a property; it is not written back.",
                    at: value,
                    model: model.name
                )
            }
            // What of it belongs to properties has been written, and stays.
            let rest = builder.makeDetached()
            builder.set(rest, bytes(value))
            if !builder.fill(member, from: rest) { warnOfNoPlace(value, model.name) }
        }
    }

    // MARK: Values

    /// Gives a place its value as it is, with a warning if another one stands there.
    mutating func set(_ node: Int, _ value: Value, _ model: String?) {
        if !builder.set(node, bytes(value)) { warnOfNoPlace(value, model) }
    }

    mutating func warnOfNoPlace(_ value: Value, _ model: String?) {
        warn(
            .notWritten,
            "Another value stands in the place of this one; it is not written back.",
            at: value,
            model: model
        )
    }
}
