/// Writes one object with every declared member at its newest: shape from one contribution, the missing members behind.
struct MergedWriter {
    private let resolved: ResolvedObject
    /// Members of the shape that fail their checks: left out where nothing better is known.
    private let quarantined: Set<MemberPath>
    /// Members that are values or containers, by the object that they are directly in.
    private let byParent: [MemberPath: [(path: MemberPath, member: ObservedMember)]]
    private(set) var output: [UInt8] = []

    init(_ resolved: ResolvedObject, leavingOut quarantined: Set<MemberPath> = []) {
        self.resolved = resolved
        self.quarantined = quarantined.filter { resolved[$0] == nil }
        var byParent: [MemberPath: [(path: MemberPath, member: ObservedMember)]] = [:]
        for (path, member) in resolved.members { byParent[path.parent, default: []].append((path, member)) }
        self.byParent = byParent.mapValues { $0.sorted { $0.path.text < $1.path.text } }
    }

    /// Writes `value`, which stands at `path`, with what is known newer in it.
    mutating func write(_ value: JSONSlice, at path: MemberPath) {
        guard value.kind == .object else { return output.append(contentsOf: value.bytes) }
        var position = value.range.lowerBound
        var shown: Set<MemberPath> = []
        // Where the comma before the next member stands, or the bracket.
        var separator = position + 1
        for member in value.members {
            let inner = path.appending(member.name)
            defer { separator = member.value.range.upperBound }
            // Of what occurs twice the first place shows the value: the second would make both no observation.
            if quarantined.contains(inner) || shown.contains(inner) && resolved[inner] != nil {
                // With the comma before it; without one, the comma behind it goes below.
                output.append(contentsOf: value.text[position..<max(position, separator)])
                position = member.value.range.upperBound
                continue
            }
            if shown.isEmpty, position > value.range.lowerBound {
                // Only members that were left out stood before it.
                position = member.nameRange.lowerBound
            }
            shown.insert(inner)
            guard let newest = resolved[inner] else { continue }
            output.append(contentsOf: value.text[position..<member.value.range.lowerBound])
            writeMember(newest, shownAs: member.value, at: inner)
            position = member.value.range.upperBound
        }
        let close = value.range.upperBound - 1
        output.append(contentsOf: value.text[position..<close])
        for (inner, member) in byParent[path] ?? [] where !shown.contains(inner) {
            guard let name = inner.lastName else { continue }
            if !shown.isEmpty { output.append(UInt8(ascii: ",")) }
            shown.insert(inner)
            JSONString.append(name, to: &output)
            output.append(UInt8(ascii: ":"))
            write(member.value, at: inner)
        }
        output.append(UInt8(ascii: "}"))
    }

    private mutating func writeMember(_ newest: ObservedMember, shownAs value: JSONSlice, at path: MemberPath) {
        if newest.isContainer {
            write(value.kind == .object ? value : newest.value, at: path)
        } else if newest.agrees(with: ObservedMember(value: value, isShared: true, link: newest.link)) {
            output.append(contentsOf: value.bytes)
        } else {
            output.append(contentsOf: newest.value.bytes)
        }
    }
}

extension MemberPath {
    /// The object that the member is directly in.
    var parent: MemberPath {
        guard let slash = text.utf8.lastIndex(of: UInt8(ascii: "/")) else { return .root }
        return MemberPath(pointer: String(text[..<slash]))
    }

    /// The member's own name; nil for names that are not Unicode.
    var lastName: String? {
        guard let slash = text.utf8.lastIndex(of: UInt8(ascii: "/")) else { return name }
        return MemberPath(pointer: String(text[text.utf8.index(after: slash)...])).name
    }
}
