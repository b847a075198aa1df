import CachePolicy
import HTTPSemantics
import HTTPServer
import Settings
import Upstream

/// The response to a POST that is the new representation of its target (RFC 9110 §9.3.3): with explicit freshness and a
/// `Content-Location` that equals the target URI, it answers later requests for it.
struct PostedResponse {
    let answer: CachedResponse

    /// - Parameters:
    ///   - requestTime: when the request was sent, and `responseTime` when its response had come, in seconds of the store's
    ///     clock.
    ///   - wall: the latter in seconds of the wall clock.
    init?(_ outcome: WriteOutcome, of demand: Demand, requestTime: Int64, responseTime: Int64, wall: Int64) {
        // Other statuses describe the action; a later GET would not get them.
        guard demand.request.method == "POST", outcome.error == nil, let head = outcome.head, head.status == 200,
            let body = outcome.body, !head.isEventStream, !head.isGarbled, Self.isOfTarget(head.fields, demand)
        else { return nil }
        let route = demand.overrides
        let policy = demand.policy(
            status: head.status,
            fields: head.fields,
            requestTime: requestTime,
            responseTime: responseTime,
            wall: wall
        )
        guard policy.storability == .yes,
            let selection = demand.upstream.selection(policy, route: route, request: demand.request.fields)
        else { return nil }
        let fields = StoredFields.storable(
            head.fields,
            leavingOut: policy.fieldsNotStored + policy.fieldsNotReused,
            replaysCookies: demand.upstream.settings.cookies == .replay
        )
        answer = CachedResponse(
            key: demand.key,
            document: nil,
            status: head.status,
            fields: StoredFields.dated(fields, at: wall),
            body: body,
            policy: policy.answer,
            selection: selection,
            form: .received,
            objects: []
        )
    }

    private static func isOfTarget(_ fields: Fields, _ demand: Demand) -> Bool {
        let lines = fields.all("content-location")
        guard lines.count == 1 else { return false }
        let target = URIReference(demand.upstream.url(of: demand.target))
        let links = demand.upstream.links(for: demand.base)
        return InvalidationTargets.target(of: lines[0], at: target, links: links) == target.target
    }
}
