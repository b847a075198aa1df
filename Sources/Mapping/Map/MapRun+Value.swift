extension MapRun {
    /// Writes the value of a plain property: coerced, checked, converted.
    ///
    /// - Returns: whether it is shown.
    mutating func value(_ found: Value, of property: PropertyPlan, _ model: String) -> Bool {
        let conversion = property.conversion
        // A value map may know a word for null.
        if isNull(found), conversion.refusesNull || conversion.transformer == nil {
            return null(found, of: property, model)
        }
        var value = found
        if let json = conversion.coercion?.coerced(slice(found)), let coerced = make(json, of: found) {
            noteCoercion(of: found, property.name, model)
            value = coerced
        }
        if let checker = conversion.checker, let fault = checker.fault(in: slice(value)) {
            warn(
                .quarantined,
                "Property \(property.name): \(fault); the value is left out.",
                at: found,
                model: model,
                property: property.name
            )
            return false
        }
        guard let transformer = conversion.transformer else {
            appendLiteral(value)
            return true
        }
        return write(transformer.forward(bytes(value)), of: value, property.name, model)
    }

    /// Writes null where null was seen.
    mutating func null(_ value: Value, of property: PropertyPlan, _ model: String) -> Bool {
        if property.conversion.refusesNull {
            warn(
                .unexpectedNull,
                "Property \(property.name) is null.",
                at: value,
                model: model,
                property: property.name
            )
            if property.defaultValue != nil { return false }
        }
        append("null")
        return true
    }

    /// Warns of a coercion, once for each property.
    mutating func noteCoercion(of value: Value, _ property: String, _ model: String) {
        guard coerced.insert("\(model).\(property)").inserted else { return }
        warn(
            .coerced,
            "Property \(property) has a value of another type, which is converted.",
            at: value,
            model: model,
            property: property
        )
    }

    /// Writes what came of a conversion; what it does not know stays as the upstream has it, with a warning.
    private mutating func write(
        _ result: TransformResult,
        of value: Value,
        _ property: String,
        _ model: String
    ) -> Bool {
        switch result {
        case .value(let json):
            output.append(contentsOf: json)
        case .coerced(let json):
            noteCoercion(of: value, property, model)
            output.append(contentsOf: json)
        case .partial(let json, let faults):
            for fault in faults {
                warn(
                    .transformFailed,
                    "Property \(property): \(fault.reason).",
                    at: value,
                    within: fault.pointer,
                    model: model,
                    property: property
                )
            }
            output.append(contentsOf: json)
        case .failed(let reason):
            warn(.transformFailed, "Property \(property): \(reason).", at: value, model: model, property: property)
            appendLiteral(value)
        case .dropped:
            return false
        }
        return true
    }
}
