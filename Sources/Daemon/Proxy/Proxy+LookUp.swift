import Logging
import Store

/// Look-ups in memory and on disk, the latter once for all who ask at the same time.
extension Proxy {
    /// Memory, then the store.
    ///
    /// Of all who want a document that has to be read, and composed, one does it and the others wait. What an
    /// invalidation or a cleaning overtook is read again.
    func lookUp(_ demand: Demand) async -> ReadyAnswer? {
        while true {
            if let ready = cache.inMemory(demand, now: now), ready.isClean { return ready }
            let isAwaited = cache.awaited.contains(demand.digest)
            guard isAwaited || cache.store.mayHave(demand.digest) else { return admit([], for: demand) }
            let before = invalidations
            let (finding, isOwn) = await find(demand, isAwaited: isAwaited)
            // Not even for a moment may memory have what a write has made worthless: hits are answered on other threads.
            guard before == invalidations else { continue }
            if isOwn { return admit(finding.documents, for: demand) }
            if let ready = cache.inMemory(demand, now: now), ready.isClean { return ready }
            // Not kept in memory, or of another variant, or changed since.
            guard let documents = finding.documents(for: demand, in: cache.store) else { continue }
            return admit(documents, for: demand)
        }
    }

    /// What answers a demand, once the disk has been looked at.
    private func admit(_ documents: [StoredDocument], for demand: Demand) -> ReadyAnswer? {
        if let ready = cache.admit(documents, for: demand, now: now) { return ready }
        guard let ready = cache.inMemory(demand, now: now), !ready.isClean else {
            return cache.inMemory(demand, now: now)
        }
        // It is nowhere but in memory, and cannot be composed there.
        return ready.outdated
    }

    /// Reads, or waits for the one who is reading.
    ///
    /// - Parameter isAwaited: whether something newer than what the disk has is still to be committed.
    private func find(_ demand: Demand, isAwaited: Bool) async -> (DiskFinding, isOwn: Bool) {
        // Who comes after an invalidation must not be given what was read before it.
        let lookUp = LookUp(key: demand.key, invalidations: invalidations, isAwaited: isAwaited)
        if lookUps[lookUp] != nil {
            return (await withCheckedContinuation { lookUps[lookUp]?.append($0) }, false)
        }
        lookUps[lookUp] = []
        var finding = DiskFinding()
        do {
            finding = try await cache.onDisk(demand)
        } catch {
            log.error("a document could not be read", metadata: ["url": "\(demand.key.url)", "error": "\(error)"])
        }
        for waiter in lookUps.removeValue(forKey: lookUp) ?? [] { waiter.resume(returning: finding) }
        return (finding, true)
    }
}

/// A look-up on disk that others may wait for.
struct LookUp: Hashable, Sendable {
    let key: DocumentKey
    /// How many invalidations there had been when it began.
    let invalidations: Int
    /// Whether it waits for a commit first: who comes after an answer was kept is not given what was read before.
    let isAwaited: Bool
}
