import HTTPSemantics
import Proxy
import Settings

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
        "Changes the mode until it is changed again or the daemon restarts.":
            .json("PUT /mode", query: modeParameter, body: modeParameter) { request, daemon in
                let (first, second) = (request.value("mode"), try request.texts(["mode"], advice: "mode")["mode"])
                guard first == nil || second == nil else { throw ProblemDocument.badRequest("mode is given twice") }
                guard let mode = (first ?? second).flatMap(Mode.init(rawValue:)) else {
                    throw ProblemDocument.badRequest(
                        "mode must be one of \(Mode.allCases.map(\.rawValue).joined(separator: ", "))"
                    )
                }
                daemon.modes.set(mode)
                return ModeResponse(mode: mode.rawValue)
            },
    ])

    private static let modeParameter = Parameter.documented([
        "\(Mode.allCases.map(\.rawValue).joined(separator: " or ")).": .init("mode")
    ])
}

/// `GET /healthz` and `GET /readyz`.
struct StatusResponse: AdminBody {
    var status: String
}

/// `GET /mode` and `PUT /mode`.
package struct ModeResponse: AdminBody {
    package static let sentences = ["mode": "`online` or `offline`."]
    package var mode: String

    package init(mode: String) { self.mode = mode }
}
