import GRDB

/// A document's row, as listings select it.
extension DocumentRow {
    /// What a query that `init` reads selects first, of the tables that go by these letters in it.
    static let columns = """
        d.id, u.text, p.label, x.text, d.url, d.status, d.head, d.policy, d.length, o.start, o.finish, t.at, b.pins
        """

    /// Reads a row that begins with `columns`.
    init(_ row: QueryRow, pins: [Pin]) {
        self.init(
            id: row.id(0),
            upstream: row.string(1),
            principal: row.string(2),
            context: row.string(3),
            url: row.string(4),
            status: Int(row.integer(5)),
            head: row.bytes(6),
            policy: row.bytes(7),
            objects: Set(pins.map(\.object)).count,
            bytes: row.integer(8),
            start: row.integer(9),
            end: row.integer(10),
            used: row.integer(11) * 1_000_000
        )
    }

    /// The pins in a row that begins with `columns`.
    static func pins(_ row: QueryRow) throws -> [Pin] { try Pins.decode(row.bytes(12)) }
}
