import Glibc

/// The lock of a recording's folder, held while it exists: only one process at a time records into a folder.
///
/// Whoever takes it first finishes a replacement that was interrupted.
final class RecordingLock {
    let descriptor: Int32

    /// Fails if another process has the lock; never waits.
    init(_ folder: RecordingFolder) throws(RecordingError) {
        let opened = open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard opened >= 0 else { throw RecordingError(folder.path, RecordingFolder.reason(errno)) }
        do throws(RecordingError) {
            guard flock(opened, LOCK_EX | LOCK_NB) == 0 else {
                throw RecordingError(folder.path, "another process is recording into this folder; name another one")
            }
            try RecordingReplacement.finish(in: folder)
        } catch {
            close(opened)
            throw error
        }
        descriptor = opened
    }

    deinit { close(descriptor) }
}
