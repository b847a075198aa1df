import Store
import Synchronization

/// Answers that were kept and are still to be committed.
///
/// Any thread.
final class AwaitedCommits: Sendable {
    /// Of one digest: how many were kept and how many committed since there was none, and who waits for so many commits.
    private struct Account {
        var kept = 0
        var committed = 0
        var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private struct State {
        var accounts: [Digest128: Account] = [:]
        /// Those that look-ups find, though nobody knows yet what objects they show; by upstream.
        var unread: [String: [ObjectIdentifier: (answer: ReadyAnswer, sent: Int64)]] = [:]
    }

    private let state = Mutex(State())

    /// Whether an answer under a digest is still to be committed.
    func contains(_ digest: Digest128) -> Bool { state.withLock { $0.accounts[digest] != nil } }

    /// Notes an answer; before anybody can know it.
    ///
    /// - Parameters:
    ///   - sent: when its request was sent, on the store's clock.
    ///   - showsObjects: whether it may show objects.
    func insert(_ ready: ReadyAnswer, sent: Int64, showsObjects: Bool) {
        state.withLock { state in
            state.accounts[ready.residence.digest, default: Account()].kept += 1
            if showsObjects { state.unread[ready.upstream.name, default: [:]][ObjectIdentifier(ready)] = (ready, sent) }
        }
    }

    /// Notes that it has been committed, or will not be; after memory was told.
    func remove(_ ready: ReadyAnswer) {
        let digest = ready.residence.digest
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.unread[ready.upstream.name]?[ObjectIdentifier(ready)] = nil
            guard var account = state.accounts[digest] else { return [] }
            account.committed += 1
            let served = account.waiters.filter { $0.count <= account.committed }
            account.waiters.removeAll { $0.count <= account.committed }
            state.accounts[digest] = account.committed < account.kept ? account : nil
            return served.map(\.continuation)
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Those of an upstream that were asked for until a time and may show what is known newer since; each is given once.
    func takeUnread(of upstream: String, sentUntil time: Int64) -> [ReadyAnswer] {
        state.withLock { state in
            guard let unread = state.unread[upstream] else { return [] }
            state.unread[upstream] = unread.filter { $0.value.sent > time }
            return unread.values.filter { $0.sent <= time }.map(\.answer)
        }
    }

    /// Returns when what was kept under a digest by now has been committed.
    func wait(for digest: Digest128) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let isWaiting = state.withLock { state in
                guard let kept = state.accounts[digest]?.kept else { return false }
                state.accounts[digest]?.waiters.append((kept, continuation))
                return true
            }
            if !isWaiting { continuation.resume() }
        }
    }
}
