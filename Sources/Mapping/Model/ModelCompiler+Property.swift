/// Compiles single properties.
extension ModelCompiler {
    /// Compiles one property and adds its sources to the tree of paths.
    func property(_ member: ModelMember) throws(MappingError) -> CompiledProperty {
        let property = member.declaration
        let model = clusters.declarations[member.model].name
        let names = property.completes.isEmpty ? [property.name] : property.completes
        // The name of a hidden identity is derived from its key path.
        if member.index != nil, !names.allSatisfy(Models.isValidName) {
            throw .invalidName(kind: "property", name: property.name, model: model)
        }
        let relation = try property.relation.map { (relation) throws(MappingError) in
            guard let index = clusters.indexes[relation.model] else {
                throw .unknownModel(relation.model, property: property.name, model: model)
            }
            return CompiledProperty.Related(arity: relation.arity, model: index, key: property.relatedKey)
        }
        if let value = property.defaultValue, (try? JSONIndex(value)) == nil {
            throw .notJSON("default", property: property.name, model: model)
        }
        if let reason = try contradiction(in: property) {
            throw .contradiction(reason, property: property.name, model: model)
        }
        let (source, derivedOutput) = try source(of: member)
        let output: CompiledProperty.Output =
            switch property.output {
            case .none: .none
            case .path(let text): .place(CompiledProperty.Place(origin: .object, path: try path(text, member)))
            case .derived: derivedOutput
            }
        return CompiledProperty(
            name: property.name,
            model: declaration.name,
            key: JSONString.literal(property.name) + [UInt8(ascii: ":")],
            completes: property.completes,
            source: source,
            relation: relation,
            conversion: try ValueConversion(property),
            isRequired: property.isRequired,
            defaultValue: property.defaultValue,
            isUnique: property.isUnique,
            output: output,
            isIdentity: declaration.identity.contains { $0 == property.name || $0 == property.from }
        )
    }

    /// Why declarations of a property exclude each other; nil if they do not.
    private func contradiction(in property: PropertyDeclaration) throws(MappingError) -> String? {
        if property.relation != nil, property.conversion != nil {
            return "a related object has no \"as\"; declare the conversion in its model"
        }
        if let relation = property.relation, !property.parts.isEmpty {
            let identity = identityMembers(of: relation.model)
            let names = property.parts.map { identityMember($0.name, of: relation.model) }
            guard relation.arity == .one, let identity, Set(names) == Set(identity), names.count == identity.count
            else {
                return "\"parts\" with a model are the parts of one object's identity"
                    + (identity.map { ", which are \($0.joined(separator: ", "))" } ?? "")
                    + "; for a child made of these members write from: \"@self\""
            }
        }
        if let key = property.relatedKey {
            guard let relation = property.relation, let index = clusters.indexes[relation.model],
                property.parts.isEmpty,
                clusters.declaration(of: clusters.chains[index]).keys.contains(key)
            else { return "\"by\" names one of the \"keys\" of the property's model" }
        }
        if property.isItself, property.relation?.arity != .one {
            return "\"@self\" needs a model: it is a child made of its parent's members"
        }
        if property.isUnique, !(property.relation.map { $0.arity == .many } ?? property.mayBe([.array])) {
            return "\"unique\" is only for lists; remove it, or declare one"
        }
        if property.former == .delete, let reason = obstacle(toFormerOf: property) { return reason }
        if let value = property.defaultValue, let fault = try fault(inDefault: value, of: property) {
            return "its own default does not pass: \(fault)"
        }
        if property.isRequired, property.defaultValue != nil {
            return "a property with a default is never missing; drop \"required\" or \"default\""
        }
        return obstacle(toMergeOf: property)
    }

    /// Why a property cannot have `former: delete`; nil if it can.
    private func obstacle(toFormerOf property: PropertyDeclaration) -> String? {
        guard let relation = property.relation else {
            return "only a relation has former objects; say \"model\", \"models\" or \"keyed\", or drop \"former\""
        }
        if ContextValue.isSpelled(property.from) {
            return "\"former: delete\" needs a member that names the objects; \"\(property.from)\" is none"
        }
        if let index = clusters.indexes[relation.model], !clusters.hasIdentity(index) {
            return "objects of \(relation.model) have no identity and go with the object they stand in; drop \"former\""
        }
        return property.merge.takesNewest
            ? nil : "with \"merge: \(property.merge.rawValue)\" no object leaves the relation; drop \"former\""
    }

    /// Why a property would reject its own default; nil if it accepts it.
    private func fault(inDefault json: [UInt8], of property: PropertyDeclaration) throws(MappingError) -> String? {
        guard let value = JSONSlice(json) else { return nil }
        if value.isNull { return property.checks.contains(.notNull) ? "null is not allowed" : nil }
        switch property.relation?.arity {
        case .one?: return value.kind == .object ? nil : "an object is expected"
        case .many?: return value.kind == .array ? nil : "a list is expected"
        case .keyed?: return value.kind == .object ? nil : "an object of objects is expected"
        // Checks apply to the upstream's values, a default to the result of the conversion.
        case nil: return property.conversion == nil ? try ValueChecker(property.checks).fault(in: value) : nil
        }
    }

    /// Why a property cannot be merged as declared; nil if it can.
    private func obstacle(toMergeOf property: PropertyDeclaration) -> String? {
        switch (property.merge, property.relation?.arity) {
        case (.union, .one): "\"union\" joins lists, and this is one object"
        case (.union, .keyed): "\"union\" joins lists, and this is an object keyed by name"
        case (.sum, .some): "\"sum\" adds numbers, and this is a relation"
        case (.sum, nil) where !property.mayBe([.number, .integer]):
            "\"sum\" adds numbers, which its \"type\" rules out"
        case (.union, nil) where !property.mayBe([.array]): "\"union\" joins lists, which its \"type\" rules out"
        default: nil
        }
    }

    /// The members of a model's identity; nil unless each is a member of the object itself.
    private func identityMembers(of model: String) -> [String]? {
        guard let index = clusters.indexes[model] else { return nil }
        let identity = clusters.declaration(of: clusters.chains[index]).identity
        let members = identity.map { identityMember($0, of: model) }
        return members.isEmpty || members.contains { KeyPathSyntax.steps(of: $0)?.names?.count != 1 } ? nil : members
    }

    /// The member that an entry of an identity is read from.
    private func identityMember(_ entry: String, of model: String) -> String {
        guard let index = clusters.indexes[model] else { return entry }
        let chain = clusters.chains[index]
        return clusters.declaration(of: chain).sources(clusters.members(of: chain))(entry)[0]
    }

    // MARK: Sources

    private typealias SourceAndOutput = (CompiledProperty.Source, CompiledProperty.Output)

    /// Where a property is read from, and the output that writes back to there.
    private func source(of member: ModelMember) throws(MappingError) -> SourceAndOutput {
        let property = member.declaration
        if property.isItself { return (.itself, .itself) }
        guard !property.parts.isEmpty else { return try source(member.spellings, written: member.written, member) }
        let parts = try property.parts.map { (part) throws(MappingError) in
            let (source, output) = try source([part.from], written: part.from, member)
            // For a reference, the combined object has the member that the identity of its object is read from.
            let name = property.relation.map { identityMember(part.name, of: $0.model) } ?? part.name
            return (name: Array(name.utf8), source: source, output: output)
        }
        return (.parts(parts.map { ($0.name, $0.source) }), .parts(parts.map { ($0.name, $0.output) }))
    }

    private func source(_ spellings: [String], written: String, _ member: ModelMember) throws(MappingError)
        -> SourceAndOutput
    {
        guard !ContextValue.isSpelled(spellings[0]) else { return try context(spellings[0], member) }
        let paths = try spellings.map { (text) throws(MappingError) in try path(text, member) }
        let slots = paths.map { root.slot(at: $0.leadingNames, count: &properties.slotCount) }
        let place = CompiledProperty.Place(origin: .object, path: try path(written, member))
        return (.members(slots: slots, tail: paths[paths.count - 1].tail), .place(place))
    }

    private func path(_ text: String, _ member: ModelMember) throws(MappingError) -> [PathStep] {
        let model = clusters.declarations[member.model].name
        return try KeyPathSyntax.steps(of: text, usedBy: "property \(member.declaration.name)", model: model)
    }

    private func context(_ text: String, _ member: ModelMember) throws(MappingError) -> SourceAndOutput {
        let (property, model) = (member.declaration.name, clusters.declarations[member.model].name)
        guard let value = ContextValue(text) else { throw .unknownContext(text, property: property, model: model) }
        guard value != .itself else {
            throw .contradiction("\"@self\" is used without anything else", property: property, model: model)
        }
        guard let path = value.names?.map(PathStep.name) else {
            throw .invalidKeyPath(value.keyPath ?? text, usedBy: "property \(property)", model: model)
        }
        let output: CompiledProperty.Output =
            switch value {
            case .parent: .place(CompiledProperty.Place(origin: .parent, path: path))
            case .root: .place(CompiledProperty.Place(origin: .root, path: path))
            default: .given(value)
            }
        return (.context(value, path: path), output)
    }
}

extension PropertyDeclaration {
    /// Whether the checks allow a value of one of these types.
    fileprivate func mayBe(_ types: [ValueCheck.JSONType]) -> Bool {
        checks.allSatisfy { if case .type(let allowed) = $0 { allowed.contains(where: types.contains) } else { true } }
    }
}
