/// Objects that are gone, or that a write may have changed, in documents observed before that.
extension CompositionAttempt {
    /// What becomes of an object in a document.
    enum Fate {
        /// It is shown, at its newest where that is known.
        case shown
        /// Nobody knows how it is now.
        case stale
        /// It is deleted, and the document is not to be served.
        case gone
        /// It is deleted, and leaves the lists it stands in.
        case removed
    }

    /// - Parameters:
    ///   - payload: how the document shows it; nil where it does not yet.
    ///   - isEmbedded: whether it stands within another object, or beside others.
    func fate(of name: ObjectName, shownAs payload: [UInt8]?, isEmbedded: Bool) -> Fate {
        guard let observation, let object = known[name], object.mark != nil || object.deletion != nil else {
            return .shown
        }
        let lo = observation.lo(isEmbedded: isEmbedded, lag: lag)
        if let mark = object.mark, lo <= mark.time {
            guard mark.isTombstone else { return .stale }
            return fate(after: mark, of: name, shownAs: payload, observation)
        }
        if let deletion = object.deletion, let index = models.index(of: name.model) {
            let mark = ObjectMark.tombstone(deletion)
            if lo >= deletion { return .shown }
            // A response that itself says so is as the upstream wants it.
            if let payload, models.saysDeleted(payload, model: index) { return .shown }
            return fate(after: mark, of: name, shownAs: payload, observation)
        }
        return .shown
    }

    private func fate(
        after mark: ObjectMark,
        of name: ObjectName,
        shownAs payload: [UInt8]?,
        _ observation: Observation
    ) -> Fate {
        guard let index = models.index(of: name.model) else { return .gone }
        switch models.onDelete(payload, model: index) {
        // Documents that go on showing it agree on how it was; where that is not known, they might not.
        case .keep: return known[name]?.resolved == nil ? .gone : .shown
        case .stale: return .gone
        // Which of the two was first, nobody knows.
        case .remove: return observation.start <= mark.time && mark.time < observation.end ? .gone : .removed
        }
    }

    /// Whether the newest value of a relation names an object here that leaves its lists.
    mutating func isRemoved(_ element: JSONSlice, _ link: ObservedMember.Link) -> Bool {
        guard element.isReference, let target = element.target(isStrict: link.isStrict) else { return false }
        let name = name(of: target, link)
        // That its pins are as they should be does not say that it may stand elsewhere.
        if known[name] == nil, isPinned(name) { missing.insert(name) }
        return fate(of: name, shownAs: nil, isEmbedded: true) == .removed
    }

    // MARK: Cutting

    /// What of a stretch of a text is left out: each object that leaves its list, with one separator, so that the rest
    /// looks as if it had never been there.
    mutating func cuts(for places: ArraySlice<PinTree.Place>, in text: Int, _ range: Range<Int>) -> [Range<Int>] {
        let source = tree.text(text)
        var cuts: [Range<Int>] = []
        var run: Range<Int>?
        for place in places where isRemoved(place) {
            guard let unit = unit(of: place, in: text, within: range) else { continue }
            if let open = run, Self.isSeparator(source[open.upperBound..<unit.lowerBound]) {
                run = open.lowerBound..<unit.upperBound
                continue
            }
            if let cut = run.flatMap({ Self.cut($0, of: source, within: range) }) { cuts.append(cut) }
            run = unit
        }
        if let cut = run.flatMap({ Self.cut($0, of: source, within: range) }) { cuts.append(cut) }
        if !cuts.isEmpty { isChanged = true }
        return cuts
    }

    /// Whether a pin leaves the list that it stands in; not what is taken as it is.
    private func isRemoved(_ place: PinTree.Place) -> Bool {
        guard let name = tree.looked[place.pin] else { return false }
        return fate(of: name, shownAs: tree.pins[place.pin], isEmbedded: tree.isEmbedded(place.pin)) == .removed
    }

    /// The element of an array, or the member of an object keyed by name, that a place is; nil where it is neither.
    private mutating func unit(of place: PinTree.Place, in text: Int, within range: Range<Int>) -> Range<Int>? {
        let source = tree.text(text)
        guard let before = Self.last(in: source[range.lowerBound..<place.range.lowerBound]) else { return nil }
        switch source[before] {
        // Before a value a comma stands in arrays only.
        case UInt8(ascii: "["), UInt8(ascii: ","): return place.range
        case UInt8(ascii: ":"):
            let container = keyedObjects(in: text).first { $0.range.contains(place.range.lowerBound) }
            guard let container, range.contains(container.range.lowerBound) else { return nil }
            return container.names[place.range.lowerBound].map { $0..<place.range.upperBound }
        default: return nil
        }
    }

    /// An object whose members are objects keyed by name: relations of a payload, or what a body consists of.
    struct KeyedObject {
        let range: Range<Int>
        /// Where the name of each member begins, by where its value does.
        let names: [Int: Int]

        init(_ value: JSONSlice) {
            range = value.range
            names = Dictionary(
                value.members.map { ($0.value.range.lowerBound, $0.nameRange.lowerBound) },
                uniquingKeysWith: { first, _ in first }
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

    /// Elements side by side together with what separates them from the others; nil where their brackets are not in range.
    private static func cut(_ run: Range<Int>, of source: [UInt8], within range: Range<Int>) -> Range<Int>? {
        guard let before = last(in: source[range.lowerBound..<run.lowerBound]),
            let after = first(in: source[run.upperBound..<range.upperBound])
        else { return nil }
        let isLast = source[after] != UInt8(ascii: ",")
        if source[before] == UInt8(ascii: ",") {
            return last(in: source[range.lowerBound..<before]).map { $0 + 1..<run.upperBound }
        }
        // Nothing is left between the brackets, or what comes next moves up to the first one.
        if isLast { return before + 1..<after }
        return first(in: source[after + 1..<range.upperBound]).map { run.lowerBound..<$0 }
    }

    private static func isSeparator(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.count { $0 == UInt8(ascii: ",") } == 1 && bytes.allSatisfy { $0 == UInt8(ascii: ",") || isSpace($0) }
    }

    private static func last(in bytes: ArraySlice<UInt8>) -> Int? { bytes.lastIndex { !isSpace($0) } }

    private static func first(in bytes: ArraySlice<UInt8>) -> Int? { bytes.firstIndex { !isSpace($0) } }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 }
}
