/// Writes one mapped body back as the upstream's JSON.
struct UnmapRun: MappingRun {
    /// A property's value on its way to the output.
    struct Target {
        var selection: Selection?
        var model: Int
        /// The value as shown in the mapped body.
        var shown: Value
        /// Whether another property writes the value around it.
        var isDerived = false
    }

    let models: Models
    /// The response to which the mapped body belongs; nil if it is unknown.
    let context: MappingContext?
    /// The nodes of synthetic values; if nil, every value equal to its default counts as synthetic.
    let synthetic: Set<Int>?
    /// The nodes of values that were not converted on the way there.
    let unconverted: Set<Int>
    let body: Value
    var builder = WireBuilder()
    var warnings: [MappingWarning] = []
    /// The first value that must not be written back.
    var refusal: UnmapError?
    /// The objects that are being written, by their nodes.
    var frames: [(node: Int, standing: Standing)] = []
    /// Whether the body is the parent of the objects being written: it is an envelope with a model, or a main content
    /// that contains other contents.
    var isEnveloped = false
    /// Values that belong to enclosing objects, in the order they were found: the detached node with the value at its
    /// path, and the node of the object in which the path begins.
    var surroundings: [(node: Int, origin: Int, target: Target)] = []

    init(_ models: Models, mapped: JSONIndex, context: MappingContext?, synthetic: [String]?, unconverted: [String]) {
        (self.models, self.context) = (models, context)
        // All at once: to find the pointer of one value, the lists around it are counted.
        self.synthetic = synthetic.map(mapped.nodes(at:))
        self.unconverted = mapped.nodes(at: unconverted)
        body = Value(body: mapped)
    }

    func isSynthetic(_ value: Value) -> Bool { value.bodyNode.flatMap { synthetic?.contains($0) } ?? false }

    // MARK: Objects

    /// Writes a mapped object to a node.
    ///
    /// - Parameters:
    ///   - mask: the properties that belong to the object; those of an outer object that complete it do not.
    ///   - besides: names of members that are not part of the object; nil for all that are no properties.
    mutating func object(
        _ object: Value,
        as index: Int,
        into node: Int,
        mask: MemberMask = .all,
        standing: Standing = Standing(),
        besides: [String]? = []
    ) {
        let index = choose(index, for: object)
        let model = models.compiled[index]
        guard frames.count < MapRun.maximumNesting else { return set(node, object, index) }
        frames.append((node, standing))
        defer { frames.removeLast() }
        guard builder.openObject(node) else { return warn(.notWritten, at: object, as: index) }
        for place in model.shown.writingOrder {
            let property = model.properties[place]
            guard let (value, requested) = value(of: property, in: object, mask: mask) else { continue }
            let isNamed = property.completes.isEmpty && mask.names(property.name)
            guard isNamed || !isSynthetic(value, property, index) else { continue }
            if case .none = property.output { continue }
            guard let reversed = reverse(value, of: property) else { continue }
            var inner = requested
            let completing = property.completedBy.map { model.properties[$0] }.filter(isWritten)
            inner.completed += completing.map { $0.completes.dropFirst() }
            let selection = property.relation.map { Selection(relation: $0, mask: inner) }
            let isDerived = model.shown.derived.contains(place)
            let target = Target(selection: selection, model: index, shown: value, isDerived: isDerived)
            put(reversed, property.output, target, into: node)
        }
        guard let besides else { return }
        object.index.forEachMember(of: object.node) { nameNode, valueNode in
            let isExpected = object.index.name(nameNode).map { name in
                besides.contains(name) || model.property(named: name) != nil || mask.member(name) == nil
            }
            if isExpected != true { warn(.undeclaredMember, at: object.at(valueNode), as: index) }
        }
    }

    /// The value of a property, or that with which it completes a child; nil if there is none, or it is not requested.
    private func value(of property: CompiledProperty, in object: Value, mask: MemberMask) -> (Value, MemberMask)? {
        var (value, mask) = (object, mask)
        let path = property.completes.isEmpty ? [property.name] : property.completes
        for (offset, name) in path.enumerated() {
            let inner = offset + 1 < path.count ? mask.within(name) : mask.member(name)
            guard let inner, let next = value.member(name) else { return nil }
            (value, mask) = (next, inner)
        }
        return (value, mask)
    }

    /// A mapped object's concrete model: the first whose condition holds for the JSON that would be written.
    func choose(_ index: Int, for object: Value) -> Int {
        let choice = models.compiled[index].reading.choices.first { fits($0, object) }
        return choice.map { choose($0.shown, for: object) } ?? index
    }

    /// Whether the condition of a choice holds for the members that it reads; related objects stay as they are.
    private func fits(_ choice: CompiledModel.Choice, _ object: Value) -> Bool {
        guard let condition = choice.condition else { return true }
        let read = condition.paths.compactMap { $0.first.map(PathStep.name) }
        var builder = WireBuilder()
        builder.openObject(WireBuilder.root)
        for property in models.compiled[choice.shown].properties where property.completes.isEmpty {
            guard case .place(let output) = property.output, output.origin == .object, let names = output.path.names,
                let first = output.path.first, read.contains(first), let value = object.member(property.name)
            else { continue }
            let place = names.reduce(WireBuilder.root as Int?) { node, name in
                node.flatMap { builder.member(Array(name.utf8), of: $0) }
            }
            if let place { builder.set(place, reversed(value, of: property)?.json ?? value.bytes) }
        }
        return JSONSlice(builder.json()).map { condition.holds(for: $0) } ?? false
    }

    // MARK: Values

    /// Whether a value comes from the model's default, or from what is known of an object, not from the response.
    private mutating func isSynthetic(_ value: Value, _ property: CompiledProperty, _ index: Int) -> Bool {
        let shown = property.completes.isEmpty ? property.defaultValue : property.completedDefault
        guard let shown else {
            // An object in place of its identity is written back as that.
            let isNamed = property.relation.map { models.compiled[$0.model].hasIdentity } ?? false
            return isSynthetic(value) && !(isNamed && value.kind == .object)
        }
        guard let known = JSONSlice(shown), value.slice.isEqual(to: known) else { return false }
        guard synthetic == nil else { return isSynthetic(value) }
        let message =
            "The value equals the default of \(property.name), so it is not written back. "
            + "Name the property with --members to write it, or use --defaults for all."
        warn(.notWritten, message, at: value, as: index)
        return true
    }

    /// The upstream's form of a mapped value; nil if it is not written.
    private mutating func reverse(_ value: Value, of property: CompiledProperty) -> Value? {
        guard let result = reversed(value, of: property) else { return value }
        if case .refused(let reason) = result, refusal == nil {
            let (name, model) = (property.name, property.model)
            refusal = UnmapError(
                reason: reason,
                pointer: value.pointer,
                property: name,
                model: model,
                value: value.bytes
            )
        }
        for fault in result.faults { warn(fault, in: value, of: property) }
        return result.json.flatMap { Value($0, of: value) }
    }

    /// The result of a property's conversion; nil without a conversion.
    private func reversed(_ value: Value, of property: CompiledProperty) -> ConversionResult? {
        guard let converter = property.conversion.converter else { return nil }
        // The pointers from the value to its parts that were not converted on the way there.
        var pointers: Set<String> = []
        if !unconverted.isEmpty, let start = value.bodyNode {
            body.index.forEachValue(in: start) { if unconverted.contains($0) { pointers.insert($1) } }
        }
        return converter.reverse(value.bytes, unconverted: pointers)
    }

    /// Writes a value to a node unchanged; warns if the node already has another value.
    mutating func set(_ node: Int, _ value: Value, _ index: Int) {
        if !builder.set(node, value.bytes) { warn(.notWritten, at: value, as: index) }
    }
}

extension JSONIndex {
    /// The nodes of the values at JSON pointers.
    fileprivate func nodes(at pointers: [String]) -> Set<Int> {
        guard !pointers.isEmpty else { return [] }
        let wanted = Set(pointers)
        var nodes: Set<Int> = []
        forEachValue(in: 0) { if wanted.contains($1) { nodes.insert($0) } }
        return nodes
    }

    /// Visits a value and all values within it, with their JSON pointers from there.
    fileprivate func forEachValue(in node: Int, at pointer: String = "", _ body: (_ node: Int, String) -> Void) {
        body(node, pointer)
        switch kind(node) {
        case .array: forEachElement(of: node) { forEachValue(in: $1, at: "\(pointer)/\($0)", body) }
        case .object:
            forEachMember(of: node) { name, value in
                let component = JSONPointer.escaped(self.name(name) ?? "\u{FFFD}")
                forEachValue(in: value, at: "\(pointer)/\(component)", body)
            }
        case .string, .number, .boolean, .null: break
        }
    }
}
