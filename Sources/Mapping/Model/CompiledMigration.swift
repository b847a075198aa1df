/// The changes of one model version to the upstream's JSON, ready to be applied to older objects.
struct CompiledMigration: Sendable {
    let to: Int
    private let renamed: [(from: [String], to: [String])]
    private let converted: [(path: [String], converter: Converter)]
    private let removed: [[String]]

    init(_ migration: Migration, model: String) throws(MappingError) {
        to = migration.to
        renamed = try migration.renamed.map { (rename) throws(MappingError) in
            (from: try Self.path(rename.from, model), to: try Self.path(rename.to, model))
        }
        converted = try migration.converted.map { (entry) throws(MappingError) in
            (path: try Self.path(entry.member, model), converter: try Converter(entry.conversion))
        }
        removed = try migration.removed.map { (member) throws(MappingError) in try Self.path(member, model) }
    }

    private static func path(_ text: String, _ model: String) throws(MappingError) -> [String] {
        guard let path = KeyPathSyntax.steps(of: text)?.names else {
            throw .invalidKeyPath(text, usedBy: "migrations", model: model)
        }
        return path
    }

    /// Applies the changes to an object: renames, then conversions, then removals.
    ///
    /// Absent or repeated members are left alone, and so are values that the conversion does not accept.
    func apply(to payload: [UInt8]) -> [UInt8] {
        var edited = payload
        for (from, to) in renamed {
            guard let object = JSONSlice(edited), let value = object.value(at: from[...]),
                object.value(at: to[...]) == nil
            else { continue }
            edited = JSONSlice(object.removing(from[...]))?.setting(to[...], to: Array(value.bytes)) ?? edited
        }
        for (path, converter) in converted {
            guard let object = JSONSlice(edited), let value = object.value(at: path[...]), !value.isNull,
                !value.containsReference, case .value(let bytes) = converter.forward(Array(value.bytes))
            else { continue }
            edited = object.setting(path[...], to: bytes) ?? edited
        }
        for path in removed { edited = JSONSlice(edited)?.removing(path[...]) ?? edited }
        return edited
    }

    /// Applies the changes to the values of members with a policy of their own.
    func apply(to gathered: GatheredValues) -> GatheredValues {
        var edited = gathered
        for (from, to) in renamed { edited.rename(MemberPath(from), to: MemberPath(to)) }
        for (path, converter) in converted { edited.convert(MemberPath(path), converter) }
        for path in removed { edited.remove(MemberPath(path)) }
        return edited
    }
}

/// Edits single members; everything else keeps its spelling.
extension JSONSlice {
    /// The object without the member at a path; unchanged if there is no such member.
    fileprivate func removing(_ path: ArraySlice<String>) -> [UInt8] {
        let (wanted, members) = (path.first.map { MemberPath([$0]) }, members)
        guard let index = members.firstIndex(where: { $0.name == wanted }) else { return Array(bytes) }
        let member = members[index]
        if path.count > 1 { return replacing(member.value.range, by: member.value.removing(path.dropFirst())) }
        // A comma goes with it: the one before the member, or the one after the first.
        let start = index > 0 ? members[index - 1].value.range.upperBound : member.nameRange.lowerBound
        let end = index == 0 && members.count > 1 ? members[1].nameRange.lowerBound : member.value.range.upperBound
        return replacing(start..<end, by: [])
    }

    /// The object with a value at a path, creating objects on the way; nil if another value is in the way.
    fileprivate func setting(_ path: ArraySlice<String>, to value: [UInt8]) -> [UInt8]? {
        guard let name = path.first else { return value }
        guard kind == .object else { return nil }
        let (wanted, members) = (MemberPath([name]), members)
        let member = members.first { $0.name == wanted }
        let place = member?.value ?? JSONSlice(Array("{}".utf8), 0..<2)
        guard let inner = place.setting(path.dropFirst(), to: value) else { return nil }
        if let member { return replacing(member.value.range, by: inner) }
        var added = members.isEmpty ? [] : [UInt8(ascii: ",")]
        JSONString.append(name, to: &added)
        let end = range.upperBound - 1
        return replacing(end..<end, by: added + [UInt8(ascii: ":")] + inner)
    }

    private func replacing(_ part: Range<Int>, by new: [UInt8]) -> [UInt8] {
        Array(text[range.lowerBound..<part.lowerBound]) + new + text[part.upperBound..<range.upperBound]
    }
}

extension Models {
    /// Migrates the pins of a document to the current versions of their models; nil if none of them changes.
    ///
    /// - Parameters:
    ///   - pins: the payloads, in pre-order.
    ///   - declared: by pin, the version of its model when it was stored.
    public func migrated(skeleton: [UInt8], pins: [[UInt8]], declared: [Int]) -> [[UInt8]]? {
        guard haveVersions, let tree = PinTree(skeleton: skeleton, pins: pins) else { return nil }
        let migrated = pins.indices.map { pin in
            tree.name(of: pin).map { migrate(pins[pin], of: $0.model, from: declared[pin]) } ?? pins[pin]
        }
        return migrated == pins ? nil : migrated
    }
}
