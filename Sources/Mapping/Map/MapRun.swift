/// One mapping of one body: its input, its output, and its warnings.
///
/// Only related objects are mapped recursively, at most `maximumNesting` deep.
struct MapRun: MappingRun {
    /// Objects that are nested deeper are shown as the upstream sent them: each level costs a few kilobytes of stack.
    static let maximumNesting = 128
    /// The most objects read in place of references and bare identities: a few in a circle could fill the memory.
    static let maximumExpansions = 10_000

    /// A step on the path to the current output position.
    enum Step {
        case name(String)
        case index(Int)
    }

    /// A remark about the value at a JSON pointer into the output.
    struct Note {
        enum Kind { case synthetic, unconverted }

        var kind: Kind
        var pointer: String
    }

    let models: Models
    let context: MappingContext
    /// Returns the JSON of the object that a reference names; nil if the text has no references.
    var resolve: ((ObjectName) -> [UInt8]?)?
    let body: Value
    var output: [UInt8] = []
    /// The objects that are being written; nil for a child that consists only of completions.
    var frames: [(object: Value?, model: Int, standing: Standing)] = []
    /// The current output position, for the pointers of notes.
    var place: [Step] = []
    var warnings: [MappingWarning] = []
    var notes: [Note] = []
    var expansions = 0
    /// The known JSON of objects that the body may name by their identities or keys.
    let known: [BoundObject: [UInt8]]
    /// The objects that it does name.
    var named: Set<BoundObject> = []
    /// Whether the run is within an object inserted for its identity.
    var isWithinNamed = false
    /// The depth of an object whose values are all synthetic, but for its identity.
    var syntheticDepth: Int?
    /// The properties with a coercion warning; one per property is enough.
    private var coerced: Set<String> = []

    init(_ models: Models, body: JSONIndex, context: MappingContext = .none, known: [BoundObject: [UInt8]] = [:]) {
        (self.models, self.context, self.known) = (models, context, known)
        self.body = Value(body: body)
        output.reserveCapacity(body.text.count)
    }

    // MARK: Output

    /// Appends a value as the upstream sent it, with bare identities in place of references.
    mutating func appendLiteral(_ value: Value) { appendLiteral(value.bytes) }

    private mutating func appendLiteral(_ json: [UInt8]) {
        guard resolve != nil else { return output += json }
        output += Reference.plain(json) { name in
            models.distinguishesTypes(name.model) ? Reference.strict(name.identity) : nil
        }
    }

    mutating func append(_ text: StaticString) {
        output += UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    /// Notes something about the value at the current output position, or a part of it.
    mutating func record(_ kind: Note.Kind, within rest: String = "") {
        notes.append(Note(kind: kind, pointer: outputPointer + rest))
    }

    /// What is written and noted so far.
    var moment: (output: Int, notes: Int) { (output.count, notes.count) }

    /// Takes back what was written and noted since a moment.
    mutating func rewind(to moment: (output: Int, notes: Int)) {
        output.removeLast(output.count - moment.output)
        notes.removeLast(notes.count - moment.notes)
    }

    /// The JSON pointer of the current output position.
    private var outputPointer: String {
        place.reduce(into: "") { pointer, step in
            switch step {
            case .name(let name): pointer += "/" + JSONPointer.escaped(name)
            case .index(let index): pointer += "/\(index)"
            }
        }
    }

    // MARK: Objects

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
        standing: Standing = Standing(),
        mask: MemberMask = .all,
        completions: [Completion] = [],
        isItself: Bool = false,
        extra: ((inout MapRun) -> Void)? = nil
    ) -> Bool {
        let isTooDeep = frames.count >= Self.maximumNesting
        if isTooDeep { warn(.tooDeep, "Objects are nested deeper than the mapped view goes.", at: object, as: index) }
        guard !isTooDeep, let chosen = choose(index, for: object) else {
            if let object { appendLiteral(object) } else { append("{}") }
            return true
        }
        let model = models.compiled[chosen]
        frames.append((object, chosen, standing))
        defer { frames.removeLast() }
        let members = members(of: object, model, completions)
        append("{")
        var isPresent = false
        for property in model.properties where property.completes.isEmpty {
            let isAlwaysShown = property.isIdentity && !mask.excluded.contains(property.name)
            guard let inner = mask.member(property.name) ?? (isAlwaysShown ? .all : nil) else { continue }
            let isShown = show(property, members, mask: inner)
            // Values from the surroundings do not show that the object is there.
            let isCompleted = completions.contains { $0.path.first == property.name }
            if isShown, !property.isFromContext || isCompleted { isPresent = true }
        }
        extra?(&self)
        append("}")
        if !isPresent, members.isEmpty, model.shown.slotCount > 0, !isItself, let object, !object.children.isEmpty {
            warn(.nothingMapped, "No declared property is found in an object.", at: object, as: chosen)
        }
        return isPresent
    }

    /// The concrete model; nil if no choice of the cluster fits and the base declares nothing.
    ///
    /// A child that consists only of completions counts as an empty object, and lacks nothing.
    private mutating func choose(_ index: Int, for object: Value?) -> Int? {
        let json = object?.slice ?? JSONSlice(Array("{}".utf8), 0..<2)
        let known = knownChoice(index, for: json).map { [$0] } ?? []
        var chosen = index
        while let choice = models.choice(of: chosen, for: json, else: known) { chosen = choice.shown }
        let model = models.compiled[chosen]
        guard let object, !model.reading.choices.isEmpty else { return chosen }
        warn(.noChoice, "None of the cluster's models fits an object.", at: object, as: chosen)
        return model.properties.isEmpty ? nil : chosen
    }

    /// Writes one property, if it has a value; returns whether a value of the upstream is shown.
    private mutating func show(_ property: CompiledProperty, _ members: Members, mask: MemberMask) -> Bool {
        let before = moment
        place.append(.name(property.name))
        defer { place.removeLast() }
        output.appendComma()
        output += property.key
        let valueStart = (output: output.count, notes: notes.count)

        // The longest path wins: a completion from outside replaces the property's own value.
        var effective = property
        let found: Value?
        if let completion = members.completions.first(where: { $0.path == [property.name] }) {
            found = completion.value
            effective.relation = completion.property.relation ?? property.relation
            if !completion.property.conversion.isTrivial { effective.conversion = completion.property.conversion }
        } else {
            found = find(property.source, members)
        }
        let isShown: Bool
        if let relation = effective.relation {
            var completions = members.completions.filter { $0.path.count > 1 && $0.path.first == property.name }.map {
                Completion(path: $0.path.dropFirst(), value: $0.value, property: $0.property)
            }
            for index in property.completedBy {
                let completing = models.compiled[currentModel].properties[index]
                guard let value = find(completing.source, members) else { continue }
                let path = completing.completes.dropFirst()
                completions.append(Completion(path: path, value: value, property: completing))
            }
            let selection = Selection(relation: relation, mask: mask, completions: completions)
            isShown = related(found, by: effective, selection)
        } else {
            isShown = found.map { value($0, of: effective) } ?? false
        }
        if isShown {
            if property.isUnique { dropRepeats(since: valueStart) }
            let isKnown = frames.count == syntheticDepth && !property.isIdentity
            if isKnown || members.isKnown(property.source) { record(.synthetic) }
            return true
        }
        rewind(to: valueStart)
        if let value = effective.defaultValue {
            output += value
            record(.synthetic)
            return false
        }
        rewind(to: before)
        if effective.isRequired, found == nil {
            let message = "Property \(property.name) is required and absent."
            warn(.requiredMissing, message, at: frames.last?.object, of: property)
        }
        return false
    }

    /// Leaves out each element of the list at the end of the output that equals an earlier one (`unique`).
    private mutating func dropRepeats(since start: (output: Int, notes: Int)) {
        guard let list = try? JSONIndex(Array(output[start.output...])), list.kind(0) == .array else { return }
        var seen: Set<[UInt8]> = []
        // By element, its new position; nil if it equals an earlier one.
        let positions = list.children(of: 0).map { element -> Int? in
            let json = Array(list.bytes(element))
            return seen.insert(JSONOutline(json)?.canonical() ?? json).inserted ? seen.count - 1 : nil
        }
        guard seen.count < positions.count else { return }
        output.removeLast(output.count - start.output)
        append("[")
        for (element, position) in zip(list.children(of: 0), positions) where position != nil {
            output.appendComma()
            output += list.bytes(element)
        }
        append("]")
        let prefix = outputPointer + "/"
        let moved = notes[start.notes...].compactMap { note -> Note? in
            guard note.pointer.hasPrefix(prefix) else { return note }
            let rest = note.pointer.dropFirst(prefix.count)
            let index = rest.prefix { $0 != "/" }
            guard let position = Int(index).flatMap({ positions[$0] }) else { return nil }
            return Note(kind: note.kind, pointer: "\(prefix)\(position)\(rest.dropFirst(index.count))")
        }
        notes.replaceSubrange(start.notes..., with: moved)
    }

    // MARK: Values

    /// Writes the value of a plain property, coerced, checked and converted; returns whether it is shown.
    ///
    /// A value that the conversion does not accept stays as the upstream sent it, with a warning.
    private mutating func value(_ found: Value, of property: CompiledProperty) -> Bool {
        let conversion = property.conversion
        // A value map may have an entry for null.
        if found.isNull, conversion.refusesNull || conversion.converter == nil { return null(found, of: property) }
        var value = found
        if let json = conversion.coerced(found.slice), let coerced = Value(json, of: found) {
            recordCoercion(of: found, property, model: property.model)
            value = coerced
        }
        guard passesChecks(value, of: property, shownAt: found) else { return false }
        guard let converter = conversion.converter else {
            appendLiteral(value)
            return true
        }
        let result = converter.forward(value.bytes)
        for fault in result.faults {
            if fault.isKept { record(.unconverted, within: fault.pointer) }
            warn(fault, in: value, of: property)
        }
        guard let json = result.json else { return false }
        appendLiteral(json)
        return true
    }

    /// Whether a value passes the property's checks; warns if it does not.
    mutating func passesChecks(_ value: Value, of property: CompiledProperty, shownAt place: Value) -> Bool {
        guard let fault = property.conversion.checker?.fault(in: value.slice) else { return true }
        warn(.quarantined, "Property \(property.name): \(fault); the value is left out.", at: place, of: property)
        return false
    }

    /// Writes null for a null in the source, unless a default takes its place; returns whether it is shown.
    mutating func null(_ value: Value, of property: CompiledProperty) -> Bool {
        if property.conversion.refusesNull {
            warn(.unexpectedNull, "Property \(property.name) is null.", at: value, of: property)
            if property.defaultValue != nil { return false }
        }
        append("null")
        return true
    }

    /// Warns of a coercion, once per property.
    mutating func recordCoercion(of value: Value, _ property: CompiledProperty, model: String) {
        guard coerced.insert("\(model).\(property.name)").inserted else { return }
        let message = "Property \(property.name) has a value of another type, which is converted."
        warn(MappingWarning(.coerced, message, model: model, property: property.name), at: value)
    }
}
