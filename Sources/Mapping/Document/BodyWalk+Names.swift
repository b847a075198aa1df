/// The end of an object: what it is called.
extension BodyWalk {
    /// An object whose identity partly stands around it.
    struct PendingName {
        var slot: Int
        var isExpected: Bool
        /// What the object itself says; nil where its surroundings are asked.
        var parts: [String?]
    }

    /// A value that was asked of an enclosing object.
    struct Lookup: Hashable {
        /// The object; -1: the whole body.
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
                // Keys are looked up by text, whatever their type.
                if case .text(let value) = Identity.read(literal(capture)) {
                    found[slot].keys.append((key.name, value))
                }
            case .context(let value, let path):
                if case .text(let text) = reading(of: value, path, slot) { found[slot].keys.append((key.name, text)) }
            }
        }
    }

    /// The object's name; nil if it has none, or has to wait for what stands around it.
    private mutating func name(
        of model: CompiledModel,
        _ slot: Int,
        firstCapture: Int,
        isExpected: Bool
    ) -> ObjectName? {
        guard model.hasIdentity else { return nil }
        if model.hasOwnIdentity, model.reading.identity.count == 1 {
            // Nearly every model.
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
            case .context(let value, let path):
                reading = self.reading(of: value, path, slot)
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

    /// What the object itself says of a part of its identity; nil, with a note, if it says so twice.
    private mutating func ownReading(
        _ offset: Int,
        of model: CompiledModel,
        _ slot: Int,
        _ firstCapture: Int
    ) -> Identity.Reading? {
        guard case .member(_, let index) = model.reading.identity[offset] else { return Identity.Reading.none }
        let capture = captures[firstCapture + index]
        guard !capture.isRepeated else {
            notes.note(.identityRepeated, at: found[slot].start, model: model.name)
            return nil
        }
        return capture.end > 0
            ? Identity.read(literal(capture), isStrict: model.distinguishesTypes)
            : boundReading(model.reading.identityNames[offset], slot)
    }

    /// The text of a reading; without one, notes what is the matter.
    private mutating func text(
        of reading: Identity.Reading,
        _ model: CompiledModel,
        _ slot: Int,
        isExpected: Bool
    ) -> String? {
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

    /// What the route's path says of a part of the identity that the body does not show.
    private func boundReading(_ name: String, _ slot: Int) -> Identity.Reading {
        guard slot == boundSlot, let value = context.bound[name] else { return .none }
        return Identity.read(text: value)
    }

    func literal(_ capture: Capture) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(rebasing: text[capture.start..<capture.end])
    }

    // MARK: What stands around an object

    /// Names the objects that had to wait: every parent has been seen by now, whatever came first in the text.
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

    /// A value from around an object, as a part of its identity.
    private mutating func reading(of value: ContextValue, _ path: [String], _ slot: Int) -> Identity.Reading {
        switch value {
        case .url: return Identity.read(text: context.url)
        case .capture(let name): return Identity.read(text: context.captures[name] ?? "")
        case .header(let name): return Identity.read(text: context.fields[name] ?? "")
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

    /// The outermost object around an object; -1: the body as a whole.
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
        // Objects nested in each other by the hundred would have it read a hundred times.
        guard budget >= range.count else { return .none }
        budget -= range.count
        let reading = JSONSlice(body, range).value(at: path[...]).map { value in
            value.withBytes { Identity.read($0) }
        }
        lookedUp[key] = reading ?? Identity.Reading.none
        return reading ?? .none
    }

    // MARK: What the route binds

    /// What the route's path says of the keys of the object it speaks of, where the body does not say it.
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
