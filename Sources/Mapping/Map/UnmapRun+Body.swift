extension UnmapRun {
    /// Writes back a whole body.
    mutating func body(_ plan: BodyPlan, mask: MemberMask) {
        contents(plan, mask: mask)
        // Values already in the enclosing objects take precedence, and of several inner objects the first one counts.
        for (node, origin, target) in surroundings where !builder.fill(origin, from: node) {
            let message = "Its place in the surrounding object has another value; it is not written back."
            warn(.notWritten, message, at: target.shown, as: target.model)
        }
        builder.spellWholes()
    }

    private mutating func contents(_ plan: BodyPlan, mask: MemberMask) {
        isEnveloped = plan.envelope != nil && !plan.main.path.isEmpty
        let isAlone = plan.envelope == nil && plan.others.isEmpty
        guard !isAlone, body.kind == .object else { return content(body, plan.main, mask: mask) }
        let names = plan.others.map(\.name)
        if plan.main.path.isEmpty {
            guard plan.main.arity == .one else { return content(body, plan.main, mask: mask) }
            let enveloped = plan.envelope.map { models.compiled[$0].propertyNames } ?? []
            object(body, as: plan.main.model, into: WireBuilder.root, mask: mask, besides: names + enveloped)
            if let envelope = plan.envelope {
                // A property with the same name was written with the main content.
                let own = models.compiled[choose(plan.main.model, for: body)].propertyNames
                object(body, as: envelope, into: WireBuilder.root, mask: .excluding(own + names), besides: nil)
            }
        } else {
            builder.openObject(WireBuilder.root)
            if let value = body.member(plan.main.name) { content(value, plan.main, mask: mask) }
            if let envelope = plan.envelope {
                object(body, as: envelope, into: WireBuilder.root, mask: .excluding(names + [plan.main.name]))
            }
        }
        isEnveloped = plan.envelope != nil || plan.main.path.isEmpty
        for other in plan.others {
            if let value = body.member(other.name) { content(value, other, mask: mask) }
        }
    }

    private mutating func content(_ value: Value, _ content: BodyPlan.Content, mask: MemberMask) {
        let selection = Selection(relation: content.relation, mask: mask)
        let target = Target(selection: selection, model: content.model, shown: value)
        place(value, at: content.path[...], target, WireBuilder.root)
    }
}
