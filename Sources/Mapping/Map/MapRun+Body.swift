extension MapRun {
    /// Writes the mapped view of the body; returns false if the body does not match its rule.
    mutating func body(_ plan: BodyPlan, mask: MemberMask) -> Bool {
        let body = Value(document: 0, node: 0)
        guard plan.main.isSingle else {
            let message = "The envelope's key path leads over the elements of a list; such content has no mapped view."
            warn(.envelopeMissing, message, at: nil, model: models.compiled[plan.main.model].name)
            return false
        }
        guard let main = content(plan.main) else { return false }
        let others = plan.others.compactMap { other in content(other).map { (other, $0) } }
        let isAlone = plan.envelope == nil && plan.others.isEmpty
        guard !isAlone, kind(body) == .object else { return write(plan.main, main, mask) }
        if plan.main.path.isEmpty {
            // The body is itself an object of a model, and contains others.
            guard plan.main.arity == .one else { return write(plan.main, main, mask) }
            let start = output.count
            object(body, as: plan.main.model, mask: mask) { run in
                if let envelope = plan.envelope {
                    run.appendEnvelope(body, as: envelope, start: start, besides: others.map(\.0.name))
                }
                run.append(others, mask)
            }
            return true
        }
        let contents = [(plan.main, main)] + others
        if let envelope = plan.envelope {
            object(body, as: envelope, mask: .excluding(contents.map(\.0.name))) { $0.append(contents, mask) }
        } else {
            append("{")
            append(contents, mask)
            append("}")
        }
        return true
    }

    /// Adds the envelope's properties to an object that is the whole body.
    ///
    /// The object's own properties take precedence.
    ///
    /// - Parameters:
    ///   - start: the offset of that object in the output.
    ///   - names: the names of the other contents, which are written later.
    private mutating func appendEnvelope(_ body: Value, as index: Int, start: Int, besides names: [String]) {
        guard let own = try? JSONIndex(Array(output[start...]) + [UInt8(ascii: "}")]) else { return }
        var shown = names
        own.forEachMember(of: 0) { name, _ in own.name(name).map { shown.append($0) } }
        if output.last != UInt8(ascii: "{") { append(",") }
        let mark = output.count
        object(body, as: index, mask: .excluding(shown))
        output.removeLast()
        output.remove(at: mark)
        if output.count == mark, output.last == UInt8(ascii: ",") { output.removeLast() }
    }

    /// The value of a content, or nil if its path leads nowhere; warns if it is the main one.
    private mutating func content(_ content: BodyPlan.Content) -> Value? {
        let node = content.isSingle ? documents[0].index.value(at: content.path, of: 0) : nil
        if node == nil, content.isMain {
            warn(.envelopeMissing, at: Value(document: 0, node: 0), model: models.compiled[content.model].name)
        }
        return node.map { Value(document: 0, node: $0) }
    }

    private mutating func append(_ contents: [(BodyPlan.Content, Value)], _ mask: MemberMask) {
        for (content, value) in contents {
            if output.last != UInt8(ascii: "{") { append(",") }
            JSONString.append(content.name, to: &output)
            append(":")
            place.append(.name(content.name))
            // A content that does not match the rule stays as it is.
            let before = (output: output.count, notes: notes.count)
            if !write(content, value, mask) {
                rewind(to: before)
                appendLiteral(value)
            }
            place.removeLast()
        }
    }

    /// Writes one content; returns false if its value does not match the rule.
    private mutating func write(_ content: BodyPlan.Content, _ value: Value, _ mask: MemberMask) -> Bool {
        let model = models.compiled[content.model].name
        switch (content.arity, kind(value)) {
        case (.one, .object):
            let before = warnings.count
            object(value, as: content.model, mask: mask)
            let pointer = documents[0].index.pointer(to: value.node)
            return !warnings[before...].contains { $0.kind == .nothingMapped && $0.pointer == pointer }
        case (.many, .object):
            onlyElement(value, as: content.model, mask: mask)
            return true
        case (.keyed, .object):
            keyedElements(value, of: CompiledProperty.Related(arity: .keyed, model: content.model), mask: mask)
            return true
        case (.many, .array): return elements(value, as: content.model, mask: mask)
        case (.one, .array), (.keyed, .array):
            warn(.arrayForObject, at: value, model: model)
            return false
        default:
            if isNull(value), value.node > 0 {
                append("null")
                return true
            }
            if !isNull(value) { warn(.notAnObject, at: value, model: model) }
            return false
        }
    }

    /// Writes the elements of a list content; unlike in a relation, none may be a bare identity.
    private mutating func elements(_ value: Value, as index: Int, mask: MemberMask) -> Bool {
        let text = documents[value.document].index
        let (start, model) = (output.count, models.compiled[index].name)
        var shown = 0
        var isEmpty = true
        append("[")
        text.forEachElement(of: value.node) { position, node in
            isEmpty = false
            let element = Value(document: value.document, node: node)
            guard text.kind(node) == .object || text.isNull(node) else {
                warn(.notAnObject, "An element is not an object; it is left out.", at: element, model: model)
                return
            }
            if shown > 0 { append(",") }
            place.append(.index(shown))
            if text.isNull(node) {
                append("null")
            } else {
                object(element, as: index, position: position, mask: mask)
            }
            place.removeLast()
            shown += 1
        }
        append("]")
        if shown == 0, !isEmpty {
            output.removeLast(output.count - start)
            return false
        }
        return true
    }
}

extension JSONIndex {
    /// The value at a key path of an object; nil if a member on the path is missing or not an object.
    func value(at path: [PathStep], of object: Int) -> Int? {
        var value = object
        for case .name(let name) in path {
            guard let next = member(name.utf8, of: value) else { return nil }
            value = next
        }
        return value
    }
}
