import CachePolicy
import EventLoops
import HTTPSemantics
import Settings
import Store
import Upstream

/// Responses that are whole: kept in memory, and handed to the store.
///
/// The end of a response that contains objects is withheld until its commit has marked every other document that shows them
/// (`store.withhold` bounds the wait). Otherwise its client might find another document that shows them as they were.
extension Fetches {
    /// What is to be stored, and whether objects in it are still to be committed; nil where a part is of no use.
    func keep(_ storing: RunningFetch.Storing, status: Int, body: [UInt8], from fetch: RunningFetch)
        -> (ready: ReadyResponse?, isWithheld: Bool)
    {
        if let part = storing.part { return keep(part, storing, body: body, from: fetch) }
        let response = CachedResponse(
            key: fetch.request.key,
            document: nil,
            status: status,
            fields: storing.fields,
            body: body,
            policy: storing.policy,
            selection: storing.selection,
            form: .received,
            objects: []
        )
        return keep(response, from: fetch, isAwaited: fetch.isAwaited)
    }

    /// Makes a response ready that is whole, and keeps it unless a write or a cleaning has invalidated it.
    ///
    /// - Parameter isAwaited: whether a client waits for its end.
    func keep(_ response: CachedResponse, from fetch: RunningFetch, isAwaited: Bool)
        -> (ready: ReadyResponse?, isWithheld: Bool)
    {
        let request = fetch.request
        let ready = ReadyResponse(response, digest: request.digest, upstream: request.upstream, base: request.base)
        let change = fetch.change
        guard change != .invalidated else {
            unstored.note(.invalidated, status: response.status, of: request, at: now)
            return (ready, false)
        }
        unstored.forget(request.key)
        cache.forgetParts(of: request)
        supersede(fetch, by: ready)
        let mapping = request.upstream.reading(request, status: response.status, fields: response.fields)
        let (fetches, number) = (LoopReference(self, on: loop), ObjectIdentifier(fetch))
        let isWithheld = keep(ready, mapping, from: fetch, isAwaited: isAwaited) {
            fetches.enqueue { $0.committed(number) }
        }
        return (ready, isWithheld)
    }

    /// Hands a response to memory and store.
    ///
    /// - Returns: whether it contains objects, so that `done` will be called.
    @discardableResult
    func keep(
        _ ready: ReadyResponse,
        _ mapping: BodyMapping,
        from fetch: RunningFetch,
        isAwaited: Bool = false,
        done: @escaping @Sendable () -> Void = {}
    ) -> Bool {
        invalidations.noteKept(at: ready.residence.digest)
        let writtenAt: Int64? = if case .written(let time) = fetch.change { time } else { nil }
        return cache.keep(
            ready,
            sent: fetch.start,
            age: ready.response.policy.knownAge,
            reading: mapping,
            overtakenAt: writtenAt,
            isSecret: fetch.request.isRepeated(in: ready.response.body, ready.response.fields),
            isAwaited: isAwaited,
            done: done
        )
    }

    /// Keeps what a POST has made of its target, once what that invalidated is gone.
    func keep(_ posted: PostedResponse, of request: ProxyRequest) {
        let ready = ReadyResponse(
            posted.response,
            digest: request.digest,
            upstream: request.upstream,
            base: request.base
        )
        let mapping = request.upstream.reading(
            request,
            method: "GET",
            status: posted.response.status,
            fields: posted.response.fields
        )
        invalidations.noteKept(at: request.digest)
        // A write's response is as new as its completion (law 3).
        cache.keep(
            ready,
            sent: cache.now,
            age: 0,
            reading: mapping,
            overtakenAt: nil,
            isSecret: request.isRepeated(in: posted.response.body, posted.response.fields)
        )
    }

    /// Drops what was stored for a fetch's request before: it is outdated.
    ///
    /// - Parameter ready: what is kept in its place; nil: nothing is. One of the same variant takes its place with its commit.
    func supersede(_ fetch: RunningFetch, by ready: ReadyResponse?) {
        guard !fetch.isInvalidated, let stored = fetch.stored, !stored.isPartial else { return }
        if stored.variant != ready?.variant { cache.drop(stored) }
    }
}
