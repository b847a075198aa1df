/// What else a model says of its members: checks, what is required, what is secret.
extension BodyWalk {
    /// Whether a value may be read; notes what is required, secret, or fails a check.
    @inline(never)
    mutating func isAllowed(_ rule: MemberRule, _ start: Int, _ end: Int) -> Bool {
        if rule.isSecret, text[start] != UInt8(ascii: "n") { secrets.append(start) }
        if rule.required != 0, !seen.isEmpty { seen[seen.count - 1] |= rule.required }
        guard let checked = rule.checked, let fault = checked.fault(in: JSONSlice(body, start..<end)) else {
            return true
        }
        notes.note(
            .quarantined,
            at: start,
            model: parent >= 0 ? models.compiled[found[parent].model].name : nil,
            property: rule.property,
            reason: fault
        )
        return false
    }

    mutating func checkRequired(_ model: CompiledModel, _ seen: UInt64, at start: Int) {
        for (index, property) in model.reading.required.enumerated() where seen & 1 << UInt64(index) == 0 {
            notes.note(.requiredMissing, at: start, model: model.name, property: property)
        }
    }
}
