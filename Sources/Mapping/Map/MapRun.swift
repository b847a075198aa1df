/// One mapping of one body: its input, its output, and its warnings.
///
/// Only related objects are mapped recursively, at most `maximumNesting` deep.
struct MapRun {
    /// The maximum nesting of objects of declared models.
    ///
    /// Deeper ones are shown as the upstream sent them. Each level costs a few kilobytes of stack.
    static let maximumNesting = 128
    /// The maximum number of objects read in place of references and bare identities.
    ///
    /// A few that refer to each other could otherwise fill the memory.
    static let maximumExpansions = 10_000
    /// The maximum number of warnings; a body that does not fit at all could otherwise give one for every member.
    static let maximumWarnings = 100

    /// A value, or the name of a member, in one of the run's documents.
    struct Value {
        var document: Int
        var node: Int
    }

    /// A text that values are read from: the body, or JSON made from context, parts and lists.
    struct Document {
        var index: JSONIndex
        /// The value of the body that it was made from.
        var origin: Value?
    }

    /// An object that is being mapped.
    struct Frame {
        /// Nil for a child that consists only of completions.
        var object: Value?
        /// The object's index, if it is an element of a list.
        var position: Int?
        /// The object's name, if it is keyed by name.
        var key: Value?
    }

    /// A value of an outer object that replaces a child's property.
    struct Completion {
        /// The property names, starting at the child.
        var path: ArraySlice<String>
        var value: Value
        var property: CompiledProperty
    }

    /// A step on the path to the current output position.
    enum Step {
        case name(String)
        case index(Int)
    }

    let models: Models
    let context: MappingContext
    /// Returns the JSON of the object that a reference names; nil if the text has no references.
    let resolve: ((ObjectName) -> [UInt8]?)?
    var documents: [Document]
    var output: [UInt8] = []
    var frames: [Frame] = []
    /// The current output position, for the pointers of synthetic values.
    var place: [Step] = []
    var warnings: [MappingWarning] = []
    var synthetic: [String] = []
    var expansions = 0
    /// The known JSON of objects that the body may name by their identities or keys.
    ///
    /// The ones it does name are collected in `named`.
    let known: [BoundObject: [UInt8]]
    var named: Set<BoundObject> = []
    /// Whether the run is within an object inserted for its identity.
    var isWithinNamed = false
    /// The depth of an object whose values are all synthetic, but for its identity.
    var syntheticDepth: Int?
    /// The properties with a coercion warning; one per property is enough.
    var coerced: Set<String> = []

    init(
        _ models: Models,
        body: JSONIndex,
        context: MappingContext = .none,
        known: [BoundObject: [UInt8]] = [:],
        resolve: ((ObjectName) -> [UInt8]?)? = nil
    ) {
        (self.models, self.context) = (models, context)
        (self.known, self.resolve) = (known, resolve)
        documents = [Document(index: body)]
        output.reserveCapacity(body.text.count)
    }

    // MARK: Values

    func kind(_ value: Value) -> JSONSlice.Kind { documents[value.document].index.kind(value.node) }

    func isNull(_ value: Value) -> Bool { documents[value.document].index.isNull(value.node) }

    func slice(_ value: Value) -> JSONSlice { documents[value.document].index.slice(value.node) }

    func bytes(_ value: Value) -> [UInt8] { Array(documents[value.document].index.bytes(value.node)) }

    func withBytes<Result>(_ value: Value, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        documents[value.document].index.slice(value).withBytes(body)
    }

    /// Creates a value from JSON outside the body; nil if it is nested too deep.
    mutating func make(_ json: [UInt8], of origin: Value?) -> Value? {
        guard let index = try? JSONIndex(json) else { return nil }
        documents.append(Document(index: index, origin: origin))
        return Value(document: documents.count - 1, node: 0)
    }

    /// Appends a value as the upstream sent it, with bare identities in place of references.
    mutating func appendLiteral(_ value: Value) {
        let literal = documents[value.document].index.bytes(value.node)
        if resolve == nil {
            output.append(contentsOf: literal)
        } else {
            output.append(
                contentsOf: Reference.plain(Array(literal)) { name in
                    models.distinguishesTypes(name.model) ? Reference.strict(name.identity) : nil
                }
            )
        }
    }

    mutating func append(_ text: StaticString) {
        output.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    // MARK: Warnings

    mutating func warn(
        _ kind: MappingWarning.Kind,
        _ message: String? = nil,
        at value: Value?,
        within rest: String = "",
        model: String?,
        property: String? = nil
    ) {
        let subject = MappingWarning.Subject(kind: kind, model: model, property: property)
        if warnings.count >= Self.maximumWarnings {
            // Many warnings of one kind must not suppress those of another.
            if let known = warnings.firstIndex(where: { $0.subject == subject }) { return warnings[known].count += 1 }
            guard warnings.count < 2 * Self.maximumWarnings else { return }
        }
        let pointer = value.flatMap(pointer).map { $0 + rest }
        let message = message ?? kind.sentence
        warnings.append(MappingWarning(kind, message, pointer: pointer, model: model, property: property))
    }

    /// Warns about the value of a property.
    mutating func warn(
        _ kind: MappingWarning.Kind,
        _ message: String,
        at value: Value?,
        within rest: String = "",
        of property: CompiledProperty
    ) { warn(kind, message, at: value, within: rest, model: property.model, property: property.name) }

    /// The JSON pointer of a value in the body; nil for values from elsewhere.
    private func pointer(to value: Value) -> String? {
        if value.document == 0 { return documents[0].index.pointer(to: value.node) }
        return documents[value.document].origin.flatMap(pointer)
    }

    /// The JSON pointer of the current output position.
    var outputPointer: String {
        place.reduce(into: "") { pointer, step in
            switch step {
            case .name(let name): pointer += "/" + JSONPointer.escaped(name)
            case .index(let index): pointer += "/\(index)"
            }
        }
    }
}

extension JSONIndex { func slice(_ value: MapRun.Value) -> JSONSlice { slice(value.node) } }

extension MapRun {
    /// Writes one object.
    ///
    /// - Parameters:
    ///   - object: nil for a child that consists only of completions.
    ///   - isItself: whether the object is made of its parent's members (`@self`); it may then be absent.
    ///   - extra: writes further members from the body's rule.
    /// - Returns: whether any part of it was there.
    @discardableResult
    mutating func object(
        _ object: Value?,
        as index: Int,
        position: Int? = nil,
        key: Value? = nil,
        mask: MemberMask = .all,
        completions: [Completion] = [],
        isItself: Bool = false,
        extra: ((inout MapRun) -> Void)? = nil
    ) -> Bool {
        guard frames.count < Self.maximumNesting else {
            let message = "Objects are nested deeper than the mapped view goes."
            warn(.tooDeep, message, at: object, model: models.compiled[index].name)
            if let object { appendLiteral(object) } else { append("{}") }
            return true
        }
        guard let chosen = choose(index, for: object) else {
            if let object { appendLiteral(object) }
            return true
        }
        let model = models.compiled[chosen]
        frames.append(Frame(object: object, position: position, key: key))
        defer { frames.removeLast() }
        let madeAround = documents.count
        defer { documents.removeLast(documents.count - madeAround) }
        let members = members(of: object, model)
        append("{")
        let start = output.count
        var isPresent = false
        for property in model.properties where property.completes.isEmpty {
            let isAlwaysShown = property.isIdentity && !mask.excluded.contains(property.name)
            guard let inner = mask.member(property.name) ?? (isAlwaysShown ? .all : nil) else { continue }
            let madeBefore = documents.count
            let isShown = show(property, of: model, members, mask: inner, completions, start: start)
            // Values from the surroundings do not show that the object is there.
            let isCompleted = completions.contains { $0.path.first == property.name }
            if isShown, !property.isFromContext || isCompleted { isPresent = true }
            documents.removeLast(documents.count - madeBefore)
        }
        extra?(&self)
        append("}")
        if !isPresent, members.isEmpty, model.slotCount > 0, !isItself, let object,
            documents[object.document].index.children(of: object.node).count > 0
        {
            warn(.nothingMapped, "No declared property is found in an object.", at: object, model: model.name)
        }
        return isPresent
    }

    /// The concrete model; nil if no choice of the cluster fits and the base declares nothing.
    ///
    /// A child that consists only of completions counts as an empty object, and lacks nothing.
    private mutating func choose(_ index: Int, for object: Value?) -> Int? {
        let json = object.map(slice) ?? JSONSlice(Array("{}".utf8), 0..<2)
        let known = knownChoice(index, for: json).map { [$0] } ?? []
        var chosen = index
        while let choice = models.choice(of: chosen, for: json, else: known) { chosen = choice.shown }
        let model = models.compiled[chosen]
        guard let object, !model.reading.choices.isEmpty else { return chosen }
        warn(.noChoice, "None of the cluster's models fits an object.", at: object, model: model.name)
        return model.properties.isEmpty ? nil : chosen
    }

    /// Writes one property, if it has a value.
    ///
    /// - Returns: whether a value of the upstream is shown.
    private mutating func show(
        _ property: CompiledProperty,
        of model: CompiledModel,
        _ members: Members,
        mask: MemberMask,
        _ completions: [Completion],
        start: Int
    ) -> Bool {
        let (mark, syntheticBefore) = (output.count, synthetic.count)
        place.append(.name(property.name))
        defer { place.removeLast() }
        if mark > start { append(",") }
        output.append(contentsOf: property.key)

        // The longest path wins: a completion from outside replaces the property's own value.
        var effective = property
        let found: Value?
        if let completion = completions.first(where: { $0.path.count == 1 && $0.path.first == property.name }) {
            found = completion.value
            effective.adopt(completion.property)
        } else {
            found = find(property.source, members, model.name)
        }
        let isShown: Bool
        if let relation = effective.relation {
            var inner = completions.filter { $0.path.count > 1 && $0.path.first == property.name }
                .map { Completion(path: $0.path.dropFirst(), value: $0.value, property: $0.property) }
            for index in property.completedBy {
                let completing = model.properties[index]
                guard let value = find(completing.source, members, model.name) else { continue }
                inner.append(Completion(path: completing.completes.dropFirst(), value: value, property: completing))
            }
            isShown = related(found, by: effective, relation, mask: mask, completions: inner)
        } else {
            isShown = found.map { value($0, of: effective) } ?? false
        }
        if isShown {
            let isKnown = frames.count == syntheticDepth && !property.isIdentity
            if isKnown || members.isKnown(property.source) { synthetic.append(outputPointer) }
            return true
        }
        output.removeLast(output.count - mark)
        synthetic.removeLast(synthetic.count - syntheticBefore)
        if let value = effective.defaultValue {
            if mark > start { append(",") }
            output.append(contentsOf: property.key)
            output.append(contentsOf: value)
            synthetic.append(outputPointer)
        } else if effective.isRequired, found == nil {
            let message = "Property \(property.name) is required and absent."
            warn(.requiredMissing, message, at: frames.last?.object, of: property)
        }
        return false
    }
}

extension CompiledProperty {
    /// Takes over the relation and the conversion of a completing property, if it declares them.
    fileprivate mutating func adopt(_ completing: CompiledProperty) {
        if let relation = completing.relation { self.relation = relation }
        if !completing.conversion.isTrivial { conversion = completing.conversion }
    }
}

extension MemberPath {
    init(literal name: Int, in index: JSONIndex) { self = index.slice(name).withBytes { MemberPath(literal: $0) } }
}

extension MapRun {
    /// Writes the value of a plain property: coerced, checked, converted.
    ///
    /// - Returns: whether it is shown.
    mutating func value(_ found: Value, of property: CompiledProperty) -> Bool {
        let conversion = property.conversion
        // A value map may have an entry for null.
        if isNull(found), conversion.refusesNull || conversion.converter == nil { return null(found, of: property) }
        var value = found
        if let json = conversion.coercion?.coerced(slice(found)), let coerced = make(json, of: found) {
            noteCoercion(of: found, property)
            value = coerced
        }
        guard passesChecks(value, of: property, shownAt: found) else { return false }
        guard let converter = conversion.converter else {
            appendLiteral(value)
            return true
        }
        return write(converter.forward(bytes(value)), of: value, property)
    }

    /// Whether a value passes the property's checks; warns if it does not.
    mutating func passesChecks(_ value: Value, of property: CompiledProperty, shownAt place: Value) -> Bool {
        guard let fault = property.conversion.checker?.fault(in: slice(value)) else { return true }
        warn(.quarantined, "Property \(property.name): \(fault); the value is left out.", at: place, of: property)
        return false
    }

    /// Writes null for a null in the source.
    mutating func null(_ value: Value, of property: CompiledProperty) -> Bool {
        if property.conversion.refusesNull {
            warn(.unexpectedNull, "Property \(property.name) is null.", at: value, of: property)
            if property.defaultValue != nil { return false }
        }
        append("null")
        return true
    }

    /// Warns of a coercion, once per property.
    mutating func noteCoercion(of value: Value, _ property: CompiledProperty, model: String? = nil) {
        let model = model ?? property.model
        guard coerced.insert("\(model).\(property.name)").inserted else { return }
        let message = "Property \(property.name) has a value of another type, which is converted."
        warn(.coerced, message, at: value, model: model, property: property.name)
    }

    /// Writes the result of a conversion.
    ///
    /// A value that it does not accept stays as the upstream sent it, with a warning.
    private mutating func write(_ result: ConversionResult, of value: Value, _ property: CompiledProperty) -> Bool {
        switch result {
        case .value(let json): output.append(contentsOf: json)
        case .partial(let json, let faults):
            for fault in faults {
                let message = "Property \(property.name): \(fault.reason)."
                warn(.conversionFailed, message, at: value, within: fault.pointer, of: property)
            }
            output.append(contentsOf: json)
        case .failed(let reason):
            warn(.conversionFailed, "Property \(property.name): \(reason).", at: value, of: property)
            appendLiteral(value)
        case .dropped: return false
        }
        return true
    }
}
