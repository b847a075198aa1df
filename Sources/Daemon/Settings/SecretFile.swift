import Glibc

/// A file that holds a secret of the daemon, such as the admin token: only its owner may read it.
package enum SecretFile {
    package enum Failure: Error, Sendable, Equatable {
        /// Something other than a plain file is in its place.
        case notAFile
        case tooLarge
        /// A system call failed; contains the attempted operation, as a verb, and the error number.
        case system(operation: String, code: Int32)
    }

    /// Random bytes of the system, fit for a secret.
    package static func randomBytes(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        // Each draw is a system call.
        while bytes.count < count { withUnsafeBytes(of: UInt64.random(in: .min ... .max)) { bytes += $0 } }
        return Array(bytes.prefix(count))
    }

    /// Reads the file; returns nil if there is none.
    ///
    /// Blocks on the disk. The caller must check permissions and owner.
    package static func read(_ path: String) throws(Failure) -> FileBytes.Content? {
        do throws(FileBytesError) {
            return try FileBytes.read(path, limit: FileBytes.secretLimit, isRegular: true)
        } catch {
            switch error.code {
            case ENOENT: return nil
            case ELOOP, 0: throw .notAFile
            case EFBIG: throw .tooLarge
            default: throw .system(operation: "open", code: error.code)
            }
        }
    }

    /// Creates or replaces the file.
    ///
    /// It is written under another name and then renamed, so that neither another process nor a crash ever leaves half a secret.
    /// Without `replacing`, a file that another process creates meanwhile stays. Blocks on the disk.
    package static func write(_ bytes: [UInt8], to path: String, replacing: Bool) throws(Failure) {
        let draft = "\(path).\(getpid())"
        _ = unlink(draft)
        let (file, openError) = call { Glibc.open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600) }
        guard file >= 0 else { throw .system(operation: "make", code: openError) }
        defer { _ = unlink(draft) }
        let (written, writeError) = call { Int32(truncatingIfNeeded: Glibc.write(file, bytes, bytes.count)) }
        let (synced, syncError) = call { fsync(file) }
        close(file)
        guard written == bytes.count else { throw .system(operation: "write", code: written < 0 ? writeError : ENOSPC) }
        guard synced == 0 else { throw .system(operation: "write", code: syncError) }
        let (moved, moveError) = call { replacing ? rename(draft, path) : link(draft, path) }
        guard moved == 0 || !replacing && moveError == EEXIST else {
            throw .system(operation: replacing ? "replace" : "make", code: moveError)
        }
        syncFolder(of: path)
    }

    /// Makes the new name durable; on file systems without that, the file is no worse off than other new files.
    private static func syncFolder(of path: String) {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let descriptor = Glibc.open(folder.isEmpty ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        _ = fsync(descriptor)
        close(descriptor)
    }

    /// Calls, and reads `errno` before anything else can change it.
    @inline(never)
    private static func call(_ body: () -> Int32) -> (result: Int32, error: Int32) {
        let result = body()
        return (result, result < 0 ? errno : 0)
    }
}

/// Why a secret's file cannot be used, with the remedy.
package struct SecretFileError: Error, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
