import GRDB
import Mapping

/// The known state of an object, as read from its row.
struct StoredState {
    /// The columns of `_objects o` that `init` reads.
    static let columns = "o.state, o.merged, o.known, o.accumulated, o.deleted, o.unobserved"

    let entries: [ObjectRecord.Entry]
    let merged: [UInt8]?
    let knowledge: Knowledge
    let accumulated: [UInt8]
    let mark: ObjectMark?
    let deletedSince: Int64?

    /// Reads the columns, beginning with this number.
    init(_ row: QueryRow, from column: Int32) throws(StoreError) {
        entries = try ObjectRecord.decode(row.bytes(column))
        merged = row.isNull(column + 1) ? nil : row.bytes(column + 1)
        knowledge = try KnowledgeBytes.decode(row.bytes(column + 2))
        accumulated = row.bytes(column + 3)
        mark = ObjectMark(deleted: row.integer(column + 4), unobserved: row.integer(column + 5))
        deletedSince = row.integer(column + 4) < 0 ? -row.integer(column + 4) : nil
    }

    /// The state, migrated to today's version of the model.
    func state(of model: String, _ models: Models?, in database: Database) throws -> ObjectState {
        var state = ObjectState(merged: merged, knowledge: knowledge, deletedSince: deletedSince, mark: mark)
        var declared = 0
        if let entry = entries.first, entry.observation != 0 {
            let found = try Query(
                database,
                """
                SELECT o.start, o.finish, o.kind, v.payload, v.declared FROM _observations o, _versions v
                WHERE o.id = ? AND v.id = ?
                """
            ).first(.integer(entry.observation), .integer(entry.version)) { row in
                declared = Int(row.integer(4))
                return Contribution(
                    observation: Observation(
                        sequence: entry.observation,
                        start: row.integer(0),
                        end: row.integer(1),
                        kind: Observation.Kind(rawValue: UInt8(truncatingIfNeeded: row.integer(2))) ?? .list
                    ),
                    version: entry.version,
                    payload: row.bytes(3)
                )
            }
            guard let found else { throw StoreError.corrupt("version \(entry.version) is missing") }
            state.base = found
        }
        state.accumulation = Accumulation(bytes: accumulated)
        state.bringUpToDate(from: declared, model, models)
        return state
    }
}

extension ObjectState {
    /// Migrates what was stored under an earlier version of the model to today's.
    mutating func bringUpToDate(from declared: Int, _ model: String, _ models: Models?) {
        if case .whole(let isEmbedded) = knowledge { base?.isEmbedded = isEmbedded }
        guard let models, models.version(of: model) > declared else { return }
        if let payload = base?.payload { base?.payload = models.migrate(payload, of: model, from: declared) }
        merged = merged.map { models.migrate($0, of: model, from: declared) }
        accumulation = models.migrate(accumulation, of: model, from: declared)
    }
}

/// `Knowledge` as bytes in an object's row.
///
/// Empty if the base version's observation is the only one; one byte if the object was embedded in that response.
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

    /// - Throws: `StoreError.corrupt` if bytes are missing.
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
        if try reader.isPresent() { group.floor = try reader.bytes() }
        if try reader.isPresent() { group.lowerSince = try reader.number() }
        if try reader.isPresent() { group.contradictedUntil = try reader.number() }
        if try reader.isPresent() {
            group.doubt = Knowledge.Doubt(
                value: try reader.bytes(),
                lo: try reader.number(),
                hi: try reader.number(),
                rest: try reader.number(),
                source: try reader.number(),
                asksFrom: try reader.number()
            )
        }
        if try reader.isPresent() {
            let (value, name) = (try reader.bytes(), try reader.text())
            group.former = KnowledgeRule(rawValue: name).map { Knowledge.Former(value: value, rule: $0) }
        }
        if try reader.isPresent() {
            var members: [String] = []
            let count = try reader.number()
            while members.count < count { members.append(try reader.text()) }
            group.members = members
        }
        return group
    }

    /// Reads values that must be present.
    private struct Reader {
        private var reader: VariableReader

        init(_ bytes: [UInt8]) { reader = VariableReader(bytes) }

        var isAtEnd: Bool { reader.isAtEnd }

        mutating func number() throws(StoreError) -> Int64 { Int64(bitPattern: try found(reader.next())) }
        mutating func bytes() throws(StoreError) -> [UInt8] { try found(reader.nextBytes()) }
        mutating func text() throws(StoreError) -> String { String(decoding: try bytes(), as: UTF8.self) }
        mutating func isPresent() throws(StoreError) -> Bool { try number() == 1 }

        private func found<Value>(_ value: Value?) throws(StoreError) -> Value {
            guard let value else { throw .corrupt("what is known of an object is cut short") }
            return value
        }
    }
}

extension VariableWriter {
    /// Appends whether there is a value, and the value.
    fileprivate mutating func append<Value>(optional value: Value?, as body: (inout VariableWriter, Value) -> Void) {
        append(value == nil ? 0 : 1)
        if let value { body(&self, value) }
    }
}
