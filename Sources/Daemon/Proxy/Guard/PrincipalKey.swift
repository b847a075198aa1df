import Glibc

/// The secret that turns credentials into principals: 32 bytes in a file that only its owner may read (law 4).
package struct PrincipalKey: Sendable {
    private let secret: [UInt8]

    /// A key for tests and for stores that live in memory only.
    init(secret: [UInt8]) {
        precondition(secret.count == Self.byteCount, "a principal key has 32 bytes")
        self.secret = secret
    }

    static let byteCount = 32

    /// The digest by which the store knows the principal behind this canonical text.
    func digest(of canonical: [UInt8]) -> [UInt8] {
        Crypto.authenticationCode(key: secret, message: canonical)
    }

    /// Reads the key, or makes one where there is no file yet.
    ///
    /// A new key is written under another name and then linked into place, so that a second process, or a crash half
    /// way, never leaves a key that another has not seen whole. Blocks on the disk: call it at start.
    package static func open(path: String) throws(PrincipalKeyError) -> PrincipalKey {
        if let key = try load(path) { return key }
        try create(path)
        guard let key = try load(path) else { throw .unreadable(path: path, reason: "it vanished while being made") }
        return key
    }

    private static func load(_ path: String) throws(PrincipalKeyError) -> PrincipalKey? {
        let (descriptor, openError) = Self.call { Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) }
        if descriptor < 0 {
            if openError == ENOENT { return nil }
            throw .unreadable(path: path, reason: reason(openError))
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw .unreadable(path: path, reason: "it is not a regular file")
        }
        guard status.st_mode & 0o077 == 0 else {
            throw .open(path: path, mode: String(status.st_mode & 0o777, radix: 8))
        }
        var bytes = [UInt8](repeating: 0, count: byteCount + 1)
        let (count, readError) = Self.call { Int32(truncatingIfNeeded: read(descriptor, &bytes, byteCount + 1)) }
        guard count >= 0 else { throw .unreadable(path: path, reason: reason(readError)) }
        guard count == byteCount else { throw .malformed(path: path, count: Int(count)) }
        return PrincipalKey(secret: Array(bytes.prefix(byteCount)))
    }

    private static func create(_ path: String) throws(PrincipalKeyError) {
        guard let secret = Crypto.randomBytes(byteCount) else {
            throw .unwritable(path: path, reason: "the system gave no random bytes")
        }
        let draft = "\(path).\(getpid())"
        _ = unlink(draft)
        let (descriptor, openError) = Self.call {
            Glibc.open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        }
        guard descriptor >= 0 else { throw .unwritable(path: path, reason: reason(openError)) }
        defer { _ = unlink(draft) }
        let (written, writeError) = Self.call { Int32(truncatingIfNeeded: write(descriptor, secret, byteCount)) }
        let (synced, syncError) = Self.call { fsync(descriptor) }
        close(descriptor)
        guard written == byteCount else {
            throw .unwritable(path: path, reason: written < 0 ? reason(writeError) : "the disk is full")
        }
        guard synced == 0 else { throw .unwritable(path: path, reason: reason(syncError)) }
        let (linked, linkError) = Self.call { link(draft, path) }
        // Someone else was quicker: theirs is the key.
        guard linked == 0 || linkError == EEXIST else { throw .unwritable(path: path, reason: reason(linkError)) }
        syncFolder(of: path)
    }

    /// Makes the new name itself durable; where the file system cannot, the key is no worse off than other new files.
    private static func syncFolder(of path: String) {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let descriptor = Glibc.open(folder.isEmpty ? "/" : folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        _ = fsync(descriptor)
        close(descriptor)
    }

    /// Calls and reads `errno` before anything else can change it.
    @inline(never)
    private static func call(_ body: () -> Int32) -> (result: Int32, error: Int32) {
        let result = body()
        return (result, result < 0 ? errno : 0)
    }

    private static func reason(_ code: Int32) -> String { String(cString: strerror(code)) }
}

/// Why the key file cannot be used.
package enum PrincipalKeyError: Error, Sendable, Equatable, CustomStringConvertible {
    case unreadable(path: String, reason: String)
    /// Others than its owner may read or write it.
    case open(path: String, mode: String)
    case malformed(path: String, count: Int)
    case unwritable(path: String, reason: String)

    /// What is wrong, and what to do about it.
    package var description: String {
        switch self {
        case .unreadable(let path, let reason):
            "the principal key \(path) cannot be read: \(reason)"
        case .open(let path, let mode):
            "the principal key \(path) has mode \(mode), so that others may read it; run: chmod 600 \(path)"
        case .malformed(let path, let count):
            "the principal key \(path) has \(count) bytes where 32 are wanted; move it away together with the store: "
                + "without its key, what is stored belongs to nobody"
        case .unwritable(let path, let reason):
            "the principal key \(path) cannot be made: \(reason)"
        }
    }
}
