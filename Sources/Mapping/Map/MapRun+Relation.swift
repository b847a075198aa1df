extension MapRun {
    /// Writes the value of a relation.
    ///
    /// - Returns: whether it is shown.
    mutating func related(
        _ found: Value?,
        by property: CompiledProperty,
        _ relation: CompiledProperty.Related,
        mask: MemberMask,
        completions: [Completion]
    ) -> Bool {
        guard let found else {
            // The child consists only of completions.
            return !completions.isEmpty && object(nil, as: relation.model, mask: mask, completions: completions)
        }
        if isNull(found) {
            if !completions.isEmpty {
                let message = "A child is null; what would complete it is ignored."
                warn(.completionIgnored, message, at: found, model: property.model)
            }
            return null(found, of: property)
        }
        guard passesChecks(found, of: property, shownAt: found) else { return false }
        switch relation.arity {
        case .one: return one(found, by: property, relation, mask: mask, completions)
        case .many: return many(found, by: property, relation, mask: mask)
        case .keyed: return keyed(found, relation, mask: mask)
        }
    }

    private mutating func one(
        _ value: Value,
        by property: CompiledProperty,
        _ related: CompiledProperty.Related,
        mask: MemberMask,
        _ completions: [Completion]
    ) -> Bool {
        let index = related.model
        if case .parts = property.source { return reference(value, as: index, mask: mask) }
        if case .itself = property.source {
            let before = warnings.count
            let isPresent = object(value, as: index, mask: mask, completions: completions, isItself: true)
            // A child that is not there lacks nothing, so it gives no warnings.
            if !isPresent { warnings.removeLast(warnings.count - before) }
            return isPresent
        }
        if kind(value) == .object {
            if completions.isEmpty { return element(value, of: related, mask: mask) }
            object(value, as: index, mask: mask, completions: completions)
            return true
        }
        // With completions the identity is not expanded: they would be written back into the inserted object.
        let isShown = element(value, of: related, mask: mask, expands: completions.isEmpty)
        guard !completions.isEmpty else { return isShown }
        guard !isShown else {
            let message = "A child is not an object; what would complete it is ignored."
            warn(.completionIgnored, message, at: value, model: property.model)
            return true
        }
        return object(nil, as: index, mask: mask, completions: completions)
    }

    /// Writes an object that members around it identify: what is known of it, or else its identity.
    private mutating func reference(_ value: Value, as index: Int, mask: MemberMask) -> Bool {
        let (model, text) = (models.compiled[index], documents[value.document].index)
        let parts = text.children(of: value.node)
        // If all parts are null, there is no object; if only some are, none is identified.
        if parts.count == model.reading.identity.count, parts.allSatisfy(text.isNull) {
            append("null")
            return true
        }
        guard model.object(identifiedByMembersOf: slice(value)) != nil else { return false }
        guard !loneIdentity(value, as: index, position: nil, key: nil, mask: mask) else { return true }
        let before = warnings.count
        object(value, as: index, mask: mask)
        // Of an object that is only named, nothing is missing.
        warnings.removeLast(warnings.count - before)
        return true
    }

    private mutating func many(
        _ value: Value,
        by property: CompiledProperty,
        _ related: CompiledProperty.Related,
        mask: MemberMask
    ) -> Bool {
        let index = related.model
        switch kind(value) {
        case .array:
            list(value, of: related, mask: mask, levels: property.listLevels)
            return true
        case .object:
            onlyElement(value, as: index, mask: mask)
            return true
        default:
            guard property.conversion.coerces, isIdentity(value, of: related) else {
                return isEmptyString(value) ? literal(value) : quarantine(value, as: index)
            }
            noteCoercion(of: value, property, model: models.compiled[index].name)
            append("[")
            appendLiteral(value)
            append("]")
            return true
        }
    }

    /// Writes one object where a list is declared.
    mutating func onlyElement(_ value: Value, as index: Int, mask: MemberMask) {
        warn(.objectForList, at: value, model: models.compiled[index].name)
        append("[")
        place.append(.index(0))
        object(value, as: index, position: 0, mask: mask)
        place.removeLast()
        append("]")
    }

    private mutating func keyed(_ value: Value, _ related: CompiledProperty.Related, mask: MemberMask) -> Bool {
        let index = related.model
        guard kind(value) == .object else {
            guard kind(value) == .array else { return quarantine(value, as: index) }
            // Some languages write an empty dictionary as an empty array.
            if !documents[value.document].index.children(of: value.node).isEmpty {
                let message = "A list was received where an object is declared; it stays as it is."
                warn(.arrayForObject, message, at: value, model: models.compiled[index].name)
            }
            return literal(value)
        }
        keyedElements(value, of: related, mask: mask)
        return true
    }

    /// Writes an object whose members are objects of a model.
    mutating func keyedElements(_ value: Value, of related: CompiledProperty.Related, mask: MemberMask) {
        append("{")
        let start = output.count
        let text = documents[value.document].index
        let repeated = repeatedMembers(of: value.node, text)
        text.forEachMember(of: value.node) { name, member in
            if repeated.contains(member) {
                let last = Value(document: value.document, node: member)
                return warnOfRepetition(at: last, models.compiled[related.model].name)
            }
            let mark = output.count
            if mark > start { append(",") }
            output.append(contentsOf: text.bytes(name))
            append(":")
            place.append(.name(text.name(name) ?? "\u{FFFD}"))
            let key = Value(document: value.document, node: name)
            let isShown = element(Value(document: value.document, node: member), of: related, key: key, mask: mask)
            if !isShown { output.removeLast(output.count - mark) }
            place.removeLast()
        }
        append("}")
    }

    /// The members of an object that a later one with the same name overrides.
    private func repeatedMembers(of object: Int, _ text: JSONIndex) -> Set<Int> {
        var last: [MemberPath: Int] = [:]
        var repeated: Set<Int> = []
        text.forEachMember(of: object) { name, member in
            if let before = last.updateValue(member, forKey: MemberPath(literal: name, in: text)) {
                repeated.insert(before)
            }
        }
        return repeated
    }

    /// Writes an array of objects of a model, nested at most `levels` deep.
    private mutating func list(_ value: Value, of related: CompiledProperty.Related, mask: MemberMask, levels: Int) {
        append("[")
        let text = documents[value.document].index
        var shown = 0
        text.forEachElement(of: value.node) { position, node in
            let mark = output.count
            if shown > 0 { append(",") }
            place.append(.index(shown))
            let member = Value(document: value.document, node: node)
            var isShown = true
            if levels > 1, text.kind(node) == .array {
                list(member, of: related, mask: mask, levels: levels - 1)
            } else {
                isShown = element(member, of: related, position: position, mask: mask)
            }
            if isShown { shown += 1 } else { output.removeLast(output.count - mark) }
            place.removeLast()
        }
        append("]")
    }

    /// Writes a value in place of one object.
    ///
    /// Null stays, and so does an empty string, which some APIs write for nothing. A reference becomes the identity of
    /// its object. Bare identities are left to `bare`. Any other value is quarantined.
    private mutating func element(
        _ value: Value,
        of related: CompiledProperty.Related,
        position: Int? = nil,
        key: Value? = nil,
        mask: MemberMask,
        expands: Bool = true
    ) -> Bool {
        let index = related.model
        switch kind(value) {
        case .object:
            if !loneIdentity(value, as: index, position: position, key: key, mask: mask) {
                object(value, as: index, position: position, key: key, mask: mask)
            }
            return true
        case .array where position == nil && key == nil:
            let message = "A list was received where an object is declared; it is left out."
            warn(.arrayForObject, message, at: value, model: models.compiled[index].name)
            return false
        case .array: return quarantine(value, as: index)
        case .string where resolve != nil && withBytes(value, { Reference.isReference($0, at: 0) }):
            return literal(value)
        case .string, .number, .word:
            if isNull(value) || isEmptyString(value) { return literal(value) }
            guard isIdentity(value, of: related) else { return quarantine(value, as: index) }
            guard expands else { return literal(value) }
            bare(value, of: related, position: position, key: key, mask: mask)
            return true
        }
    }

    private func isIdentity(_ value: Value, of related: CompiledProperty.Related) -> Bool {
        guard related.key != nil || models.compiled[related.model].hasIdentity,
            case .text = withBytes(value, { Identity.read($0) })
        else { return false }
        return true
    }

    private func isEmptyString(_ value: Value) -> Bool { withBytes(value) { $0.count == 2 } && kind(value) == .string }

    private mutating func literal(_ value: Value) -> Bool {
        appendLiteral(value)
        return true
    }

    private mutating func quarantine(_ value: Value, as index: Int) -> Bool {
        let model = models.compiled[index].name
        let message = "A value was received where an object of \(model) is declared; it is left out."
        warn(.quarantined, message, at: value, model: model)
        return false
    }
}
