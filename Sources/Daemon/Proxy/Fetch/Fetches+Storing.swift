import CachePolicy
import EventLoops
import HTTPSemantics
import HTTPServer
import Logging
import Mapping
import Settings
import Store
import Upstream

/// What the head of a response means: whether the response is stored, and in what form.
extension Fetches {
    /// Interprets a head, except for what depends on the clients, and at once drops stored responses that it shows to be
    /// outdated.
    ///
    /// - Returns: the meaning; the response to store, still without its body; and whether that contains objects.
    func meaning(of head: UpstreamHead, in fetch: RunningFetch)
        -> (Fetch.Head, storing: CachedResponse?, containsObjects: Bool)
    {
        let (request, stored) = (fetch.request, fetch.stored)
        judgeAcross(head, fetch)
        if fetch.isUnmodified(head) { return (Fetch.Head(kind: .notModified), nil, false) }
        if request.isHead, head.status == 200, let stored { compare(stored, with: head, fetch) }
        if fetch.completing != nil, head.status == 206 || head.status == 416 || head.fields.isContentCoded,
            !completes(head, in: fetch)
        {
            return (Fetch.Head(kind: .unfitPart), nil, false)
        }
        if fetch.asksForRange { dropUnreliableParts(after: head, in: fetch) }
        var storing: CachedResponse?
        do throws(NotStoredReason) {
            storing = try storable(head, in: fetch)
        } catch {
            record(error, in: fetch)
        }
        recordHitForMiss(after: head, in: fetch, isStored: storing != nil)
        let (isWhole, isJSON) = (storing?.status != 206, request.upstream.isJSON(head.fields))
        let containsObjects =
            storing != nil && isWhole && isJSON
            && request.upstream.bodyMatch(request, status: head.status, fields: head.fields) != nil
        var meaning = Fetch.Head()
        meaning.isStorable = storing != nil
        meaning.outdatesStored = outdatesStored(head, in: fetch) && !StatusFacts.isFailure(head.status, head.fields)
        meaning.isRenderable = isJSON && ![206, 304].contains(head.status)
        meaning.isWhole = isWhole && head.status == 200
        meaning.completesParts = !isWhole && fetch.completing != nil
        // Once the client has the last byte, no worker may still serve the response that this one replaces.
        if storing != nil, isWhole, let stored { cache.memory.remove(stored, at: stored.entry.digest) }
        return (meaning, storing, containsObjects)
    }

    private func outdatesStored(_ head: UpstreamHead, in fetch: RunningFetch) -> Bool {
        guard !fetch.isInvalidated else { return false }
        let isGone = !fetch.request.isHead && (head.status == 404 || head.status == 410)
        let isForAll =
            fetch.request.isShareable && (200..<400).contains(head.status) && ![202, 206, 304].contains(head.status)
        return fetch.refreshes != nil || isGone || isForAll
    }

    // MARK: What may be stored

    /// The response to store once its body has come; throws the reason if it is not stored.
    func storable(_ head: UpstreamHead, in fetch: RunningFetch) throws(NotStoredReason) -> CachedResponse {
        let request = fetch.request
        if let refusal = NotStoredReason.refusal(of: request) { throw refusal }
        if fetch.isInvalidated { throw .invalidated }
        // A stream of events never ends, and is of no use as a document.
        if head.isEventStream { throw .eventStream }
        if head.isGarbled { throw .garbled }
        let part = part(in: head, of: fetch)
        // The response to a request for a part is stored if it is that part, or the whole document.
        if part == nil, head.status == 206 || fetch.asksForRange && (head.status != 200 || head.fields.isContentCoded) {
            throw .part
        }
        let policy = policy(of: head, in: fetch)
        if case .no(let reason) = policy.storability { throw NotStoredReason(reason, head.fields, of: request) }
        // An error, even a cacheable one, never replaces a good response. That includes a 501, which is no failure: its client
        // gets it, but what is stored stays.
        let isError = StatusFacts.isServerError(head.status) || StatusFacts.isFailure(head.status, head.fields)
        if isError, let stored = fetch.stored, !StatusFacts.isServerError(stored.response.status) {
            throw .olderIsBetter
        }
        let limit = request.upstream.daemon.limits.document
        if let length = head.fields.contentLength, length > limit {
            throw .tooLarge(limit: limit)
        }
        guard let response = CachedResponse(head, to: request, policy, at: wall) else {
            let said = head.fields.combined("vary")?.prefix(200) ?? ""
            throw NotStoredReason("vary", .upstream, "the upstream said Vary: \(said)")
        }
        // Parts of a body that is served transformed would not fit the whole.
        if part != nil, request.upstream.settings.rewriteLinks, request.upstream.isJSON(head.fields) { throw .part }
        return response
    }

    func times(of fetch: RunningFetch) -> ExchangeTimes {
        ExchangeTimes(request: fetch.requestTime, response: now, wall: wall)
    }

    func policy(of head: UpstreamHead, in fetch: RunningFetch) -> ResponsePolicy {
        fetch.request.policy(status: head.status, fields: head.fields, times: times(of: fetch))
    }

    func record(_ reason: NotStoredReason, in fetch: RunningFetch) {
        guard let head = fetch.head else { return }
        notStored.record(reason, status: head.status, of: fetch.request, at: now)
        fetch.request.note?.recordNotStored(because: reason)
        log.notStored(reason, fetch.request)
    }

    // MARK: Absence

    func absence(in head: UpstreamHead, of fetch: RunningFetch) -> ObservedAbsence? {
        let request = fetch.request
        // That a POST finds nothing says nothing of the object that its path may name.
        guard head.status == 404 || head.status == 410, request.read == nil,
            !request.upstream.rules.models.declarations.isEmpty
        else { return nil }
        let bound = request.upstream.bound(request)
        guard bound != nil || fetch.stored != nil else { return nil }
        let age = policy(of: head, in: fetch).stored.knownAge
        var absence = ObservedAbsence(key: request.key, bound: bound, start: fetch.start - age)
        absence.method = request.message.method
        return absence
    }

    func commit(_ absence: ObservedAbsence, then work: @escaping () -> Void) {
        after { [cache, log] in
            do throws(StoreError) {
                try await cache.store.commit(absence)
            } catch {
                log.storeFailed("an absence could not be stored", error)
            }
        } then: { _ in
            work()
        }
    }
}

/// Storing whole responses: they are admitted to memory and submitted to the store.
///
/// The end of a response with objects is withheld until its commit has marked every other document that shows them
/// (`store.withhold` bounds the wait). Otherwise its client might then get another document with older values of them.
extension Fetches {
    /// Prepares a whole response for serving, and admits it unless a write or a clean has invalidated it.
    ///
    /// - Returns: also whether its objects are yet to be committed, so that its end is withheld.
    func admit(_ response: CachedResponse, from fetch: RunningFetch, isAwaited: Bool)
        -> (ready: ReadyResponse, isWithheld: Bool)
    {
        let request = fetch.request
        let ready = ReadyResponse(response, for: request)
        let change = fetch.change
        guard change != .invalidated else {
            notStored.record(.invalidated, status: response.status, of: request, at: now)
            log.notStored(.invalidated, request)
            return (ready, false)
        }
        notStored.forget(request.key)
        cache.forgetParts(of: request)
        supersede(fetch, by: ready)
        let match = request.upstream.bodyMatch(request, status: response.status, fields: response.fields)
        let (proxy, number) = (proxy, ObjectIdentifier(fetch))
        let isWithheld = admit(ready, match, from: fetch, isAwaited: isAwaited) { isKnown in
            proxy.enqueue { $0.fetches.committed(number, isKnown: isKnown) }
        }
        compare(response, in: fetch)
        return (ready, isWithheld)
    }

    /// Admits a response to memory, and submits it to the store.
    ///
    /// - Returns: whether it contains objects, so that `done` will be called.
    @discardableResult
    func admit(
        _ ready: ReadyResponse,
        _ match: CompiledUpstream.BodyMatch?,
        from fetch: RunningFetch,
        isAwaited: Bool = false,
        done: @escaping @Sendable (_ isKnown: Bool) -> Void = { _ in }
    ) -> Bool {
        let writtenAt: Int64? = if case .written(let time) = fetch.change { time } else { nil }
        let share = DiskShare(of: ready.response, to: fetch.request)
        let arrival = Arrival(
            ready: ready,
            sent: fetch.start,
            age: ready.response.policy.knownAge,
            match: match,
            writtenAt: writtenAt,
            number: fetch.number,
            share: share,
            isAwaited: isAwaited,
            findCoverage: coverage(of: ready.response, in: fetch),
            resembled: fetch.released ?? fetch.validation.across?.document
        )
        let stored = fetch.fleetFetch.flatMap { sharing(ready, share, of: fetch, $0) }
        return cache.admit(arrival, stored: stored, done: done)
    }

    /// Admits a POST's response as its target's representation, after the write's invalidation.
    func admit(_ posted: CachedResponse, of request: ProxyRequest) {
        let (status, fields, url) = (posted.status, posted.fields, request.target)
        // A write's response is as new as the write's completion (law 3).
        let match = request.upstream.bodyMatch("GET", request.route, url: url, status: status, fields: fields)
        let ready = ReadyResponse(posted, for: request)
        let share = DiskShare(of: posted, to: request)
        cache.admit(Arrival(ready: ready, sent: cache.now, match: match, share: share))
    }

    /// Drops the response stored for a fetch's request, because it is outdated.
    ///
    /// - Parameter ready: the response that takes its place, if any. One of the same variant replaces the stored one with its
    ///   commit.
    func supersede(_ fetch: RunningFetch, by ready: ReadyResponse?) {
        guard !fetch.isInvalidated, let stored = fetch.stored, !stored.isPartial else { return }
        if stored.variant != ready?.variant { cache.drop(stored) }
    }
}
