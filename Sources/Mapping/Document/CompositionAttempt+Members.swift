/// Writes the members of one object with their newest values.
extension CompositionAttempt {
    /// An object that is written in the shape of a pinned one: an earlier version of itself, or another object.
    struct Subject {
        let resolved: ResolvedObject
        /// Nil for an object without an identity.
        let object: KnownObject?
        /// Whether the shape is another object's.
        ///
        /// Then every member of the shape must be known of this object (law 6). Otherwise members without a newer value stay as
        /// pinned.
        let isStrict: Bool

        var description: String { object?.name.description ?? "an embedded object" }
    }

    /// Writes an object in the shape of a pinned one.
    mutating func write(_ shape: Shape, showing subject: Subject, at prefix: MemberPath = .root) {
        guard spend(shape.value.range.count) else { return }
        let members = shape.value.members
        var repeated: Set<MemberPath> = []
        var seen: Set<MemberPath> = []
        for member in members where !seen.insert(member.name).inserted { repeated.insert(member.name) }
        var position = shape.value.range.lowerBound
        for member in members {
            guard reason == nil else { return }
            output.append(contentsOf: shape.value.text[position..<member.value.range.lowerBound])
            position = member.value.range.upperBound
            let path = prefix.appending(member.name)
            if repeated.contains(member.name) {
                if subject.isStrict { return fail("\(path.text) occurs twice in the shape for \(subject.description)") }
                copy(shape.text, member.value.range)
            } else {
                write(shape.at(member.value), member: path, of: subject)
            }
        }
        output.append(contentsOf: shape.value.text[position..<shape.value.range.upperBound])
    }

    private mutating func write(_ shape: Shape, member path: MemberPath, of subject: Subject) {
        let newest = subject.resolved[path]
        let isOther = newest?.isHolder == true && shape.value.kind != .object && !shape.value.isNull
        if !subject.isStrict, isOther || kept[shape.text]?.contains(path) == true {
            return copy(shape.text, shape.value.range)
        }
        if let newest, let object = subject.object, let time = unseenWrite(to: path, newest, of: object, shownBy: shape)
        {
            if !subject.isStrict, mayStay(shape.value, path, settledAs: newest, of: object, sinceWriteAt: time) {
                doubts.insert(time + lag.lists)
                return copy(shape.text, shape.value.range)
            }
            let reason = "a write may have changed \(path.text) of \(object.name)"
            guard isPartialWanted, !subject.isStrict, object.doubts[path] == nil else { return fail(reason) }
            // With the upstream away, the settled value is put in (law 3).
            shortfall = shortfall ?? reason
        }
        if newest?.isShared == true, let asksFrom = subject.object?.doubts[path] {
            if asksFrom == Knowledge.Doubt.always {
                return fail("a write may have changed \(path.text) of \(subject.description)")
            }
            doubts.insert(asksFrom)
        }
        // Shared members move; an identity is shown wherever its object is.
        guard let newest,
            newest.isShared || newest.isContainer
                || subject.isStrict && models.compiled[subject.resolved.model].identityMembers.contains(path)
        else {
            if subject.isStrict { return fail("\(path.text) is not known of \(subject.description)") }
            return copy(shape.text, shape.value.range)
        }
        let wasChanged = hasOwnChange
        hasOwnChange = false
        // If the pin embeds an object whose relation now holds null or a reference, they differ.
        let isEmbedded = shape.value.kind == .object && newest.link?.arity == .one
        if newest.isContainer {
            writeContainer(newest, shape, member: path, of: subject)
        } else if !isEmbedded, shape.value.isEqual(to: newest.value, as: newest.link) {
            copy(shape.text, shape.value.range)
        } else if let link = newest.link {
            switch link.arity {
            case .many: writeList(newest.value, link, shape)
            case .keyed: writeKeyed(newest.value, link, shape)
            case .one, nil: write(related: newest.value, link, shape)
            }
        } else if newest.value.containsReference {
            fail("\(path.text) of \(subject.description) now holds objects that no model relates to it")
        } else if !newest.isWhole, !fits(newest.value, shape.value) {
            fail(
                "the newest value of \(path.text) of \(subject.description) has other members than this document shows"
            )
        } else {
            checkFilter(by: path, newest.value, of: subject, in: shape.text)
            writeLiteral(newest.value)
        }
        // What a container holds has sources of its own.
        if hasOwnChange, !newest.isContainer, let source = subject.object?.state.source(of: path) { use([source]) }
        hasOwnChange = hasOwnChange || wasChanged
    }

    /// Notes an object whose new value is not the one that its document was asked for.
    private mutating func checkFilter(by path: MemberPath, _ value: JSONSlice, of subject: Subject, in text: Int) {
        guard let wanted = path.name.flatMap({ filters[$0] }), text != PinTree.skeleton, !tree.isInner(text) else {
            return
        }
        let now = value.kind == .string ? value.string : String(decoding: value.bytes, as: UTF8.self)
        guard now != wanted else { return }
        shortfall = shortfall ?? "the list was asked for by \(path.text), which has changed in \(subject.description)"
    }

    /// The time of a write that may have changed a member since the settled value and this document's were true.
    private func unseenWrite(
        to path: MemberPath,
        _ settled: ObservedMember,
        of object: KnownObject,
        shownBy shape: Shape
    ) -> Int64? {
        // The members of an object are examined one by one.
        guard settled.isShared, !settled.isContainer || shape.value.kind != .object else { return nil }
        return unseenWrite(to: object, shownBy: shape.text).flatMap {
            object.state.lo(of: path, lag: lag) <= $0 ? $0 : nil
        }
    }

    /// The time of a write that may have changed an object since the text that shows it was true.
    func unseenWrite(to object: KnownObject, shownBy text: Int) -> Int64? {
        guard let observation, case .unobserved(let time, _, _) = object.state.mark else { return nil }
        let isEmbedded = text == PinTree.skeleton || tree.isEmbedded(text)
        return observation.lo(isEmbedded: isEmbedded, lag: lag) <= time ? time : nil
    }

    /// Whether a document that was requested after a write shows a member as settled before it, and may go on doing so until the
    /// lag ends.
    ///
    /// Somebody else has written, and nothing contradicts the value. Any other value may be newer or older than what was served
    /// before. To the principal who has written, the settled value may be the one from before the write.
    private func mayStay(
        _ shown: JSONSlice,
        _ path: MemberPath,
        settledAs settled: ObservedMember,
        of object: KnownObject,
        sinceWriteAt time: Int64
    ) -> Bool {
        guard let observation, observation.start > time, object.state.mark?.isOwn != true, object.doubts[path] == nil
        else {
            return false
        }
        return !settled.isContainer && shown.isEqual(to: settled.value, as: settled.link)
    }

    /// Whether a value has the same members as the pinned one; a pinned value without members has none to lose.
    private mutating func fits(_ value: JSONSlice, _ pinned: JSONSlice) -> Bool {
        guard value.kind == .object || value.kind == .array else { return true }
        guard pinned.kind == .object || pinned.kind == .array else { return true }
        return spend(value.range.count + pinned.range.count) && ValueShape(value).fits(ValueShape(pinned))
    }

    /// Writes a value without objects in place of the pinned one.
    mutating func writeLiteral(_ value: JSONSlice) {
        guard spend(value.range.count) else { return }
        hasOwnChange = true
        output.append(contentsOf: value.bytes)
    }

    private mutating func writeContainer(
        _ newest: ObservedMember,
        _ shape: Shape,
        member path: MemberPath,
        of subject: Subject
    ) {
        if shape.value.kind == .object {
            write(shape, showing: subject, at: path)
        } else if let place = pin(at: shape), let child = JSONSlice(tree.pins[place.pin]) {
            // The pin is an object of its own; now it is embedded without an identity.
            hasOwnChange = true
            let strict = Subject(resolved: subject.resolved, object: subject.object, isStrict: true)
            write(Shape(text: place.pin, value: child), showing: strict, at: path)
        } else if subject.isStrict || newest.isShared {
            fail(
                "\(path.text) of \(subject.description) is now an object, and this document does not show which members to write for it"
            )
        } else {
            copy(shape.text, shape.value.range)
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

    init(_ value: JSONSlice) {
        switch value.kind {
        case .object:
            self = .object(Dictionary(value.members.map { ($0.name, ValueShape($0.value)) }) { first, _ in first })
        case .array:
            self = .list(Set(value.elements.map { ValueShape($0) }))
        case .string, .number, .word:
            self = .plain
        }
    }

    private static let comparisons = 1_024

    /// Whether a value of this shape has exactly the members of the other in its place.
    ///
    /// A value without members fits anywhere. Each element of a list must fit some element of the other.
    func fits(_ other: ValueShape) -> Bool {
        switch (self, other) {
        case (.plain, _): true
        case (.object(let mine), .object(let theirs)):
            mine.count == theirs.count
                && mine.allSatisfy { name, shape in theirs[name].map { shape.fits($0) } ?? false }
        case (.list(let mine), .list(let theirs)):
            // The limit is for lists whose elements all differ: each would be compared with each.
            mine.allSatisfy { shape in
                shape == .plain || theirs.contains(shape)
                    || mine.count * theirs.count <= Self.comparisons && theirs.contains { shape.fits($0) }
            }
        case (.list(let mine), _):
            mine.allSatisfy { $0 == .plain }
        case (.object, _):
            false
        }
    }
}
