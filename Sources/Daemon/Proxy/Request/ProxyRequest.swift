package import CachePolicy
package import HTTPSemantics
import Settings
package import Store
import Upstream

/// The facts of a `ProxyRequest`; see `IncomingRequest` for those that it has from there.
struct RequestFacts: Sendable {
    var message: Request
    let read: ReadBody?
    let notRead: NotReadReason?
    let upstream: ProxiedUpstream
    let target: String
    let route: String
    let key: CacheKey
    let digest: Digest128
    let partsDigest: Digest128
    /// Digests credentials; its secret is not in the store.
    let credentialHasher: KeyHasher
    var directives: RequestDirectives
    let view: View
    let base: ClientAuthority
    /// The route's caching settings for its response.
    let overrides: CacheOverrides
    /// Digest of its `OtherFields` for the store; nil for none.
    let dividedBy: Int64?
    /// Whether the `Accept` of the request names JSON and nothing else.
    let wantsJSONOnly: Bool
    /// The requested ranges; nil if there are none, or they are ignored (RFC 9110 §14.2).
    let range: RangeField?
    /// Whether its `Range` has a unit that only the upstream understands.
    ///
    /// A stored whole is served nonetheless, which RFC 9110 §14.2 permits.
    let hasForeignRange: Bool
    /// Whether the whole is fetched although the request asks for ranges, which are then cut from it.
    var isForWhole = false
    /// Whether its client gets the response's body, and not what is made from that.
    let isForBody: Bool
    /// Whether it is passed on without a look-up, and its response not stored.
    var isPassed = false
    let note: RequestNote?
    let group: Int64?
    /// Why the upstream is asked; set by the plan.
    var reason = Plan.Reason.forward(.uriMiss)
    /// The key under which machines share its response; nil if they do not.
    var sharedKey: SharedKey?
    /// The age in seconds from which on a response may be older than what its client has seen; nil if it has named no position.
    var ageOfPosition: Int64?

    init(
        _ incoming: IncomingRequest,
        principal: PrincipalID,
        otherFields: Digest128?,
        _ hasher: KeyHasher,
        credentialHasher: KeyHasher
    ) {
        message = incoming.live.map { incoming.message.asking($0) } ?? incoming.message
        // Hop-by-hop fields are not sent upstream, so they must not select a variant.
        message.fields = message.fields.withoutHopByHop()
        message.fields.removeAll { $0.isOne(of: Self.own) }
        if let otherFields { message.fields.append(OtherFields.name, OtherFields.text(otherFields)) }
        dividedBy = otherFields?.division
        isForBody = incoming.live == nil
        (read, notRead) = (incoming.read, incoming.notRead)
        upstream = incoming.upstream
        target = incoming.target
        route = incoming.route
        key = incoming.cacheKey(of: principal)
        digest = hasher.digest(key)
        partsDigest = hasher.digest(key.forParts)
        self.credentialHasher = credentialHasher
        (note, group) = (incoming.note, incoming.group)
        note?.recordKey(digest)
        directives = RequestDirectives(fields: message.fields)
        view = incoming.view
        let query = ProxiedUpstream.query(ofURL: incoming.target)
        overrides = incoming.upstream.overrides(read == nil ? "GET" : "POST", for: incoming.route, query: query)
        base = incoming.base
        let ranges = message.method == "GET" && message.fields.contains(.range) ? message.fields.all("range") : []
        range = ranges.isEmpty ? nil : RangeField(lines: ranges)
        hasForeignRange = !ranges.isEmpty && RangeField.isForeign(lines: ranges)
        let accept = message.fields[.accept]
        wantsJSONOnly = accept?.withUnsafeBytes { ContextFields.isJSONOnlyAccept($0) } ?? false
        if wantsJSONOnly { message.fields.append(JSONOnly.field) }
    }

    /// Fields that Larder itself adds, and that no client may send.
    private static let own: KnownFields = [.larderOtherFields, .larderJsonOnly]
}

/// One request on its way through the proxy: its target, its upstream and its principal.
///
/// It refers to its facts, because it is passed on dozens of times.
package struct ProxyRequest: Sendable {
    private final class Box: Sendable {
        let facts: RequestFacts

        init(_ facts: RequestFacts) { self.facts = facts }
    }

    private let box: Box

    init(_ facts: RequestFacts) { box = Box(facts) }

    package var message: Request { box.facts.message }
    package var read: ReadBody? { box.facts.read }
    var notRead: NotReadReason? { box.facts.notRead }
    package var upstream: ProxiedUpstream { box.facts.upstream }
    package var target: String { box.facts.target }
    package var route: String { box.facts.route }
    package var key: CacheKey { box.facts.key }
    var digest: Digest128 { box.facts.digest }
    var partsDigest: Digest128 { box.facts.partsDigest }
    var credentialHasher: KeyHasher { box.facts.credentialHasher }
    var directives: RequestDirectives { box.facts.directives }
    package var view: View { box.facts.view }
    var base: ClientAuthority { box.facts.base }
    package var overrides: CacheOverrides { box.facts.overrides }
    var dividedBy: Int64? { box.facts.dividedBy }
    var wantsJSONOnly: Bool { box.facts.wantsJSONOnly }
    var range: RangeField? { box.facts.range }
    var hasForeignRange: Bool { box.facts.hasForeignRange }
    var isForWhole: Bool { box.facts.isForWhole }
    private var isForBody: Bool { box.facts.isForBody }
    var isPassed: Bool { box.facts.isPassed }
    var note: RequestNote? { box.facts.note }
    var group: Int64? { box.facts.group }
    var reason: Plan.Reason { box.facts.reason }
    var sharedKey: SharedKey? { box.facts.sharedKey }
    var ageOfPosition: Int64? { box.facts.ageOfPosition }
    /// Whether its client has named a position, so that it must not get a response that was requested before.
    var isAfterPosition: Bool { ageOfPosition != nil }

    /// Whether its client gets transformed JSON: in the mapped view, or with rewritten links.
    var wantsRendering: Bool {
        view == .mapped || upstream.settings.rewriteLinks && view == .wire && message.method == "GET"
    }

    /// Path and query as clients send them, redacted, for logs.
    var shownURL: String { upstream.clientURL(ofURL: key.url) }

    var isHead: Bool { message.method == "HEAD" }

    /// The method as the client sent it, by which routes are found.
    package var sentMethod: String { read == nil ? message.method : "POST" }

    /// Whether its response is the whole document, which other requests may share and which may be stored.
    var isShareable: Bool { isStorable && (range == nil || isForWhole) && !hasForeignRange }

    var isStorable: Bool {
        !isPassed && overrides.cache != .never && message.method == "GET" && !directives.noStore && message.body == nil
    }

    var insistsOnAsking: Bool { directives.noCache || directives.maxAge == 0 }

    /// Whether Larder asks with conditions of its own.
    ///
    /// The client's conditions are evaluated here; those sent upstream validate the stored responses (RFC 9111 §4.3).
    var asksForItself: Bool {
        isShareable || isHead && !isPassed && !directives.noStore && message.body == nil && overrides.cache != .never
    }

    /// The client's conditions; the time is zero, because it does not matter which conditions there are.
    var conditions: Preconditions { Preconditions(fields: message.fields, now: 0) }

    /// Whether it has a condition that only the origin may evaluate (RFC 9111 §4.3.2).
    var isForOrigin: Bool { message.fields.contains(oneOf: Self.forOrigin) && conditions.isForOrigin }

    private static let forOrigin: KnownFields = [.ifMatch, .ifUnmodifiedSince]

    private func with(_ change: (inout RequestFacts) -> Void) -> ProxyRequest {
        var facts = box.facts
        change(&facts)
        return ProxyRequest(facts)
    }

    func asking(because reason: Plan.Reason) -> ProxyRequest {
        reason == self.reason ? self : with { $0.reason = reason }
    }

    /// The same request, whose response machines share.
    func shared(under key: SharedKey) -> ProxyRequest { with { $0.sharedKey = key } }

    /// The same request for a client that has seen what another machine served.
    ///
    /// - Parameter maximumAge: in seconds; of what is older, this machine may not know all that the client has seen.
    func afterPosition(maximumAge: Int64) -> ProxyRequest {
        with { request in
            request.ageOfPosition = maximumAge
            let known = request.directives.maxAge
            request.directives.maxAge = known < 0 ? maximumAge : min(known, maximumAge)
        }
    }

    /// A request for the whole document of which this one wants a part or the head; nil if it must not be stored.
    var ofWhole: ProxyRequest? {
        guard !directives.noStore, !isPassed else { return nil }
        return with { request in
            request.message.method = "GET"
            for name in UpstreamFields.conditional.union(["range"]) { request.message.fields.remove(name) }
        }
    }

    /// The same request, to be passed on without a look-up.
    var passed: ProxyRequest { with { ($0.reason, $0.isPassed) = (.forOrigin, true) } }

    /// The paths that a write to this target makes suspect from the moment it is sent.
    var suspects: [String] { WriteOutcome.noResponse.outdatedPaths(by: self) }

    /// The request as it goes upstream.
    ///
    /// - Parameters:
    ///   - validation: the stored responses to validate; without it a retrieval asks for the whole.
    ///   - known: the stored parts, if only their one gap is requested.
    ///   - resolvesDoubt: whether no cache in between may serve it.
    func upstreamRequest(
        _ validation: Validation = .none,
        completing known: ReadyResponse? = nil,
        resolvesDoubt: Bool = false
    ) -> UpstreamRequest {
        var fields = UpstreamFields.make(
            from: message.fields,
            removingConditions: asksForItself,
            origin: upstream.settings.origin,
            passesView: upstream.passesView
        )
        if !forwardsRange { fields.removeAll { $0.isOne(of: Self.ofRange) } }
        if let credential = upstream.settings.credential, let name = upstream.credentialField {
            fields.remove(name)
            fields.append(credential.header, credential.value.bytes)
        }
        fields.append(contentsOf: validation.fields)
        if resolvesDoubt { fields.append("Cache-Control", "no-cache") }
        if let known { for line in known.fieldsAskingForGap { fields.append(line) } }
        let isRanged = fields.contains(.range)
        // A range counts bytes as they are sent; content-coded bytes would differ from those stored.
        if isRanged { fields.append("Accept-Encoding", "identity") }
        let (method, url) = (sentMethod, upstream.url(of: target))
        // A body can be sent once, and a response to it may be fetched several times.
        let body = read.map { RequestBody($0.bytes) } ?? message.body
        var sent = UpstreamRequest(method: method, url: url, fields: fields, body: body, decodes: !isRanged)
        if isForBody, upstream.keepsFixedCodings {
            sent.clientCodings = message.fields.combinedBytes("accept-encoding") ?? []
        }
        sent.timeouts = upstream.waiting(for: self).timeouts
        sent.client = UpstreamSlots.Client(principal: key.principal.rawValue, host: message.peer)
        return sent
    }

    private static let ofRange: KnownFields = [.range, .ifRange]
}

/// Interpreting the responses to a request.
extension ProxyRequest {
    func policy(status: Int, fields: Fields, times: ExchangeTimes) -> ResponsePolicy {
        ResponsePolicy(
            request: message,
            status: status,
            fields: fields,
            times: times,
            settings: upstream.policySettings,
            route: overrides
        )
    }

    /// The variant of a response to it; nil if no request will ever match.
    func selection(_ policy: ResponsePolicy, isJSON: Bool) -> VarySelection? {
        upstream.selection(policy, isJSON: isJSON, route: overrides, request: message.fields)
    }

    func selects(_ selection: VarySelection, isJSON: Bool) -> Bool {
        selection.matches(message.fields) && (isJSON || selection.isForJSONOnly == wantsJSONOnly)
    }

    /// The fields of a response to store, with its time of arrival, in seconds of the wall clock, as `Date` if there is none.
    func storable(_ fields: Fields, _ policy: ResponsePolicy, at wall: Int64) -> Fields {
        let named = policy.fieldsNotStored + policy.fieldsNotReused
        let replays = upstream.settings.cookies == .replay
        return StoredFields.dated(StoredFields.storable(fields, leavingOut: named, replaysCookies: replays), at: wall)
    }
}

/// Rules for a shared cache (`shared: true`), where `Authorization` is not part of the key.
extension ProxyRequest {
    /// Whether it may wait for the response to another request of the same key.
    ///
    /// Until a response has come it is unknown whether it is for everyone, so different credentials do not share a fetch (RFC
    /// 9111 §3.5).
    func mayShare(with other: ProxyRequest) -> Bool {
        !upstream.settings.shared || message.fields.all("authorization") == other.message.fields.all("authorization")
    }

    /// Whether the objects in a response to this request may be shown to everyone of its principal.
    ///
    /// In the private reading it may. In the shared one only what a shared cache might store.
    func mayShareObjects(_ fields: Fields) -> Bool {
        let settings = upstream.policySettings
        guard settings.isShared else { return true }
        let targeted = TargetedDirectives.find(in: fields, targets: settings.targets)
        let directives = targeted?.directives ?? ResponseDirectives(fields)
        if directives.isPrivate || directives.noStore { return false }
        let isAuthorized = message.fields.contains("authorization") || settings.addsCredential
        return !isAuthorized || directives.permitsAuthorization
    }

    /// Prepares a relayed response's fields for the client: rewrites links, and adds and notes `Cache-Status`.
    func prepareForClient(_ fields: inout Fields, of code: Int, with status: CacheStatus) {
        upstream.rewriteLinks(in: &fields, for: base)
        if fields.contains(.altSvc) { fields.remove(.altSvc) }
        Via.append(to: &fields)
        if !fields.contains(.age) { fields.append("Age", "0") }
        fields.vary(by: upstream.variesBy(sentMethod, url: target, status: code, fields: fields))
        status.append(to: &fields)
        note?.served(as: status)
        upstream.addCORS(to: &fields, for: message.fields)
    }

    func interim(_ fields: Fields) -> Fields {
        var fields = fields
        upstream.rewriteLinks(in: &fields, for: base)
        fields.remove(.altSvc)
        return fields
    }

    /// `Cache-Status` of a response that comes from the upstream, as far as the request decides it.
    func statusWhenForwarded(isStored: Bool = false, isCollapsed: Bool = false) -> CacheStatus {
        var status = CacheStatus.forwarded(reason.forward, isStored: isStored, isCollapsed: isCollapsed)
        status.add(cause: overrides.cache == .never ? "never-by-route" : reason.detail?.word)
        return status
    }

    var statusOfWrite: CacheStatus {
        var status = CacheStatus.forwarded(reason.forward)
        status.add(cause: notRead?.rawValue)
        return status
    }

    func statusOfFailure(_ error: UpstreamError) -> CacheStatus {
        var status = CacheStatus.forwarded(reason.forward)
        status.add(cause: error.label)
        return status
    }

    /// Whether the client already has the representation that the upstream sends.
    func hasCurrent(status: Int, fields: Fields, now: Int64) -> Bool {
        let conditions = Preconditions(fields: message.fields, now: now)
        guard !conditions.isEmpty else { return false }
        let sent = Validators(status: status, fields: fields, now: now)
        return conditions.isNotModified(method: message.method, against: sent)
    }
}

/// Requests for parts of responses.
extension ProxyRequest {
    /// Whether it goes upstream with its own `Range`, so that a part may be stored.
    var isForParts: Bool { isStorable && range != nil && !isForWhole }

    /// Whether the client's `Range` goes upstream: not with a HEAD, nor if it is malformed or an attack.
    var forwardsRange: Bool {
        switch message.method {
        case "GET": range != nil && !isForWhole || hasForeignRange
        case "HEAD": false
        default: true
        }
    }

    /// Whether the client sent conditions besides `If-Range`.
    var hasConditions: Bool { !conditions.isEmpty }

    var forWhole: ProxyRequest { with { $0.isForWhole = true } }

    var partsKey: CacheKey { key.forParts }

    /// The key of the requested part, for requests that may share a fetch; nil if the response depends on the client's own copy,
    /// or is no part.
    var partKey: CacheKey? {
        guard isForParts, !hasConditions, !message.fields.contains("if-range") else { return nil }
        var key = partsKey
        for line in message.fields.all("range") { key.context += "\n" + String(decoding: line, as: UTF8.self) }
        return key
    }

    /// Whether it may be served stored parts.
    ///
    /// If a model maps the response, a part could show an object's former values and cannot be recomposed. Then parts only save
    /// bytes when the whole is fetched.
    func mayBeServed(parts: ReadyResponse) -> Bool {
        !parts.isJSON || upstream.bodyMatch(self, status: 200, fields: parts.response.fields) == nil
    }
}

extension CacheKey {
    /// The key for stored parts of a response, distinct from the whole's, so that no look-up for a whole finds them.
    ///
    /// Upstream, principal and URL are the response's own, so invalidations and cleans cover both. No request has such a
    /// context: each line of one contains a `=`.
    fileprivate var forParts: CacheKey {
        var key = self
        key.context += key.context.isEmpty ? "parts" : "\nparts"
        return key
    }
}

extension ReadyResponse {
    /// The request fields for the one gap between stored parts, conditional on the representation being the same.
    var fieldsAskingForGap: [Field] {
        guard let gap = parts?.gap, let tag = validators.entityTag else { return [] }
        return [Field("Range", "bytes=\(gap.lowerBound)-\(gap.upperBound - 1)"), Field("If-Range", tag.bytes)]
    }

    /// Whether fetching one gap would complete these parts: they have a strong tag, and one range is missing.
    ///
    /// - Parameter limit: of the whole's length; a larger whole would not be stored.
    func isCompletable(limit: Int) -> Bool {
        guard let tag = validators.entityTag, !tag.isWeak, !tag.isOwn, let parts, let length = parts.length
        else { return false }
        return parts.gap != nil && length <= limit
    }
}
