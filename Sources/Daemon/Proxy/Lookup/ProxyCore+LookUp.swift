import CachePolicy
import HTTPServer
import Logging
import Store

/// Look-ups in memory and on disk, the latter once for all who ask at the same time.
extension ProxyCore {
    /// Memory, then the store.
    ///
    /// Of all who want a document that has to be read, and composed, one does it and the others wait. What an
    /// invalidation, a cleaning or a newer response outdated is read again.
    func lookUp(_ request: ProxyRequest) async -> ReadyResponse? {
        // Where more and more is kept under the digest, waiting for it would have no end.
        var patience = 16
        while true {
            if let ready = cache.inMemory(request, now: now), ready.isClean { return ready }
            if patience > 0, cache.commits.contains(request.digest) {
                patience -= 1
                cache.store.hurry()
                await cache.commits.change(at: request.digest)
                continue
            }
            guard cache.store.mayHave(request.digest) else { return admit([], for: request) }
            let token = fetches.invalidations.token(for: request.digest)
            let (finding, isOwn) = await find(request, token)
            // Not even for a moment may memory have what a write has outdated: hits are served on other threads.
            guard fetches.invalidations.isCurrent(token) else { continue }
            if patience > 0, fetches.invalidations.hasKept(at: request.digest, since: token) {
                patience -= 1
                continue
            }
            if isOwn { return admit(finding.documents, for: request) }
            if let ready = cache.inMemory(request, now: now), ready.isClean { return ready }
            // Not kept in memory, or of another variant, or changed since.
            guard let documents = finding.documents(for: request, in: cache.store) else { continue }
            return admit(documents, for: request)
        }
    }

    /// What answers a request, once the disk has been looked at.
    private func admit(_ documents: [StoredDocument], for request: ProxyRequest) -> ReadyResponse? {
        if let ready = cache.admit(documents, for: request, now: now) { return ready }
        guard let ready = cache.inMemory(request, now: now) else { return nil }
        // A dirty one is nowhere but in memory, and cannot be composed there.
        return ready.isClean ? ready : ready.outdated
    }

    /// Reads, or waits for the one who is reading.
    private func find(_ request: ProxyRequest, _ token: InvalidationLog.Token) async -> (DiskFinding, isOwn: Bool) {
        // Who comes after an invalidation, or a newer response, must not be given what was read before it.
        let lookUp = LookUp(key: request.key, token: token)
        if lookUps[lookUp] != nil {
            return (await withCheckedContinuation { lookUps[lookUp]?.append($0) }, false)
        }
        lookUps[lookUp] = []
        var finding = DiskFinding()
        do {
            finding = try await cache.onDisk(request)
        } catch .corrupt {
            // The store has said it once; what lies in a damaged place counts as not stored.
        } catch {
            log.error("a document could not be read", metadata: ["url": "\(request.key.url)", "error": "\(error)"])
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

    /// What there is of it for another request with the same key; nil where that has to read for itself.
    ///
    /// Some of what it selects may not have been read, or may have changed since.
    func documents(for request: ProxyRequest, in store: ObjectStore) -> [StoredDocument]? {
        let fields = request.message.fields
        func isWanted(_ variant: [UInt8]) -> Bool { VarySelection(bytes: variant)?.matches(fields) ?? true }
        guard !passedOver.contains(where: isWanted) else { return nil }
        let wanted = documents.filter { isWanted($0.variant) }
        return wanted.contains { store.mayHaveChanged($0.objects, since: $0.sequence) } ? nil : wanted
    }
}

extension ResponseCache {
    /// What the store has under a request's key and of its variant, composed where something newer is known.
    func onDisk(_ request: ProxyRequest) async throws(StoreError) -> DiskFinding {
        guard store.mayHave(request.digest) else { return DiskFinding() }
        let fields = request.message.fields
        let others = Locked<[[UInt8]]>([])
        let documents = try await store.documents(at: request.key) { variant in
            // What cannot be read is wanted too, to be dropped.
            let isWanted = VarySelection(bytes: variant)?.matches(fields) ?? true
            if !isWanted { others.value.append(variant) }
            return isWanted
        }
        return DiskFinding(documents: documents, passedOver: others.value)
    }
}
