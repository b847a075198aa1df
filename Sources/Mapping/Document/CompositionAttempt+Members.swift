/// Writes the members of one object with their newest values.
extension CompositionAttempt {
    /// Writes an object in the shape of a pinned one: an earlier version of itself, or another object.
    ///
    /// `isStrict` means that the shape is another object's. Then every member of the shape must be known of this object
    /// (law 6). Otherwise members without a newer value stay as pinned.
    mutating func write(
        _ shape: Shape,
        showing resolved: ResolvedObject,
        name: ObjectName?,
        isStrict: Bool,
        at prefix: MemberPath = .root
    ) {
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
                if isStrict { return fail("\(path.text) occurs twice in the shape for \(describe(name))") }
                copy(shape.text, member.value.range)
            } else {
                write(shape.at(member.value), member: path, of: resolved, name: name, isStrict: isStrict)
            }
        }
        output.append(contentsOf: shape.value.text[position..<shape.value.range.upperBound])
    }

    private mutating func write(
        _ shape: Shape,
        member path: MemberPath,
        of resolved: ResolvedObject,
        name: ObjectName?,
        isStrict: Bool
    ) {
        if !isStrict, kept[shape.text]?.contains(path) == true { return copy(shape.text, shape.value.range) }
        if resolved[path]?.isShared == true, let asksFrom = name.flatMap({ known[$0]?.doubts[path] }) {
            doubts.insert(asksFrom)
        }
        guard let newest = resolved[path], mayShow(newest, at: path, of: resolved, isStrict: isStrict) else {
            if isStrict { return fail("\(path.text) is not known of \(describe(name))") }
            return copy(shape.text, shape.value.range)
        }
        if newest.isContainer {
            writeContainer(newest, shape, member: path, of: resolved, name: name, isStrict: isStrict)
        } else if shape.value.kind == .object, newest.link?.arity == .one {
            // The pin embeds the object; now the value is null or a reference.
            write(related: newest, shape)
        } else if ObservedMember(value: shape.value, isShared: true, link: newest.link).agrees(with: newest) {
            copy(shape.text, shape.value.range)
        } else if newest.link?.isMany == true {
            writeList(newest, shape)
        } else if newest.link?.arity == .keyed {
            writeKeyed(newest, shape)
        } else if newest.link != nil {
            write(related: newest, shape)
        } else if newest.value.containsReference {
            fail("\(path.text) of \(describe(name)) now holds objects that no model relates to it")
        } else if !newest.isWhole, !fits(newest.value, shape.value) {
            fail("the newest value of \(path.text) of \(describe(name)) has other members than this document shows")
        } else {
            writeLiteral(newest.value)
        }
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
        isChanged = true
        output.append(contentsOf: value.bytes)
    }

    /// Shared members move; an identity is shown wherever its object is.
    private func mayShow(_ newest: ObservedMember, at path: MemberPath, of resolved: ResolvedObject, isStrict: Bool)
        -> Bool
    {
        newest.isShared || newest.isContainer
            || isStrict && models.compiled[resolved.model].identityMembers.contains(path)
    }

    private mutating func writeContainer(
        _ newest: ObservedMember,
        _ shape: Shape,
        member path: MemberPath,
        of resolved: ResolvedObject,
        name: ObjectName?,
        isStrict: Bool
    ) {
        if shape.value.kind == .object {
            write(shape, showing: resolved, name: name, isStrict: isStrict, at: path)
        } else if let place = pin(at: shape), let child = JSONSlice(tree.pins[place.pin]) {
            // The pin is an object of its own; now it is embedded without an identity.
            isChanged = true
            write(Shape(text: place.pin, value: child), showing: resolved, name: name, isStrict: true, at: path)
        } else if isStrict || newest.isShared {
            fail(
                "\(path.text) of \(describe(name)) is now an object, and this document does not show which members to write for it"
            )
        } else {
            copy(shape.text, shape.value.range)
        }
    }

    func describe(_ name: ObjectName?) -> String { name?.description ?? "an embedded object" }
}

/// The members that a value has, regardless of their values.
///
/// For a member without a model, an object that lacks a member may have lost it, or may only be shown in part. So a
/// value replaces another one in a document only if both have the same members.
indirect enum ValueShape: Hashable {
    /// Null, a string, a number, true or false.
    case plain
    case object([MemberPath: ValueShape])
    /// The distinct shapes of the elements.
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
