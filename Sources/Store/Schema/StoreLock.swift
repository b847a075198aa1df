import Glibc

/// The exclusive lock of one process on one store.
///
/// A file beside the store that holds the owner's process id; the kernel lets
/// go of the lock when the process ends, however it ends.
final class StoreLock: Sendable {
    private let descriptor: Int32

    init(store path: String) throws(StoreError) {
        let name = path + ".lock"
        descriptor = Glibc.open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else {
            throw .cannotOpen(path: path, reason: "\(name): " + String(cString: strerror(errno)))
        }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let owner = Self.owner(in: descriptor)
            Glibc.close(descriptor)
            throw .locked(path: path, pid: owner)
        }
        let text = Array("\(getpid())\n".utf8)
        // The id is a courtesy to whoever finds the store locked; without it the lock still holds.
        if ftruncate(descriptor, 0) == 0 { _ = pwrite(descriptor, text, text.count, 0) }
    }

    private static func owner(in descriptor: Int32) -> Int32? {
        var buffer = [UInt8](repeating: 0, count: 32)
        let count = pread(descriptor, &buffer, buffer.count, 0)
        guard count > 0 else { return nil }
        return Int32(String(decoding: buffer[..<count].prefix { $0 != 10 }, as: UTF8.self))
    }

    func release() {
        flock(descriptor, LOCK_UN)
    }

    deinit {
        Glibc.close(descriptor)
    }
}
