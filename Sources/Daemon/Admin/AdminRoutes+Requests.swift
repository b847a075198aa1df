import HTTPSemantics
import HTTPServer
import Proxy

/// What the daemon does: the last requests, and how the upstreams do.
extension AdminRoute {
    static let activity: [AdminRoute] = [
        AdminRoute(
            method: "GET",
            path: "/requests",
            sentence:
                "The last requests on the data side, \(RequestLog.capacity) at most; with Accept: text/event-stream, or `follow`, as server-sent events from now on. Hits from memory are noted only while somebody watches: while the access log is on, a stream is open, or within a minute after this was asked.",
            query: [
                Parameter(
                    name: "limit",
                    kind: .integer,
                    sentence: "How many, the last ones, 1 to \(RequestLog.capacity); 100 by default."
                ),
                Parameter(name: "after", kind: .integer, sentence: "Only those after this `id`; the `next` of a page."),
                Parameter(name: "follow", kind: .boolean, sentence: "`true`: as events."),
            ],
            schema: RequestsResponse.self,
            respond: { request, context throws(ProblemDocument) in
                let wanted = try RequestsQuestion(request)
                guard wanted.follows else {
                    let page = context.requests.requests(after: wanted.after ?? 0, limit: wanted.limit)
                    return .json(RequestsResponse(requests: page.requests.map { .init($0) }, next: page.last))
                }
                guard let streams = context.requestStreams else {
                    throw ProblemDocument(503, "no stream can be opened here")
                }
                var response = AdminResponse(fields: Fields([Field("Content-Type", EventStreamText.mediaType)]))
                response.stream = { reply, fields in streams.open(after: wanted.after, reply, fields: fields) }
                return response
            }
        ),
        AdminRoute(
            method: "GET",
            path: "/upstreams",
            sentence:
                "How each upstream does: whether it is reachable, its last error, what is left of its rate limit.",
            schema: UpstreamsResponse.self,
            respond: { _, context in .json(UpstreamsResponse(upstreams: context.upstreamStates)) }
        ),
    ]
}

/// A request to `/requests`.
private struct RequestsQuestion {
    var limit = 100
    var after: Int64?
    var follows = false

    init(_ request: AdminRequest) throws(ProblemDocument) {
        if let text = request.values("after").first {
            guard let number = Int64(text), number >= 0 else {
                throw .badRequest("after must be the `next` of a page, or 0; it was \"\(text)\"")
            }
            after = number
        }
        follows = try request.flag("follow")
        if request.fields.combined("accept")?.lowercased().contains(EventStreamText.mediaType) == true {
            follows = true
        }
        // A browser that reconnects requests the same URL, with the last number it saw in the field.
        if follows, let last = request.fields.combined("last-event-id").flatMap({ Int64($0) }) { after = last }
        guard let text = request.values("limit").first else { return }
        guard !follows else { throw .badRequest("limit goes with a page; events have no end") }
        guard let number = Int(text), (1...RequestLog.capacity).contains(number) else {
            throw .badRequest("limit must be a number from 1 to \(RequestLog.capacity)")
        }
        limit = number
    }
}
