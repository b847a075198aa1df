/// Names objects at their end, when all of their members have been read.
extension BodyWalk {
    mutating func close(_ slot: Int, _ model: CompiledModel, end: Int) {
        found[slot].end = end
        found[slot].subtreeEnd = found.count
        found[slot].name = name(of: model, slot)
        guard found[slot].name != nil || pending.last?.slot == slot else {
            if found.count == slot + 1 { found.removeLast() }
            return
        }
        for key in model.reading.keys {
            let reading: Identity.Reading
            switch key.part {
            case .member(_, let index):
                let capture = captures[firstCapture + index]
                guard !capture.range.isEmpty, !capture.isRepeated else { continue }
                // Keys are compared as text, whatever their type.
                reading = Identity.read(literal(capture.range))
            case .context(let value, let path): reading = self.reading(of: value, path, slot)
            }
            if case .text(let text) = reading { found[slot].keys.append((key.name, text)) }
        }
    }

    /// The object's name; nil if it has none, or has to wait for its surroundings.
    private mutating func name(of model: CompiledModel, _ slot: Int) -> ObjectName? {
        guard model.hasIdentity else { return nil }
        if model.hasOwnIdentity, model.reading.identity.count == 1 {
            // The case of nearly all models.
            return part(0, of: model, slot).map { ObjectName(model: model.objectName, identity: $0) }
        }
        var parts: [String?] = []
        for (offset, part) in model.reading.identity.enumerated() {
            switch part {
            case .context(.parent, _), .context(.root, _): parts.append(nil)
            case .member, .context:
                guard let text = self.part(offset, of: model, slot) else { return nil }
                parts.append(text)
            }
        }
        let known = parts.compactMap(\.self)
        guard known.count == parts.count else {
            pending.append((slot, parts))
            return nil
        }
        return ObjectName(model: model.objectName, identity: Identity.join(known))
    }

    /// Names the objects that had to wait; all parents have been read by now, whatever the order of the text.
    mutating func namePending() {
        for (slot, known) in pending {
            let model = models.compiled[found[slot].model]
            let parts = known.indices.compactMap { known[$0] ?? part($0, of: model, slot) }
            guard parts.count == known.count else { continue }
            found[slot].name = ObjectName(model: model.objectName, identity: Identity.join(parts))
        }
    }

    /// The text of a part of the identity; without text, notes the reason and returns nil.
    ///
    /// A member of the object can be read only at the object's end.
    private mutating func part(_ offset: Int, of model: CompiledModel, _ slot: Int) -> String? {
        var reading = Identity.Reading.none
        switch model.reading.identity[offset] {
        case .member(_, let index):
            let capture = captures[firstCapture + index]
            if capture.isRepeated {
                notes.record(.identityRepeated, at: found[slot].start, model: model.name)
                return nil
            }
            if !capture.range.isEmpty {
                reading = Identity.read(literal(capture.range), isStrict: model.distinguishesTypes)
            } else if slot == boundSlot, let value = context.bound[model.identityNames[offset]] {
                // The body does not show it; the route's path does.
                reading = Identity.read(text: value)
            }
        case .context(let value, let path): reading = self.reading(of: value, path, slot)
        }
        switch reading {
        case .text(let text): return text
        case .none:
            if found[slot].isExpected { notes.record(.identityMissing, at: found[slot].start, model: model.name) }
        case .unusable: notes.record(.identityUnusable, at: found[slot].start, model: model.name)
        }
        return nil
    }

    // MARK: Surroundings of an object

    private mutating func reading(of value: ContextValue, _ path: [String], _ slot: Int) -> Identity.Reading {
        let place = found[slot].place
        switch value {
        case .url, .capture, .query, .header, .itself: return Identity.read(text: context.text(of: value) ?? "")
        case .index: return place.index < 0 ? .none : .text(String(place.index))
        case .key: return place.key.isEmpty ? .none : Identity.read(literal(place.key))
        case .parent:
            let parent = found[slot].parent
            return parent < 0 && !plan.isEnveloped ? .none : lookUp(path, in: parent)
        case .root: return lookUp(path, in: outermost(slot))
        }
    }

    /// The outermost object around an object, or -1 for the body as a whole.
    private func outermost(_ slot: Int) -> Int {
        if scanner.byte(scanner.skipSpace(0)) == UInt8(ascii: "{") { return -1 }
        var slot = slot
        while found[slot].parent >= 0 { slot = found[slot].parent }
        return slot
    }

    private mutating func lookUp(_ names: [String], in slot: Int) -> Identity.Reading {
        let path = names.map(PathStep.name)
        if let known = lookedUp[slot]?[path] { return known }
        let range = slot < 0 ? scanner.skipSpace(0)..<text.count : found[slot].start..<found[slot].end
        // Without a budget, hundreds of nested objects would each be read again for every level.
        guard budget >= range.count else { return .none }
        budget -= range.count
        let value = JSONSlice(body, range).value(at: names[...])
        let reading = value.map { $0.withBytes { Identity.read($0) } } ?? Identity.Reading.none
        lookedUp[slot, default: [:]][path] = reading
        return reading
    }

    /// The keys that the route's path gives to an object and the body does not.
    func boundKeys(of object: Found) -> [(member: String, value: String)] {
        models.compiled[object.model].reading.keys.compactMap { key in
            guard let value = context.bound[key.name], case .text(let text) = Identity.read(text: value),
                !object.keys.contains(where: { $0.member == key.name && $0.value.utf8.elementsEqual(text.utf8) })
            else { return nil }
            return (key.name, text)
        }
    }
}
