extension PlanCompiler {
    /// Compiles one property and adds its sources.
    mutating func property(_ member: Member, into sources: inout PathBranch, _ slots: inout Int) throws(MappingError)
        -> PropertyPlan
    {
        let declaration = member.declaration
        let model = declarations[member.model].name
        // The name of a hidden identity is derived from its key path.
        if member.index != nil { try checkName(of: declaration, model) }
        try checkConsistency(of: declaration, model)
        let naming = MemberNaming(declarations[member.model].naming)
        let relation = try relation(of: declaration, model)
        var plan = PropertyPlan(
            name: declaration.name,
            key: JSONString.literal(declaration.name) + [UInt8(ascii: ":")],
            completes: declaration.completes,
            source: .itself,
            relation: relation,
            conversion: try ValueConversion(declaration),
            isRequired: declaration.isRequired,
            defaultValue: declaration.defaultValue,
            output: .none
        )
        plan.source = try source(of: declaration, model, naming, &sources, &slots)
        plan.output = try output(of: declaration, model, naming)
        if let relation, declarations.indices.contains(relation.plan), hasIdentity(relation.plan) {
            for path in try paths(of: declaration, model, naming) where path.tail.isEmpty {
                sources.update(path[...]) { $0.mayBeBare = true }
            }
        }
        return plan
    }

    private func checkName(of declaration: PropertyDeclaration, _ model: String) throws(MappingError) {
        let names = declaration.completes.isEmpty ? [declaration.name] : declaration.completes
        for name in names where !Models.isValidName(name) {
            throw .invalidName(kind: "property", name: declaration.name, model: model)
        }
    }

    private func checkConsistency(of declaration: PropertyDeclaration, _ model: String) throws(MappingError) {
        func contradiction(_ reason: String) -> MappingError {
            .contradiction(reason, property: declaration.name, model: model)
        }
        if let value = declaration.defaultValue, (try? JSONIndex(value)) == nil {
            throw .notJSON("default", property: declaration.name, model: model)
        }
        if declaration.relation != nil, declaration.conversion != nil {
            throw contradiction("a related object has no \"as\"; declare the conversion in its model")
        }
        if declaration.relation != nil, !declaration.parts.isEmpty {
            throw contradiction(
                "\"parts\" are folded into a plain object; for an object of a model write from: \"@self\""
            )
        }
        if declaration.isItself, declaration.relation?.arity != .one {
            throw contradiction("\"@self\" needs a model: it is a child made of its parent's members")
        }
        if declaration.former == .delete, let reason = obstacle(toFormerOf: declaration) { throw contradiction(reason) }
        if let value = declaration.defaultValue, let fault = try fault(inDefault: value, of: declaration) {
            throw contradiction("its own default does not pass: \(fault)")
        }
        if declaration.isRequired, declaration.defaultValue != nil {
            throw contradiction("a property with a default is never missing; drop \"required\" or \"default\"")
        }
    }

    /// Why a property cannot have `former: delete`; nil if it can.
    private func obstacle(toFormerOf declaration: PropertyDeclaration) -> String? {
        guard let relation = declaration.relation else {
            return "only a relation has former objects; say \"model\", \"models\" or \"keyed\", or drop \"former\""
        }
        if ContextValue.isSpelled(declaration.from) {
            return "\"former: delete\" needs a member that names the objects; \"\(declaration.from)\" is none"
        }
        if let index = indexes[relation.model], !hasIdentity(index) {
            return "objects of \(relation.model) have no identity and go with the object they stand in; drop \"former\""
        }
        switch declaration.merge {
        case .latest, .replace: return nil
        case .keep, .union, .sum:
            return "with \"merge: \(declaration.merge.rawValue)\" no object leaves the relation; drop \"former\""
        }
    }

    /// Why a property would reject its own default; nil if it accepts it.
    private func fault(inDefault json: [UInt8], of declaration: PropertyDeclaration) throws(MappingError) -> String? {
        guard let value = JSONSlice(json) else { return nil }
        if value.isNull { return declaration.checks.contains(.notNull) ? "null is not allowed" : nil }
        switch declaration.relation?.arity {
        case .one?: return value.kind == .object ? nil : "an object is expected"
        case .many?: return value.kind == .array ? nil : "a list is expected"
        case .keyed?: return value.kind == .object ? nil : "an object of objects is expected"
        // Checks apply to the upstream's values, a default to the result of the conversion.
        case nil: return declaration.conversion == nil ? try ValueChecker(declaration.checks).fault(in: value) : nil
        }
    }

    private func relation(of declaration: PropertyDeclaration, _ model: String) throws(MappingError) -> PropertyPlan
        .Related?
    {
        guard let relation = declaration.relation else { return nil }
        guard let plan = indexes[relation.model] else {
            throw .unknownModel(relation.model, property: declaration.name, model: model)
        }
        return PropertyPlan.Related(arity: relation.arity, plan: plan)
    }

    // MARK: Sources

    private func source(
        of declaration: PropertyDeclaration,
        _ model: String,
        _ naming: MemberNaming,
        _ sources: inout PathBranch,
        _ slots: inout Int
    ) throws(MappingError) -> PropertyPlan.Source {
        if !declaration.parts.isEmpty {
            var parts: [(name: [UInt8], source: PropertyPlan.Source)] = []
            for part in declaration.parts {
                let key = Array(part.name.utf8)
                if let context = try context(part.from, declaration.name, model) {
                    parts.append((key, .context(context.value, path: context.path)))
                } else {
                    let path = try path(part.from, declaration.name, model)
                    let slot = sources.slot(at: path.leadingNames, count: &slots)
                    parts.append((key, .members(slots: [slot], tail: path.tail)))
                }
            }
            return .parts(parts)
        }
        if declaration.isItself { return .itself }
        if let context = try context(declaration.from, declaration.name, model) {
            return .context(context.value, path: context.path)
        }
        let paths = try paths(of: declaration, model, naming)
        return .members(slots: paths.map { sources.slot(at: $0.leadingNames, count: &slots) }, tail: paths[0].tail)
    }

    /// The key paths of a property, of which the first present one counts; empty for other sources.
    private func paths(of declaration: PropertyDeclaration, _ model: String, _ naming: MemberNaming)
        throws(MappingError) -> [[PathStep]]
    {
        guard declaration.parts.isEmpty, !ContextValue.isSpelled(declaration.from) else { return [] }
        if declaration.isNamedByModel { return naming.members(for: declaration.name).map { [.name($0)] } }
        return [try path(declaration.from, declaration.name, model)]
    }

    private func path(_ text: String, _ property: String, _ model: String) throws(MappingError) -> [PathStep] {
        guard let path = KeyPathSyntax.steps(of: text) else {
            throw .invalidKeyPath(text, usedBy: "property \(property)", model: model)
        }
        return path
    }

    /// A value from the context and its key path; nil for any other source.
    private func context(_ text: String, _ property: String, _ model: String) throws(MappingError) -> (
        value: ContextValue, path: [PathStep]
    )? {
        guard ContextValue.isSpelled(text) else { return nil }
        guard let value = ContextValue(text) else { throw .unknownContext(text, property: property, model: model) }
        guard value != .itself else {
            throw .contradiction("\"@self\" is used without anything else", property: property, model: model)
        }
        guard let names = value.names else {
            throw .invalidKeyPath(value.keyPath ?? text, usedBy: "property \(property)", model: model)
        }
        return (value, names.map(PathStep.name))
    }

    // MARK: The way back

    private func output(of declaration: PropertyDeclaration, _ model: String, _ naming: MemberNaming)
        throws(MappingError) -> PropertyPlan.Output
    {
        switch declaration.output {
        case .none: return .none
        case .path(let text):
            return .place(PropertyPlan.Place(origin: .object, path: try path(text, declaration.name, model)))
        case .derived: break
        }
        if declaration.isItself { return .itself }
        if !declaration.parts.isEmpty {
            var parts: [(name: [UInt8], output: PropertyPlan.Output)] = []
            for part in declaration.parts {
                parts.append((Array(part.name.utf8), try output(to: part.from, declaration.name, model)))
            }
            return .parts(parts)
        }
        if declaration.isNamedByModel {
            return .place(PropertyPlan.Place(origin: .object, path: [.name(naming.output(for: declaration.name))]))
        }
        return try output(to: declaration.from, declaration.name, model)
    }

    /// The output that writes back to a source.
    private func output(to source: String, _ property: String, _ model: String) throws(MappingError)
        -> PropertyPlan.Output
    {
        guard let context = try context(source, property, model) else {
            return .place(PropertyPlan.Place(origin: .object, path: try path(source, property, model)))
        }
        switch context.value {
        case .parent: return .place(PropertyPlan.Place(origin: .parent, path: context.path))
        case .root: return .place(PropertyPlan.Place(origin: .root, path: context.path))
        case .index, .key: return .given(context.value)
        // The URL and the header fields are not part of a body.
        case .url, .capture, .header, .itself: return .none
        }
    }
}

extension PropertyDeclaration {
    /// Whether the model's naming determines the source, because no other is declared.
    var isNamedByModel: Bool { parts.isEmpty && completes.isEmpty && from.isEmpty }

    /// The names of a write path; empty for a plain property.
    var completes: [String] {
        name.utf8.contains(UInt8(ascii: "."))
            ? name.split(separator: ".", omittingEmptySubsequences: false).map(String.init) : []
    }

    /// Whether the child is made of its parent's own members.
    var isItself: Bool { ContextValue(from) == .itself && parts.isEmpty }
}
