extension MapRun {
    /// Writes the mapped view of the body; returns false if the body does not match its rule.
    mutating func body(_ plan: BodyPlan, mask: MemberMask) -> Bool {
        guard plan.main.isSingle else {
            let message = "The envelope's key path leads over the elements of a list; such content has no mapped view."
            warn(.envelopeMissing, message, at: nil, model: models.compiled[plan.main.model].name)
            return false
        }
        guard let main = content(plan.main) else { return false }
        let others = plan.others.compactMap { other in content(other).map { (other, $0) } }
        let isAlone = plan.envelope == nil && plan.others.isEmpty
        guard !isAlone, body.kind == .object else { return write(plan.main, main, mask) }
        if plan.main.path.isEmpty {
            // The body is itself an object of a model, and contains others.
            guard plan.main.arity == .one else { return write(plan.main, main, mask) }
            let start = output.count
            object(body, as: plan.main.model, mask: mask) { run in
                if let envelope = plan.envelope {
                    run.appendEnvelope(as: envelope, start: start, besides: others.map(\.0.name))
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
    private mutating func appendEnvelope(as index: Int, start: Int, besides names: [String]) {
        guard let own = try? JSONIndex(Array(output[start...]) + [UInt8(ascii: "}")]) else { return }
        var shown = names
        own.forEachMember(of: 0) { name, _ in own.name(name).map { shown.append($0) } }
        output.appendComma()
        let mark = output.count
        object(body, as: index, mask: .excluding(shown))
        output.removeLast()
        output.remove(at: mark)
        if output.count == mark, output.last == UInt8(ascii: ",") { output.removeLast() }
    }

    /// The value of a content, or nil if its path leads nowhere; warns if it is the main one.
    private mutating func content(_ content: BodyPlan.Content) -> Value? {
        var value: Value? = content.isSingle ? body : nil
        for name in content.path.leadingNames { value = value?.member(name) }
        if value == nil, content.isMain {
            warn(.envelopeMissing, at: body, model: models.compiled[content.model].name)
        }
        return value
    }

    private mutating func append(_ contents: [(BodyPlan.Content, Value)], _ mask: MemberMask) {
        for (content, value) in contents {
            output.appendComma()
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
        switch (content.arity, value.kind) {
        case (.one, .object):
            let before = warnings.count
            object(value, as: content.model, mask: mask)
            return !warnings[before...].contains { $0.kind == .nothingMapped && $0.pointer == value.pointer }
        case (.many, .object):
            onlyElement(value, of: content.relation, mask: mask)
            return true
        case (.keyed, .object):
            keyedElements(value, of: content.relation, mask: mask)
            return true
        case (.many, .array): return list(value.children, of: content.relation, mask: mask, isContent: true)
        case (.one, .array), (.keyed, .array):
            warn(.arrayForObject, at: value, model: model)
            return false
        default:
            if value.isNull, value.node > 0 {
                append("null")
                return true
            }
            if !value.isNull { warn(.notAnObject, at: value, model: model) }
            return false
        }
    }
}

extension BodyPlan.Content {
    /// The relation of the body to the objects.
    var relation: CompiledProperty.Related { CompiledProperty.Related(arity: arity, model: model) }
}
