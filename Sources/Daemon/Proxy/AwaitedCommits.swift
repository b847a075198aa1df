import Store
import Synchronization

/// Where answers were kept that are still to be committed, each counted.
///
/// Any thread.
final class AwaitedCommits: Sendable {
    private let counts = Mutex<[Digest128: Int]>([:])

    /// Whether an answer under a digest is still to be committed.
    func contains(_ digest: Digest128) -> Bool { counts.withLock { $0[digest] != nil } }

    /// Notes an answer; before anybody can know it.
    func insert(_ digest: Digest128) { counts.withLock { $0[digest, default: 0] += 1 } }

    /// Notes that it has been committed, or will not be; after memory was told.
    func remove(_ digest: Digest128) {
        counts.withLock { counts in
            guard let count = counts[digest] else { return }
            counts[digest] = count > 1 ? count - 1 : nil
        }
    }
}
