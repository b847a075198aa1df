extension MapRun {
    /// Writes the value of a plain property: coerced, checked, converted.
    ///
    /// - Returns: whether it is shown.
    mutating func value(_ found: Value, of property: PropertyPlan, _ model: String) -> Bool {
        if isNull(found) { return null(found, of: property, model) }
        let conversion = property.conversion
        var value = found
        if let coerced = coerce(found, conversion.coercion, property.name, model) { value = coerced }
        if let checker = conversion.checker, let fault = checker.fault(in: bytes(value)) {
            warn(.quarantined, "Property \(property.name): \(fault)", at: found, model: model)
            return false
        }
        return convert(value, conversion.form, property.name, model)
    }

    /// Writes null where null was seen.
    mutating func null(_ value: Value, of property: PropertyPlan, _ model: String) -> Bool {
        if property.conversion.refusesNull {
            warn(.unexpectedNull, "Property \(property.name) is null.", at: value, model: model)
            if property.defaultValue != nil { return false }
        }
        append("null")
        return true
    }

    func coercionKey(_ property: String, _ model: String) -> String { "\(model).\(property)" }

    mutating func noteCoercion(of value: Value, _ property: String, _ model: String) {
        guard coerced.insert(coercionKey(property, model)).inserted else { return }
        warn(.coerced, "Property \(property) has a value of another type, which is converted.", at: value, model: model)
    }

    private mutating func coerce(_ value: Value, _ coercion: Coercion?, _ property: String, _ model: String) -> Value? {
        guard let json = coercion?.apply(to: slice(value)), let coerced = make(json, of: value) else { return nil }
        noteCoercion(of: value, property, model)
        return coerced
    }

    private mutating func convert(
        _ value: Value,
        _ form: ValueConversion.Form,
        _ property: String,
        _ model: String
    ) -> Bool {
        if isNull(value) {
            append("null")
            return true
        }
        switch form {
        case .literal:
            appendLiteral(value)
            return true
        case .transform(let transformer):
            return transform(value, transformer, property, model)
        case .each(let inner, let coercion):
            guard kind(value) == .array else { return fail(value, "expected an array.", property, model) }
            append("[")
            let text = documents[value.document].index
            text.forEachElement(of: value.node) { position, node in
                if position > 0 { append(",") }
                element(Value(document: value.document, node: node), inner, coercion, property, model)
            }
            append("]")
            return true
        case .eachMember(let inner, let coercion):
            guard kind(value) == .object else { return fail(value, "expected an object.", property, model) }
            append("{")
            let text = documents[value.document].index
            var isFirst = true
            text.forEachMember(of: value.node) { name, node in
                if !isFirst { append(",") }
                isFirst = false
                output.append(contentsOf: text.bytes(name))
                append(":")
                element(Value(document: value.document, node: node), inner, coercion, property, model)
            }
            append("}")
            return true
        }
    }

    /// Writes an element of a converted list; what comes to nothing keeps its place as null.
    private mutating func element(
        _ value: Value,
        _ form: ValueConversion.Form,
        _ coercion: Coercion?,
        _ property: String,
        _ model: String
    ) {
        let madeBefore = documents.count
        defer { documents.removeLast(documents.count - madeBefore) }
        if convert(coerce(value, coercion, property, model) ?? value, form, property, model) { return }
        append("null")
        warn(.transformFailed, "Property \(property): an element comes to nothing.", at: value, model: model)
    }

    private mutating func transform(
        _ value: Value,
        _ transformer: Transformer,
        _ property: String,
        _ model: String
    ) -> Bool {
        switch transformer.forward(bytes(value)) {
        case .value(let json):
            output.append(contentsOf: json)
            return true
        case .failed(let reason):
            return fail(value, reason, property, model)
        case .dropped:
            return false
        }
    }

    /// Keeps the upstream's value and warns.
    private mutating func fail(_ value: Value, _ reason: String, _ property: String, _ model: String) -> Bool {
        warn(.transformFailed, "Property \(property): \(reason)", at: value, model: model)
        appendLiteral(value)
        return true
    }
}
