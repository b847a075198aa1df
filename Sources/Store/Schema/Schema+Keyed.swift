import GRDB

extension Schema {
    /// Where bodies are objects keyed by name, so that what is deleted can leave them; NULL for all others.
    static func addKeyed(_ database: Database) throws {
        try database.execute(sql: keyed)
    }

    private static let keyed = """
        -- keyed: where in the skeleton objects begin whose members are the document's objects (StoredBody).
        ALTER TABLE _bodies ADD COLUMN keyed BLOB;
        """
}
