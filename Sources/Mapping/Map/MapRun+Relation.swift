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
        if found.isNull {
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
        if value.kind == .object {
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
        let (model, parts) = (models.compiled[index], value.children)
        // If all parts are null, there is no object; if only some are, none is identified.
        if parts.count == model.reading.identity.count, parts.allSatisfy(\.isNull) {
            append("null")
            return true
        }
        guard model.object(identifiedByMembersOf: value.slice) != nil else { return false }
        guard !loneIdentity(value, as: index, standing: Standing(), mask: mask) else { return true }
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
        switch value.kind {
        case .array: list(value.children, of: related, mask: mask, levels: property.listLevels)
        case .object: onlyElement(value, of: related, mask: mask)
        case .string, .number, .boolean, .null:
            guard property.conversion.coerces, isIdentity(value, of: related) else {
                return isEmptyString(value) ? literal(value) : quarantine(value, as: related.model)
            }
            noteCoercion(of: value, property, model: models.compiled[related.model].name)
            append("[")
            appendLiteral(value)
            append("]")
        }
        return true
    }

    /// Writes one object where a list is declared.
    mutating func onlyElement(_ value: Value, of related: CompiledProperty.Related, mask: MemberMask) {
        warn(.objectForList, at: value, model: models.compiled[related.model].name)
        list([value], of: related, mask: mask, isContent: true)
    }

    private mutating func keyed(_ value: Value, _ related: CompiledProperty.Related, mask: MemberMask) -> Bool {
        let index = related.model
        guard value.kind == .object else {
            guard value.kind == .array else { return quarantine(value, as: index) }
            // Some languages write an empty dictionary as an empty array.
            if !value.children.isEmpty {
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
        let text = value.document.index
        let repeated = repeatedMembers(of: value.node, text)
        text.forEachMember(of: value.node) { name, member in
            if repeated.contains(member) {
                let last = value.at(member)
                return warnOfRepetition(at: last, models.compiled[related.model].name)
            }
            let mark = output.count
            output.appendComma()
            output.append(contentsOf: text.bytes(name))
            append(":")
            place.append(.name(text.name(name) ?? "\u{FFFD}"))
            let standing = Standing(key: value.at(name))
            let isShown = element(value.at(member), of: related, standing: standing, mask: mask)
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

    /// Writes a list of objects of a model, nested at most `levels` deep.
    ///
    /// - Parameter isContent: whether it is the content of a body, in which no element is a bare identity.
    /// - Returns: whether any of its elements is shown, or it has none.
    @discardableResult
    mutating func list(
        _ elements: [Value],
        of related: CompiledProperty.Related,
        mask: MemberMask,
        levels: Int = 1,
        isContent: Bool = false
    ) -> Bool {
        append("[")
        var shown = 0
        for (position, member) in elements.enumerated() {
            let (mark, standing) = (output.count, Standing(position: position))
            output.appendComma()
            place.append(.index(shown))
            var isShown = true
            if levels > 1, member.kind == .array {
                list(member.children, of: related, mask: mask, levels: levels - 1)
            } else if !isContent {
                isShown = element(member, of: related, standing: standing, mask: mask)
            } else if member.isNull {
                append("null")
            } else if member.kind == .object {
                object(member, as: related.model, standing: standing, mask: mask)
            } else {
                let model = models.compiled[related.model].name
                warn(.notAnObject, "An element is not an object; it is left out.", at: member, model: model)
                isShown = false
            }
            if isShown { shown += 1 } else { output.removeLast(output.count - mark) }
            place.removeLast()
        }
        append("]")
        return shown > 0 || elements.isEmpty
    }

    /// Writes a value in place of one object.
    ///
    /// Null stays, and so does an empty string, which some APIs write for nothing. A reference becomes the identity of
    /// its object. Bare identities are left to `bare`. Any other value is quarantined.
    private mutating func element(
        _ value: Value,
        of related: CompiledProperty.Related,
        standing: Standing = Standing(),
        mask: MemberMask,
        expands: Bool = true
    ) -> Bool {
        let index = related.model
        switch value.kind {
        case .object:
            if !loneIdentity(value, as: index, standing: standing, mask: mask) {
                object(value, as: index, standing: standing, mask: mask)
            }
            return true
        case .array where standing.position == nil && standing.key == nil:
            let message = "A list was received where an object is declared; it is left out."
            warn(.arrayForObject, message, at: value, model: models.compiled[index].name)
            return false
        case .array: return quarantine(value, as: index)
        case .string where resolve != nil && value.withBytes({ Reference.isReference($0, at: 0) }):
            return literal(value)
        case .string, .number, .boolean, .null:
            if value.isNull || isEmptyString(value) { return literal(value) }
            guard isIdentity(value, of: related) else { return quarantine(value, as: index) }
            guard expands else { return literal(value) }
            bare(value, of: related, standing: standing, mask: mask)
            return true
        }
    }

    private func isIdentity(_ value: Value, of related: CompiledProperty.Related) -> Bool {
        guard related.key != nil || models.compiled[related.model].hasIdentity,
            case .text = value.withBytes({ Identity.read($0) })
        else { return false }
        return true
    }

    private func isEmptyString(_ value: Value) -> Bool { value.withBytes { $0.count == 2 } && value.kind == .string }

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
