import GRDB

extension Schema {
    /// Documents whose objects were not taken out of them, because there are too many.
    ///
    /// Nobody knows which they contain: whatever is written to their upstream removes them.
    static func addUndivided(_ database: Database) throws {
        try database.execute(sql: "CREATE TABLE _undivided (document INTEGER PRIMARY KEY, upstream TEXT NOT NULL)")
    }
}
