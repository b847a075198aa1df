import CachePolicy
import HTTPServer
import Logging
import Store
import Synchronization

/// Look-ups in memory and on disk, the latter once for all who ask at the same time.
extension ProxyCore {
    /// Memory, then the store.
    ///
    /// Of all who want a document that has to be read, and composed, one does it and the others wait. What an
    /// invalidation, a cleaning or a newer response outdated is read again.
    func lookUp(_ demand: Demand) async -> ReadyResponse? {
        // Where more and more is kept under the digest, waiting for it would have no end.
        var patience = 16
        while true {
            if let ready = cache.inMemory(demand, now: now), ready.isClean { return ready }
            if patience > 0, cache.commits.contains(demand.digest) {
                patience -= 1
                cache.store.hurry()
                await cache.commits.change(at: demand.digest)
                continue
            }
            guard cache.store.mayHave(demand.digest) else { return admit([], for: demand) }
            let token = fetches.invalidations.token(for: demand.digest)
            let (finding, isOwn) = await find(demand, token)
            // Not even for a moment may memory have what a write has outdated: hits are served on other threads.
            guard fetches.invalidations.isCurrent(token) else { continue }
            if patience > 0, fetches.invalidations.hasKept(at: demand.digest, since: token) {
                patience -= 1
                continue
            }
            if isOwn { return admit(finding.documents, for: demand) }
            if let ready = cache.inMemory(demand, now: now), ready.isClean { return ready }
            // Not kept in memory, or of another variant, or changed since.
            guard let documents = finding.documents(for: demand, in: cache.store) else { continue }
            return admit(documents, for: demand)
        }
    }

    /// What answers a demand, once the disk has been looked at.
    private func admit(_ documents: [StoredDocument], for demand: Demand) -> ReadyResponse? {
        if let ready = cache.admit(documents, for: demand, now: now) { return ready }
        guard let ready = cache.inMemory(demand, now: now) else { return nil }
        // A dirty one is nowhere but in memory, and cannot be composed there.
        return ready.isClean ? ready : ready.outdated
    }

    /// Reads, or waits for the one who is reading.
    private func find(_ demand: Demand, _ token: InvalidationLog.Token) async -> (DiskFinding, isOwn: Bool) {
        // Who comes after an invalidation, or a newer response, must not be given what was read before it.
        let lookUp = LookUp(key: demand.key, token: token)
        if lookUps[lookUp] != nil {
            return (await withCheckedContinuation { lookUps[lookUp]?.append($0) }, false)
        }
        lookUps[lookUp] = []
        var finding = DiskFinding()
        do {
            finding = try await cache.onDisk(demand)
        } catch .corrupt {
            // The store has said it once; what lies in a damaged place counts as not stored.
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
    /// Taken when it began.
    let token: InvalidationLog.Token
}

/// What was read from disk for one request, and may serve others.
struct DiskFinding: Sendable {
    var documents: [StoredDocument] = []
    /// The variants under the key that the request did not select, and that were not read.
    var passedOver: [[UInt8]] = []

    /// What there is of it for another demand with the same key; nil where that has to read for itself.
    ///
    /// Some of what it selects may not have been read, or may have changed since.
    func documents(for demand: Demand, in store: ObjectStore) -> [StoredDocument]? {
        let fields = demand.request.fields
        func isWanted(_ variant: [UInt8]) -> Bool { VarySelection(bytes: variant)?.matches(fields) ?? true }
        guard !passedOver.contains(where: isWanted) else { return nil }
        let wanted = documents.filter { isWanted($0.variant) }
        return wanted.contains { store.mayHaveChanged($0.objects, since: $0.sequence) } ? nil : wanted
    }
}

extension ResponseCache {
    /// What the store has under a demand's key and of its variant, composed where something newer is known.
    func onDisk(_ demand: Demand) async throws(StoreError) -> DiskFinding {
        guard store.mayHave(demand.digest) else { return DiskFinding() }
        let fields = demand.request.fields
        let others = PassedOver()
        let documents = try await store.documents(at: demand.key) { variant in
            // What cannot be read is wanted too, to be dropped.
            let isWanted = VarySelection(bytes: variant)?.matches(fields) ?? true
            if !isWanted { others.variants.withLock { $0.append(variant) } }
            return isWanted
        }
        return DiskFinding(documents: documents, passedOver: others.variants.withLock { $0 })
    }

    private final class PassedOver: Sendable {
        let variants = Mutex<[[UInt8]]>([])
    }
}
