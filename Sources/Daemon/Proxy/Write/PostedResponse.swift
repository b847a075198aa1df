import CachePolicy
import HTTPSemantics
import HTTPServer
import Settings
import Upstream

/// The response to a POST that is the new representation of its target (RFC 9110 §9.3.3): with explicit freshness and a
/// `Content-Location` that equals the target URI, it answers later requests for it.
struct PostedResponse {
    let response: CachedResponse

    /// - Parameters:
    ///   - requestTime: when the request was sent, and `responseTime` when its response had come, in seconds of the store's
    ///     clock.
    ///   - wall: the latter in seconds of the wall clock.
    init?(_ outcome: WriteOutcome, of request: ProxyRequest, requestTime: Int64, responseTime: Int64, wall: Int64) {
        // Other statuses describe the action; a later GET would not get them.
        guard request.message.method == "POST", outcome.error == nil, let head = outcome.head, head.status == 200,
            let body = outcome.body, !head.isEventStream, !head.isGarbled, Self.isOfTarget(head.fields, request)
        else { return nil }
        let route = request.overrides
        let policy = request.policy(
            status: head.status,
            fields: head.fields,
            requestTime: requestTime,
            responseTime: responseTime,
            wall: wall
        )
        guard policy.storability == .yes,
            let selection = request.upstream.selection(policy, route: route, request: request.message.fields)
        else { return nil }
        let fields = StoredFields.storable(
            head.fields,
            leavingOut: policy.fieldsNotStored + policy.fieldsNotReused,
            replaysCookies: request.upstream.settings.cookies == .replay
        )
        response = CachedResponse(
            key: request.key,
            document: nil,
            status: head.status,
            fields: StoredFields.dated(fields, at: wall),
            body: body,
            policy: policy.stored,
            selection: selection,
            form: .received,
            objects: []
        )
    }

    private static func isOfTarget(_ fields: Fields, _ request: ProxyRequest) -> Bool {
        let lines = fields.all("content-location")
        guard lines.count == 1 else { return false }
        let target = URIReference(request.upstream.url(of: request.target))
        let links = request.upstream.links(for: request.base)
        return InvalidationTargets.target(of: lines[0], at: target, links: links) == target.target
    }
}
