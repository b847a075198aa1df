import CachePolicy
import HTTPSemantics
import HTTPServer
package import Proxy
import Settings
import Store

/// The daemon's activity: the latest requests, and the health of the upstreams.
extension AdminRoute {
    static let activity: [AdminRoute] = documented([
        "The last requests on the data side, \(RequestLog.capacity) at most; with Accept: text/event-stream, or `follow`, as server-sent events from now on. Hits from memory are logged only while somebody watches: while the access log is on, a stream is open, or within a minute after this was asked.":
            AdminRoute(
                "GET /requests",
                query: Parameter.documented([
                    "How many, the last ones, 1 to \(RequestLog.capacity); 100 by default.":
                        Parameter("limit", .integer),
                    "Only those after this `id`; the `next` of a page.": Parameter("after", .integer),
                    "`true`: as events.": Parameter("follow", .boolean),
                ]),
                schema: RequestsResponse.self
            ) { request, daemon in
                var after: Int64?
                if let text = request.values("after").first {
                    guard let number = Int64(text), number >= 0 else {
                        throw ProblemDocument.badRequest("after must be the `next` of a page, or 0; it was \"\(text)\"")
                    }
                    after = number
                }
                let limit = request.values("limit").first
                guard try request.flag("follow") || request.acceptsEvents else {
                    guard let count = Int(limit ?? "100"), (1...RequestLog.capacity).contains(count) else {
                        throw ProblemDocument.badRequest("limit must be a number from 1 to \(RequestLog.capacity)")
                    }
                    let page = daemon.requests.requests(after: after ?? 0, limit: count)
                    return .json(RequestsResponse(requests: page.requests.map { .init($0) }, next: page.last))
                }
                guard limit == nil else { throw ProblemDocument.badRequest("limit is for pages; events have no end") }
                // A browser that reconnects requests the same URL, with the last number it saw in the field.
                let start = request.fields.combined("last-event-id").flatMap { Int64($0) } ?? after
                return .events { reply, fields in daemon.requestStreams.open(after: start, reply, fields: fields) }
            },
        "Who asks how much: the requests of the last minute, hour or day, by client program, principal, upstream, route and URL. Unwatched hits from memory are counted by samples of one in \(RequestLog.sampleSize).":
            .json("GET /top", query: TopResponse.parameters) { request, daemon in
                try TopResponse(request, daemon.requests.top)
            },
        "One of the last requests, and the stored response that it got.":
            .json("GET /requests/{id}") { request, daemon in try await PastRequest(to: request, daemon) },
        "The requests of the last day by how they were served, and their response times, in intervals of ten minutes; of all upstreams and routes, or of one.":
            .json("GET /history", query: HistoryResponse.parameters, respond: HistoryResponse.init(to:_:)),
        "What is left of the upstreams' rate limits, and who spent how much of them in which minute of the last hour.":
            .json("GET /budget", query: BudgetResponse.parameters) { request, daemon in
                try BudgetResponse(request, await daemon.proxy.budgets())
            },
        "How each upstream does: whether it is reachable, its last error, what is left of its rate limit.":
            .json("GET /upstreams") { _, daemon in UpstreamsResponse(upstreams: daemon.upstreamStates) },
    ])
}

/// `GET /requests`.
package struct RequestsResponse: AdminBody {
    static let sentences = ["requests": "The oldest first.", "next": "What to give as `after` for those that follow."]
    package var requests: [Request]
    package var next: Int64

    /// One request and how it was served; also the data of an event, and a line of the access log.
    package struct Request: AdminBody, Equatable {
        static let sentences = [
            "id": "Counts up from 1 since the daemon started.", "time": "When its head had been read (RFC 3339).",
            "client": "The address, `uid:` and the user at a Unix socket, or `-`.",
            "url": "Path and query as clients send them, credentials redacted.",
            "upstream": "The upstream's name; absent where none has the address.",
            "route": "The path of its route; absent without one.",
            "principal": "The label of whose credentials it has, as `larder objects` shows it.",
            "program": "The client's program: the first product in its `User-Agent`.",
            "status": "The status code; 499: the client left before the response began.",
            "outcome":
                "`hit`, `stale`, `composed`, `miss`, `revalidated`, `offline`, `stale-if-error`, `error` or `bypass`, as in the metrics.",
            "cacheStatus": "Larder's member of `Cache-Status`.", "detail": "What that says in `detail`.",
            "reason": "Why the upstream was asked although a response was stored that was not merely stale.",
            "remedy": "The line of config with which it would have been a hit: the response says nothing of caching.",
            "bytes": "Bytes of the response's body.",
            "seconds": "From the request's head to the response's last byte, as Larder hands it to the socket.",
            "upstreamSeconds": "How long the upstream took; absent if it was not asked.",
            "key": "The digest of the cache key: equal for requests that share stored responses.",
        ]
        package var id: Int64
        package var time: String
        package var client: String
        package var method: String
        package var url: String
        package var upstream: String?
        package var route: String?
        package var principal: String?
        package var program: String?
        package var status: Int
        package var outcome: String
        package var cacheStatus: String?
        package var detail: String?
        package var reason: String?
        package var remedy: String?
        package var bytes: Int
        package var seconds: Double
        package var upstreamSeconds: Double?
        package var key: String?

        package init(_ served: ServedRequest) {
            (id, time, client) = (served.id, StoreTime.text(served.time), served.client.text)
            (method, url, upstream) = (served.method, served.url.printable, served.upstream)
            (route, principal, program) = (served.route, served.principal, served.program)
            (status, outcome, bytes) = (served.status, served.outcome.rawValue, served.bytes)
            (cacheStatus, detail, key) = (served.cacheStatus?.text, served.detail, served.keyText)
            (reason, remedy) = (served.reason?.printable, served.remedy)
            (seconds, upstreamSeconds) = (Self.rounded(served.seconds), served.upstreamSeconds.map(Self.rounded))
        }

        private static func rounded(_ seconds: Double) -> Double { (seconds * 1_000_000).rounded() / 1_000_000 }

        package static let eventName = "request"

        var event: [UInt8] { EventStreamText.event(Self.eventName, id: id, data: AdminJSON.encode(self)) }
    }
}

/// In a stream of requests: some came faster than they could be sent.
package struct RequestsMissed: AdminBody {
    static let sentences = ["missed": "How many are not sent."]
    package static let eventName = "missed"
    package var missed: Int64

    init(missed: Int64) { self.missed = missed }
}
