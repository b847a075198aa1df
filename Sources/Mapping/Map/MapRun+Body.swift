extension MapRun {
    /// Writes the mapped view of the body; returns false if the body does not match its rule.
    mutating func body(_ plan: BodyPlan, mask: MemberMask) -> Bool {
        guard let main = value(of: plan.main) else {
            let isSingle = plan.main.isSingle
            let message = "The envelope's key path leads over the elements of a list; such content has no mapped view."
            warn(.envelopeMissing, isSingle ? nil : message, at: isSingle ? body : nil, as: plan.main.model)
            return false
        }
        let others = plan.others.compactMap { other in value(of: other).map { (other, $0) } }
        let isAlone = plan.envelope == nil && plan.others.isEmpty
        // The body may itself be an object of a model, and contain others.
        guard !isAlone, body.kind == .object, !plan.main.path.isEmpty || plan.main.arity == .one else {
            return write(plan.main, main, mask)
        }
        let contents = [(plan.main, main)] + others
        if plan.main.path.isEmpty {
            let start = output.count
            object(body, as: plan.main.model, mask: mask) { run in
                if let envelope = plan.envelope {
                    run.appendEnvelope(as: envelope, start: start, besides: others.map(\.0.name))
                }
                run.append(others, mask)
            }
        } else if let envelope = plan.envelope {
            object(body, as: envelope, mask: .excluding(contents.map(\.0.name))) { $0.append(contents, mask) }
        } else {
            append("{")
            append(contents, mask)
            append("}")
        }
        return true
    }

    /// Adds the envelope's properties to an object that is the whole body, and begins at an offset in the output.
    ///
    /// The object's own properties take precedence, and the names of other contents, which are written later.
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

    /// The value of a content; nil if its path leads nowhere.
    private func value(of content: BodyPlan.Content) -> Value? {
        guard content.isSingle else { return nil }
        return content.path.leadingNames.reduce(body) { value, name in value?.member(name) }
    }

    private mutating func append(_ contents: [(BodyPlan.Content, Value)], _ mask: MemberMask) {
        for (content, value) in contents {
            output.appendComma()
            JSONString.append(content.name, to: &output)
            append(":")
            place.append(.name(content.name))
            // A content that does not match the rule stays as it is.
            let before = moment
            if !write(content, value, mask) {
                rewind(to: before)
                appendLiteral(value)
            }
            place.removeLast()
        }
    }

    /// Writes one content; returns false if its value does not match the rule.
    private mutating func write(_ content: BodyPlan.Content, _ value: Value, _ mask: MemberMask) -> Bool {
        let selection = Selection(relation: content.relation, mask: mask)
        switch (content.arity, value.kind) {
        case (.one, .object):
            let before = warnings.count
            object(value, as: content.model, mask: mask)
            return !warnings[before...].contains { $0.kind == .nothingMapped && $0.pointer == value.pointer }
        case (.many, .object): onlyElement(value, selection)
        case (.keyed, .object): keyedElements(value, selection)
        case (.many, .array): return list(value.children, selection, isContent: true)
        case (.one, .array), (.keyed, .array):
            warn(.arrayForObject, at: value, as: content.model)
            return false
        default:
            guard value.isNull, value.node > 0 else {
                if !value.isNull { warn(.notAnObject, at: value, as: content.model) }
                return false
            }
            append("null")
        }
        return true
    }
}

extension BodyPlan.Content {
    /// The relation of the body to the objects.
    var relation: CompiledProperty.Related { CompiledProperty.Related(arity: arity, model: model) }
}
