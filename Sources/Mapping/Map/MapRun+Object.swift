extension MapRun {
    /// Writes one object.
    ///
    /// - Parameters:
    ///   - object: nil for a child of which there is nothing but what completes it.
    ///   - isItself: whether the object is its parent's members over again; it then need not be there.
    ///   - extra: writes further members, which the body's rule speaks of.
    /// - Returns: whether anything of it was there.
    @discardableResult
    mutating func object(
        _ object: Value?,
        as index: Int,
        position: Int? = nil,
        key: Value? = nil,
        mask: MemberMask = .all,
        completions: [Completion] = [],
        isItself: Bool = false,
        extra: ((inout MapRun) -> Void)? = nil
    ) -> Bool {
        guard frames.count < Self.maximumNesting else {
            warn(
                .tooDeep,
                "Objects are nested deeper than the mapped view goes.",
                at: object,
                model: plan.models[index].name
            )
            if let object { appendLiteral(object) } else { append("{}") }
            return true
        }
        guard let chosen = choose(index, for: object) else {
            if let object { appendLiteral(object) }
            return true
        }
        let model = plan.models[chosen]
        frames.append(Frame(object: object, position: position, key: key))
        defer { frames.removeLast() }
        let madeAround = documents.count
        defer { documents.removeLast(documents.count - madeAround) }
        let members = members(of: object, model)
        append("{")
        let start = output.count
        var isPresent = false
        for property in model.properties where property.completes.isEmpty {
            let isAlwaysShown = property.isIdentity && !mask.excluded.contains(property.name)
            guard let inner = mask.member(property.name) ?? (isAlwaysShown ? .all : nil) else { continue }
            let madeBefore = documents.count
            let isShown = show(property, of: model, members, mask: inner, completions, start: start)
            // What surrounds an object says nothing of it.
            let isCompleted = completions.contains { $0.path.first == property.name }
            if isShown, !property.isFromContext || isCompleted { isPresent = true }
            documents.removeLast(documents.count - madeBefore)
        }
        showUndeclared(members, of: model, mask: mask, start: start)
        extra?(&self)
        append("}")
        if !isPresent, members.isEmpty, model.readsMembers, !model.sharesAll, !isItself, let object,
            documents[object.document].index.children(of: object.node).count > 0
        {
            warn(.nothingMapped, "No declared property is found in an object.", at: object, model: model.name)
        }
        return isPresent
    }

    /// The plan of the concrete model; nil if none of a cluster wants the object and nothing is declared of all.
    private mutating func choose(_ index: Int, for object: Value?) -> Int? {
        guard let object else { return choose(index, forNothing: JSONSlice(Array("{}".utf8))) }
        let text = documents[object.document].index
        var chosen = index
        for _ in 0..<8 {
            let choices = plan.models[chosen].choices
            guard !choices.isEmpty else { break }
            guard let choice = choices.first(where: { $0.condition?.holds(for: object.node, in: text) ?? true }) else {
                let model = plan.models[chosen]
                warn(.noChoice, "None of the cluster's models fits an object.", at: object, model: model.name)
                return model.properties.isEmpty && !model.sharesAll ? nil : chosen
            }
            if choice.plan == chosen { break }
            chosen = choice.plan
        }
        return chosen
    }

    /// The same for a child of which there is nothing but what completes it: it counts as empty.
    private func choose(_ index: Int, forNothing empty: JSONSlice?) -> Int {
        var chosen = index
        for _ in 0..<8 {
            let choice = plan.models[chosen].choices.first { choice in
                choice.condition.map { condition in empty.map { condition.holds(for: $0) } ?? false } ?? true
            }
            guard let choice, choice.plan != chosen else { break }
            chosen = choice.plan
        }
        return chosen
    }

    /// Writes one property, if there is anything to show.
    ///
    /// - Returns: whether something of the upstream's is shown.
    private mutating func show(
        _ property: PropertyPlan,
        of model: ModelPlan,
        _ members: Members,
        mask: MemberMask,
        _ completions: [Completion],
        start: Int
    ) -> Bool {
        let (mark, syntheticBefore) = (output.count, synthetic.count)
        place.append(.name(property.name))
        defer { place.removeLast() }
        if mark > start { append(",") }
        output.append(contentsOf: property.key)

        // The more specific path wins: what completes this property from outside is the longest there is.
        var effective = property
        let found: Value?
        if let completion = completions.first(where: { $0.path.count == 1 && $0.path.first == property.name }) {
            found = completion.value
            effective.adopt(completion.property)
        } else {
            found = find(property.source, members, model.name)
        }
        let isShown: Bool
        if let relation = effective.relation {
            var inner = completions.filter { $0.path.count > 1 && $0.path.first == property.name }
                .map { Completion(path: $0.path.dropFirst(), value: $0.value, property: $0.property) }
            for index in property.completedBy {
                let completing = model.properties[index]
                guard let value = find(completing.source, members, model.name) else { continue }
                inner.append(Completion(path: completing.completes.dropFirst(), value: value, property: completing))
            }
            isShown = related(found, by: effective, relation, of: model.name, mask: mask, completions: inner)
        } else {
            isShown = found.map { value($0, of: effective, model.name) } ?? false
        }
        if isShown { return true }
        output.removeLast(output.count - mark)
        synthetic.removeLast(synthetic.count - syntheticBefore)
        if let value = effective.defaultValue {
            if mark > start { append(",") }
            output.append(contentsOf: property.key)
            output.append(contentsOf: value)
            synthetic.append(outputPointer)
        } else if effective.isRequired, found == nil {
            warn(
                .requiredMissing,
                "Property \(property.name) is required and absent.",
                at: frames.last?.object,
                model: model.name,
                property: property.name
            )
        }
        return false
    }

    /// Writes the members that no property reads, under their own names, each once.
    private mutating func showUndeclared(_ members: Members, of model: ModelPlan, mask: MemberMask, start: Int) {
        guard !members.undeclared.isEmpty, let document = frames.last?.object?.document else { return }
        let index = documents[document].index
        var last: [MemberPath: Int] = [:]
        let names = members.undeclared.map { MemberPath(literal: $0.name, in: index) }
        for (position, name) in names.enumerated() { last[name] = position }
        for (position, member) in members.undeclared.enumerated() where last[names[position]] == position {
            if let name = index.name(member.name), mask.member(name) == nil || model.property(named: name) != nil {
                continue
            }
            if output.count > start { append(",") }
            output.append(contentsOf: index.bytes(member.name))
            append(":")
            appendLiteral(Value(document: document, node: member.value))
        }
    }
}

extension PropertyPlan {
    /// Takes over what a completing property says of the value, if it says anything.
    fileprivate mutating func adopt(_ completing: PropertyPlan) {
        if let relation = completing.relation { self.relation = relation }
        if !completing.conversion.isTrivial { conversion = completing.conversion }
    }
}

extension MemberPath {
    init(literal name: Int, in index: JSONIndex) {
        self = index.slice(name).withBytes { MemberPath(literal: $0) }
    }
}
