/// Names objects at their end, when all of their members have been read.
extension BodyWalk {
    /// An object whose identity depends partly on its surroundings.
    struct PendingName {
        var slot: Int
        var isExpected: Bool
        /// The parts of the identity from the object itself; nil for those from its surroundings.
        var parts: [String?]
    }

    /// A key path that was looked up in an enclosing object.
    struct Lookup: Hashable {
        /// The object, or -1 for the whole body.
        var slot: Int
        var path: [PathStep]
    }

    mutating func close(_ slot: Int, _ model: CompiledModel, end: Int, firstCapture: Int, isExpected: Bool) {
        found[slot].end = end
        found[slot].subtreeEnd = found.count
        let pendingBefore = pending.count
        found[slot].name = name(of: model, slot, firstCapture: firstCapture, isExpected: isExpected)
        guard found[slot].name != nil || pending.count > pendingBefore else {
            if found.count == slot + 1 { found.removeLast() }
            return
        }
        for key in model.reading.keys {
            switch key.part {
            case .member(_, let index):
                let capture = captures[firstCapture + index]
                guard capture.end > 0, !capture.isRepeated else { continue }
                // Keys are compared as text, whatever their type.
                if case .text(let value) = Identity.read(literal(capture)) {
                    found[slot].keys.append((key.name, value))
                }
            case .context(let value, let path):
                if case .text(let text) = reading(of: value, path, slot) { found[slot].keys.append((key.name, text)) }
            }
        }
    }

    /// The object's name; nil if it has none, or has to wait for its surroundings.
    private mutating func name(
        of model: CompiledModel,
        _ slot: Int,
        firstCapture: Int,
        isExpected: Bool
    ) -> ObjectName? {
        guard model.hasIdentity else { return nil }
        if model.hasOwnIdentity, model.reading.identity.count == 1 {
            // The case of nearly all models.
            guard let reading = ownReading(0, of: model, slot, firstCapture) else { return nil }
            return text(of: reading, model, slot, isExpected: isExpected).map {
                ObjectName(model: model.objectName, identity: $0)
            }
        }
        var parts: [String?] = []
        for (offset, part) in model.reading.identity.enumerated() {
            let reading: Identity.Reading
            switch part {
            case .member:
                guard let own = ownReading(offset, of: model, slot, firstCapture) else { return nil }
                reading = own
            case .context(.parent, _), .context(.root, _):
                parts.append(nil)
                continue
            case .context(let value, let path): reading = self.reading(of: value, path, slot)
            }
            guard let text = text(of: reading, model, slot, isExpected: isExpected) else { return nil }
            parts.append(text)
        }
        let known = parts.compactMap(\.self)
        guard known.count == parts.count else {
            pending.append(PendingName(slot: slot, isExpected: isExpected, parts: parts))
            return nil
        }
        return ObjectName(model: model.objectName, identity: Identity.join(known))
    }

    /// A part of the identity read from the object itself; if the member is repeated, notes a warning and returns nil.
    private mutating func ownReading(_ offset: Int, of model: CompiledModel, _ slot: Int, _ firstCapture: Int)
        -> Identity.Reading?
    {
        guard case .member(_, let index) = model.reading.identity[offset] else { return Identity.Reading.none }
        let capture = captures[firstCapture + index]
        guard !capture.isRepeated else {
            notes.note(.identityRepeated, at: found[slot].start, model: model.name)
            return nil
        }
        if capture.end > 0 { return Identity.read(literal(capture), isStrict: model.distinguishesTypes) }
        // The body does not show it; the route's path may.
        guard slot == boundSlot, let value = context.bound[model.identityNames[offset]] else {
            return Identity.Reading.none
        }
        return Identity.read(text: value)
    }

    /// The text of a reading; without text, notes the reason and returns nil.
    private mutating func text(of reading: Identity.Reading, _ model: CompiledModel, _ slot: Int, isExpected: Bool)
        -> String?
    {
        switch reading {
        case .text(let text):
            return text
        case .none:
            if isExpected { notes.note(.identityMissing, at: found[slot].start, model: model.name) }
        case .unusable:
            notes.note(.identityUnusable, at: found[slot].start, model: model.name)
        }
        return nil
    }

    func literal(_ capture: Capture) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(rebasing: text[capture.start..<capture.end])
    }

    // MARK: Surroundings of an object

    /// Names the objects that had to wait; all parents have been read by now, whatever the order of the text.
    mutating func namePending() {
        for entry in pending {
            let model = models.compiled[found[entry.slot].model]
            var parts: [String] = []
            for (part, own) in zip(model.reading.identity, entry.parts) {
                if let own {
                    parts.append(own)
                } else if case .context(let value, let path) = part,
                    let text = text(
                        of: reading(of: value, path, entry.slot),
                        model,
                        entry.slot,
                        isExpected: entry.isExpected
                    )
                {
                    parts.append(text)
                }
            }
            guard parts.count == entry.parts.count else { continue }
            found[entry.slot].name = ObjectName(model: model.objectName, identity: Identity.join(parts))
        }
    }

    /// A part of an identity from the object's surroundings.
    private mutating func reading(of value: ContextValue, _ path: [String], _ slot: Int) -> Identity.Reading {
        switch value {
        case .url, .capture, .query, .header: return Identity.read(text: context.text(of: value) ?? "")
        case .index:
            let index = found[slot].place.index
            return index < 0 ? .none : .text(String(index))
        case .key:
            let place = found[slot].place
            guard place.keyEnd > 0 else { return .none }
            return Identity.read(UnsafeBufferPointer(rebasing: text[place.keyStart..<place.keyEnd]))
        case .parent:
            let parent = found[slot].parent
            return parent < 0 && !hasEnvelope ? .none : lookUp(path, in: parent)
        case .root:
            return lookUp(path, in: outermost(slot))
        case .itself:
            return .none
        }
    }

    /// The outermost object around an object, or -1 for the body as a whole.
    private func outermost(_ slot: Int) -> Int {
        if scanner.byte(scanner.skipSpace(0)) == UInt8(ascii: "{") { return -1 }
        var slot = slot
        while found[slot].parent >= 0 { slot = found[slot].parent }
        return slot
    }

    private mutating func lookUp(_ path: [String], in slot: Int) -> Identity.Reading {
        let key = Lookup(slot: slot, path: path.map(PathStep.name))
        if let known = lookedUp[key] { return known }
        let range = slot < 0 ? scanner.skipSpace(0)..<text.count : found[slot].start..<found[slot].end
        // Without a budget, hundreds of nested objects would each be read again for every level.
        guard budget >= range.count else { return .none }
        budget -= range.count
        let reading = JSONSlice(body, range).value(at: path[...]).map { value in value.withBytes { Identity.read($0) } }
        lookedUp[key] = reading ?? Identity.Reading.none
        return reading ?? .none
    }

    // MARK: Keys from the route

    /// The keys that the route's path gives to its object and the body does not.
    func boundKeys() -> (slot: Int, keys: [(member: String, value: String)])? {
        guard boundSlot >= 0, boundSlot < found.count, found[boundSlot].name != nil, !context.bound.isEmpty else {
            return nil
        }
        let known = found[boundSlot].keys
        let keys: [(member: String, value: String)] = models.compiled[found[boundSlot].model].reading.keys.compactMap {
            key in
            guard let value = context.bound[key.name], case .text(let text) = Identity.read(text: value),
                !known.contains(where: { $0.member == key.name && $0.value.utf8.elementsEqual(text.utf8) })
            else { return nil }
            return (key.name, text)
        }
        return keys.isEmpty ? nil : (boundSlot, keys)
    }
}
