import CachePolicy
import HTTPSemantics
import HTTPServer
import Settings
import Store
import Upstream

/// What the upstream says of stored answers without sending them again: a 304 (RFC 9111 §4.3.3, §4.3.4) or the answer to a
/// HEAD (§4.3.5).
extension Flights {
    /// A 304: one of the stored answers that the upstream was asked about holds.
    ///
    /// One that speaks of none of them, or of what a write or a cleaning has removed meanwhile, helps nobody: the whole is
    /// asked for.
    func notModified(_ head: UpstreamHead, _ flight: Flight, for relays: [Relay]) {
        guard !flight.storesNothing, let selected = flight.validation.selected(by: head.fields, now: wall) else {
            return askAgain(relays, stored: flight.stored, insteadOf: flight)
        }
        switch selected {
        case .chosen:
            guard let stored = flight.stored else { return askAgain(relays, stored: nil, insteadOf: flight) }
            onceSettled(stored, flight) { [self] in renew(stored, by: head, flight, for: relays) }
        case .variant(let variant):
            // What it shows may have changed since it was asked about: the store knows.
            settling[ObjectIdentifier(flight)] = flight
            let isMeant: @Sendable ([UInt8]) -> Bool = { $0 == variant.selection }
            afterCommits(reading: flight.demand.key, where: isMeant) { [self] found in
                settling[ObjectIdentifier(flight)] = nil
                adopt(found.compactMap { CachedResponse($0) }.first, by: head, flight, for: relays)
                if settling[ObjectIdentifier(flight)] == nil { refreshed(flight) }
            }
        }
    }

    /// Runs `work` once the stored answer has a document id, and objects whose changes to follow; normally within
    /// milliseconds.
    private func onceSettled(_ stored: ReadyResponse, _ flight: Flight, _ work: @escaping () -> Void) {
        guard stored.stored == nil else { return work() }
        settling[ObjectIdentifier(flight)] = flight
        afterCommits { [self] in
            settling[ObjectIdentifier(flight)] = nil
            work()
            if settling[ObjectIdentifier(flight)] == nil { refreshed(flight) }
        }
    }

    // MARK: 304

    /// The chosen answer is good for longer.
    private func renew(_ stored: ReadyResponse, by head: UpstreamHead, _ flight: Flight, for relays: [Relay]) {
        // A document that became dirty meanwhile is not what the 304 spoke of.
        guard cache.isStillClean(stored), !flight.storesNothing else {
            return askAgain(relays, stored: flight.stored, insteadOf: flight)
        }
        let renewed = renewed(stored.answer, by: head, flight)
        var answer = stored.answer
        answer.fields = renewed.fields
        answer.policy = renewed.policy.answer
        if let known = stored.stored { (answer.document, answer.objects) = known }
        let selection = selection(of: answer, renewed, flight)
        if let selection, selection == answer.selection {
            let ready = ready(answer, flight)
            cache.renew(stored, with: ready, sent: flight.start, generation: flight.generation)
            return serve(ready, by: head, renewed, isStored: true, to: relays)
        }
        // From now on it varies by something else, or must not be kept.
        cache.drop(stored)
        // Parts that are kept no longer still answer this one request.
        guard !stored.isPartial else {
            return serve(ready(answer, flight), by: head, renewed, isStored: false, to: relays)
        }
        keepAnew(answer, under: selection, by: head, renewed, flight, for: relays)
    }

    /// The answer to a request with other selecting fields is the answer to this one, too.
    ///
    /// That one is left as it is: the upstream spoke of this request's representation only.
    private func adopt(_ source: CachedResponse?, by head: UpstreamHead, _ flight: Flight, for relays: [Relay]) {
        guard let source, source.form == .received, !flight.storesNothing else {
            return askAgain(relays, stored: flight.stored, insteadOf: flight)
        }
        let renewed = renewed(source, by: head, flight)
        var answer = source
        answer.fields = renewed.fields
        answer.policy = renewed.policy.answer
        keepAnew(answer, under: selection(of: source, renewed, flight), by: head, renewed, flight, for: relays)
    }

    /// Keeps a stored body as if it had just come with the fields of a 304.
    private func keepAnew(
        _ answer: CachedResponse,
        under selection: VarySelection?,
        by head: UpstreamHead,
        _ renewed: Freshening.Renewed,
        _ flight: Flight,
        for relays: [Relay]
    ) {
        guard let selection else {
            return serve(ready(answer, flight), by: head, renewed, isStored: false, to: relays)
        }
        var answer = answer
        answer.selection = selection
        answer.document = nil
        answer.objects = []
        let ready = keep(answer, from: flight, isAwaited: !relays.isEmpty)
        let isStored = !flight.storesNothing
        onceTold(by: flight) { [self] in serve(ready, by: head, renewed, isStored: isStored, to: relays) }
    }

    private func renewed(_ answer: CachedResponse, by head: UpstreamHead, _ flight: Flight) -> Freshening.Renewed {
        let demand = flight.demand
        return Freshening.renewed(
            answer.fields,
            status: answer.status,
            by: head.fields,
            request: demand.facts,
            requestTime: flight.requestTime,
            responseTime: now,
            wall: wall,
            settings: demand.upstream.policySettings,
            route: demand.overrides,
            replaysCookies: demand.upstream.settings.cookies == .replay
        )
    }

    /// The variant that a renewed response is from now on; nil if it may not be kept.
    ///
    /// What was for requests alone that agree in their `OtherFields` stays so, whatever the 304 says of freshness.
    private func selection(of answer: CachedResponse, _ renewed: Freshening.Renewed, _ flight: Flight) -> VarySelection?
    {
        var policy = renewed.policy
        guard policy.storability == .yes else { return nil }
        if answer.selection.isForAgreeing { policy.isForAgreeing = true }
        let demand = flight.demand
        return demand.upstream.selection(policy, route: demand.overrides, request: demand.request.fields)
    }

    private func ready(_ answer: CachedResponse, _ flight: Flight) -> ReadyResponse {
        let demand = flight.demand
        let digest = answer.status == 206 ? cache.partsDigest(of: demand) : demand.digest
        return ReadyResponse(answer, digest: digest, upstream: demand.upstream, base: demand.base)
    }

    /// Serves a renewed answer to those who wait for its variant; the others ask for theirs.
    private func serve(
        _ ready: ReadyResponse,
        by head: UpstreamHead,
        _ renewed: Freshening.Renewed,
        isStored: Bool,
        to relays: [Relay]
    ) {
        let isServed = { (relay: Relay) in relay.isLeader || ready.answers(relay.demand) }
        serve(
            ready,
            to: relays.filter(isServed),
            as: { .revalidated($0.reason, isStored: isStored) },
            cookies: head.cookies + renewed.withheld.filter { !$0.isNamed("set-cookie") }
        )
        for relay in relays where !isServed(relay) { askAlone(relay) }
    }

    // MARK: HEAD

    /// The 200 to a HEAD renews the stored answer to a GET, or shows that it is out of date.
    func compare(_ stored: ReadyResponse, with head: UpstreamHead, _ flight: Flight) {
        let hasWhole = stored.answer.form == .received && stored.answer.status == 200
        let length = hasWhole ? stored.answer.body.count : nil
        switch Freshening.outcome(ofHead: head.fields, stored: stored.answer.fields, length: length) {
        case .invalidate:
            cache.drop(stored)
        case .refresh:
            guard hasWhole else { return }
            onceSettled(stored, flight) { [self] in refresh(stored, by: head, flight) }
        }
    }

    private func refresh(_ stored: ReadyResponse, by head: UpstreamHead, _ flight: Flight) {
        guard cache.isStillClean(stored), !flight.storesNothing, let known = stored.stored else { return }
        // Without a validator it tells nothing about the objects in the body, whose times a renewal renews.
        guard known.objects.isEmpty || head.fields.contains("etag") || head.fields.contains("last-modified") else {
            return
        }
        let renewed = renewed(stored.answer, by: head, flight)
        guard selection(of: stored.answer, renewed, flight) == stored.answer.selection else {
            return cache.drop(stored)
        }
        var answer = stored.answer
        (answer.document, answer.objects) = known
        answer.fields = renewed.fields
        answer.policy = renewed.policy.answer
        cache.renew(stored, with: ready(answer, flight), sent: flight.start, generation: flight.generation)
    }
}
