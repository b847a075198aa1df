import CachePolicy
import HTTPSemantics
import HTTPServer
import Logging
import Store

/// Look-ups in memory and on disk; simultaneous look-ups of a document share one read.
extension ProxyCore {
    /// Looks into memory, then into the store.
    ///
    /// Among simultaneous look-ups of a document on disk, one reads and composes it and the others wait. A look-up is repeated
    /// after the commit of what is on its way to disk, and if what it has read is no longer current.
    ///
    /// - Parameter admits: whether what is read is put into memory.
    func lookUp(_ request: ProxyRequest, admits: Bool = true) async -> ReadyResponse? {
        await newest { isLast in await lookUpOnce(request, admits: admits, isLast: isLast) }
    }

    /// Finds a response until it is current; one that is not even at last counts as outdated, so that the upstream is asked.
    func newest(_ find: (_ isLast: Bool) async -> Attempt<ReadyResponse?>) async -> ReadyResponse? {
        let (found, isCurrent) = await untilCurrent(find)
        return isCurrent ? found : found?.outdated
    }

    private func lookUpOnce(_ request: ProxyRequest, admits: Bool, isLast: Bool) async -> Attempt<ReadyResponse?> {
        if let ready = cache.inMemory(request, now: now), ready.isClean { return (ready, true) }
        let isArriving = cache.isArriving(request)
        if isArriving, !isLast {
            // While another process holds up the commit, the upstream is asked: what is on disk is older.
            guard !cache.store.isBlocked else { return (inMemoryAlone(request), true) }
            cache.store.submitFlush()
            await cache.memory.arrivalEnds(at: request.digest) { [store = cache.store] in store.isBlocked }
            return (nil, false)
        }
        guard isArriving || cache.store.mayHave(request.digest) else { return (inMemoryAlone(request), true) }
        let moment = moment(at: request.digest)
        let (finding, isOwn) = await find(request, moment)
        // A response that a write has outdated must never enter memory, because other threads serve hits from there.
        let isCurrent = !isArriving && !hasChanged(request, at: request.digest, since: moment)
        if !isOwn, isCurrent, let ready = cache.inMemory(request, now: now), ready.isClean { return (ready, true) }
        // Another's read may lack a variant, or have values that have changed since.
        let documents = isOwn ? finding.documents : finding.documents(for: request, in: cache.store)
        guard isCurrent, let documents
        else { return (cache.preferred(among: finding.documents, for: request, now: now), false) }
        let ready =
            admits
            ? cache.admit(documents, for: request, since: moment.number, now: now)
            : cache.preferred(among: documents, for: request, now: now)
        let found = ready ?? inMemoryAlone(request)
        return (found, found?.isClean != false)
    }

    /// The present, as far as it concerns responses under a key.
    func moment(at digest: Digest128) -> LookUpMoment {
        LookUpMoment(token: fetches.invalidations.token, number: cache.memory.number(at: digest))
    }

    /// Whether what was found for a request under a key may be outdated by a write, a clean or a newer response since a moment.
    ///
    /// Changes of the objects that it shows are another question: see `ResponseCache.register`.
    func hasChanged(_ request: ProxyRequest, at digest: Digest128, since moment: LookUpMoment) -> Bool {
        fetches.invalidations.change(since: moment.token, for: request) == .invalidated
            || cache.memory.hasChanged(at: digest, since: moment.number)
    }

    /// What memory has for a request that gets nothing from disk.
    private func inMemoryAlone(_ request: ProxyRequest) -> ReadyResponse? {
        guard let ready = cache.inMemory(request, now: now) else { return nil }
        // A dirty response that only memory has cannot be composed there.
        return ready.isClean ? ready : ready.outdated
    }

    /// Reads from disk, or waits for a read under way.
    private func find(_ request: ProxyRequest, _ moment: LookUpMoment) async -> (DiskRead, isOwn: Bool) {
        // A look-up after an invalidation or a newer response must not share an earlier read.
        let lookUp = DiskReadKey(
            key: request.key,
            dividedBy: request.dividedBy,
            token: moment.token,
            alteration: cache.memory.alteration(at: request.digest)
        )
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
            unreadable("a document could not be read", error, request)
        }
        for waiter in diskReads.removeValue(forKey: lookUp) ?? [] { waiter.resume(returning: finding) }
        return (finding, true)
    }
}

/// What an attempt has found, and whether that was still current when it was found.
typealias Attempt<Finding> = (finding: Finding, isCurrent: Bool)

/// Finds something again while it has changed by the time it was found, but not for ever.
///
/// - Returns: what the first attempt found that was current; without one, what the last attempt found.
func untilCurrent<Finding>(limit: Int = 16, _ find: (_ isLast: Bool) async -> Attempt<Finding>) async
    -> Attempt<Finding>
{
    for _ in 0..<limit {
        let attempt = await find(false)
        if attempt.isCurrent { return attempt }
    }
    return await find(true)
}

/// What is stored for a request.
struct LookUpResult: Sendable {
    var whole: ReadyResponse?
    /// Why there is none, for `Cache-Status`.
    var absence = CacheStatus.Forward.uriMiss
    /// The stored parts of the variant that the request selects.
    var parts: ReadyResponse?
    /// Other variants that a 304 may confirm.
    var variants: [Variant] = []
    /// The tag of a response that is stored for another principal.
    var across: TagAcrossPrincipals?
    /// Offline, if there is no whole: the mapped view of the object that the URL stands for, made of what is known of it.
    var assembled: ReadyResponse?
}

/// When a look-up on disk began.
struct LookUpMoment: Sendable {
    /// The writes and cleans until then.
    let token: InvalidationLog.Token
    /// The number of the last event in the key's shard of the memory.
    let number: Int
}

/// A look-up on disk that others may wait for.
struct DiskReadKey: Hashable, Sendable {
    let key: CacheKey
    /// A document may show values for requests with the same `OtherFields` only.
    let dividedBy: Int64?
    let token: InvalidationLog.Token
    /// The last change of what is known in memory under the key.
    let alteration: Int
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
