package import CachePolicy
import HTTPSemantics
import HTTPServer
import Settings
import Store
import Upstream

/// A response stored under a request's key, for a request with other selecting fields (RFC 9111 §4.1).
///
/// The cache cannot select it for the request, but the upstream may say that it is the requested representation.
struct Variant: Sendable {
    /// The bytes of its `VarySelection`, which identify it in the store.
    let selection: [UInt8]
    /// The validators to ask the upstream with.
    let validators: Validators
    /// Whether a 304 must have a strong tag, because the response is for requests with other `OtherFields`.
    var needsStrongTag = false

    /// Whether its coding, if it may not be changed, is one for the request's client.
    fileprivate func hasCoding(for request: ProxyRequest) -> Bool {
        VarySelection(bytes: selection)?.hasCoding(for: request.message.fields) ?? false
    }
}

/// The stored responses that one request validates, and the selection of those that a 304 to it confirms (RFC 9111 §4.3).
package struct Validation: Sendable {
    /// The response that would be served if it were fresh.
    package private(set) var chosen: Validators?
    /// Others, validated by their tags, the newest first.
    private(set) var variants: [Variant] = []
    /// The tag of a response that is stored for another principal.
    package private(set) var across: TagAcrossPrincipals?

    /// Validates nothing: the upstream sends the whole response.
    static let none = Validation(chosen: nil, variants: [])

    init(chosen: Validators?, variants: [Variant], across: TagAcrossPrincipals? = nil) {
        self.chosen = chosen
        self.variants = variants.filter { $0.validators.entityTag != nil }
        self.across = across
    }

    /// Validates the responses stored for a request.
    ///
    /// If the stored response differs from what the upstream sent, the request has no conditions, whatever else is stored: a 304
    /// would confirm bytes that are no longer served.
    init(_ request: ProxyRequest, stored: ReadyResponse?, variants: [Variant], across: TagAcrossPrincipals? = nil) {
        let isOfParts = request.isForParts && stored?.isPartial == true && !request.hasConditions
        guard request.asksForItself || isOfParts, stored?.isClean != false,
            stored.map({ $0.response.form == .asReceived && $0.response.doubts.isEmpty }) != false
        else {
            self = .none
            return
        }
        self.init(
            chosen: stored.flatMap { $0.response.isValidatable ? $0.response.validators : nil },
            // The response to a HEAD has no body to store under another selection.
            variants: request.isShareable ? variants.filter { $0.hasCoding(for: request) } : [],
            across: request.isShareable ? across : nil
        )
    }

    package var isEmpty: Bool { chosen == nil && variants.isEmpty && across == nil }

    var fields: Fields {
        if isEmpty { return Fields() }
        var fields = Preconditions.validators(of: candidates)
        // A date can concern the chosen response only: another selection, or another principal, may have another representation of
        // the same time.
        if chosen == nil || across != nil { fields.remove("if-modified-since") }
        if let across { fields.append(member: across.tag.bytes, to: "If-None-Match") }
        return fields
    }

    /// Whether a 304 has a tag that it may have: one of those sent, but for a wrong one.
    func isAnswered(by update: Fields) -> Bool {
        guard let tag = Self.onlyTag(of: update) else { return false }
        if case .expected(let expected, _) = across, expected.matchesWeakly(tag) { return true }
        return candidates.contains { $0.entityTag?.matchesWeakly(tag) ?? false }
    }

    private static func onlyTag(of update: Fields) -> EntityTag? {
        let tags = update.all("etag")
        return tags.count == 1 ? EntityTag(tags[0]) : nil
    }

    private var candidates: [Validators] { (chosen.map { [$0] } ?? []) + variants.map(\.validators) }

    enum Selected {
        case chosen
        case variant(Variant)
        /// The response of another principal.
        case others(DocumentID)
    }

    /// The stored response that a 304 confirms; nil if that is unclear, and everything must be fetched again.
    func selected(by update: Fields, now: Int64) -> Selected? {
        // Of another principal's response, and beside one, nothing but the tag counts.
        if let across {
            guard isAnswered(by: update), let tag = Self.onlyTag(of: update) else { return nil }
            let isOwn = candidates.contains { $0.entityTag?.matchesWeakly(tag) ?? false }
            if !isOwn, case .expected(_, let document) = across { return .others(document) }
        }
        let found = Freshening.selected(by: update, among: candidates, now: now)
        guard let first = found.first else { return nil }
        if chosen != nil, found.contains(0) { return .chosen }
        // Only the tag shows that the variant is of this selection, too.
        guard let tag = update[first: "etag"].flatMap({ EntityTag($0) }) else { return nil }
        let variant = variants[chosen == nil ? first : first - 1]
        return variant.needsStrongTag && tag.isWeak ? nil : .variant(variant)
    }
}

/// Updating stored responses by a 304 (RFC 9111 §4.3.3, §4.3.4) or the response to a HEAD (§4.3.5).
extension Fetches {
    /// Determines which stored response a 304 confirms, and updates it.
    ///
    /// If the 304 identifies none, or one that a write or a clean has since removed, the whole is fetched.
    func applyNotModified(to fetch: RunningFetch) {
        guard let head = fetch.head, head.status == 304, !fetch.isInvalidated,
            let selected = fetch.validation.selected(by: head.fields, now: wall)
        else { return fetch.endFreshening(nil) }
        switch selected {
        case .chosen:
            guard let stored = fetch.stored else { return fetch.endFreshening(nil) }
            onceCommitted(stored) { [self] in freshenChosen(stored, by: head, fetch) }
        case .variant(let variant):
            // Its objects may have changed since the request was sent, so it is read from the store.
            let (request, selection) = (fetch.request, variant.selection)
            after({ [cache] in
                _ = await cache.store.flushUnlessBlocked()
                // A variant that cannot be read counts as gone.
                let found = try? await cache.store.documents(at: request.key) { $0 == selection }
                return cache.current(found ?? [], for: request).first?.response
            }) { [self] in
                freshenVariant($0, by: head, fetch)
            }
        case .others(let document):
            if mustCompare(fetch) {
                fetch.released = document
                return fetch.endFreshening(nil)
            }
            // It may be gone by now, and its bytes are not kept in memory meanwhile.
            after({ [cache] in await cache.released(document, by: head.fields) }) { [self] in
                release($0, by: head, fetch)
            }
        }
    }

    /// Runs `work` once a stored response has a document id and tracked objects, normally within milliseconds; or without them,
    /// while another process holds up its commit.
    private func onceCommitted(_ stored: ReadyResponse, _ work: @escaping () -> Void) {
        if stored.stored != nil { work() } else { afterCommits { _ in work() } }
    }

    private func freshenChosen(_ stored: ReadyResponse, by head: UpstreamHead, _ fetch: RunningFetch) {
        // A document that has become dirty is no longer the one that the 304 confirms.
        guard !fetch.isInvalidated else { return fetch.endFreshening(nil) }
        var (response, selection, cookies) = freshen(stored.response, by: head, fetch)
        guard cache.isStillClean(stored) else {
            fetch.restrictStored(by: response.policy)
            return fetch.endFreshening(nil)
        }
        if selection == stored.response.selection, let known = stored.stored,
            let head = FieldsOnDisk.encode(response.fields, for: fetch.request)
        {
            (response.document, response.objects) = known
            let ready = ready(response, fetch)
            replaceStored(stored, by: ready, head: head, fetch)
            return fetch.endFreshening(served(ready, isStored: true, cookies))
        }
        // From now on it varies by other fields, must not be kept, or is in memory only.
        cache.drop(stored)
        // Parts that are no longer kept still serve this one request.
        if stored.isPartial { selection = nil }
        admitFreshened(response, as: selection, cookies, fetch)
    }

    /// Stores the response to a request with other selecting fields for this request, too.
    ///
    /// The other one is left as it is: the upstream has confirmed this request's representation only.
    private func freshenVariant(_ source: CachedResponse?, by head: UpstreamHead, _ fetch: RunningFetch) {
        guard let source, source.form == .asReceived, !fetch.isInvalidated else { return fetch.endFreshening(nil) }
        let (response, selection, cookies) = freshen(source, by: head, fetch)
        admitFreshened(response, as: selection, cookies, fetch)
    }

    /// Takes another principal's bytes, which a 304 has released, as the response to the fetch's request.
    ///
    /// The 304 has said all that a response with these bytes would: what becomes of it is a document and an observation of the
    /// principal's own.
    private func release(_ released: (fields: Fields, body: [UInt8])?, by head: UpstreamHead, _ fetch: RunningFetch) {
        guard let released, !fetch.isInvalidated else { return fetch.endFreshening(nil) }
        let request = fetch.request
        let policy = request.policy(status: 200, fields: released.fields, times: times(of: fetch))
        let isKept = policy.storability == .yes && NotStoredReason.refusal(of: request) == nil
        let isJSON = request.upstream.isJSON(released.fields)
        let fields = request.storable(released.fields, policy, at: wall)
        let response = CachedResponse(
            key: request.key,
            status: 200,
            fields: fields,
            body: released.body,
            policy: policy.stored
        )
        let named = policy.fieldsNotStored + policy.fieldsNotReused
        let withheld = released.fields.lines.filter { line in
            !line.isNamed("set-cookie") && named.contains { FieldSyntax.equalsIgnoringCase(line.name, $0) }
        }
        if let stored = fetch.stored { cache.memory.remove(stored, at: stored.entry.digest) }
        let selection = isKept ? request.selection(policy, isJSON: isJSON) : nil
        admitFreshened(response, as: selection, head.cookies + withheld, fetch)
    }

    /// Stores a body again as if it had just come with the fields of the 304; serves it once if it may not be kept.
    private func admitFreshened(
        _ freshened: CachedResponse,
        as selection: VarySelection?,
        _ cookies: [Field],
        _ fetch: RunningFetch
    ) {
        guard let selection
        else { return fetch.endFreshening(served(ready(freshened, fetch), isStored: false, cookies)) }
        var response = freshened
        (response.selection, response.document, response.objects) = (selection, nil, [])
        let isStored = !fetch.isInvalidated
        let (ready, isWithheld) = admit(response, from: fetch, isAwaited: fetch.isAwaited)
        fetch.endFreshening(served(ready, isStored: isStored, cookies), isWithheld: isWithheld)
    }

    /// The response for the clients; followers that want another variant fetch theirs.
    private func served(_ ready: ReadyResponse, isStored: Bool, _ cookies: [Field]) -> RunningFetch.ServedResponse {
        let use = { (request: ProxyRequest) in CacheUse.revalidated(request.reason.forward, isStored: isStored) }
        return RunningFetch.ServedResponse(ready: ready, use: use, cookies: cookies, isForVariantOnly: true)
    }

    private func replaceStored(_ stored: ReadyResponse, by ready: ReadyResponse, head: [UInt8], _ fetch: RunningFetch) {
        cache.replace(stored, by: ready, head: head, sent: fetch.start, since: fetch.number)
    }

    /// Merges the fields of a 304, or of the response to a HEAD, into a stored response.
    ///
    /// - Returns: the response; the variant that it is from now on, nil if it may not be kept; and the lines for the one client
    ///   whose request was sent.
    private func freshen(_ stored: CachedResponse, by head: UpstreamHead, _ fetch: RunningFetch)
        -> (CachedResponse, VarySelection?, cookies: [Field])
    {
        let (request, upstream) = (fetch.request, fetch.request.upstream)
        let new = Freshening.freshened(
            stored.fields,
            status: stored.status,
            by: head.fields,
            request: request.message,
            times: times(of: fetch),
            settings: upstream.policySettings,
            route: request.overrides,
            replaysCookies: upstream.settings.cookies == .replay
        )
        var (response, policy) = (stored, new.policy)
        (response.fields, response.policy) = (new.fields, policy.stored)
        // A response restricted to requests that agree in their `OtherFields` stays so, whatever freshness the 304 gives.
        if stored.selection.isForSameOtherFields { policy.isForSameOtherFields = true }
        policy.hasFixedCoding = stored.selection.hasFixedCoding
        let isJSON = upstream.isJSON(new.fields)
        let selection = policy.storability == .yes ? request.selection(policy, isJSON: isJSON) : nil
        let withheld = new.withheld.filter { !$0.isNamed("set-cookie") }
        return (response, selection, head.cookies + withheld)
    }

    private func ready(_ response: CachedResponse, _ fetch: RunningFetch) -> ReadyResponse {
        let digest = response.status == 206 ? fetch.request.partsDigest : fetch.request.digest
        return ReadyResponse(response, for: fetch.request, at: digest)
    }

    // MARK: HEAD

    /// Updates the stored response to a GET by the 200 to a HEAD, or drops it if that shows it to be outdated.
    func compare(_ stored: ReadyResponse, with head: UpstreamHead, _ fetch: RunningFetch) {
        let hasWhole = stored.response.form == .asReceived && stored.response.status == 200
        let length = hasWhole ? stored.response.body.count : nil
        switch Freshening.outcome(ofHead: head.fields, stored: stored.response.fields, length: length) {
        case .invalidate: cache.drop(stored)
        case .refresh:
            guard hasWhole else { return }
            onceCommitted(stored) { [self] in updateByHead(stored, head, fetch) }
        }
    }

    private func updateByHead(_ stored: ReadyResponse, _ head: UpstreamHead, _ fetch: RunningFetch) {
        guard cache.isStillClean(stored), !fetch.isInvalidated, let known = stored.stored else { return }
        // Without a validator the HEAD does not confirm the objects in the body, whose times would be renewed.
        guard known.objects.isEmpty || head.fields.contains("etag") || head.fields.contains("last-modified")
        else { return }
        var (response, selection, _) = freshen(stored.response, by: head, fetch)
        guard selection == stored.response.selection,
            let disk = FieldsOnDisk.encode(response.fields, for: fetch.request)
        else { return cache.drop(stored) }
        (response.document, response.objects) = known
        replaceStored(stored, by: ready(response, fetch), head: disk, fetch)
    }
}
