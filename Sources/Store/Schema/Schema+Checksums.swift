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
    static func noteChecksums(in database: Database, path: String) throws {
        guard PageChecksums.areReserved(in: path) else { return }
        try database.execute(sql: "PRAGMA user_version = \(checksummed)")
    }

    /// Gives checksums to the pages of an older Larder's file: it is written anew, which takes as long as copying it.
    ///
    /// Nobody else may have it open. Where that fails, for want of room or since another program reads it, the file stays as it
    /// is, and the next opening tries again.
    static func addChecksums(toFileAt path: String, budget: FileBudget) throws {
        var settings = Configuration()
        settings.label = "larder-checksums"
        settings.busyMode = .timeout(2)
        settings.prepareDatabase { try budget.configure($0) }
        let queue = try DatabaseQueue(path: path, configuration: settings)
        defer { try? queue.close() }
        try queue.writeWithoutTransaction { database in
            do {
                // Once more: to name the size of a page, as `configure` does, takes it back.
                PageChecksums.reserve(in: database)
                // In WAL mode pages of both kinds would lie beside each other.
                try database.execute(sql: "PRAGMA journal_mode = DELETE; VACUUM")
                try noteChecksums(in: database, path: path)
            } catch let error as DatabaseError
                where [.SQLITE_FULL, .SQLITE_IOERR, .SQLITE_BUSY, .SQLITE_LOCKED].contains(error.resultCode)
            {
                return
            }
        }
    }
}
