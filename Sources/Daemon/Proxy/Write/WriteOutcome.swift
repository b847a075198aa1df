import CachePolicy
import HTTPSemantics
import HTTPServer
import Mapping
import Settings
import Store
import Upstream

/// How an unsafe request ended: what the upstream responded, or why there is no response.
struct WriteOutcome: Sendable {
    var head: UpstreamHead?
    /// The whole body, if it came whole and is not too large to be kept.
    var body: [UInt8]?
    var error: UpstreamError?

    /// The assumed outcome of a write from the moment it is sent.
    static let noResponse = WriteOutcome(head: nil, body: nil, error: .cancelled)

    /// Whether the upstream may have changed something.
    ///
    /// An error status (4xx, 5xx) is taken to mean no change. A missing response counts as an unknown change.
    var mayHaveChanged: Bool {
        if let error, head == nil { return error.requestMayHaveBeenProcessed }
        guard let head else { return false }
        return (200..<400).contains(head.status)
    }

    /// The effect on its target object, as far as the response does not show that; nil if there is none.
    func effect(of request: ProxyRequest) -> CompletedWrite.Effect? {
        if let head, error == nil, request.message.method == "DELETE",
            request.upstream.routeDeletes(request, status: head.status)
        {
            // The end of an action, as in `DELETE /gists/5/star`, deletes no object.
            if (200..<300).contains(head.status) {
                return request.upstream.actionPath(request) == nil ? .deleted : .changed
            }
            if head.status == 404 || head.status == 410 { return .absent }
        }
        return mayHaveChanged ? .changed : nil
    }

    /// The upstream's paths whose responses are outdated, with any query.
    ///
    /// They are the target, the URLs in `Location` and `Content-Location` (RFC 9111 §4.4), and, unless the response itself shows
    /// the object's new state, the collection that contains the target. An action makes outdated what a write to its object does.
    func outdatedPaths(by request: ProxyRequest) -> [String] {
        var targets = [request.target]
        if let head, error == nil, effect(of: request) != .absent {
            targets = InvalidationTargets.find(
                method: request.message.method,
                url: request.upstream.url(of: request.target),
                status: head.status,
                fields: head.fields,
                linkRewriter: request.upstream.linkRewriter(for: request.base)
            ).map { String(decoding: $0, as: UTF8.self) }
        }
        let showsState = ["PATCH", "PUT"].contains(request.message.method) && head?.status != 201
        if !showsState || observed(by: request) == nil {
            targets += collections(of: request)
            let base = request.upstream.settings.url.basePath
            if let path = request.upstream.actionPath(request), let parent = Self.parent(of: path, base: base) {
                targets.append(parent)
            }
        }
        return targets.map(request.upstream.keyPath).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    func collections(of request: ProxyRequest) -> [String] {
        Self.parent(of: request.target, base: request.upstream.settings.url.basePath)
            .map { [request.upstream.keyPath(of: $0)] } ?? []
    }

    /// The parent path, which lists what is below it; nil at the base path.
    static func parent(of target: String, base: String) -> String? {
        var path = target.beforeQuery
        while path.last == "/" { path = path.dropLast() }
        guard let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return nil }
        let parent = String(path[..<slash])
        return parent.count > base.count ? parent : nil
    }

    func observed(by request: ProxyRequest) -> (rule: BodyRule, body: [UInt8], mappingContext: MappingContext)? {
        guard let head, let body, !body.isEmpty, (200..<300).contains(head.status), head.status != 202,
            request.upstream.isJSON(head.fields), request.mayShareObjects(head.fields),
            !isForSameOtherFields(head, request)
        else { return nil }
        let credentials = request.credentials
        guard !credentials.areRepeated(inBody: body, head.fields), !request.hasSecretKey(credentials)
        else { return nil }
        return match(for: request, head, body).map { match in
            (match.rule, body, match.context(url: request.key.url, fields: head.fields))
        }
    }

    private func match(for request: ProxyRequest, _ head: UpstreamHead, _ body: [UInt8]) -> CompiledUpstream.BodyMatch?
    {
        var match = request.upstream.bodyMatch(request, status: head.status, fields: head.fields)
        match?.rule.expectWritten(body)
        return match
    }

    /// Whether the response is restricted to requests that agree with this one in `OtherFields`; then no other response may show
    /// its objects.
    private func isForSameOtherFields(_ head: UpstreamHead, _ request: ProxyRequest) -> Bool {
        let times = ExchangeTimes(request: 0, response: 0)
        return request.message.fields.contains(OtherFields.name)
            && request.policy(status: head.status, fields: head.fields, times: times).isForSameOtherFields
    }

    /// The mapped view of the response; nil if no route maps it.
    func mapped(_ body: [UInt8], for request: ProxyRequest) -> MappedBody? {
        guard let head, let match = match(for: request, head, body) else { return nil }
        let context = match.context(url: request.key.url, fields: head.fields)
        let mapped = request.upstream.mapper.map(body, as: match.rule, in: context)
        return mapped.isMapped ? mapped : nil
    }

    /// A write that may have changed something, for the store to complete.
    ///
    /// - Parameter start: when it was sent, on the store's clock.
    func completed(
        as effect: CompletedWrite.Effect,
        of request: ProxyRequest,
        suspect: SuspectID,
        start: Int64,
        end: Int64
    ) -> CompletedWrite {
        let (upstream, key) = (request.upstream, request.key)
        let action = effect == .changed ? upstream.actionPath(request) : nil
        let bound = upstream.bound(request) ?? action.flatMap(upstream.object)
        var write = CompletedWrite(
            upstream: upstream.storeKey,
            principal: key.principal,
            context: key.context,
            path: upstream.keyPath(of: request.target),
            time: end,
            effect: effect,
            bound: bound
        )
        write.actionPath = action.map(upstream.keyPath)
        if effect != .absent, bound == nil { write.supposed = upstream.supposed(request) }
        write.suspect = suspect
        write.method = request.message.method
        write.isCreation = request.message.method == "POST"
        if effect != .absent {
            let further = upstream.routeInvalidations(by: request, status: error == nil ? head?.status : nil)
            // The models determine how a deletion shows in lists.
            write.collections = effect == .deleted ? collections(of: request) : []
            write.paths = Set(outdatedPaths(by: request)).subtracting(write.collections).union(further.paths)
            write.patterns = further.patterns
        } else {
            // The document stored at its URL counts as deleted, whether or not it shows an object.
            write.paths = [upstream.keyPath(of: request.target)]
        }
        write.observation = observed(by: request).map { rule, body, mappingContext in
            ReceivedObservation(body: body, start: start, rule: rule, url: key.url, mappingContext: mappingContext)
        }
        return write
    }

    /// The response to a POST if it is the new representation of its target (RFC 9110 §9.3.3).
    ///
    /// Such a response has explicit freshness and a `Content-Location` that equals the target URI, and serves later requests for
    /// it.
    func representation(ofTargetOf request: ProxyRequest, _ times: ExchangeTimes) -> CachedResponse? {
        // Responses of other statuses describe the action; a later GET would not get them.
        guard request.message.method == "POST", error == nil, let head, head.status == 200,
            let body, !head.isEventStream, !head.isGarbled, Self.isOfTarget(head.fields, request)
        else { return nil }
        let policy = request.policy(status: head.status, fields: head.fields, times: times)
        guard policy.storability == .yes else { return nil }
        var response = CachedResponse(head, to: request, policy, at: times.wall)
        response?.body = body
        return response
    }

    private static func isOfTarget(_ fields: Fields, _ request: ProxyRequest) -> Bool {
        let lines = fields.all("content-location")
        guard lines.count == 1 else { return false }
        let target = URIReference(request.upstream.url(of: request.target))
        let linkRewriter = request.upstream.linkRewriter(for: request.base)
        return InvalidationTargets.target(of: lines[0], at: target, linkRewriter: linkRewriter) == target.target
    }
}
