extension PlanCompiler {
    /// Finds the relation that each write path completes.
    mutating func connectCompletions(of plan: inout ModelPlan, _ places: [Member], _ members: [Member]) {
        guard plan.properties.contains(where: { !$0.completes.isEmpty }) else { return }
        let members = Self.byName(members)
        for (index, property) in plan.properties.enumerated() where !property.completes.isEmpty {
            let child = plan.property(named: property.completes[0])
            guard let child, plan.properties[child].relation?.shape == .one,
                leads(property.completes[...], from: members)
            else {
                let error = MappingError.writesIntoNothing(property.name, model: declarations[places[index].model].name)
                report(error, model: places[index].model, property: places[index].index)
                continue
            }
            plan.update(child) { $0.completedBy.append(index) }
        }
    }

    /// A write path says of its value what the property says that it completes, unless it says something itself.
    mutating func adoptCompleted(in index: Int) {
        for (position, property) in plans[index].properties.enumerated() where !property.completes.isEmpty {
            guard let completed = target(of: property.completes[...], in: index, depth: 0) else { continue }
            plans[index].update(position) {
                $0.completedDefault = completed.defaultValue
                guard $0.relation == nil, $0.conversion.isTrivial else { return }
                ($0.relation, $0.conversion) = (completed.relation, completed.conversion)
            }
        }
    }

    private func target(of path: ArraySlice<String>, in index: Int, depth: Int) -> PropertyPlan? {
        let plan = plans[index]
        if let name = path.first, let property = plan.property(named: name).map({ plan.properties[$0] }) {
            guard path.count > 1 else { return property }
            return property.relation.flatMap { target(of: path.dropFirst(), in: $0.plan, depth: depth) }
        }
        guard depth < 4 else { return nil }
        return plan.choices.lazy.compactMap { target(of: path, in: $0.plan, depth: depth + 1) }.first
    }

    /// Whether names of properties lead from one to another through relations to one object each.
    private mutating func leads(
        _ path: ArraySlice<String>,
        from members: [String: Member],
        depth: Int = 0
    ) -> Bool {
        guard let name = path.first, let member = members[name] else { return false }
        guard path.count > 1 else { return true }
        guard case .one(let model) = member.declaration.relation, let index = index(of: model) else { return false }
        return leads(path.dropFirst(), toModel: index, depth: depth)
    }

    /// The same from a model or one of its cluster's choices.
    private mutating func leads(_ path: ArraySlice<String>, toModel model: Int, depth: Int) -> Bool {
        if leads(path, from: membersByName(of: model), depth: depth) { return true }
        // Clusters in a circle are a mistake of their own.
        guard depth < 4 else { return false }
        for choice in declarations[model].choices {
            if let index = index(of: choice.model), leads(path, toModel: index, depth: depth + 1) { return true }
        }
        return false
    }
}
