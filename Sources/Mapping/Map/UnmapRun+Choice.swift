extension UnmapRun {
    /// The plan of the concrete model of a mapped object: the first whose condition holds for what it would be written as.
    func choose(_ index: Int, for object: Value) -> Int {
        var chosen = index
        // As deep as on the way in.
        for _ in 0..<8 {
            guard let choice = plan.models[chosen].choices.first(where: { fits($0, object) }), choice.plan != chosen
            else {
                break
            }
            chosen = choice.plan
        }
        return chosen
    }

    private func fits(_ choice: ModelPlan.Choice, _ object: Value) -> Bool {
        guard let condition = choice.condition else { return true }
        guard let wire = try? JSONIndex(sketch(object, plan.models[choice.plan], members: condition.members)) else {
            return false
        }
        return condition.holds(for: 0, in: wire)
    }

    /// The members of the upstream's JSON that a condition asks for; related objects as they are.
    private func sketch(_ object: Value, _ model: ModelPlan, members: [[UInt8]]) -> [UInt8] {
        var builder = WireBuilder()
        builder.openObject(WireBuilder.root)
        for property in model.properties where property.completes.isEmpty {
            guard case .place(let output) = property.output, output.origin == .object, output.path.tail.isEmpty,
                let first = output.path.leadingNames.first, members.contains(first),
                let value = member(property.name, of: object)
            else { continue }
            let json = property.conversion.transformer?.reverse(bytes(value)).json ?? bytes(value)
            let place = output.path.leadingNames.reduce(WireBuilder.root as Int?) { node, name in
                node.flatMap { builder.member(name, of: $0) }
            }
            if let place { builder.set(place, json) }
        }
        if model.sharesAll {
            for name in members {
                let text = String(decoding: name, as: UTF8.self)
                guard model.property(named: text) == nil, let value = member(text, of: object),
                    let place = builder.member(name, of: WireBuilder.root)
                else { continue }
                builder.set(place, bytes(value))
            }
        }
        return builder.json()
    }
}
