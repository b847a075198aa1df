import GRDB

extension Schema {
    /// The user version of a file whose pages have checksums: "chk8".
    ///
    /// Its header says it a second time, apart from the number
    /// of bytes that they take, so that neither can be damaged unnoticed.
    static let checksummed: Int64 = 0x6368_6b38

    /// Gives a file's pages checksums, if they have none: an older Larder's is written anew, which takes as long as copying it.
    ///
    /// Where there is no room for that the file stays as it is, and the next opening tries again.
    static func addChecksums(to database: Database, isNew: Bool) throws {
        guard try Query(database, "PRAGMA user_version").first(read: { $0.integer(0) }) != checksummed else { return }
        if !isNew {
            do {
                try database.execute(sql: "VACUUM")
            } catch let error as DatabaseError
                where error.resultCode == .SQLITE_FULL || error.resultCode == .SQLITE_IOERR
            {
                guard error.extendedResultCode.rawValue != PageChecksums.mismatch else { throw error }
                return
            }
        }
        try database.execute(sql: "PRAGMA user_version = \(checksummed)")
    }
}
