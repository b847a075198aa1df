import CachePolicy
import HTTPSemantics
import Logging
import Synchronization
import Upstream

/// What clients are given that wait for a fetch.
extension Fetches {
    /// Counts how a client was answered; what Larder asks for itself is no request.
    func count(_ outcome: Outcome, for relay: Relay) {
        guard relay.reply.isRequest else { return }
        outcomes.count(outcome)
        relay.request.note?.counted(as: outcome)
    }

    /// Answers clients from a ready response, each in its own view and for its own address.
    ///
    /// - Parameter cookies: the upstream's `Set-Cookie` lines, and others that are for nobody but the one whose request they
    ///   answer.
    func serve(
        _ ready: ReadyResponse,
        to relays: [Relay],
        as cacheUse: (ProxyRequest) -> CacheUse,
        cookies: [Field] = []
    ) {
        for relay in relays {
            let cacheUse = cacheUse(relay.request)
            if !ready.needsReceivedBytes(in: relay.request.view) {
                let shown = cache.shown(ready, to: relay.request)
                if shown.named.isEmpty {
                    serve(shown, to: relay, as: cacheUse, cookies: cookies)
                    continue
                }
            }
            serveLater(ready, to: relay, as: cacheUse, cookies: cookies)
        }
    }

    /// Serves a view that the store has to be read for.
    private func serveLater(_ ready: ReadyResponse, to relay: Relay, as cacheUse: CacheUse, cookies: [Field]) {
        let received = Received()
        after(
            { [cache, request = relay.request] in
                let shown = try? await cache.inView(of: request, ready)
                received.response.withLock { $0 = shown }
            },
            then: { [self] in
                guard let shown = received.response.withLock({ $0 }) else {
                    count(.error, for: relay)
                    return relay.reply.refuse(.receivedBytesGone, nil)
                }
                serve(shown, to: relay, as: cacheUse, cookies: cookies)
            }
        )
    }

    private func serve(_ shown: ReadyResponse, to relay: Relay, as cacheUse: CacheUse, cookies: [Field]) {
        count(cacheUse.outcome(of: shown), for: relay)
        relay.reply.serve(
            shown,
            for: relay.request,
            as: cacheUse,
            isCollapsed: !relay.isLeader,
            cookies: relay.isLeader ? cookies : [],
            now: now
        )
    }

    /// Serves a response that is whole and not stored.
    func serveUnstored(_ body: [UInt8], of fetch: RunningFetch, to relays: [Relay]) {
        guard let head = fetch.head else { return }
        let request = fetch.request
        let response = CachedResponse(
            key: request.key,
            document: nil,
            status: head.status,
            fields: StoredFields.storable(head.fields),
            body: body,
            policy: policy(of: head, in: fetch).stored,
            selection: .none,
            form: .received,
            objects: []
        )
        let ready = ReadyResponse(response, digest: request.digest, upstream: request.upstream, base: request.base)
        serve(ready, to: relays, as: { .unkept($0.reason) }, cookies: head.cookies)
    }

    /// A response read from the store, on its way back to the loop.
    private final class Received: Sendable {
        let response = Mutex<ReadyResponse?>(nil)
    }
}
