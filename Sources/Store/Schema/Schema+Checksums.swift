import GRDB

extension Schema {
    /// The user version of a file whose pages have checksums: "chk8".
    ///
    /// Its header says it a second time, apart from the number
    /// of bytes that they take, so that neither can be damaged unnoticed.
    static let checksummed: Int64 = 0x6368_6b38

    /// Whether a file's pages have checksums.
    static func hasChecksums(_ database: Database) throws -> Bool {
        try Query(database, "PRAGMA user_version").first(read: { $0.integer(0) }) == checksummed
    }

    /// Notes that a file's pages have checksums, if its header says that there is room for them.
    static func noteChecksums(in database: Database, file: Int32) throws {
        guard PageChecksums.areReserved(in: file) else { return }
        try database.execute(sql: "PRAGMA user_version = \(checksummed)")
    }
}
