import Mapping

/// `Knowledge` as it lies in an object's row.
///
/// Nothing for what the base version's observation tells; one byte for that of an embedded object.
enum KnowledgeBytes {
    private static let embedded: UInt64 = 1
    private static let groups: UInt64 = 2

    static func encode(_ knowledge: Knowledge) -> [UInt8] {
        var writer = VariableWriter()
        switch knowledge {
        case .whole(false): break
        case .whole(true): writer.append(embedded)
        case .groups(let groups):
            writer.append(Self.groups)
            var last: Int64 = 0
            for group in groups {
                append(group, to: &writer, after: last)
                last = group.hi
            }
        }
        return writer.bytes
    }

    /// - Throws: `StoreError.corrupt` where bytes are missing.
    static func decode(_ bytes: [UInt8]) throws(StoreError) -> Knowledge {
        guard !bytes.isEmpty else { return .whole(isEmbedded: false) }
        var reader = VariableReader(bytes)
        guard let form = reader.next() else { throw cutShort }
        if form == embedded { return .whole(isEmbedded: true) }
        var groups: [Knowledge.Group] = []
        while !reader.isAtEnd {
            guard let group = group(from: &reader, after: groups.last?.hi ?? 0) else { throw cutShort }
            groups.append(group)
        }
        return .groups(groups)
    }

    private static var cutShort: StoreError { .corrupt("what is known of an object is cut short") }

    /// Which of the optional parts a group has.
    private struct Parts: OptionSet {
        let rawValue: UInt64
        static let floor = Parts(rawValue: 1)
        static let isExact = Parts(rawValue: 2)
        static let lowerSince = Parts(rawValue: 4)
        static let doubt = Parts(rawValue: 8)
        static let former = Parts(rawValue: 16)
        static let members = Parts(rawValue: 32)
        static let contradicted = Parts(rawValue: 64)

        init(rawValue: UInt64) { self.rawValue = rawValue }

        init(of group: Knowledge.Group) {
            self = []
            if group.floor != nil { insert(.floor) }
            if group.isExact { insert(.isExact) }
            if group.lowerSince != nil { insert(.lowerSince) }
            if group.doubt != nil { insert(.doubt) }
            if group.former != nil { insert(.former) }
            if group.members != nil { insert(.members) }
            if group.contradictedUntil != nil { insert(.contradicted) }
        }
    }

    private static func append(_ group: Knowledge.Group, to writer: inout VariableWriter, after last: Int64) {
        writer.append(Parts(of: group).rawValue)
        writer.append(UInt64(group.source))
        writer.append(signed: group.hi &- last)
        writer.append(signed: group.hi &- group.lo)
        if let floor = group.floor { writer.append(bytes: floor) }
        if let since = group.lowerSince { writer.append(signed: group.hi &- since) }
        if let doubt = group.doubt {
            writer.append(bytes: doubt.value)
            for time in [doubt.lo, doubt.hi, doubt.rest, doubt.source, doubt.asksFrom] { writer.append(signed: time) }
        }
        if let former = group.former {
            writer.append(bytes: former.value)
            writer.append(bytes: Array(former.rule.rawValue.utf8))
        }
        if let until = group.contradictedUntil { writer.append(signed: group.hi &- until) }
        if let members = group.members {
            writer.append(UInt64(members.count))
            for member in members { writer.append(bytes: Array(member.utf8)) }
        }
    }

    private static func group(from reader: inout VariableReader, after last: Int64) -> Knowledge.Group? {
        guard let parts = reader.next().map(Parts.init), let source = reader.next(), let step = reader.nextSigned(),
            let length = reader.nextSigned()
        else { return nil }
        let hi = last &+ step
        var group = Knowledge.Group(source: Int64(truncatingIfNeeded: source), lo: hi &- length, hi: hi)
        group.isExact = parts.contains(.isExact)
        if parts.contains(.floor) {
            guard let floor = reader.nextBytes() else { return nil }
            group.floor = floor
        }
        if parts.contains(.lowerSince) {
            guard let since = reader.nextSigned() else { return nil }
            group.lowerSince = hi &- since
        }
        if parts.contains(.doubt) {
            guard let value = reader.nextBytes(), let lo = reader.nextSigned(), let hi = reader.nextSigned(),
                let rest = reader.nextSigned(), let source = reader.nextSigned(), let asksFrom = reader.nextSigned()
            else { return nil }
            group.doubt = Knowledge.Doubt(value: value, lo: lo, hi: hi, rest: rest, source: source, asksFrom: asksFrom)
        }
        if parts.contains(.former) {
            guard let value = reader.nextBytes(), let name = reader.nextBytes(),
                let rule = KnowledgeRule(rawValue: String(decoding: name, as: UTF8.self))
            else { return nil }
            group.former = Knowledge.Former(value: value, rule: rule)
        }
        if parts.contains(.contradicted) {
            guard let until = reader.nextSigned() else { return nil }
            group.contradictedUntil = hi &- until
        }
        if parts.contains(.members) {
            guard let count = reader.next() else { return nil }
            var members: [String] = []
            for _ in 0..<count {
                guard let member = reader.nextBytes() else { return nil }
                members.append(String(decoding: member, as: UTF8.self))
            }
            group.members = members
        }
        return group
    }
}
