import CachePolicy
import HTTPSemantics
import HTTPServer
package import Proxy
import Settings
import Store

/// The daemon itself: whether it serves, its metrics, its mode.
extension AdminRoute {
    static let monitoring: [AdminRoute] = documented([
        "Whether the process is alive.":
            .json("GET /healthz", access: .open) { _, _ in StatusResponse(status: "alive") },
        "Whether Larder serves requests: 503 with the reason while it starts or stops.":
            .json("GET /readyz", access: .open) { _, daemon in
                guard let reason = daemon.state.unreadiness else { return StatusResponse(status: "ready") }
                throw ProblemDocument(503, reason, fields: Fields([Field("Retry-After", "1")]))
            },
        "The daemon's metrics, for Prometheus.":
            AdminRoute("GET /metrics", access: .open, mediaType: "text/plain") { _, daemon in
                let reading = try await Metric.Reading(daemon)
                return .text(Array(PrometheusText.write(Metric.all, reading).utf8), type: PrometheusText.mediaType)
            },
        "This description of the admin side.": AdminRoute("GET /openapi.json") { _, daemon in
            let document = OpenAPIDocument.describe(AdminRoute.all, version: daemon.version)
            return .text(document.bytes + [0x0A], type: "application/json")
        },
    ])

    static let mode: [AdminRoute] = documented([
        "The mode the daemon is in.":
            .json("GET /mode") { _, daemon in ModeResponse(mode: daemon.modes.current.rawValue) },
        "Changes the mode until it is changed again, or until the config says another one than now. It survives a restart.":
            .json("PUT /mode", query: modeParameter, body: modeParameter) { request, daemon in
                let (first, second) = (request.value("mode"), try request.texts(["mode"], advice: "mode")["mode"])
                guard first == nil || second == nil else { throw ProblemDocument.badRequest("mode is given twice") }
                guard let mode = (first ?? second).flatMap(Mode.init(rawValue:)) else {
                    throw ProblemDocument.badRequest(
                        "mode must be one of \(Mode.allCases.map(\.rawValue).joined(separator: ", "))"
                    )
                }
                try daemon.setMode(mode)
                return ModeResponse(mode: mode.rawValue)
            },
    ])

    private static let modeParameter = Parameter.documented([
        "\(Mode.allCases.map(\.rawValue).joined(separator: " or ")).": .init("mode")
    ])
}

/// `GET /healthz` and `GET /readyz`.
package struct StatusResponse: AdminBody {
    package var status: String
}

/// `GET /mode` and `PUT /mode`.
package struct ModeResponse: AdminBody {
    static let sentences = ["mode": "`auto`, `online` or `offline`."]
    package var mode: String

    package init(mode: String) { self.mode = mode }
}

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
                guard limit == nil else {
                    throw ProblemDocument.badRequest("limit goes with a page; events have no end")
                }
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
            .json("GET /history", query: HistoryResponse.parameters) { request, daemon in
                try await HistoryResponse(to: request, daemon)
            },
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
            "reason": "Why the upstream was asked although the stored response was within its lifetime.",
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

        /// Rounds to microseconds.
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

    package init(missed: Int64) { self.missed = missed }
}

/// `GET /upstreams`.
package struct UpstreamsResponse: AdminBody {
    static let sentences = ["upstreams": "In the order of the config."]
    var upstreams: [Upstream]

    package struct Upstream: AdminBody {
        static let sentences = [
            "origin": "The URL that it is asked at.",
            "state":
                "`unused`: not asked yet; `reachable`; `unreachable`: the last request got no response; `slow`: several clients in a row got a stale response after their `patience`, and the next ones get it at once; `failing`: of its latest responses, at least five and half of them were errors (5xx, or cut off); `backing_off`: Larder sends no requests until `back_off_until`.",
            "lastError": "The last failure, also when the upstream has been reachable since.",
            "unreachableSince": "When requests began to get no response, if they do (RFC 3339).",
            "failingSince": "When its responses began to fail, if they do (RFC 3339).",
            "slowSince": "When it began to be `slow`, if it is (RFC 3339).",
            "isHeldBack": "Whether requests get a stale response or 504 at once, because it cannot be reached.",
            "backOffUntil": "When it may be asked again, if Larder is backing off (RFC 3339).",
            "rateLimit": "The limit of which the smallest share is left, as its responses say.",
            "requests": "Requests to it that have ended.", "failures": "Those of them that count as failures.",
        ]
        package var name: String
        package var origin: String
        package var state: String
        package var lastError: Failure?
        package var unreachableSince: String?
        package var failingSince: String?
        package var slowSince: String?
        package var isHeldBack: Bool
        package var backOffUntil: String?
        package var rateLimit: Limit?
        package var requests: Int
        package var failures: Int

        init(name: String, origin: String, _ health: UpstreamHealth, at now: Int64) {
            (self.name, self.origin) = (name, origin)
            state = health.state(at: now).rawValue
            lastError = health.lastError.map { Failure(time: StoreTime.text($0.time), message: $0.message.printable) }
            unreachableSince = health.unreachableSince.map(StoreTime.text)
            failingSince = health.failingSince.map(StoreTime.text)
            slowSince = health.slowSince.map(StoreTime.text)
            isHeldBack = health.isHeldBack
            backOffUntil = health.backOffUntil(at: now).map(StoreTime.text)
            rateLimit = health.tightestLimit(at: now).map(Limit.init)
            (requests, failures) = (health.requests, health.failures)
        }
    }

    package struct Failure: AdminBody {
        static let sentences = ["time": "RFC 3339.", "message": "The request, and why it failed."]
        package var time: String
        package var message: String
    }

    package struct Limit: AdminBody {
        static let sentences = [
            "limit": "Requests of a period.", "remaining": "Those that are left.",
            "reset": "When the period ends (RFC 3339).", "resource": "The upstream's name for what is limited.",
        ]
        package var limit: Int64?
        package var remaining: Int64
        package var reset: String?
        package var resource: String?

        init(_ limit: RateLimit) {
            (self.limit, remaining) = (limit.limit, limit.remaining)
            reset = limit.reset.map { StoreTime.text($0 * 1_000_000) }
            resource = limit.resource?.printable
        }
    }
}
