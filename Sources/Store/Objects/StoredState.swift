import GRDB
import Mapping

/// The known state of an object, as read from its row.
struct StoredState {
    /// The columns of `_objects o` that `init` reads.
    static let columns = "o.state, o.merged, o.known, o.accumulated, o.deleted, o.unobserved, o.reused"

    let entries: [ObjectRecord.Entry]
    let merged: [UInt8]?
    let knowledge: Knowledge
    let accumulated: [UInt8]
    let mark: ObjectMark?
    let deletedSince: Int64?

    init(_ row: QueryRow, from column: Int32) throws(StoreError) {
        entries = try ObjectRecord.decode(row.bytes(column))
        merged = row.isNull(column + 1) ? nil : row.bytes(column + 1)
        knowledge = try KnowledgeBytes.decode(row.bytes(column + 2))
        guard knowledge.hasPossibleTimes() else { throw .corrupt("a value was observed at no possible time") }
        accumulated = row.bytes(column + 3)
        let deleted = row.time(column + 4)
        mark = ObjectMark(deleted: deleted, unobserved: row.time(column + 5), reused: row.integer(column + 6))
        deletedSince = deleted < 0 ? -deleted : nil
    }

    /// The state of an object, with the names of its model and its upstream; nil if the object is gone.
    static func named(_ object: ObjectID, in database: Database) throws
        -> (state: StoredState, model: String, upstream: UpstreamKey)?
    {
        try database.query(
            """
            SELECT \(columns), m.text, u.text FROM _objects o
            JOIN _collections c ON c.id = o.collection JOIN _scopes s ON s.id = c.scope
            JOIN _names m ON m.id = c.model JOIN _names u ON u.id = s.upstream WHERE o.id = ?
            """
        ).first(object) { (try StoredState($0, from: 0), $0.string(7), $0.upstream(8)) }
    }

    func state(of model: String, _ models: Models?, in database: Database) throws -> ObjectState {
        var state = ObjectState(knowledge: knowledge, mark: mark)
        (state.merged, state.deletedSince) = (merged, deletedSince)
        var declared = 0
        if let entry = entries.first, entry.observation != .zero {
            let found = try database.query(
                """
                SELECT o.start, o.finish, o.kind, v.payload, v.declared FROM _observations o, _versions v
                WHERE o.id = ? AND v.id = ?
                """
            ).first(entry.observation, entry.version) { row in
                declared = Int(row.count(4))
                let seen = row.observation(entry.observation, from: 0)
                return Contribution(observation: seen, version: entry.version.rawValue, payload: row.bytes(3))
            }
            guard let found else { throw StoreError.corrupt("version \(entry.version) is missing") }
            state.base = found
        }
        state.gathered = GatheredValues(bytes: accumulated)
        state.bringUpToDate(from: declared, model, models)
        return state
    }
}

/// `Mapping` treats observations and versions as opaque numbers.
extension Observation {
    var id: ObservationID { ObservationID(rawValue: sequence) }
}

extension Contribution {
    var versionID: VersionID { VersionID(rawValue: version) }
}

extension ObjectState {
    /// Migrates content stored under an earlier version of the model to the current one.
    mutating func bringUpToDate(from declared: Int, _ model: String, _ models: Models?) {
        if case .whole(let isEmbedded) = knowledge { base?.isEmbedded = isEmbedded }
        guard let models, models.version(of: model) > declared else { return }
        if let payload = base?.payload { base?.payload = models.migrate(payload, of: model, from: declared) }
        merged = merged.map { models.migrate($0, of: model, from: declared) }
        gathered = models.migrate(gathered, of: model, from: declared)
    }
}

/// Encodes `Knowledge` in an object's row.
///
/// The bytes are empty if the base version's observation is the only one. A single byte says that the object was
/// embedded in that response.
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

    static func decode(_ bytes: [UInt8]) throws(StoreError) -> Knowledge {
        guard !bytes.isEmpty else { return .whole(isEmbedded: false) }
        var reader = VariableReader(bytes, of: "what is known of an object is")
        guard try reader.next() == groups else { return .whole(isEmbedded: true) }
        var groups: [Knowledge.Group] = []
        while !reader.isAtEnd { groups.append(try group(from: &reader)) }
        return .groups(groups)
    }

    private static func append(_ group: Knowledge.Group, to writer: inout VariableWriter) {
        let clock = group.clock
        for number in [group.source, clock.lo, clock.hi - clock.lo, clock.isExact ? 1 : 0] {
            writer.append(UInt64(bitPattern: number))
        }
        writer.append(optional: clock.floor) { $0.append(bytes: $1.literal) }
        writer.append(optional: clock.lowerSince) { $0.append(UInt64(bitPattern: $1)) }
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

    private static func group(from reader: inout VariableReader) throws(StoreError) -> Knowledge.Group {
        let (source, lo, length) = (try reader.nextInteger(), try reader.nextInteger(), try reader.nextInteger())
        var group = Knowledge.Group(source: source, clock: Knowledge.Clock(lo: lo, hi: lo &+ length))
        group.clock.isExact = try reader.isPresent()
        if try reader.isPresent() { group.clock.floor = ModificationTime(json: try reader.nextBytes()) }
        if try reader.isPresent() { group.clock.lowerSince = try reader.nextInteger() }
        if try reader.isPresent() { group.contradictedUntil = try reader.nextInteger() }
        if try reader.isPresent() {
            group.doubt = Knowledge.Doubt(
                value: try reader.nextBytes(),
                lo: try reader.nextInteger(),
                hi: try reader.nextInteger(),
                rest: try reader.nextInteger(),
                source: try reader.nextInteger(),
                asksFrom: try reader.nextInteger()
            )
        }
        if try reader.isPresent() {
            let (value, name) = (try reader.nextBytes(), try reader.nextText())
            group.former = KnowledgeRule(rawValue: name).map { Knowledge.Former(value: value, rule: $0) }
        }
        if try reader.isPresent() {
            var members: [String] = []
            for _ in 0..<(try reader.next()) { members.append(try reader.nextText()) }
            group.members = members
        }
        return group
    }
}

extension VariableReader {
    fileprivate mutating func isPresent() throws(StoreError) -> Bool { try next() == 1 }
    fileprivate mutating func nextText() throws(StoreError) -> String {
        String(decoding: try nextBytes(), as: UTF8.self)
    }
}

extension VariableWriter {
    fileprivate mutating func append<Value>(optional value: Value?, as body: (inout VariableWriter, Value) -> Void) {
        append(value == nil ? 0 : 1)
        if let value { body(&self, value) }
    }
}

/// Writes integers in as few bytes as possible.
struct VariableWriter {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// Appends a difference; small numbers of either sign are short.
    mutating func append(signed value: Int64) { append(UInt64(bitPattern: value << 1 ^ value >> 63)) }

    mutating func append(bytes text: [UInt8]) {
        append(UInt64(text.count))
        bytes += text
    }

    mutating func append(fixed value: UInt64) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }
}

/// Reads bytes written by `VariableWriter`; throws `StoreError.corrupt` if bytes are missing.
struct VariableReader {
    private let bytes: [UInt8]
    private let content: StaticString
    private var position = 0

    init(_ bytes: [UInt8], of content: StaticString) { (self.bytes, self.content) = (bytes, content) }

    var isAtEnd: Bool { position == bytes.count }

    mutating func next() throws(StoreError) -> UInt64 {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while position < bytes.count, shift < 64 {
            let byte = bytes[position]
            position += 1
            value |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        throw isCutShort
    }

    /// Reads a nonnegative number, or one that was appended by its bits.
    mutating func nextInteger() throws(StoreError) -> Int64 { Int64(bitPattern: try next()) }

    mutating func nextSigned() throws(StoreError) -> Int64 {
        let zigzag = try next()
        return Int64(bitPattern: zigzag >> 1) ^ -Int64(bitPattern: zigzag & 1)
    }

    mutating func nextBytes() throws(StoreError) -> [UInt8] {
        let count = try next()
        guard count <= bytes.count - position else { throw isCutShort }
        defer { position += Int(count) }
        return Array(bytes[position..<position + Int(count)])
    }

    mutating func nextFixed() throws(StoreError) -> UInt64 {
        guard position + 8 <= bytes.count else { throw isCutShort }
        defer { position += 8 }
        let word = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: position, as: UInt64.self) }
        return UInt64(littleEndian: word)
    }

    private var isCutShort: StoreError { .corrupt("\(content) cut short") }
}
