import CachePolicy
import HTTPSemantics
import HTTPServer
import Logging
import Store

/// Look-ups in memory and on disk; simultaneous look-ups of a document share one read.
extension ProxyCore {
    /// Looks into memory, then into the store.
    ///
    /// Among simultaneous look-ups of a document on disk, one reads and composes it and the others wait. If an invalidation, a
    /// clean or a newer response has outdated the result, it is read again.
    func lookUp(_ request: ProxyRequest) async -> ReadyResponse? {
        // If responses under the digest kept coming, waiting for their commits would never end.
        var waitsLeft = 16
        while true {
            if let ready = cache.inMemory(request, now: now), ready.isClean { return ready }
            if waitsLeft > 0, cache.commits.contains(request.digest) {
                // While another process holds up the commit, the upstream is asked: what is on disk is older.
                guard !cache.store.isHeldUp else { return admit([], for: request) }
                waitsLeft -= 1
                cache.store.commitPromptly()
                await cache.commits.change(at: request.digest) { [store = cache.store] in store.isHeldUp }
                continue
            }
            guard cache.store.mayHave(request.digest) else { return admit([], for: request) }
            let token = fetches.invalidations.token(for: request.digest)
            let (finding, isOwn) = await find(request, token)
            // A response that a write has outdated must never enter memory, because other threads serve hits from there.
            guard fetches.invalidations.isCurrent(token) else { continue }
            if waitsLeft > 0, fetches.invalidations.hasKept(at: request.digest, since: token) {
                waitsLeft -= 1
                continue
            }
            if isOwn { return admit(finding.documents, for: request) }
            if let ready = cache.inMemory(request, now: now), ready.isClean { return ready }
            // It was not kept in memory, is another variant, or has changed since.
            guard let documents = finding.documents(for: request, in: cache.store) else { continue }
            return admit(documents, for: request)
        }
    }

    private func admit(_ documents: [StoredDocument], for request: ProxyRequest) -> ReadyResponse? {
        if let ready = cache.admit(documents, for: request, now: now) { return ready }
        guard let ready = cache.inMemory(request, now: now) else { return nil }
        // A dirty response that only memory has cannot be composed there.
        return ready.isClean ? ready : ready.outdated
    }

    /// Reads from disk, or waits for a read under way.
    private func find(_ request: ProxyRequest, _ token: InvalidationLog.Token) async -> (DiskRead, isOwn: Bool) {
        // A look-up after an invalidation or a newer response must not share an earlier read.
        let lookUp = DiskReadKey(key: request.key, dividedBy: request.dividedBy, token: token)
        if diskReads[lookUp] != nil {
            return (await withCheckedContinuation { diskReads[lookUp]?.append($0) }, false)
        }
        diskReads[lookUp] = []
        var finding = DiskRead()
        do {
            finding = try await cache.onDisk(request)
        } catch .corrupt {
            // The store has logged it once; a document in a damaged place counts as not stored.
        } catch {
            log.error("a document could not be read", metadata: ["url": "\(request.key.url)", "error": "\(error)"])
        }
        for waiter in diskReads.removeValue(forKey: lookUp) ?? [] { waiter.resume(returning: finding) }
        return (finding, true)
    }
}

/// A look-up on disk that others may wait for.
struct DiskReadKey: Hashable, Sendable {
    let key: CacheKey
    /// A document may show values for requests with the same `OtherFields` only.
    let dividedBy: Int64?
    /// Taken when the look-up began.
    let token: InvalidationLog.Token
}

/// The documents read from disk for one request, which may serve others.
struct DiskRead: Sendable {
    var documents: [StoredDocument] = []
    /// The variants under the key that the request did not select, which were not read.
    var passedOver: [[UInt8]] = []

    /// The documents for another request with the same key; nil if that request must read for itself.
    ///
    /// Some of the documents that it selects may not have been read, or may have changed since.
    func documents(for request: ProxyRequest, in store: ObjectStore) -> [StoredDocument]? {
        let fields = request.message.fields
        func isWanted(_ variant: [UInt8]) -> Bool { VarySelection(bytes: variant)?.matches(fields) ?? true }
        guard !passedOver.contains(where: isWanted) else { return nil }
        let wanted = documents.filter { isWanted($0.variant) }
        return wanted.contains { store.mayHaveChanged($0.objects, since: $0.sequence) } ? nil : wanted
    }
}

extension ResponseCache {
    /// The stored documents with a request's key and variant, composed if newer values are known.
    func onDisk(_ request: ProxyRequest) async throws(StoreError) -> DiskRead {
        guard store.mayHave(request.digest) else { return DiskRead() }
        let fields = request.message.fields
        let others = Locked<[[UInt8]]>([])
        let documents = try await store.documents(at: request.key, for: request.dividedBy) { variant in
            // An unreadable variant is selected too, to be dropped.
            let isWanted = VarySelection(bytes: variant)?.matches(fields) ?? true
            if !isWanted { others.value.append(variant) }
            return isWanted
        }
        return DiskRead(documents: documents, passedOver: others.value)
    }
}
