/// Writes an object with the newest value of every declared member, in the shape of one contribution.
///
/// Members that the shape lacks are appended.
struct MergedWriter {
    private let resolved: ResolvedObject
    /// Members of the shape that fail their checks; they are left out if no better value is known.
    private let quarantined: Set<MemberPath>
    /// All members, by the object that directly contains them.
    private let byParent: [MemberPath: [(path: MemberPath, member: ObservedMember)]]
    private(set) var output: [UInt8] = []

    init(_ resolved: ResolvedObject, leavingOut quarantined: Set<MemberPath> = []) {
        self.resolved = resolved
        self.quarantined = quarantined.filter { resolved[$0] == nil }
        var byParent: [MemberPath: [(path: MemberPath, member: ObservedMember)]] = [:]
        for (path, member) in resolved.members { byParent[path.parent, default: []].append((path, member)) }
        self.byParent = byParent.mapValues { $0.sorted { $0.path.text < $1.path.text } }
    }

    /// Writes `value`, which is at `path`, with its newest members.
    mutating func write(_ value: JSONSlice, at path: MemberPath) {
        guard value.kind == .object else { return output.append(contentsOf: value.bytes) }
        var position = value.range.lowerBound
        var shown: Set<MemberPath> = []
        // The position of the comma before the next member, or just inside the bracket.
        var separator = position + 1
        for member in value.members {
            let inner = path.appending(member.name)
            defer { separator = member.value.range.upperBound }
            // Of a repeated member, only the first place is written: a repetition would be no observation.
            if quarantined.contains(inner) || shown.contains(inner) && resolved[inner] != nil {
                // The comma before the member goes with it. If it has none, the comma after it is dropped below.
                output.append(contentsOf: value.text[position..<max(position, separator)])
                position = member.value.range.upperBound
                continue
            }
            if shown.isEmpty, position > value.range.lowerBound {
                // All members before this one were left out.
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
