package import CachePolicy
import HTTPSemantics
package import HTTPServer
import Settings
package import Store
package import Upstream

/// One request on its way through the proxy: what it asks for, of whom, and on whose behalf.
package struct Demand: Sendable {
    package private(set) var request: Request
    package let upstream: ProxiedUpstream
    /// Path and query as they go upstream, spelled as the client did.
    package let target: String
    /// The path that routes are matched against: without prefix, base path and query.
    package let route: String
    package let key: DocumentKey
    package let digest: Digest128
    package let directives: RequestDirectives
    package let view: View
    /// The address that the client used, which links lead back to.
    package let base: ClientAuthority
    /// What the configuration says about the caching of its response.
    package let overrides: CacheOverrides
    /// Whether the `Accept` of the request names JSON and nothing else.
    let wantsJSONOnly: Bool
    /// The ranges that it asks for; nil where there are none to heed (RFC 9110 §14.2).
    let range: RangeField?
    /// Whether its `Range` is of a unit that only the upstream understands.
    ///
    /// A whole that is stored is given nonetheless, as everyone may (RFC 9110 §14.2).
    let hasForeignRange: Bool
    /// Whether the whole is fetched for it, although it asks for ranges: they are cut from what is stored then.
    var isForWhole = false
    /// Whether it is passed on without a look-up, and its response forgotten.
    private(set) var isPassed = false
    /// Why the upstream is asked, as `Cache-Status` says it; settled by the decision.
    package private(set) var reason = CacheStatus.Forward.uriMiss

    /// - Parameter otherFields: the digest of the arrival's, see `OtherFields`; nil for none.
    package init(
        _ request: Request,
        _ arrival: Arrival,
        principal: PrincipalID,
        otherFields: Digest128?,
        hasher: KeyHasher
    ) {
        self.request = request
        // Hop-by-hop fields are not sent upstream, so they must not select a variant.
        self.request.fields = request.fields.withoutHopByHop()
        self.request.fields.remove(named: OtherFields.name)
        if let otherFields {
            self.request.fields.lines.append(
                Field(name: Array(OtherFields.name.utf8), value: OtherFields.text(otherFields))
            )
        }
        upstream = arrival.upstream
        target = arrival.target
        route = arrival.route
        key = DocumentKey(
            upstream: arrival.upstream.storeKey,
            principal: principal,
            context: arrival.context,
            url: arrival.keyURL
        )
        digest = hasher.digest(key)
        directives = RequestDirectives(fields: request.fields)
        view = arrival.view
        overrides = arrival.upstream.overrides(for: arrival.route, query: ProxiedUpstream.query(ofURL: arrival.target))
        base = arrival.base
        let ranges = request.method == "GET" ? request.fields.all("range") : []
        range = RangeField(lines: ranges)
        hasForeignRange = RangeField.isForeign(lines: ranges)
        wantsJSONOnly =
            request.fields[first: "accept"].map { accept in
                accept.withUnsafeBytes { ContextFields.isJSONOnlyAccept($0) }
            } ?? false
    }

    var isHead: Bool { request.method == "HEAD" }

    /// Whether its response is the whole document, which others may wait for and which may be stored.
    var isShareable: Bool {
        isStorable && (range == nil || isForWhole) && !hasForeignRange
    }

    /// Whether its response may be stored at all.
    var isStorable: Bool {
        !isPassed && overrides.cache != .never && request.method == "GET" && !directives.noStore && request.body == nil
    }

    /// Whether the client wants the upstream asked on its behalf, whatever is known.
    var insistsOnAsking: Bool { directives.noCache || directives.maxAge == 0 }

    /// Whether Larder asks in its own words: without the client's conditions, which it evaluates itself, and with those of
    /// what it has stored (RFC 9111 §4.3).
    package var asksForItself: Bool {
        isShareable
            || isHead && !isPassed && !directives.noStore && request.body == nil && overrides.cache != .never
    }

    /// The client's conditions; with no idea of the time, for which ones there are.
    var conditions: Preconditions { Preconditions(fields: request.fields, now: 0) }

    /// Whether it carries a condition that only the origin may evaluate (RFC 9111 §4.3.2).
    package var isForOrigin: Bool {
        (request.fields.contains("if-match") || request.fields.contains("if-unmodified-since"))
            && conditions.isForOrigin
    }

    package func asking(because reason: CacheStatus.Forward) -> Demand {
        var demand = self
        demand.reason = reason
        return demand
    }

    /// A request for the whole of the document that this one asks for a part of, or only the head; nil where nothing may be kept.
    var ofWhole: Demand? {
        guard !directives.noStore, !isPassed else { return nil }
        var demand = self
        demand.request.method = "GET"
        for name in UpstreamFields.conditional.union(["range"]) { demand.request.fields.remove(named: name) }
        return demand
    }

    /// The same request, to be passed on without a look-up.
    package var passed: Demand {
        var demand = asking(because: .bypass)
        demand.isPassed = true
        return demand
    }
}

extension Demand {
    /// What a write to this target puts in doubt from the moment that it is sent.
    package var suspects: [String] { WriteOutcome.unanswered.invalidated(by: self) }

    /// The request as it goes upstream.
    ///
    /// - Parameters:
    ///   - validation: what is asked about stored responses; without it a retrieval asks for the whole.
    ///   - known: the parts that are stored of the response, where only their one gap is asked for.
    ///   - settlesDoubt: whether no cache in between may answer.
    package func upstreamRequest(
        _ validation: Validation = .none,
        completing known: ReadyResponse? = nil,
        settlesDoubt: Bool = false
    ) -> UpstreamRequest {
        var fields = UpstreamFields.make(
            from: request.fields,
            removingConditions: asksForItself,
            origin: upstream.settings.origin,
            passesView: upstream.passesView
        )
        if !forwardsRange {
            fields.remove("range")
            fields.remove("if-range")
        }
        if let credential = upstream.settings.credential {
            fields.remove(named: credential.header.lowercased())
            fields.lines.append(Field(name: Array(credential.header.utf8), value: credential.value.bytes))
        }
        fields.lines += validation.fields.lines
        if settlesDoubt { fields.append("Cache-Control", "no-cache") }
        if let known { fields.lines += known.fieldsAskingForGap }
        let isRanged = fields.contains("range")
        // A range is one of the bytes as they are sent: in a coding they would be others than those that are stored.
        if isRanged { fields.append("Accept-Encoding", "identity") }
        var asked = UpstreamRequest(
            method: request.method,
            url: upstream.url(of: target),
            fields: fields,
            body: request.body,
            decodes: !isRanged
        )
        asked.client = UpstreamSlots.Client(principal: key.principal, host: request.peer)
        return asked
    }
}
