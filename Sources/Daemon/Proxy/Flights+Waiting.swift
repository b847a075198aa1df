import EventLoops
import Store

/// Bytes that flights hold, and what waits for a commit or for a slow reader.
extension Flights {
    /// Counts bytes of a body that a flight keeps; false when there are too many, and it has to let go of them.
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
        let (number, flights) = (errand { [self] _ in release(bytes, after: replies) }, LoopReference(self, on: loop))
        slow.onDrain(below: 1) { flights.enqueue { $0.run(errand: number) } }
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
        let (number, flights) = (errand(work), LoopReference(self, on: loop))
        Task { [cache] in
            await cache.store.flush()
            var found: [StoredDocument] = []
            // What cannot be read is as good as gone.
            if let key { found = (try? await cache.store.documents(at: key, where: isWanted)) ?? [] }
            flights.enqueue { [found] in $0.run(errand: number, found) }
        }
    }

    /// Does something here once something else is done on other threads.
    func after(_ step: @escaping @Sendable () async -> Void, then work: @escaping () -> Void) {
        let (number, flights) = (errand { _ in work() }, LoopReference(self, on: loop))
        Task {
            await step()
            flights.enqueue { $0.run(errand: number) }
        }
    }

    /// Notes what is to be done here once something on another thread has happened.
    private func errand(_ work: @escaping ([StoredDocument]) -> Void) -> Int {
        defer { errandNumber += 1 }
        errands[errandNumber] = work
        return errandNumber
    }

    private func run(errand number: Int, _ found: [StoredDocument] = []) {
        errands.removeValue(forKey: number)?(found)
    }
}
