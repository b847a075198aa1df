import Glibc

/// Blocks of the disk that a store holds ahead of its need, so that a full disk is no trap.
///
/// They lie behind the ends of the two files, where nobody sees them but `du`: the first bytes of the WAL, so that little
/// things can be committed and cleaning works; and as many behind the database, so that what was committed can be copied
/// into it, and the WAL begins anew. SQLite gives both back now and then, with each checkpoint: they are taken again at once.
/// Where a file system cannot allocate ahead, there is no reserve.
struct DiskReserve: Sendable {
    let budget: FileBudget
    /// The database file, open.
    let file: Int32

    /// Takes what is missing of the reserve; gives the error number if the disk does not have it.
    ///
    /// - Parameter bytes: what is about to be written at once, if that is more than usual.
    func keep(for bytes: Int64 = 0) -> Int32? {
        let end = budget.fileBytes
        let lead = min(max(budget.reserve, bytes), budget.database - end)
        if lead > 0, let code = allocate(file, from: end, lead) { return code }
        let wal = open(budget.path + "-wal", O_WRONLY | O_CLOEXEC)
        guard wal >= 0 else { return nil }
        // Closing it costs no locks: SQLite has none on this file.
        defer { close(wal) }
        return allocate(wal, from: 0, max(budget.reserve, bytes))
    }

    /// Does something that a start cannot do without; where the disk has no room for it, in the blocks behind the database.
    func used<Value>(_ work: () throws -> Value) throws -> Value {
        do {
            return try work()
        } catch {
            guard StoreError(error).isOfDisk else { throw error }
            _ = ftruncate(file, off_t(budget.fileBytes))
            return try work()
        }
    }

    /// Whether the disk has so much room besides that one need not be back here in a moment.
    ///
    /// - Parameter bytes: what is to be written at once.
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
            // It cannot be done here, or not for so much.
            default: return nil
            }
        }
        return nil
    }

    /// `FALLOC_FL_KEEP_SIZE` of Linux.
    private static let keepSize: Int32 = 1

    private typealias Allocate = @convention(c) (Int32, Int32, off_t, off_t) -> Int32
    /// Linux's own call, which Swift's Glibc module hides; POSIX's would change the size of the file.
    private static let fallocate = dlsym(nil, "fallocate").map { unsafeBitCast($0, to: Allocate.self) }
}
