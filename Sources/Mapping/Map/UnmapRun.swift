/// Writes one mapped body back as the upstream's JSON.
struct UnmapRun {
    typealias Value = MapRun.Value

    /// An object that is being written.
    struct Frame {
        /// The output node of the object.
        var node: Int
        var standing: Standing
    }

    /// An object's position in the list, or its name in the object, that contains it.
    struct Standing {
        var position: Int?
        var key: Value?
    }

    let models: Models
    /// The pointers of synthetic values; if nil, every value equal to its default counts as synthetic.
    let synthetic: Set<String>?
    /// The mapped text, followed by values made by conversions.
    var documents: [JSONIndex]
    var builder = WireBuilder()
    var warnings: [MappingWarning] = []
    var frames: [Frame] = []
    /// Whether the body is the parent of the objects being written: it is an envelope with a model, or a main content
    /// that contains other contents.
    var isEnveloped = false
    /// Values that belong to enclosing objects, in the order they were found.
    var surroundings: [Surrounding] = []

    init(_ models: Models, mapped: JSONIndex, synthetic: [String]?) {
        self.models = models
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

    func pointer(_ value: Value) -> String? { value.document == 0 ? documents[0].pointer(to: value.node) : nil }

    mutating func warn(_ kind: MappingWarning.Kind, _ message: String? = nil, at value: Value, model: String?) {
        warn(kind, message, at: pointer(value), model: model)
    }

    mutating func warn(_ kind: MappingWarning.Kind, _ message: String?, at pointer: String?, model: String?) {
        guard warnings.count < MapRun.maximumWarnings else { return }
        warnings.append(MappingWarning(kind, message ?? kind.sentence, pointer: pointer, model: model))
    }

    // MARK: Objects

    /// Writes a mapped object to a node.
    ///
    /// - Parameters:
    ///   - completed: paths of properties whose values belong to an outer object.
    ///   - besides: names of members that are not part of the object.
    mutating func object(
        _ object: Value,
        as index: Int,
        into node: Int,
        mask: MemberMask = .all,
        standing: Standing = Standing(),
        completed: [ArraySlice<String>] = [],
        besides: [String] = []
    ) throws(UnmapError) {
        let model = models.compiled[choose(index, for: object)]
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
        warnOfUndeclared(object, model, mask: mask, besides: besides)
    }

    /// The value with which a write path completes a child.
    private func value(of property: CompiledProperty, in object: Value, mask: MemberMask) -> Value? {
        var (value, mask) = (object, mask)
        for name in property.completes {
            guard let inner = mask.member(name), let next = member(name, of: value) else { return nil }
            (value, mask) = (next, inner)
        }
        return value
    }

    /// Warns of members that are no properties, and so have no place.
    private mutating func warnOfUndeclared(_ object: Value, _ model: CompiledModel, mask: MemberMask, besides: [String])
    {
        let text = documents[object.document]
        text.forEachMember(of: object.node) { nameNode, valueNode in
            let name = text.name(nameNode)
            if let name, besides.contains(name) || model.property(named: name) != nil || mask.member(name) == nil {
                return
            }
            warn(.undeclaredMember, at: Value(document: object.document, node: valueNode), model: model.name)
        }
    }

    // MARK: Values

    /// Writes a value to a node unchanged; warns if the node already has another value.
    mutating func set(_ node: Int, _ value: Value, _ model: String?) {
        if !builder.set(node, bytes(value)) { warnOfNoPlace(value, model) }
    }

    mutating func warnOfNoPlace(_ value: Value, _ model: String?) { warn(.notWritten, at: value, model: model) }

    /// A mapped object's concrete model: the first whose condition holds for the JSON that would be
    /// written.
    func choose(_ index: Int, for object: Value) -> Int {
        var chosen = index
        while let choice = models.compiled[chosen].reading.choices.first(where: { fits($0, object) }) {
            chosen = choice.shown
        }
        return chosen
    }

    private func fits(_ choice: CompiledModel.Choice, _ object: Value) -> Bool {
        guard let condition = choice.condition else { return true }
        let wire = JSONSlice(
            sketch(
                object,
                models.compiled[choice.shown],
                members: condition.paths.compactMap { $0.first.map { Array($0.utf8) } }
            )
        )
        return wire.map { condition.holds(for: $0) } ?? false
    }

    /// The members of the upstream's JSON that a condition reads; related objects stay as they are.
    private func sketch(_ object: Value, _ model: CompiledModel, members: [[UInt8]]) -> [UInt8] {
        var builder = WireBuilder()
        builder.openObject(WireBuilder.root)
        for property in model.properties where property.completes.isEmpty {
            guard case .place(let output) = property.output, output.origin == .object, output.path.tail.isEmpty,
                let first = output.path.leadingNames.first, members.contains(Array(first.utf8)),
                let value = member(property.name, of: object)
            else { continue }
            let json = property.conversion.converter?.reverse(bytes(value)).json ?? bytes(value)
            let place = output.path.leadingNames.reduce(WireBuilder.root as Int?) { node, name in
                node.flatMap { builder.member(Array(name.utf8), of: $0) }
            }
            if let place { builder.set(place, json) }
        }
        return builder.json()
    }

    /// Writes the value of one property to its source, or to its declared `to:`.
    ///
    /// - Parameters:
    ///   - index: the index of the property in its model.
    ///   - node: the node of the property's object.
    ///   - completed: paths of properties within the value whose values belong to an outer object.
    mutating func write(
        _ value: Value,
        _ index: Int,
        of model: CompiledModel,
        into node: Int,
        mask: MemberMask,
        completed: [ArraySlice<String>]
    ) throws(UnmapError) {
        let property = model.properties[index]
        let madeBefore = documents.count
        defer { documents.removeLast(documents.count - madeBefore) }
        let target = Target(
            property: property,
            model: model.name,
            shown: value,
            isDerived: model.derived.contains(index),
            mask: mask,
            completed: completed
        )
        if case .given(let source) = property.output {
            // A value that cannot be converted back is not compared.
            guard let converter = property.conversion.converter else {
                return compare(bytes(value), with: source, target)
            }
            if let json = converter.reverse(bytes(value)).json { compare(json, with: source, target) }
            return
        }
        guard isWritten(property) else { return warnIfUnreachable(property.output, target) }
        guard let reversed = try reverse(value, of: property, model.name) else { return }
        switch property.output {
        case .parts(let parts):
            let whole = try identity(reversed, of: property)
            for (name, output) in parts {
                let part = isNull(whole) ? whole : member(String(decoding: name, as: UTF8.self), of: whole)
                if let part { try put(part, output, target, into: node) }
            }
        case .none, .place, .itself, .given: try put(reversed, property.output, target, into: node)
        }
    }

    /// The upstream's form of a value that is combined from parts: for a related object, that of its identity.
    private mutating func identity(_ value: Value, of property: CompiledProperty) throws(UnmapError) -> Value {
        guard let relation = property.relation, kind(value) == .object else { return value }
        let names = models.compiled[relation.model].properties.filter(\.isIdentity).map(\.name)
        let whole = builder.makeDetached()
        try object(value, as: relation.model, into: whole, mask: MemberMask(names))
        guard let index = try? JSONIndex(builder.json(of: whole)) else { return value }
        documents.append(index)
        return Value(document: documents.count - 1, node: 0)
    }

    /// A property's value on its way to the output.
    struct Target {
        var property: CompiledProperty
        var model: String
        /// The value as shown in the mapped body.
        var shown: Value
        /// Whether another property writes the value around it.
        var isDerived: Bool
        var mask: MemberMask
        var completed: [ArraySlice<String>]
    }

    /// Writes a value, or a part of it, to its output.
    private mutating func put(_ value: Value, _ output: CompiledProperty.Output, _ target: Target, into node: Int)
        throws(UnmapError)
    {
        switch output {
        case .none, .parts:
            break
        case .given(let source):
            compare(bytes(value), with: source, target)
        case .place(let place) where place.origin == .object && !target.isDerived:
            try self.place(value, at: place.path[...], target, node)
        case .place(let place):
            guard let origin = place.origin == .object ? node : self.node(of: place.origin) else {
                return warnIfUnreachable(output, target)
            }
            // The value is built separately and then merged into the existing one.
            let child = builder.makeDetached()
            try self.place(value, at: place.path[...], target, child)
            if place.origin != .object {
                surroundings.append(
                    Surrounding(node: child, origin: origin, pointer: pointer(target.shown), model: target.model)
                )
            } else if !builder.fill(origin, from: child) {
                warnOfNoPlace(target.shown, target.model)
            }
        case .itself:
            guard let relation = target.property.relation, kind(value) == .object else {
                return warnOfNoPlace(value, target.model)
            }
            let child = builder.makeDetached()
            try object(value, as: relation.model, into: child, mask: target.mask, completed: target.completed)
            if !builder.fill(node, from: child) { warnOfNoPlace(value, target.model) }
        }
    }

    /// Whether a value comes from the model's default, or from what is known of an object, not from the response.
    mutating func isSynthetic(_ value: Value, _ property: CompiledProperty, _ model: String) -> Bool {
        let shown = property.completes.isEmpty ? property.defaultValue : property.completedDefault
        if shown == nil, let synthetic, let pointer = pointer(value), synthetic.contains(pointer) {
            // An object in place of its identity is written back as that.
            let isNamed = property.relation.map { models.compiled[$0.model].hasIdentity } ?? false
            return !(isNamed && kind(value) == .object)
        }
        guard let json = shown, let known = JSONSlice(json),
            documents[value.document].slice(value.node).isEqual(to: known)
        else { return false }
        if let synthetic { return pointer(value).map { synthetic.contains($0) } ?? false }
        let message =
            "The value equals the default of \(property.name), so it is not written back. "
            + "Name the property with --members to write it, or use --defaults for all."
        warn(.notWritten, message, at: value, model: model)
        return true
    }

    /// The upstream's form of a mapped value; nil if it is not written.
    private mutating func reverse(_ value: Value, of property: CompiledProperty, _ model: String) throws(UnmapError)
        -> Value?
    {
        guard let converter = property.conversion.converter else { return value }
        let json: [UInt8]
        switch converter.reverse(bytes(value)) {
        case .value(let result): json = result
        case .partial(let result, let faults):
            json = result
            for fault in faults {
                warn(.conversionFailed, "Property \(property.name): \(fault.reason).", at: value, model: model)
            }
        case .failed(let reason):
            throw error(reason, of: property, model, value)
        case .dropped:
            return nil
        }
        guard let index = try? JSONIndex(json) else { return nil }
        documents.append(index)
        return Value(document: documents.count - 1, node: 0)
    }

    private func error(_ reason: String, of property: CompiledProperty, _ model: String, _ value: Value) -> UnmapError {
        UnmapError(reason: reason, pointer: pointer(value), property: property.name, model: model, value: bytes(value))
    }

    /// Writes a value at a path.
    private mutating func place(
        _ value: Value,
        at steps: ArraySlice<PathStep>,
        _ target: Target,
        _ node: Int,
        standing: Standing = Standing()
    ) throws(UnmapError) {
        switch steps.first {
        case nil:
            guard let relation = target.property.relation else { return set(node, value, target.model) }
            try related(value, relation, target, node, standing)
        case .name(let name):
            guard let member = builder.member(Array(name.utf8), of: node) else {
                return warnOfNoPlace(value, target.model)
            }
            try place(value, at: steps.dropFirst(), target, member, standing: standing)
        case .elements:
            if isNull(value) { return set(node, value, target.model) }
            guard kind(value) == .array else {
                let reason = "a list is expected, whose elements go to the elements of another"
                throw error(reason, of: target.property, target.model, value)
            }
            let values = documents[value.document].children(of: value.node)
            // Mapping may have left elements out of a list of objects; the remaining ones' places are then unknown.
            if let count = builder.elementCount(of: node), count != values.count {
                let message = "The list whose elements these belong to has another length; they are not written back."
                return warn(.notWritten, message, at: value, model: target.model)
            }
            guard let elements = builder.elements(values.count, of: node) else {
                return warnOfNoPlace(value, target.model)
            }
            for (position, (element, inner)) in zip(elements, values).enumerated() {
                let inner = Value(document: value.document, node: inner)
                try place(inner, at: steps.dropFirst(), target, element, standing: Standing(position: position))
            }
        }
    }
}

/// Values read from around an object are written back to where they were read.
extension UnmapRun {
    /// A value that belongs to an object around the one that shows it.
    struct Surrounding {
        /// The detached node with the value at its path.
        var node: Int
        /// The node of the object in which the path begins.
        var origin: Int
        /// The pointer of the value in the mapped body.
        var pointer: String?
        var model: String
    }

    /// The node of the object in which a path begins, if it exists.
    func node(of origin: CompiledProperty.Place.Origin) -> Int? {
        switch origin {
        case .object: frames.last?.node
        case .parent: frames.count > 1 ? frames[frames.count - 2].node : isEnveloped ? WireBuilder.root : nil
        case .root: builder.isObject(WireBuilder.root) ? WireBuilder.root : frames.first?.node
        }
    }

    /// Whether a property is written back, to the object itself or to an enclosing object that exists.
    func isWritten(_ property: CompiledProperty) -> Bool {
        switch property.output {
        case .none, .given: false
        case .place(let place): node(of: place.origin) != nil
        case .itself, .parts: true
        }
    }

    /// Merges the values that belong to enclosing objects, after all of these have been written.
    ///
    /// Values already there take precedence, and of several inner objects the first one counts.
    mutating func writeSurroundings() {
        for value in surroundings where !builder.fill(value.origin, from: value.node) {
            let message = "Its place in the surrounding object has another value; it is not written back."
            warn(.notWritten, message, at: value.pointer, model: value.model)
        }
        surroundings = []
        builder.spellWholes()
    }

    /// Warns about a value that belongs to an enclosing object which does not exist.
    mutating func warnIfUnreachable(_ output: CompiledProperty.Output, _ target: Target) {
        guard case .place(let place) = output, node(of: place.origin) == nil else { return }
        let message = "The surrounding object that this value belongs to is missing; it is not written back."
        warn(.notWritten, message, at: target.shown, model: target.model)
    }

    /// Warns if a value contradicts the position or the name that its object gets from its container.
    mutating func compare(_ json: [UInt8], with source: ContextValue, _ target: Target) {
        guard let standing = frames.last?.standing else { return }
        let given: JSONSlice? =
            switch source {
            case .index: standing.position.flatMap { JSONSlice(Array(String($0).utf8)) }
            case .key: standing.key.map { documents[$0.document].slice($0.node) }
            case .url, .capture, .header, .parent, .root, .itself: nil
            }
        if let given, let said = JSONSlice(json), said.isEqual(to: given) { return }
        let what = if case .index = source { "position" } else { "name" }
        let message = "The object has another \(what) than this; it is not written back."
        warn(.notWritten, message, at: target.shown, model: target.model)
    }

    /// Writes the value of a relation.
    mutating func related(
        _ value: Value,
        _ relation: CompiledProperty.Related,
        _ target: Target,
        _ node: Int,
        _ standing: Standing
    ) throws(UnmapError) {
        let (mask, completed) = (target.mask, target.completed)
        switch (relation.arity, kind(value)) {
        case (.keyed, .object):
            try keyed(value, of: relation, into: node, mask: mask)
        case (.many, .array):
            try list(value, of: relation, into: node, mask: mask)
        case (_, .object) where isNamed(value):
            try bare(value, of: relation, into: node)
        case (_, .object):
            try object(value, as: relation.model, into: node, mask: mask, standing: standing, completed: completed)
            // If the upstream had nothing but completions of this child, the child has no place of its own.
            let isCompleted = completed.contains { $0.first.map { member($0, of: value) != nil } ?? false }
            if isCompleted, builder.isEmptyObject(node) { builder.reopen(node) }
        default: set(node, value, target.model)
        }
    }

    mutating func list(_ value: Value, of related: CompiledProperty.Related, into node: Int, mask: MemberMask)
        throws(UnmapError)
    {
        let values = documents[value.document].children(of: value.node)
        guard let elements = builder.elements(values.count, of: node), elements.count == values.count else {
            return warnOfNoPlace(value, models.compiled[related.model].name)
        }
        for (position, (place, inner)) in zip(elements, values).enumerated() {
            let inner = Value(document: value.document, node: inner)
            try element(inner, of: related, into: place, mask: mask, standing: Standing(position: position))
        }
    }

    mutating func keyed(_ value: Value, of related: CompiledProperty.Related, into node: Int, mask: MemberMask)
        throws(UnmapError)
    {
        let text = documents[value.document]
        guard builder.openObject(node) else { return warnOfNoPlace(value, models.compiled[related.model].name) }
        var name = value.node + 1
        while name < Int(text.nodes[value.node].next) {
            let inner = Value(document: value.document, node: name + 1)
            if let key = text.name(name), let member = builder.member(Array(key.utf8), of: node) {
                let standing = Standing(key: Value(document: value.document, node: name))
                try element(inner, of: related, into: member, mask: mask, standing: standing)
            } else {
                warn(.notWritten, "A name is not Unicode; its member is not written back.", at: inner, model: nil)
            }
            name = Int(text.nodes[name + 1].next)
        }
    }

    private mutating func element(
        _ value: Value,
        of related: CompiledProperty.Related,
        into node: Int,
        mask: MemberMask,
        standing: Standing
    ) throws(UnmapError) {
        if isNamed(value) {
            try bare(value, of: related, into: node)
        } else if kind(value) == .object {
            try object(value, as: related.model, into: node, mask: mask, standing: standing)
        } else {
            set(node, value, models.compiled[related.model].name)
        }
    }
}
