package import CachePolicy
import HTTPSemantics
import HTTPServer
import Settings
import Store
import Upstream

/// A response stored under a request's key for a request with other selecting fields (RFC 9111 §4.1).
///
/// It cannot be chosen for the request, but the upstream may say that it is what the request asks for.
package struct Variant: Sendable {
    /// The bytes of its `VarySelection`, which name it in the store.
    let selection: [UInt8]
    /// What the upstream may be asked about it by; nil where it may not: without a tag of the upstream's, or because
    /// something newer is known of what it shows.
    let validators: Preconditions.Stored?
}

/// What one request asks the upstream about stored responses, and which of them a 304 to it confirms (RFC 9111 §4.3).
package struct Validation: Sendable {
    /// The response that would be chosen for the request, were it fresh.
    package private(set) var chosen: Preconditions.Stored?
    /// Others that are asked about by their tags, the newest first.
    private(set) var variants: [Variant] = []

    /// Asks about nothing: the upstream is to send the whole.
    static let none = Validation(chosen: nil, variants: [])

    init(chosen: Preconditions.Stored?, variants: [Variant]) {
        self.chosen = chosen
        self.variants = variants.filter { $0.validators?.entityTag != nil }
    }

    /// Asks about what is stored for a request.
    ///
    /// A stored response that shows anything else than what the upstream sent is asked for without conditions, whatever
    /// else is stored: a 304 would confirm bytes that are no longer served.
    package init(_ request: ProxyRequest, stored: ReadyResponse?, variants: [Variant]) {
        let isOfParts = request.isForParts && stored?.isPartial == true && !request.hasConditions
        guard request.asksForItself || isOfParts, stored?.isClean != false,
            stored.map({ $0.response.form == .received && $0.response.doubts.isEmpty }) != false
        else {
            self = .none
            return
        }
        let response = stored?.response
        let isValidatable = response?.isValidatable == true
        self.init(
            chosen: isValidatable ? response.map { Preconditions.Stored(fields: $0.fields, policy: $0.policy) } : nil,
            // The response to a HEAD has no body to be stored under another selection.
            variants: request.isShareable ? variants : []
        )
    }

    package var isEmpty: Bool { chosen == nil && variants.isEmpty }

    /// The fields that the request carries.
    var fields: Fields {
        var fields = Preconditions.validators(of: candidates)
        // A date can be about the chosen one only: another selection may have another representation of the same time.
        if chosen == nil { fields.remove("if-modified-since") }
        return fields
    }

    private var candidates: [Preconditions.Stored] { (chosen.map { [$0] } ?? []) + variants.compactMap(\.validators) }

    /// What a 304 confirms.
    enum Selected {
        case chosen
        case variant(Variant)
    }

    /// Which of the stored responses a 304 confirms; nil where that is not known, and everything has to be asked again.
    func selected(by update: Fields, now: Int64) -> Selected? {
        let found = Freshening.selected(by: update, among: candidates, now: now)
        guard let first = found.first else { return nil }
        if chosen != nil {
            if found.contains(0) { return .chosen }
            return update.contains("etag") ? .variant(variants[first - 1]) : nil
        }
        // Only its tag says that it is of this selection, too.
        return update.contains("etag") ? .variant(variants[first]) : nil
    }
}

/// What the upstream says of stored responses without sending them again: a 304 (RFC 9111 §4.3.3, §4.3.4) or the response to
/// a HEAD (§4.3.5).
extension Fetches {
    /// A 304: finds out which of the stored responses that the upstream was asked about still holds, and goes on with that.
    ///
    /// One that names none of them, or one that a write or a cleaning has removed meanwhile, helps nobody: the whole is fetched.
    func renew(_ fetch: RunningFetch) {
        guard let head = fetch.head, !fetch.isInvalidated,
            let selected = fetch.validation.selected(by: head.fields, now: wall)
        else { return fetch.renewed(nil) }
        switch selected {
        case .chosen:
            guard let stored = fetch.stored else { return fetch.renewed(nil) }
            onceCommitted(stored) { [self] in renew(stored, by: head, fetch) }
        case .variant(let variant):
            // What it shows may have changed since it was asked about: the store knows.
            let isMeant: @Sendable ([UInt8]) -> Bool = { $0 == variant.selection }
            afterCommits(reading: fetch.request.key, where: isMeant) { [self] found in
                adopt(found.compactMap { CachedResponse($0) }.first, by: head, fetch)
            }
        }
    }

    /// Does something once a stored response has a document id, and objects whose changes to follow; normally within
    /// milliseconds.
    private func onceCommitted(_ stored: ReadyResponse, _ work: @escaping () -> Void) {
        if stored.stored != nil { work() } else { afterCommits(work) }
    }

    // MARK: 304

    /// The chosen response is good for longer.
    private func renew(_ stored: ReadyResponse, by head: UpstreamHead, _ fetch: RunningFetch) {
        // A document that became dirty meanwhile is not what the 304 is about.
        guard cache.isStillClean(stored), !fetch.isInvalidated else { return fetch.renewed(nil) }
        let renewed = renewed(stored.response, by: head, fetch)
        var response = stored.response
        response.fields = renewed.fields
        response.policy = renewed.policy.stored
        if let known = stored.stored { (response.document, response.objects) = known }
        let selection = selection(of: response, renewed, fetch)
        if let selection, selection == response.selection {
            let ready = ready(response, fetch)
            renew(stored, with: ready, fetch)
            return fetch.renewed(outcome(ready, by: head, renewed, isStored: true))
        }
        // From now on it varies by something else, or must not be kept.
        cache.drop(stored)
        // Parts that are kept no longer are still the response to this one request.
        guard !stored.isPartial else {
            return fetch.renewed(outcome(ready(response, fetch), by: head, renewed, isStored: false))
        }
        keepAnew(response, under: selection, by: head, renewed, fetch)
    }

    /// The response to a request with other selecting fields is the response to this one, too.
    ///
    /// That one is left as it is: the upstream confirmed this request's representation only.
    private func adopt(_ source: CachedResponse?, by head: UpstreamHead, _ fetch: RunningFetch) {
        guard let source, source.form == .received, !fetch.isInvalidated else { return fetch.renewed(nil) }
        let renewed = renewed(source, by: head, fetch)
        var response = source
        response.fields = renewed.fields
        response.policy = renewed.policy.stored
        keepAnew(response, under: selection(of: source, renewed, fetch), by: head, renewed, fetch)
    }

    /// Keeps a stored body as if it had just come with the fields of a 304.
    private func keepAnew(
        _ response: CachedResponse,
        under selection: VarySelection?,
        by head: UpstreamHead,
        _ renewed: Freshening.Renewed,
        _ fetch: RunningFetch
    ) {
        guard let selection else {
            return fetch.renewed(outcome(ready(response, fetch), by: head, renewed, isStored: false))
        }
        var response = response
        response.selection = selection
        response.document = nil
        response.objects = []
        let isStored = !fetch.isInvalidated
        let (kept, isWithheld) = keep(response, from: fetch, isAwaited: fetch.isAwaited)
        fetch.renewed(kept.map { outcome($0, by: head, renewed, isStored: isStored) }, isWithheld: isWithheld)
    }

    /// What clients are given.
    ///
    /// Followers whose variant it is not fetch theirs.
    private func outcome(
        _ ready: ReadyResponse,
        by head: UpstreamHead,
        _ renewed: Freshening.Renewed,
        isStored: Bool
    ) -> RunningFetch.Outcome {
        RunningFetch.Outcome(
            ready: ready,
            use: { .revalidated($0.reason, isStored: isStored) },
            cookies: head.cookies + renewed.withheld.filter { !$0.isNamed("set-cookie") },
            isForVariantOnly: true
        )
    }

    private func renew(_ stored: ReadyResponse, with ready: ReadyResponse, _ fetch: RunningFetch) {
        let isLatest = !invalidations.hasKept(at: ready.residence.digest, since: fetch.token)
        cache.renew(stored, with: ready, sent: fetch.start, isLatest: isLatest)
    }

    private func renewed(_ response: CachedResponse, by head: UpstreamHead, _ fetch: RunningFetch) -> Freshening.Renewed
    {
        let request = fetch.request
        return Freshening.renewed(
            response.fields,
            status: response.status,
            by: head.fields,
            request: request.facts,
            requestTime: fetch.requestTime,
            responseTime: now,
            wall: wall,
            settings: request.upstream.policySettings,
            route: request.overrides,
            replaysCookies: request.upstream.settings.cookies == .replay
        )
    }

    /// The variant that a renewed response is from now on; nil if it may not be kept.
    ///
    /// What was for requests alone that agree in their `OtherFields` stays so, whatever the 304 says of freshness.
    private func selection(of response: CachedResponse, _ renewed: Freshening.Renewed, _ fetch: RunningFetch)
        -> VarySelection?
    {
        var policy = renewed.policy
        guard policy.storability == .yes else { return nil }
        if response.selection.isForAgreeing { policy.isForAgreeing = true }
        let request = fetch.request
        return request.upstream.selection(policy, route: request.overrides, request: request.message.fields)
    }

    private func ready(_ response: CachedResponse, _ fetch: RunningFetch) -> ReadyResponse {
        let request = fetch.request
        let digest = response.status == 206 ? cache.partsDigest(of: request) : request.digest
        return ReadyResponse(response, digest: digest, upstream: request.upstream, base: request.base)
    }

    // MARK: HEAD

    /// The 200 to a HEAD renews the stored response to a GET, or shows that it is out of date.
    func compare(_ stored: ReadyResponse, with head: UpstreamHead, _ fetch: RunningFetch) {
        let hasWhole = stored.response.form == .received && stored.response.status == 200
        let length = hasWhole ? stored.response.body.count : nil
        switch Freshening.outcome(ofHead: head.fields, stored: stored.response.fields, length: length) {
        case .invalidate:
            cache.drop(stored)
        case .refresh:
            guard hasWhole else { return }
            onceCommitted(stored) { [self] in refresh(stored, by: head, fetch) }
        }
    }

    private func refresh(_ stored: ReadyResponse, by head: UpstreamHead, _ fetch: RunningFetch) {
        guard cache.isStillClean(stored), !fetch.isInvalidated, let known = stored.stored else { return }
        // Without a validator it says nothing about the objects in the body, whose times a renewal renews.
        guard known.objects.isEmpty || head.fields.contains("etag") || head.fields.contains("last-modified") else {
            return
        }
        let renewed = renewed(stored.response, by: head, fetch)
        guard selection(of: stored.response, renewed, fetch) == stored.response.selection else {
            return cache.drop(stored)
        }
        var response = stored.response
        (response.document, response.objects) = known
        response.fields = renewed.fields
        response.policy = renewed.policy.stored
        renew(stored, with: ready(response, fetch), fetch)
    }
}
