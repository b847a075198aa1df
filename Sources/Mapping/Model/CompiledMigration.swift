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
            let bytes = Array(value.bytes)
            let rest = JSONEdit.removing(from[...], from: object)
            edited = JSONSlice(rest).flatMap { JSONEdit.setting(to[...], to: bytes, in: $0) } ?? edited
        }
        for (path, converter) in converted {
            guard let object = JSONSlice(edited), let value = object.value(at: path[...]), !value.isNull,
                !value.containsReference, case .value(let bytes) = converter.forward(Array(value.bytes))
            else { continue }
            edited = JSONEdit.setting(path[...], to: bytes, in: object) ?? edited
        }
        for path in removed {
            guard let object = JSONSlice(edited) else { continue }
            edited = JSONEdit.removing(path[...], from: object)
        }
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

/// Edits single members of a JSON text; everything else keeps its spelling.
enum JSONEdit {
    /// The object without the member at a path; unchanged if there is no such member.
    static func removing(_ path: ArraySlice<String>, from object: JSONSlice) -> [UInt8] {
        guard let name = path.first else { return Array(object.bytes) }
        let wanted = MemberPath([name])
        let members = object.members
        guard let index = members.firstIndex(where: { $0.name == wanted }) else { return Array(object.bytes) }
        let member = members[index]
        var cut = member.value.range
        var replacement: [UInt8] = []
        if path.count > 1 {
            replacement = removing(path.dropFirst(), from: member.value)
        } else if index > 0 {
            cut = members[index - 1].value.range.upperBound..<cut.upperBound
        } else if members.count > 1 {
            cut = member.nameRange.lowerBound..<members[1].nameRange.lowerBound
        } else {
            cut = member.nameRange.lowerBound..<cut.upperBound
        }
        return Array(object.text[object.range.lowerBound..<cut.lowerBound]) + replacement
            + object.text[cut.upperBound..<object.range.upperBound]
    }

    /// The object with a value at a path, creating objects on the way; nil if another value is in the way.
    static func setting(_ path: ArraySlice<String>, to value: [UInt8], in object: JSONSlice) -> [UInt8]? {
        guard let name = path.first else { return value }
        guard object.kind == .object else { return nil }
        let wanted = MemberPath([name])
        let members = object.members
        if let member = members.first(where: { $0.name == wanted }) {
            guard let inner = setting(path.dropFirst(), to: value, in: member.value) else { return nil }
            return Array(object.text[object.range.lowerBound..<member.value.range.lowerBound]) + inner
                + object.text[member.value.range.upperBound..<object.range.upperBound]
        }
        guard let inner = setting(path.dropFirst(), to: value, in: JSONSlice(Array("{}".utf8), 0..<2)) else {
            return nil
        }
        var output = Array(object.text[object.range.lowerBound..<object.range.upperBound - 1])
        if !members.isEmpty { output.append(UInt8(ascii: ",")) }
        JSONString.append(name, to: &output)
        output.append(UInt8(ascii: ":"))
        return output + inner + [UInt8(ascii: "}")]
    }
}

extension Models {
    /// Migrates the pins of a document to the current versions of their models.
    ///
    /// Nil if none of them changes.
    ///
    /// - Parameters:
    ///   - skeleton: the document's skeleton.
    ///   - pins: the payloads, in pre-order.
    ///   - declared: by pin, the version of its model when it was stored.
    public func migrated(skeleton: [UInt8], pins: [[UInt8]], declared: [Int]) -> [[UInt8]]? {
        guard haveVersions, let tree = PinTree(skeleton: skeleton, pins: pins) else { return nil }
        var isChanged = false
        let migrated = pins.indices.map { pin in
            guard let name = tree.name(of: pin), declared[pin] < version(of: name.model) else { return pins[pin] }
            let payload = migrate(pins[pin], of: name.model, from: declared[pin])
            if payload != pins[pin] { isChanged = true }
            return payload
        }
        return isChanged ? migrated : nil
    }
}
