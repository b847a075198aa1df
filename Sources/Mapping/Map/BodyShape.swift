/// The compiled rule of a body, with the plans of its models.
struct BodyShape {
    /// One place of the body that contains objects of a model.
    struct Content {
        var plan: Int
        var arity: Arity
        /// The path to the place; empty for the body itself.
        var path: [PathStep]
        /// The path as the rule spells it.
        var root: String
        /// The member name under which it is shown beside others: the last name of its path, or the whole path if two
        /// are the same.
        var name: String
    }

    var main: Content
    var others: [Content]
    /// The plan of the envelope's own members.
    var envelope: Int?

    /// Whether the mapped view is the main content alone.
    var isBare: Bool { envelope == nil && others.isEmpty }

    init(_ rule: BodyRule, _ models: Models) throws(MappingWarning) {
        main = try Content(rule, models)
        others = []
        var rules = rule.also[...]
        while let rule = rules.popFirst() {
            let other = try Content(rule, models)
            // Of two contents at one place the first counts, as in decomposition.
            if !([main] + others).contains(where: { $0.path == other.path }) { others.append(other) }
            rules += rule.also
        }
        envelope = try rule.envelope.map { (name) throws(MappingWarning) in
            guard let envelope = models.index(of: name) else { throw .unknownModel(name) }
            return envelope
        }
        distinguishNames()
    }

    /// Renames contents with equal names to their whole key paths, as the rule spells them.
    private mutating func distinguishNames() {
        var isChanged = true
        // A whole path such as `a\.b` may equal the last name of another one, which must then be renamed too.
        while isChanged {
            isChanged = false
            var times: [[UInt8]: Int] = [:]
            for content in [main] + others { times[Array(content.name.utf8), default: 0] += 1 }
            func widen(_ content: inout Content) {
                guard content.name != content.root, times[Array(content.name.utf8), default: 0] > 1 else { return }
                content.name = content.root
                isChanged = true
            }
            widen(&main)
            for index in others.indices { widen(&others[index]) }
        }
    }
}

extension BodyShape.Content {
    init(_ rule: BodyRule, _ models: Models) throws(MappingWarning) {
        guard let model = models.index(of: rule.model) else { throw .unknownModel(rule.model) }
        plan = model
        arity = rule.arity
        path = []
        root = rule.root ?? ""
        name = ""
        guard rule.root != nil else { return }
        guard let path = KeyPathSyntax.steps(of: root), let last = path.leadingNames.last else {
            throw MappingWarning(.envelopeMissing, "The envelope's key path is invalid.", model: rule.model)
        }
        guard path.tail.isEmpty else {
            throw MappingWarning(
                .envelopeMissing,
                "The envelope's key path leads over the elements of a list; such content has no mapped view.",
                model: rule.model
            )
        }
        self.path = path
        name = last
    }
}

extension MapRun {
    /// Writes the mapped view of the body; returns false if the body does not match its rule.
    mutating func body(_ shape: BodyShape, mask: MemberMask) -> Bool {
        let text = documents[0].index
        guard let main = content(shape.main, isMain: true) else { return false }
        guard !shape.isBare else { return write(shape.main, main, mask) }
        guard text.kind(0) == .object else { return write(shape.main, main, mask) }
        let body = Value(document: 0, node: 0)
        let others = shape.others.compactMap { other in content(other, isMain: false).map { (other, $0) } }
        if shape.main.path.isEmpty {
            // The body is itself an object of a model, and contains others.
            guard shape.main.arity == .one else { return write(shape.main, main, mask) }
            let start = output.count
            object(body, as: shape.main.plan, mask: mask) { run in
                if let envelope = shape.envelope {
                    run.appendEnvelope(body, as: envelope, start: start, besides: others.map(\.0.name))
                }
                run.append(others, mask)
            }
            return true
        }
        let contents = [(shape.main, main)] + others
        if let envelope = shape.envelope {
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
    private mutating func content(_ content: BodyShape.Content, isMain: Bool) -> Value? {
        let node = documents[0].index.value(at: content.path, of: 0)
        if node == nil, isMain {
            warn(.envelopeMissing, at: Value(document: 0, node: 0), model: plans[content.plan].name)
        }
        return node.map { Value(document: 0, node: $0) }
    }

    private mutating func append(_ contents: [(BodyShape.Content, Value)], _ mask: MemberMask) {
        for (content, value) in contents {
            if output.last != UInt8(ascii: "{") { append(",") }
            JSONString.append(content.name, to: &output)
            append(":")
            place.append(.name(content.name))
            // A content that does not match the rule stays as it is.
            let start = output.count
            if !write(content, value, mask) {
                output.removeLast(output.count - start)
                appendLiteral(value)
            }
            place.removeLast()
        }
    }

    /// Writes one content; returns false if its value does not match the rule.
    private mutating func write(_ content: BodyShape.Content, _ value: Value, _ mask: MemberMask) -> Bool {
        let model = plans[content.plan].name
        switch (content.arity, kind(value)) {
        case (.one, .object):
            let before = warnings.count
            object(value, as: content.plan, mask: mask)
            let pointer = documents[0].index.pointer(to: value.node)
            return !warnings[before...].contains { $0.kind == .nothingMapped && $0.pointer == pointer }
        case (.many, .object):
            onlyElement(value, as: content.plan, mask: mask)
            return true
        case (.keyed, .object):
            keyedElements(value, as: content.plan, mask: mask)
            return true
        case (.many, .array): return elements(value, as: content.plan, mask: mask)
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
        let (start, model) = (output.count, plans[index].name)
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
