import Mapping

/// `Knowledge` as it lies in an object's row.
///
/// Empty where the base version's observation is the only one; one byte where the object was embedded in that response.
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
            for group in groups { append(group, to: &writer) }
        }
        return writer.bytes
    }

    /// - Throws: `StoreError.corrupt` where bytes are missing.
    static func decode(_ bytes: [UInt8]) throws(StoreError) -> Knowledge {
        guard !bytes.isEmpty else { return .whole(isEmbedded: false) }
        var reader = Reader(bytes)
        guard try reader.number() == Int64(groups) else { return .whole(isEmbedded: true) }
        var groups: [Knowledge.Group] = []
        while !reader.isAtEnd { groups.append(try group(from: &reader)) }
        return .groups(groups)
    }

    private static func append(_ group: Knowledge.Group, to writer: inout VariableWriter) {
        for number in [group.source, group.lo, group.hi - group.lo, group.isExact ? 1 : 0] {
            writer.append(UInt64(bitPattern: number))
        }
        writer.append(optional: group.floor) { $0.append(bytes: $1) }
        writer.append(optional: group.lowerSince) { $0.append(UInt64(bitPattern: $1)) }
        writer.append(optional: group.contradictedUntil) { $0.append(UInt64(bitPattern: $1)) }
        writer.append(optional: group.doubt) { writer, doubt in
            writer.append(bytes: doubt.value)
            for number in [doubt.lo, doubt.hi, doubt.rest, doubt.source, doubt.asksFrom] {
                writer.append(UInt64(bitPattern: number))
            }
        }
        writer.append(optional: group.former) { writer, former in
            writer.append(bytes: former.value)
            writer.append(bytes: Array(former.rule.rawValue.utf8))
        }
        writer.append(optional: group.members) { writer, members in
            writer.append(UInt64(members.count))
            for member in members { writer.append(bytes: Array(member.utf8)) }
        }
    }

    private static func group(from reader: inout Reader) throws(StoreError) -> Knowledge.Group {
        let (source, lo, length) = (try reader.number(), try reader.number(), try reader.number())
        var group = Knowledge.Group(source: source, lo: lo, hi: lo &+ length)
        group.isExact = try reader.number() == 1
        if try reader.isThere() { group.floor = try reader.bytes() }
        if try reader.isThere() { group.lowerSince = try reader.number() }
        if try reader.isThere() { group.contradictedUntil = try reader.number() }
        if try reader.isThere() {
            group.doubt = Knowledge.Doubt(
                value: try reader.bytes(),
                lo: try reader.number(),
                hi: try reader.number(),
                rest: try reader.number(),
                source: try reader.number(),
                asksFrom: try reader.number()
            )
        }
        if try reader.isThere() {
            let (value, name) = (try reader.bytes(), try reader.text())
            group.former = KnowledgeRule(rawValue: name).map { Knowledge.Former(value: value, rule: $0) }
        }
        if try reader.isThere() {
            var members: [String] = []
            let count = try reader.number()
            while members.count < count { members.append(try reader.text()) }
            group.members = members
        }
        return group
    }

    /// Reads what must be there.
    private struct Reader {
        private var reader: VariableReader

        init(_ bytes: [UInt8]) { reader = VariableReader(bytes) }

        var isAtEnd: Bool { reader.isAtEnd }

        mutating func number() throws(StoreError) -> Int64 { Int64(bitPattern: try found(reader.next())) }
        mutating func bytes() throws(StoreError) -> [UInt8] { try found(reader.nextBytes()) }
        mutating func text() throws(StoreError) -> String { String(decoding: try bytes(), as: UTF8.self) }
        mutating func isThere() throws(StoreError) -> Bool { try number() == 1 }

        private func found<Value>(_ value: Value?) throws(StoreError) -> Value {
            guard let value else { throw .corrupt("what is known of an object is cut short") }
            return value
        }
    }
}

extension VariableWriter {
    /// Whether there is a value, and the value.
    fileprivate mutating func append<Value>(optional value: Value?, as body: (inout VariableWriter, Value) -> Void) {
        append(value == nil ? 0 : 1)
        if let value { body(&self, value) }
    }
}
