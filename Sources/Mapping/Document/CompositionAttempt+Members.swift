/// Writes the members of one object with their newest values.
extension CompositionAttempt {
    /// An object that is written in the shape of a pinned one: an earlier version of itself, or another object.
    struct Subject {
        let resolved: ResolvedObject
        /// Nil for an object without an identity.
        let object: KnownObject?
        /// Whether the shape is another object's: then every member of it must be known of this one (law 6); otherwise
        /// members without a newer value stay as pinned.
        let isStrict: Bool

        var description: String { object?.name.description ?? "an embedded object" }
    }

    /// Writes an object in the shape of a pinned one.
    mutating func write(_ shape: Shape, showing subject: Subject, at prefix: MemberPath = .root) {
        guard spend(shape.value.range.count) else { return }
        let members = shape.value.members
        var (seen, repeated): (Set<MemberPath>, Set<MemberPath>) = ([], [])
        for member in members where !seen.insert(member.name).inserted { repeated.insert(member.name) }
        var position = shape.value.range.lowerBound
        for member in members {
            guard reason == nil else { return }
            output.append(contentsOf: shape.value.text[position..<member.value.range.lowerBound])
            position = member.value.range.upperBound
            let path = prefix.appending(member.name)
            if repeated.contains(member.name) {
                if subject.isStrict { return fail("\(path.text) occurs twice in the shape for \(subject.description)") }
                copy(shape.at(member.value))
            } else {
                write(shape.at(member.value), at: path, of: subject)
            }
        }
        output.append(contentsOf: shape.value.text[position..<shape.value.range.upperBound])
    }

    private mutating func write(_ shape: Shape, at path: MemberPath, of subject: Subject) {
        let newest = subject.resolved[path]
        let isOther = newest?.isHolder == true && shape.value.kind != .object && !shape.value.isNull
        if !subject.isStrict, isOther || kept[shape.text]?.contains(path) == true { return copy(shape) }
        if let newest, let object = subject.object, newest.isShared,
            // The members of an object are examined one by one.
            !newest.isContainer || shape.value.kind != .object,
            let time = unseenWrite(to: object, shownBy: shape.text), object.state.lo(of: path, lag: lag) <= time
        {
            let isUndisputed = !subject.isStrict && object.doubts[path] == nil
            // Somebody else has written, and the document, requested after that, shows the settled value: it may go on
            // doing so until the lag ends. Any other value may be newer or older than what was served before. To the
            // principal who has written, the settled value may be the one from before the write.
            if isUndisputed, object.state.mark?.isOwn != true, let observation, observation.start > time,
                !newest.isContainer, shape.value.isEqual(to: newest.value, as: newest.link)
            {
                doubts.insert(time + lag.lists)
                return copy(shape)
            }
            let reason = "a write may have changed \(path.text) of \(object.name)"
            guard isPartialWanted, isUndisputed else { return fail(reason) }
            // With the upstream away, the settled value is put in (law 3).
            shortfall = shortfall ?? reason
        }
        if newest?.isShared == true, let asksFrom = subject.object?.doubts[path] {
            guard asksFrom != Knowledge.Doubt.always else {
                return fail("a write may have changed \(path.text) of \(subject.description)")
            }
            doubts.insert(asksFrom)
        }
        // Shared members move; an identity is shown wherever its object is.
        guard let newest,
            newest.isShared || newest.isContainer
                || subject.isStrict && models.compiled[subject.resolved.model].identityMembers.contains(path)
        else { return subject.isStrict ? fail("\(path.text) is not known of \(subject.description)") : copy(shape) }
        let wasChanged = hasOwnChange
        hasOwnChange = false
        write(newest, over: shape, at: path, of: subject)
        // What a container holds has sources of its own.
        if hasOwnChange, !newest.isContainer, let source = subject.object?.state.source(of: path) { use([source]) }
        hasOwnChange = hasOwnChange || wasChanged
    }

    private mutating func write(_ newest: ObservedMember, over shape: Shape, at path: MemberPath, of subject: Subject) {
        // If the pin embeds an object whose relation now holds null or a reference, they differ.
        let isEmbedded = shape.value.kind == .object && newest.link?.arity == .one
        if newest.isContainer {
            writeContainer(shape, at: path, of: subject)
        } else if !isEmbedded, shape.value.isEqual(to: newest.value, as: newest.link) {
            copy(shape)
        } else if let link = newest.link {
            switch link.arity {
            case .many: writeList(newest.value, link, shape)
            case .keyed: writeKeyed(newest.value, link, shape)
            case .one, nil: write(related: newest.value, link, shape)
            }
        } else if newest.value.containsReference {
            fail("\(path.text) of \(subject.description) now holds objects that no model relates to it")
        } else if !newest.isWhole, !fits(newest.value, shape.value) {
            let member = "\(path.text) of \(subject.description)"
            fail("the newest value of \(member) has other members than this document shows")
        } else {
            checkFilter(by: path, newest.value, of: subject, in: shape.text)
            writeLiteral(newest.value)
        }
    }

    /// Notes an object whose new value is not the one that its document was asked for.
    private mutating func checkFilter(by path: MemberPath, _ value: JSONSlice, of subject: Subject, in text: Int) {
        let wanted = path.name.flatMap { filters[$0] }
        guard let wanted, text != PinTree.skeleton, !tree.isInner(text) else { return }
        let now = value.kind == .string ? value.string : String(decoding: value.bytes, as: UTF8.self)
        guard now != wanted else { return }
        shortfall = shortfall ?? "the list was asked for by \(path.text), which has changed in \(subject.description)"
    }

    /// The time of a write that may have changed an object since the text that shows it was true.
    func unseenWrite(to object: KnownObject, shownBy text: Int) -> Int64? {
        guard let observation, case .unobserved(let time, _, _) = object.state.mark else { return nil }
        let isEmbedded = text == PinTree.skeleton || tree.isEmbedded(text)
        return observation.lo(isEmbedded: isEmbedded, lag: lag) <= time ? time : nil
    }

    /// Whether a value has the same members as the pinned one; a pinned value without members has none to lose.
    private mutating func fits(_ value: JSONSlice, _ pinned: JSONSlice) -> Bool {
        func hasMembers(_ value: JSONSlice) -> Bool { value.kind == .object || value.kind == .array }
        guard hasMembers(value), hasMembers(pinned) else { return true }
        return spend(value.range.count + pinned.range.count) && ValueShape(value).fits(ValueShape(pinned))
    }

    /// Writes a value without objects in place of the pinned one.
    mutating func writeLiteral(_ value: JSONSlice) {
        guard spend(value.range.count) else { return }
        hasOwnChange = true
        output.append(contentsOf: value.bytes)
    }

    private mutating func writeContainer(_ shape: Shape, at path: MemberPath, of subject: Subject) {
        if shape.value.kind == .object {
            write(shape, showing: subject, at: path)
        } else if let place = pin(at: shape), let child = JSONSlice(tree.pins[place.pin]) {
            // The pin is an object of its own; now it is embedded without an identity.
            hasOwnChange = true
            let strict = Subject(resolved: subject.resolved, object: subject.object, isStrict: true)
            write(Shape(text: place.pin, value: child), showing: strict, at: path)
        } else if subject.isStrict || subject.resolved[path]?.isShared == true {
            failUnshown("\(path.text) of \(subject.description) is now an object")
        } else {
            copy(shape)
        }
    }
}

/// The members that a value has, regardless of their values.
///
/// For a member without a model, an object that lacks a member may have lost it, or may only be shown in part. So a
/// value replaces another one in a document only if both have the same members.
indirect enum ValueShape: Hashable {
    /// Null, a string, a number, true or false.
    case plain
    case object([MemberPath: ValueShape])
    case list(Set<ValueShape>)

    /// The limit is for lists whose elements all differ: each would be compared with each.
    private static let comparisons = 1_024

    init(_ value: JSONSlice) {
        self =
            switch value.kind {
            case .object: .object(Dictionary(value.members.map { ($0.name, Self($0.value)) }) { first, _ in first })
            case .array: .list(Set(value.elements.map { Self($0) }))
            case .string, .number, .boolean, .null: .plain
            }
    }

    /// Whether a value of this shape has exactly the members of the other in its place, or none at all; each element of
    /// a list must fit some element of the other.
    func fits(_ other: ValueShape) -> Bool {
        switch (self, other) {
        case (.plain, _): true
        case (.object(let mine), .object(let theirs)):
            mine.count == theirs.count && mine.allSatisfy { name, shape in theirs[name].map(shape.fits) ?? false }
        case (.list(let mine), .list(let theirs)):
            mine.allSatisfy { shape in
                shape == .plain || theirs.contains(shape)
                    || mine.count * theirs.count <= Self.comparisons && theirs.contains { shape.fits($0) }
            }
        case (.list(let mine), _): mine.allSatisfy { $0 == .plain }
        case (.object, _): false
        }
    }
}
