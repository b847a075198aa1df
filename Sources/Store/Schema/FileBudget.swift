import GRDB
import Glibc

/// Divides the bound on the store's bytes between the database file and its WAL.
struct FileBudget: Sendable {
    let path: String
    /// The bound on both together, in bytes.
    let maximum: Int64
    let pageSize: Int64

    /// The bytes for the WAL.
    var wal: Int64 { min(maximum / 4, 16 << 20) }
    /// The bound on the database file, which SQLite itself enforces.
    var database: Int64 { max(maximum - wal, 64 * pageSize) }
    /// How many bytes are preallocated after the end of each of the two files (`DiskReserve`), within the bound.
    ///
    /// It is as much as the WAL keeps when it restarts.
    var reserve: Int64 { wal / 2 }
    /// How many bytes one batch may add before it is committed.
    var batch: Int { Int(min(wal / 4, 1 << 20)) }

    /// How many changes the journal may keep, of the number wanted; it must not displace the objects themselves.
    func changes(wanted: Int64) -> Int64 {
        // A change takes about two bytes, and some sixty if its object is gone but its name is kept.
        min(wanted, max(database / 16 / 64, 1))
    }

    var fileBytes: Int64 { Self.size(of: path) }
    var walBytes: Int64 { Self.size(of: path + "-wal") }

    /// Whether the files are within the bound.
    var isKept: Bool { fileBytes + walBytes <= maximum }

    /// Configures a connection; does nothing for readers.
    func configure(_ database: Database) throws {
        guard !database.configuration.readonly else { return }
        // This has an effect when the file is created or rewritten.
        PageChecksums.reserve(in: database)
        // The first two have an effect only while the file is empty.
        try database.execute(
            sql: """
                PRAGMA page_size = \(pageSize);
                PRAGMA auto_vacuum = INCREMENTAL;
                PRAGMA secure_delete = ON;
                PRAGMA temp_store = MEMORY;
                PRAGMA journal_size_limit = \(reserve);
                PRAGMA wal_autocheckpoint = \(max(wal / 4 / pageSize, 16));
                """
        )
    }

    /// Limits the size of the file; for the writing connection.
    func limit(_ database: Database) throws {
        let actual = try Int64.fetchOne(database, sql: "PRAGMA page_size") ?? pageSize
        try database.execute(sql: "PRAGMA max_page_count = \(self.database / actual)")
    }

    /// Stops the growth of the file and limits the WAL tightly.
    ///
    /// For the writing connection. Returns the file's size.
    func freeze(_ database: Database) throws -> Int64 {
        let pages = try Query(database, "PRAGMA page_count").integer() ?? 0
        let size = try Query(database, "PRAGMA page_size").integer() ?? pageSize
        try database.execute(sql: "PRAGMA max_page_count = \(pages)")
        try database.execute(sql: "PRAGMA wal_autocheckpoint = \(max(reserve / 4 / size, 16))")
        return pages * size
    }

    /// The bytes in use in the file, without free pages.
    static func used(in database: Database) throws -> Int64 {
        let pages = try Query(database, "PRAGMA page_count").integer() ?? 0
        let free = try Query(database, "PRAGMA freelist_count").integer() ?? 0
        let size = try Query(database, "PRAGMA page_size").integer() ?? 0
        return (pages - free) * size
    }

    private static func size(of path: String) -> Int64 {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : 0
    }
}

/// Disk blocks that a store preallocates, so that it still works on a full disk.
///
/// They are located after the ends of the two files, where only `du` shows them. Those of the WAL make small commits and cleans
/// possible. Those of the database make a checkpoint possible, after which the WAL restarts. SQLite frees both at checkpoints;
/// they are allocated again at once. On a file system without preallocation, there is no reserve.
struct DiskReserve: Sendable {
    let budget: FileBudget
    /// The open database file.
    let file: Int32

    /// Allocates the missing part of the reserve.
    ///
    /// Returns the error number if the disk has no room.
    ///
    /// - Parameter bytes: how much is about to be written at once, if that is more than usual.
    func keep(for bytes: Int64 = 0) -> Int32? {
        let end = budget.fileBytes
        let lead = min(max(budget.reserve, bytes), budget.database - end)
        if lead > 0, let code = allocate(file, from: end, lead) { return code }
        let wal = open(budget.path + "-wal", O_WRONLY | O_CLOEXEC)
        guard wal >= 0 else { return nil }
        // Closing it releases no locks, because SQLite holds none on this file.
        defer { close(wal) }
        return allocate(wal, from: 0, max(budget.reserve, bytes))
    }

    /// Runs a step of the start; if the disk has no room for it, frees the blocks after the database and tries again.
    func used<Value>(_ work: () throws -> Value) throws -> Value {
        do {
            return try work()
        } catch {
            guard StoreError(error).isOfDisk else { throw error }
            _ = ftruncate(file, off_t(budget.fileBytes))
            return try work()
        }
    }

    /// Whether the disk has enough free space not to be full again in a moment.
    ///
    /// - Parameter bytes: how much is to be written at once.
    func hasMargin(for bytes: Int64 = 0) -> Bool {
        var status = statvfs()
        guard fstatvfs(file, &status) == 0 else { return true }
        return Int64(status.f_bavail) * Int64(status.f_frsize) >= budget.reserve + 2 * bytes
    }

    private func allocate(_ descriptor: Int32, from start: Int64, _ count: Int64) -> Int32? {
        guard let allocate = Self.fallocate else { return nil }
        while allocate(descriptor, Self.keepSize, off_t(start), off_t(count)) != 0 {
            switch errno {
            case EINTR: continue
            case ENOSPC, EDQUOT, EROFS, EIO: return errno
            // The file system does not support preallocation, or not of this size.
            default: return nil
            }
        }
        return nil
    }

    /// `FALLOC_FL_KEEP_SIZE` of Linux.
    private static let keepSize: Int32 = 1

    private typealias Allocate = @convention(c) (Int32, Int32, off_t, off_t) -> Int32
    /// Linux's own call, which Swift's Glibc module hides; the POSIX one would change the size of the file.
    private static let fallocate = dlsym(nil, "fallocate").map { unsafeBitCast($0, to: Allocate.self) }
}
