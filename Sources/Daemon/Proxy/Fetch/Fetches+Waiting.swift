import EventLoops
import Store

/// Bytes that fetches hold, and what waits for a commit or for a slow reader.
extension Fetches {
    /// Counts bytes of a body that a fetch keeps; false when there are too many, and it has to let go of them.
    func hold(_ bytes: Int) -> Bool {
        held += bytes
        return held <= heldLimit
    }

    /// Counts bytes no longer, once none of these clients has any of them to take.
    func release(_ bytes: Int, after replies: [any Recipient] = []) {
        guard let slow = replies.first(where: { $0.backlog > 0 }) else {
            held -= bytes
            return
        }
        let (number, fetches) = (wait { [self] _ in release(bytes, after: replies) }, LoopReference(self, on: loop))
        slow.onDrain(below: 1) { fetches.enqueue { $0.resume(number) } }
    }

    /// Does something here once everything that the store was given so far is committed.
    func afterCommits(_ work: @escaping () -> Void) {
        afterCommits(reading: nil, where: { _ in false }, then: { _ in work() })
    }

    /// The same, with the documents of a key that are wanted.
    func afterCommits(
        reading key: DocumentKey?,
        where isWanted: @escaping @Sendable ([UInt8]) -> Bool,
        then work: @escaping ([StoredDocument]) -> Void
    ) {
        let (number, fetches) = (wait(work), LoopReference(self, on: loop))
        Task { [cache] in
            await cache.store.flush()
            var found: [StoredDocument] = []
            // What cannot be read is as good as gone.
            if let key { found = (try? await cache.store.documents(at: key, where: isWanted)) ?? [] }
            fetches.enqueue { [found] in $0.resume(number, found) }
        }
    }

    /// Does something here once something else is done on other threads.
    func after(_ step: @escaping @Sendable () async -> Void, then work: @escaping () -> Void) {
        let (number, fetches) = (wait { _ in work() }, LoopReference(self, on: loop))
        Task {
            await step()
            fetches.enqueue { $0.resume(number) }
        }
    }

    /// Notes what is to be done here once something on another thread has happened.
    private func wait(_ work: @escaping ([StoredDocument]) -> Void) -> Int {
        defer { waitingCount += 1 }
        waiting[waitingCount] = work
        return waitingCount
    }

    private func resume(_ number: Int, _ found: [StoredDocument] = []) {
        waiting.removeValue(forKey: number)?(found)
    }
}
