/// Decides about deleted objects, and objects that a write may have changed, in documents observed before that.
extension CompositionAttempt {
    enum Fate {
        /// It is shown, with its newest values if they are known.
        case shown
        /// Its current values are unknown after a write.
        case outdated
        /// It is deleted, and the document must not be served.
        case gone
        /// It is deleted, and is removed from the lists that contain it.
        case removed
    }

    /// Decides what happens to an object; the document shows `payload`, or nil if it does not contain the object yet.
    func fate(of object: KnownObject?, shownAs payload: [UInt8]?, isEmbedded: Bool) -> Fate {
        guard let observation, let object else { return .shown }
        let (model, lo) = (object.name.model, observation.lo(isEmbedded: isEmbedded, lag: lag))
        let time: Int64
        if let mark = object.state.mark, lo <= mark.time, mark.isTombstone || observation.start <= mark.time {
            // It was requested before the write was complete.
            guard mark.isTombstone else { return .outdated }
            time = mark.time
        } else if let deletion = object.deletion, lo < deletion,
            // A response that itself shows the deletion is as the upstream wants it.
            payload.map({ !models.saysDeleted($0, of: model) }) ?? true
        {
            time = deletion
        } else {
            return .shown
        }
        switch models.index(of: model).map({ models.onDelete(payload, model: $0) }) {
        // Documents that keep showing the object must agree on its values. If these are unknown, they might not.
        case .keep: return object.resolved == nil ? .gone : .shown
        case .stale, nil: return .gone
        // If the deletion fell within the observation, their order is unknown.
        case .remove: return observation.start <= time && time < observation.end ? .gone : .removed
        }
    }

    /// Whether an element of a relation's newest value is an object that leaves its lists.
    mutating func isRemoved(_ element: JSONSlice, _ link: Link) -> Bool {
        guard element.isReference, let target = element.target(isStrict: link.isStrict) else { return false }
        let name = name(of: target, link)
        // That its pins may stay does not mean that it may appear elsewhere, so its state is needed.
        if known[name] == nil, pinned.contains(name) { missing.insert(name) }
        return fate(of: known[name], shownAs: nil, isEmbedded: true) == .removed
    }

    // MARK: Cutting

    /// The ranges to leave out of a stretch of text: each removed object with one separator.
    mutating func cuts(for places: ArraySlice<PinTree.Place>, in text: Int, _ range: Range<Int>) -> [Range<Int>] {
        let source = tree.text(text)
        var runs: [Range<Int>] = []
        for place in places where isRemoved(place) {
            guard let unit = unit(of: place, in: text, within: range) else { continue }
            if let open = runs.last,
                source[open.upperBound..<unit.lowerBound].lazy.filter({ $0 > 0x20 }).elementsEqual(",".utf8)
            {
                runs[runs.count - 1] = open.lowerBound..<unit.upperBound
            } else {
                runs.append(unit)
            }
        }
        let cuts = runs.compactMap { Self.cut($0, of: source, within: range) }
        if !cuts.isEmpty { hasOwnChange = true }
        return cuts
    }

    /// Whether the object of a pin leaves its list; pins that are copied unchecked do not.
    private func isRemoved(_ place: PinTree.Place) -> Bool {
        guard let name = tree.looked[place.pin] else { return false }
        return fate(of: known[name], shownAs: tree.pins[place.pin], isEmbedded: tree.isEmbedded(place.pin)) == .removed
    }

    /// The range to cut for a place: the element of an array, or the member of an object keyed by name; else nil.
    private mutating func unit(of place: PinTree.Place, in text: Int, within range: Range<Int>) -> Range<Int>? {
        let source = tree.text(text)
        switch source[range.lowerBound..<place.range.lowerBound].last(where: { $0 > 0x20 }) {
        // A comma directly before a value occurs only in arrays.
        case UInt8(ascii: "["), UInt8(ascii: ","): return place.range
        case UInt8(ascii: ":"):
            let container = keyedObjects(in: text).first { $0.range.contains(place.range.lowerBound) }
            guard let container, range.contains(container.range.lowerBound) else { return nil }
            return container.names[place.range.lowerBound].map { $0..<place.range.upperBound }
        default: return nil
        }
    }

    /// An object whose members are objects keyed by name, in a payload's relation or as the body's content.
    struct KeyedObject {
        let range: Range<Int>
        /// The offset of each member's name, by the offset of its value.
        let names: [Int: Int]

        init(_ value: JSONSlice) {
            range = value.range
            names = Dictionary(
                uniqueKeysWithValues: value.members.map { ($0.value.range.lowerBound, $0.nameRange.lowerBound) }
            )
        }
    }

    private mutating func keyedObjects(in text: Int) -> [KeyedObject] {
        if let known = keyedObjects[text] { return known }
        var objects: [KeyedObject] = []
        if text == PinTree.skeleton {
            objects = keyed.compactMap { start in
                let end = tree.skeleton.withUnsafeBufferPointer {
                    JSONScanner($0, allowsReferences: true).scanValue(start, depth: 0)
                }
                return end > start ? KeyedObject(JSONSlice(tree.skeleton, start..<end)) : nil
            }
        } else if let name = tree.name(of: text), let model = models.index(of: name.model),
            let value = JSONSlice(tree.pins[text])
        {
            objects = ObservedMembers(value, model: model, models: models).members.values
                .filter { $0.link?.arity == .keyed && $0.value.kind == .object }.map { KeyedObject($0.value) }
        }
        keyedObjects[text] = objects
        return objects
    }

    /// A run of adjacent elements with the separators to remove; nil if the surrounding brackets are outside the range.
    private static func cut(_ run: Range<Int>, of source: [UInt8], within range: Range<Int>) -> Range<Int>? {
        guard let before = source[range.lowerBound..<run.lowerBound].lastIndex(where: { $0 > 0x20 }),
            let after = source[run.upperBound..<range.upperBound].firstIndex(where: { $0 > 0x20 })
        else { return nil }
        let comma = UInt8(ascii: ",")
        switch (source[before], source[after]) {
        case (comma, _):
            return source[range.lowerBound..<before].lastIndex { $0 > 0x20 }.map { $0 + 1..<run.upperBound }
        // The next element moves to the front.
        case (_, comma):
            return source[after + 1..<range.upperBound].firstIndex { $0 > 0x20 }.map { run.lowerBound..<$0 }
        default: return before + 1..<after
        }
    }
}
