extension DocumentMapper {
    /// Those of the names that nothing in objects of the models is shown under; `user.login` is one of a related object.
    public func unknownMembers(among members: [String], of models: [String]) -> [String] {
        let plans = models.compactMap { plan.index(of: $0) }
        return members.filter { !isKnown($0.split(separator: ".", omittingEmptySubsequences: false)[...], in: plans) }
    }

    private func isKnown(_ path: ArraySlice<Substring>, in plans: [Int]) -> Bool {
        guard let name = path.first else { return true }
        let rest = path.dropFirst()
        return family(of: plans).contains { index in
            let model = plan.models[index]
            if model.sharesAll, rest.isEmpty { return true }
            return model.properties.contains { property in
                guard property.completes.isEmpty, property.name.utf8.elementsEqual(name.utf8) else { return false }
                guard !rest.isEmpty else { return true }
                return property.relation.map { isKnown(rest, in: [$0.plan]) } ?? false
            }
        }
    }

    /// The plans with those that an object of a cluster may fall under.
    private func family(of plans: [Int]) -> [Int] {
        var family = plans
        var position = 0
        while position < family.count {
            family += plan.models[family[position]].choices.map(\.plan).filter { !family.contains($0) }
            position += 1
        }
        return family
    }
}
