import GRDB

extension Schema {
    /// Versions of objects that are shown in very many, apart from the objects' states, which are read and written whole.
    static func addSpilled(_ database: Database) throws {
        try database.execute(sql: spilled)
    }

    private static let spilled = """
        -- uses: how many places of documents show the version. The object's state has their sum.
        CREATE TABLE _spilled (version INTEGER PRIMARY KEY, uses INTEGER NOT NULL);
        """
}
