import HTTPSemantics
import Proxy
import Settings

extension AdminRoute {
    /// Every endpoint, in the order of the OpenAPI document.
    static let all: [AdminRoute] =
        dashboard + monitoring + activity + contents + [changes] + control + copies + recordings

    private static let monitoring: [AdminRoute] = [
        .json("GET /healthz", "Whether the process is alive.", access: .open) { _, _ in
            StatusResponse(status: "alive")
        },
        .json(
            "GET /readyz",
            "Whether Larder serves requests: 503 with the reason while it starts or stops.",
            access: .open
        ) { _, daemon in
            guard let reason = daemon.state.unreadiness else { return StatusResponse(status: "ready") }
            throw ProblemDocument(503, reason, fields: Fields([Field("Retry-After", "1")]))
        },
        AdminRoute(
            "GET /metrics",
            "The daemon's metrics, for Prometheus.",
            access: .open,
            mediaType: "text/plain"
        ) { _, daemon in
            let reading = try await Metric.Reading(daemon)
            return .text(Array(PrometheusText.write(Metric.all, reading).utf8), type: PrometheusText.mediaType)
        },
        AdminRoute("GET /openapi.json", "This description of the admin side.") { _, daemon in
            let document = OpenAPIDocument.describe(AdminRoute.all, version: daemon.version)
            return .text(document.bytes + [0x0A], type: "application/json")
        },
    ]

    private static let control: [AdminRoute] = [
        clean,
        .json("GET /mode", "The mode the daemon is in.") { _, daemon in
            ModeResponse(mode: daemon.modes.current.rawValue)
        },
        .json(
            "PUT /mode",
            "Changes the mode until it is changed again or the daemon restarts.",
            query: [modeParameter],
            body: [modeParameter]
        ) { request, daemon in
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
    ]

    private static let modeParameter = Parameter(
        "mode",
        "\(Mode.allCases.map(\.rawValue).joined(separator: " or "))."
    )
}
