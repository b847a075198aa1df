import GRDB
import Glibc

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

    /// Gives checksums to the pages of an older Larder's file: it is copied, and the copy takes its place.
    ///
    /// Nobody else may have it open. Where that fails, for want of room or since another program reads it, the file stays as it
    /// is, and the next opening tries again.
    static func addChecksums(toFileAt path: String, budget: FileBudget) throws {
        let copy = path + ".new"
        unlink(copy)
        defer { unlink(copy) }
        var settings = Configuration()
        settings.label = "larder-checksums"
        settings.busyMode = .timeout(2)
        settings.prepareDatabase { try budget.configure($0) }
        do {
            let queue = try DatabaseQueue(path: path, configuration: settings)
            try queue.writeWithoutTransaction { database in
                // The WAL goes into the file, which takes its place alone.
                try database.execute(sql: "PRAGMA journal_mode = DELETE")
                // Once more: to name the size of a page, as `configure` does, takes it back.
                PageChecksums.reserve(in: database)
                try database.execute(sql: "VACUUM INTO ?", arguments: [copy])
            }
            try queue.close()
            var status = stat()
            guard stat(path, &status) == 0, chmod(copy, status.st_mode & 0o7777) == 0 else { return }
            // Pages may have been written before the first one, which says that they have checksums.
            try PageChecksums.seal(copy, isNew: true)
            let sealed = try DatabaseQueue(path: copy, configuration: settings)
            let file = Glibc.open(copy, O_RDONLY | O_CLOEXEC)
            defer { Glibc.close(file) }
            try sealed.writeWithoutTransaction { try noteChecksums(in: $0, file: file) }
            let isDone = try sealed.writeWithoutTransaction { try hasChecksums($0) }
            try sealed.close()
            if isDone { rename(copy, path) }
        } catch let error as DatabaseError where error.resultCode != .SQLITE_CORRUPT {
            return
        }
    }
}
