import Glibc

/// A process's exclusive lock on a store: one lock on the store's name, one on its file.
///
/// The name's lock is `flock` on a file beside the store, which names the owner. It holds even if the database is replaced
/// while in use. The file's lock is on the database itself, whatever its name: SQLite would keep a separate WAL for each name.
/// The kernel releases both when the process ends.
///
/// The file's lock is an open file description (OFD) lock on a byte that SQLite never locks. Unlike `flock`, it does not lock
/// the whole file over NFS, which would block SQLite. Unlike a POSIX lock, it is kept when this process closes the file
/// elsewhere.
final class StoreLock: Sendable {
    private let path: String
    private let name: Int32
    /// The database file; open as long as SQLite has it open: closing it would release SQLite's own (POSIX) locks.
    let file: Int32

    /// Locks a store, whose path has no symbolic links; creates its file if there is none.
    init(store path: String) throws(StoreError) {
        self.path = path
        let beside = path + ".lock"
        name = Glibc.open(beside, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o600)
        guard name >= 0 else { throw .cannotOpen(path: path, reason: StoreError.reason(opening: beside)) }
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
        // The id is only for the error message of another process. The lock holds without it.
        write("\(getpid())\n")
    }

    /// Locks the new file after the old one was moved away.
    func renewed() throws(StoreError) -> StoreLock {
        StoreLock(path: path, name: dup(name), file: try Self.lockedFile(path))
    }

    private init(path: String, name: Int32, file: Int32) { (self.path, self.name, self.file) = (path, name, file) }

    private static func lockedFile(_ path: String) throws(StoreError) -> Int32 {
        // Other kinds of files were refused before. If the file has changed since, opening it must not block.
        let file = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0o640)
        guard file >= 0 else { throw .cannotOpen(path: path, reason: StoreError.reason(opening: path)) }
        var lock = range(F_WRLCK, at: exclusionByte)
        guard fcntl(file, setOFDLock, &lock) != 0 else {
            try refuseOtherNames(of: file, at: path)
            return file
        }
        let code = errno
        // The file stays open: this process may have the store open under another name, and would lose its locks.
        if code == EAGAIN || code == EACCES { throw .locked(path: path, pid: owner(of: file)) }
        // The file system has no such locks, so the name's lock has to suffice.
        return file
    }

    /// Refuses a file with several names (hard links).
    ///
    /// The last commits may be in a WAL, which is found by the file's name. Under another name they would be missing, and would
    /// later overwrite newer content.
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

    /// Identifies the owner to processes that open the file under another name.
    ///
    /// Call it after SQLite has opened the file: this lock is released when the file is closed anywhere in the process.
    func label() {
        var lock = Self.range(F_WRLCK, at: Self.labelByte)
        _ = fcntl(file, F_SETLK, &lock)
    }

    func announce(admin: String) { write("\(getpid())\n\(admin)\n") }

    /// The admin address of the daemon that has a store open; nil if there is none, or if this user may not know.
    static func announcedAdmin(ofStore path: String) -> String? {
        guard let path = try? StorePath.resolve(path) else { return nil }
        let beside = Glibc.open(path + ".lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard beside >= 0 else { return nil }
        defer { Glibc.close(beside) }
        // A lock that can be had belongs to no daemon; closing the file releases it.
        return flock(beside, LOCK_SH | LOCK_NB) == 0 ? nil : owner(in: beside).admin
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

    /// The process that labelled a file; the exclusive lock of a daemon does not identify its owner, that of another program does.
    private static func owner(of file: Int32) -> Int32? {
        for byte in [labelByte, exclusionByte] {
            var lock = range(F_WRLCK, at: byte)
            if fcntl(file, F_GETLK, &lock) == 0, lock.l_type != F_UNLCK, lock.l_pid > 0 { return lock.l_pid }
        }
        return nil
    }

    private static func range(_ kind: Int32, at byte: off_t) -> flock {
        var lock = flock()
        (lock.l_type, lock.l_whence) = (Int16(kind), Int16(SEEK_SET))
        (lock.l_start, lock.l_len) = (byte, 1)
        return lock
    }

    /// Offsets that no database reaches; SQLite locks those around 2^30.
    private static let (exclusionByte, labelByte): (off_t, off_t) = (1 << 48, 1 << 48 + 1)
    /// Linux's `F_OFD_SETLK`, which Swift's Glibc module hides.
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
