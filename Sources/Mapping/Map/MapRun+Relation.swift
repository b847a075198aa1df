extension MapRun {
    /// Writes the value of a relation; returns whether it is shown.
    mutating func related(_ found: Value?, by property: CompiledProperty, _ selection: Selection) -> Bool {
        let (index, mask, completions) = (selection.model, selection.mask, selection.completions)
        guard let found else {
            // The child consists only of completions.
            return !completions.isEmpty && object(nil, as: index, mask: mask, completions: completions)
        }
        if found.isNull {
            if !completions.isEmpty {
                let message = "A child is null; what would complete it is ignored."
                warn(MappingWarning(.completionIgnored, message, model: property.model), at: found)
            }
            return null(found, of: property)
        }
        guard passesChecks(found, of: property, shownAt: found) else { return false }
        switch selection.relation.arity {
        case .one: return one(found, by: property, selection)
        case .many: return many(found, by: property, selection)
        case .keyed: return keyed(found, selection)
        }
    }

    private mutating func one(_ value: Value, by property: CompiledProperty, _ selection: Selection) -> Bool {
        let (index, mask, completions) = (selection.model, selection.mask, selection.completions)
        if case .parts = property.source { return reference(value, selection) }
        if case .itself = property.source {
            let before = warnings.count
            let isPresent = object(value, as: index, mask: mask, completions: completions, isItself: true)
            // A child that is not there lacks nothing, so it gives no warnings.
            if !isPresent { warnings.removeLast(warnings.count - before) }
            return isPresent
        }
        guard !completions.isEmpty else { return element(value, selection) }
        if value.kind == .object {
            object(value, as: index, mask: mask, completions: completions)
            return true
        }
        // The identity is not expanded: the completions would be written back into the inserted object.
        guard element(value, selection, expands: false) else { return related(nil, by: property, selection) }
        let message = "A child is not an object; what would complete it is ignored."
        warn(MappingWarning(.completionIgnored, message, model: property.model), at: value)
        return true
    }

    /// Writes an object that members around it identify: what is known of it, or else its identity.
    private mutating func reference(_ value: Value, _ selection: Selection) -> Bool {
        let (model, parts) = (models.compiled[selection.model], value.children)
        // If all parts are null, there is no object; if only some are, none is identified.
        if parts.count == model.reading.identity.count, parts.allSatisfy(\.isNull) {
            append("null")
            return true
        }
        guard model.object(identifiedByMembersOf: value.slice) != nil else { return false }
        guard !loneIdentity(value, selection, Standing()) else { return true }
        let before = warnings.count
        object(value, as: selection.model, mask: selection.mask)
        // Of an object that is only named, nothing is missing.
        warnings.removeLast(warnings.count - before)
        return true
    }

    private mutating func many(_ value: Value, by property: CompiledProperty, _ selection: Selection) -> Bool {
        switch value.kind {
        case .array: list(value.children, selection, levels: property.listLevels)
        case .object: onlyElement(value, selection)
        case .string, .number, .boolean, .null:
            if isEmptyString(value) {
                appendLiteral(value)
                break
            }
            guard property.conversion.coerces, isIdentity(value, selection.relation) else {
                return quarantine(value, as: selection.model)
            }
            recordCoercion(of: value, property, model: models.compiled[selection.model].name)
            append("[")
            appendLiteral(value)
            append("]")
        }
        return true
    }

    /// Writes one object where a list is declared.
    mutating func onlyElement(_ value: Value, _ selection: Selection) {
        warn(.objectForList, at: value, as: selection.model)
        list([value], selection, isContent: true)
    }

    private mutating func keyed(_ value: Value, _ selection: Selection) -> Bool {
        switch value.kind {
        case .object: keyedElements(value, selection)
        case .array:
            // Some languages write an empty dictionary as an empty array.
            if !value.children.isEmpty {
                let message = "A list was received where an object is declared; it stays as it is."
                warn(.arrayForObject, message, at: value, as: selection.model)
            }
            appendLiteral(value)
        case .string, .number, .boolean, .null: return quarantine(value, as: selection.model)
        }
        return true
    }

    /// Writes an object whose members are objects of a model; of those with one name, the last counts.
    mutating func keyedElements(_ value: Value, _ selection: Selection) {
        append("{")
        let text = value.index
        var last: [MemberPath: Int] = [:]
        text.forEachMember(of: value.node) { name, member in
            last[text.slice(name).withBytes { MemberPath(literal: $0) }] = member
        }
        let counting = Set(last.values)
        text.forEachMember(of: value.node) { name, node in
            let member = value.at(node)
            guard counting.contains(node) else { return warnOfRepetition(at: member, as: selection.model) }
            let before = moment
            output.appendComma()
            output += text.bytes(name)
            append(":")
            place.append(.name(text.name(name) ?? "\u{FFFD}"))
            if !element(member, selection, Standing(key: value.at(name))) { rewind(to: before) }
            place.removeLast()
        }
        append("}")
    }

    /// Writes a list of objects of a model, nested at most `levels` deep.
    ///
    /// - Parameter isContent: whether it is the content of a body, in which no element is a bare identity.
    /// - Returns: whether any of its elements is shown, or it has none.
    @discardableResult
    mutating func list(_ elements: [Value], _ selection: Selection, levels: Int = 1, isContent: Bool = false) -> Bool {
        append("[")
        var shown = 0
        for (position, member) in elements.enumerated() {
            let (before, standing) = (moment, Standing(position: position))
            output.appendComma()
            place.append(.index(shown))
            var isShown = true
            if levels > 1, member.kind == .array {
                list(member.children, selection, levels: levels - 1)
            } else if !isContent {
                isShown = element(member, selection, standing)
            } else if member.isNull {
                append("null")
            } else if member.kind == .object {
                object(member, as: selection.model, standing: standing, mask: selection.mask)
            } else {
                warn(.notAnObject, "An element is not an object; it is left out.", at: member, as: selection.model)
                isShown = false
            }
            if isShown { shown += 1 } else { rewind(to: before) }
            place.removeLast()
        }
        append("]")
        return shown > 0 || elements.isEmpty
    }

    /// Writes a value in place of one object; returns whether it is shown.
    ///
    /// Null stays, and so does an empty string, which some APIs write for nothing. A reference becomes the identity of
    /// its object. Bare identities are left to `bare`. Any other value is quarantined.
    private mutating func element(
        _ value: Value,
        _ selection: Selection,
        _ standing: Standing = Standing(),
        expands: Bool = true
    ) -> Bool {
        switch value.kind {
        case .object:
            if !loneIdentity(value, selection, standing) {
                object(value, as: selection.model, standing: standing, mask: selection.mask)
            }
        case .array where standing.position == nil && standing.key == nil:
            let message = "A list was received where an object is declared; it is left out."
            warn(.arrayForObject, message, at: value, as: selection.model)
            return false
        case .array: return quarantine(value, as: selection.model)
        case .string, .number, .boolean, .null:
            let stays = value.isNull || isEmptyString(value) || (resolve != nil && value.slice.isReference)
            guard stays || isIdentity(value, selection.relation) else { return quarantine(value, as: selection.model) }
            if stays || !expands { appendLiteral(value) } else { bare(value, selection, standing) }
        }
        return true
    }

    private func isIdentity(_ value: Value, _ related: CompiledProperty.Related) -> Bool {
        guard related.key != nil || models.compiled[related.model].hasIdentity else { return false }
        return if case .text = value.withBytes({ Identity.read($0) }) { true } else { false }
    }

    private func isEmptyString(_ value: Value) -> Bool { value.kind == .string && value.withBytes { $0.count == 2 } }

    private mutating func quarantine(_ value: Value, as index: Int) -> Bool {
        let model = models.compiled[index].name
        let message = "A value was received where an object of \(model) is declared; it is left out."
        warn(.quarantined, message, at: value, as: index)
        return false
    }
}
