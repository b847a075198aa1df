import GRDB

extension Schema {
    /// What readers of live answers were told last, so that they can go on after a break, also of the daemon.
    static func addTold(_ database: Database) throws {
        try database.execute(sql: told)
    }

    // Rows exist only for documents that somebody followed, and are bounded in number.
    private static let told = """
        -- subject: digest of a document in one view. sequence: commit sequence at which
        -- it was told, the number that its readers were given. content: digest of what
        -- was told; NULL: not to be known again.
        CREATE TABLE _told (
            subject INTEGER PRIMARY KEY,
            sequence INTEGER NOT NULL,
            content INTEGER
        );
        """
}
