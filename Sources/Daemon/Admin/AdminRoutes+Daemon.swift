import CachePolicy
import HTTPSemantics
import HTTPServer
import Proxy
import Settings
import Store

/// The daemon itself: whether it serves, its metrics, its mode.
extension AdminRoute {
    static let monitoring: [AdminRoute] = documented([
        "Whether the process is alive.":
            .json("GET /healthz", access: .open) { _, _ in HealthResponse(status: "alive") },
        "Whether Larder serves requests: 503 with the reason while it starts or stops.":
            .json("GET /readyz", access: .open) { _, daemon in
                guard let reason = daemon.state.unreadiness else { return HealthResponse(status: "ready") }
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
                let texts = try request.texts(["mode"], advice: #"{"mode": "offline"}"#)
                let (first, second) = (request.value("mode"), texts["mode"])
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
package struct HealthResponse: AdminBody {
    package var status: String
}

/// `GET /mode` and `PUT /mode`.
package struct ModeResponse: AdminBody {
    static let sentences = ["mode": "`auto`, `online` or `offline`."]
    package var mode: String

    package init(mode: String) { self.mode = mode }
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
        var origin: String
        package var state: String
        package var lastError: Failure?
        var unreachableSince: String?
        var failingSince: String?
        var slowSince: String?
        var isHeldBack: Bool
        var backOffUntil: String?
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
        var reset: String?
        var resource: String?

        init(_ limit: RateLimit) {
            (self.limit, remaining) = (limit.limit, limit.remaining)
            reset = limit.reset.map { StoreTime.text($0 * 1_000_000) }
            resource = limit.resource?.printable
        }
    }
}
