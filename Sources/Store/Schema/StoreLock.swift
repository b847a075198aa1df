import Glibc

/// The exclusive lock of one process on one store; its two halves are the store's name and its file.
///
/// The name's is `flock` on a file beside the store that says who the owner is. It holds when the database is replaced
/// while it is in use. The file's is a lock on the database itself, whichever name it goes by: SQLite would keep a WAL for
/// each of them. The kernel lets go of both when the process ends, however it ends.
///
/// The file's lock is one of an open file description (OFD), on a byte that SQLite never locks. Unlike `flock` it is no lock
/// on the whole file over NFS, where it would shut SQLite out; unlike a POSIX lock it survives that somebody in this process
/// closes the file.
final class StoreLock: Sendable {
    private let path: String
    private let name: Int32
    /// The database file, open for as long as SQLite has it: to close it is to lose SQLite's own (POSIX) locks.
    let file: Int32

    /// Locks a store, and makes its file if there is none.
    ///
    /// - Parameter path: without symbolic links.
    init(store path: String) throws(StoreError) {
        self.path = path
        let beside = path + ".lock"
        name = Glibc.open(beside, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard name >= 0 else {
            throw .cannotOpen(path: path, reason: "\(beside): " + String(cString: strerror(errno)))
        }
        guard flock(name, LOCK_EX | LOCK_NB) == 0 else {
            let owner = Self.owner(in: name)
            Glibc.close(name)
            throw .locked(path: path, pid: owner.pid, admin: owner.admin)
        }
        do throws(StoreError) {
            file = try Self.lockedFile(path)
        } catch {
            Glibc.close(name)
            throw error
        }
        // The id is a courtesy to whoever finds the store locked; without it the lock still holds.
        write("\(getpid())\n")
    }

    /// Locks the file that has come in the place of one that was moved away.
    func renewed() throws(StoreError) -> StoreLock {
        StoreLock(path: path, name: dup(name), file: try Self.lockedFile(path))
    }

    private init(path: String, name: Int32, file: Int32) {
        (self.path, self.name, self.file) = (path, name, file)
    }

    private static func lockedFile(_ path: String) throws(StoreError) -> Int32 {
        // What is no regular file is refused before; should it have changed since, nothing here waits for it.
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        let file = Glibc.open(path, flags, 0o640)
        guard file >= 0 else { throw .cannotOpen(path: path, reason: String(cString: strerror(errno))) }
        var lock = range(F_WRLCK, at: exclusionByte)
        guard fcntl(file, setOFDLock, &lock) != 0 else {
            try refuseOtherNames(of: file, at: path)
            return file
        }
        let code = errno
        // Stays open: this process might have the store open by another name, and would lose its locks.
        if code == EAGAIN || code == EACCES { throw .locked(path: path, pid: owner(of: file)) }
        // Where the file system has no such locks, the name's has to do.
        return file
    }

    /// Refuses a file with several hard links.
    ///
    /// SQLite finds the WAL by the file's name. Under another name it would miss the last commits, and a later start under
    /// the first name would replay the old WAL over what was written since.
    private static func refuseOtherNames(of file: Int32, at path: String) throws(StoreError) {
        var status = stat()
        guard fstat(file, &status) == 0, status.st_nlink > 1 else { return }
        Glibc.close(file)
        throw .cannotOpen(
            path: path,
            reason:
                "its file has \(status.st_nlink) names (hard links), and what was written under one is not seen under "
                + "another; remove the other names, or give this one a copy"
        )
    }

    /// Says whose the file is to those who know it by another name.
    ///
    /// Best once SQLite has opened it for good: this lock does go when the file is closed.
    func label() {
        var lock = Self.range(F_WRLCK, at: Self.labelByte)
        _ = fcntl(file, F_SETLK, &lock)
    }

    /// Says besides where the owner can be asked.
    func announce(admin: String) {
        write("\(getpid())\n\(admin)\n")
    }

    /// Whether the store's name still leads to its file.
    var isInPlace: Bool {
        var (named, own) = (stat(), stat())
        guard fstat(file, &own) == 0, stat(path, &named) == 0 else { return false }
        return named.st_ino == own.st_ino && named.st_dev == own.st_dev
    }

    private func write(_ text: String) {
        let bytes = Array(text.utf8)
        if ftruncate(name, 0) == 0 { _ = pwrite(name, bytes, bytes.count, 0) }
    }

    private static func owner(in descriptor: Int32) -> (pid: Int32?, admin: String?) {
        var buffer = [UInt8](repeating: 0, count: 1024)
        let count = pread(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return (nil, nil) }
        let lines = String(decoding: buffer[..<count], as: UTF8.self).split(separator: "\n").map(String.init)
        return (lines.first.flatMap { Int32($0) }, lines.count > 1 ? lines[1] : nil)
    }

    /// Who has put the label on a file; the lock that excludes others does not say.
    private static func owner(of file: Int32) -> Int32? {
        var lock = range(F_WRLCK, at: labelByte)
        guard fcntl(file, F_GETLK, &lock) == 0, lock.l_type != F_UNLCK, lock.l_pid > 0 else { return nil }
        return lock.l_pid
    }

    private static func range(_ kind: Int32, at byte: off_t) -> flock {
        var lock = flock()
        (lock.l_type, lock.l_whence) = (Int16(kind), Int16(SEEK_SET))
        (lock.l_start, lock.l_len) = (byte, 1)
        return lock
    }

    /// Bytes that no database reaches; SQLite locks those around 2^30.
    private static let (exclusionByte, labelByte): (off_t, off_t) = (1 << 48, 1 << 48 + 1)
    /// `F_OFD_SETLK` of Linux, which Swift's Glibc module hides.
    private static let setOFDLock: Int32 = 37

    func release() {
        var lock = Self.range(F_UNLCK, at: Self.exclusionByte)
        _ = fcntl(file, Self.setOFDLock, &lock)
        flock(name, LOCK_UN)
    }

    deinit {
        Glibc.close(file)
        Glibc.close(name)
    }
}
