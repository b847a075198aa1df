/// One way back: from mapped JSON to the upstream's.
struct UnmapRun {
    typealias Value = MapRun.Value

    let plan: MappingPlan
    /// Pointers of values that are synthetic; nil: whatever equals its default is.
    let synthetic: Set<String>?
    /// The mapped text, and what conversions make of its values.
    var documents: [JSONIndex]
    var builder = WireBuilder()
    var warnings: [MappingWarning] = []
    private var nesting = 0

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

    private func pointer(_ value: Value) -> String? {
        value.document == 0 ? documents[0].pointer(to: value.node) : nil
    }

    mutating func warn(_ kind: MappingWarning.Kind, _ message: String, at value: Value, model: String?) {
        guard warnings.count < MapRun.maximumWarnings else { return }
        warnings.append(MappingWarning(kind, message, pointer: pointer(value), model: model))
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
        completed: [ArraySlice<String>] = [],
        besides: [String] = []
    ) throws(UnmapError) {
        guard nesting < MapRun.maximumNesting else { return builder.set(node, bytes(object)) }
        nesting += 1
        defer { nesting -= 1 }
        let model = plan.models[choose(index, for: object)]
        guard builder.openObject(node) else { return }
        for index in model.writingOrder {
            let property = model.properties[index]
            if property.completes.isEmpty {
                guard let inner = mask.member(property.name), let value = member(property.name, of: object),
                    !completed.contains(where: { $0.count == 1 && $0.first == property.name })
                else { continue }
                var below = completed.filter { $0.count > 1 && $0.first == property.name }.map { $0.dropFirst() }
                below += property.completedBy.map { model.properties[$0] }.filter(\.isWritten).map {
                    $0.completes.dropFirst()
                }
                try write(value, of: property, model.name, into: node, mask: inner, completed: below)
            } else if !completed.contains(where: { $0.elementsEqual(property.completes) }),
                let value = value(of: property, in: object, mask: mask)
            {
                try write(value, of: property, model.name, into: node, mask: .all, completed: [])
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
                    "A member is no property; it is not written back.",
                    at: value,
                    model: model.name
                )
            }
            builder.set(member, bytes(value))
        }
    }

    // MARK: Properties

    private mutating func write(
        _ value: Value,
        of property: PropertyPlan,
        _ model: String,
        into node: Int,
        mask: MemberMask,
        completed: [ArraySlice<String>]
    ) throws(UnmapError) {
        guard !isSynthetic(value, property) else { return }
        let madeBefore = documents.count
        defer { documents.removeLast(documents.count - madeBefore) }
        guard let reversed = try reverse(value, of: property, model) else { return }
        switch property.output {
        case .none:
            break
        case .path(let path):
            try place(reversed, at: path.steps[...], of: property, model, node, mask, completed)
        case .itself:
            guard let relation = property.relation, kind(reversed) == .object else { break }
            try object(reversed, as: relation.plan, into: node, mask: mask, completed: completed)
        case .parts(let parts):
            for (name, path) in parts {
                let part =
                    isNull(reversed)
                    ? reversed : member(String(decoding: name, as: UTF8.self), of: reversed)
                if let part { try place(part, at: path.steps[...], of: property, model, node, mask, completed) }
            }
        }
    }

    private func isSynthetic(_ value: Value, _ property: PropertyPlan) -> Bool {
        guard let json = property.defaultValue, let known = JSONSlice(json),
            documents[value.document].slice(value.node).isEqual(to: known)
        else { return false }
        return synthetic.map { pointers in pointer(value).map { pointers.contains($0) } ?? false } ?? true
    }

    /// The upstream's form of a mapped value; nil if it is not written.
    private mutating func reverse(
        _ value: Value,
        of property: PropertyPlan,
        _ model: String
    ) throws(UnmapError) -> Value? {
        guard let transformer = property.conversion.transformer, property.isWritten else { return value }
        let json: [UInt8]
        switch transformer.reverse(bytes(value)) {
        case .value(let result), .coerced(let result):
            json = result
        case .partial(let result, let faults):
            json = result
            for fault in faults {
                warn(.transformFailed, "Property \(property.name): \(fault.reason).", at: value, model: model)
            }
        case .failed(let reason):
            throw UnmapError(
                reason: reason,
                pointer: pointer(value),
                property: property.name,
                model: model,
                value: bytes(value)
            )
        case .dropped:
            return nil
        }
        guard let index = try? JSONIndex(json) else { return nil }
        documents.append(index)
        return Value(document: documents.count - 1, node: 0)
    }

    /// Puts a value at a path; one that lies within something already written only fills in what is missing.
    private mutating func place(
        _ value: Value,
        at steps: ArraySlice<ValuePath.Step>,
        of property: PropertyPlan,
        _ model: String,
        _ node: Int,
        _ mask: MemberMask,
        _ completed: [ArraySlice<String>]
    ) throws(UnmapError) {
        switch steps.first {
        case nil:
            guard let relation = property.relation else { return builder.set(node, bytes(value)) }
            try related(value, relation, node, mask, completed)
        case .member(let name):
            guard let member = builder.member(name, of: node) else { return }
            try place(value, at: steps.dropFirst(), of: property, model, member, mask, completed)
        case .each:
            if isNull(value) { return builder.set(node, bytes(value)) }
            guard kind(value) == .array else {
                throw UnmapError(
                    reason: "a list is expected, whose elements go to the elements of another",
                    pointer: pointer(value),
                    property: property.name,
                    model: model,
                    value: bytes(value)
                )
            }
            let values = documents[value.document].children(of: value.node)
            // Of a list of objects elements may have been left out on the way in: then none knows its place.
            if let count = builder.elementCount(of: node), count != values.count {
                return warn(
                    .undeclaredMember,
                    "The list whose elements these belong to has another length; they are not written back.",
                    at: value,
                    model: model
                )
            }
            guard let elements = builder.elements(values.count, of: node) else { return }
            for (element, inner) in zip(elements, values) {
                let inner = Value(document: value.document, node: inner)
                try place(inner, at: steps.dropFirst(), of: property, model, element, mask, completed)
            }
        }
    }

    // MARK: Relations

    private mutating func related(
        _ value: Value,
        _ relation: PropertyPlan.Related,
        _ node: Int,
        _ mask: MemberMask,
        _ completed: [ArraySlice<String>]
    ) throws(UnmapError) {
        switch (relation.shape, kind(value)) {
        case (.keyed, .object):
            try keyed(value, as: relation.plan, into: node, mask: mask)
        case (.many, .array):
            try list(value, as: relation.plan, into: node, mask: mask)
        case (_, .object):
            try object(value, as: relation.plan, into: node, mask: mask, completed: completed)
            // A child of which the upstream had nothing but what completes it has no place of its own.
            let isCompleted = completed.contains { $0.first.map { member($0, of: value) != nil } ?? false }
            if isCompleted, builder.isEmptyObject(node) { builder.reopen(node) }
        default:
            builder.set(node, bytes(value))
        }
    }

    mutating func list(_ value: Value, as index: Int, into node: Int, mask: MemberMask) throws(UnmapError) {
        let values = documents[value.document].children(of: value.node)
        guard let elements = builder.elements(values.count, of: node) else { return }
        for (place, inner) in zip(elements, values) {
            try element(Value(document: value.document, node: inner), as: index, into: place, mask: mask)
        }
    }

    mutating func keyed(_ value: Value, as index: Int, into node: Int, mask: MemberMask) throws(UnmapError) {
        let text = documents[value.document]
        builder.openObject(node)
        var name = value.node + 1
        while name < Int(text.nodes[value.node].next) {
            let inner = Value(document: value.document, node: name + 1)
            if let key = text.name(name), let member = builder.member(Array(key.utf8), of: node) {
                try element(inner, as: index, into: member, mask: mask)
            } else {
                warn(.undeclaredMember, "A name is not Unicode; its member is not written back.", at: inner, model: nil)
            }
            name = Int(text.nodes[name + 1].next)
        }
    }

    private mutating func element(_ value: Value, as index: Int, into node: Int, mask: MemberMask) throws(UnmapError) {
        if kind(value) == .object {
            try object(value, as: index, into: node, mask: mask)
        } else {
            builder.set(node, bytes(value))
        }
    }
}

extension PropertyPlan {
    /// Whether the property is written back to a place of its own.
    var isWritten: Bool { if case .none = output { false } else { true } }
}
