import CachePolicy
package import HTTPSemantics
import HTTPServer
import Logging
import Mapping
import Settings
import Store
import Synchronization
import Upstream

/// Observes a request and its response, and hands the result to the `RequestLog` at the end.
///
/// Any thread. The request carries it, so that each step can add what it finds out.
package final class RequestNote: ReplyObserver {
    private let requests: RequestLog
    private let log: Logger
    /// Seconds from which a request counts as slow; 0 for never.
    private let slowness: Double
    private let metrics: UpstreamMetrics
    private let upstream: ProxiedUpstream
    /// The path for matching routes.
    private let route: String
    private let started: UInt64
    private let state: Mutex<State>

    private struct State {
        var served: ServedRequest
        var outcome: Outcome?
        /// Whether the response is a stream of events, whose duration means nothing.
        var isStream = false
        var isOver = false
    }

    /// - Parameter started: when the request's head was read, in ns of the monotonic clock.
    init(
        _ request: Request,
        _ incoming: IncomingRequest,
        at entrance: BoundAddress,
        started: UInt64,
        _ proxy: ProxyCore
    ) {
        requests = proxy.requests
        log = proxy.log
        slowness = Double(proxy.settings.slowRequests.nanoseconds) / 1_000_000_000
        metrics = proxy.metrics.upstream(incoming.upstream.name)
        upstream = incoming.upstream
        route = incoming.route
        self.started = started
        var served = ServedRequest(
            client: ClientAddress(peer: request.peer, at: entrance),
            method: request.method,
            url: incoming.parts.url,
            upstream: incoming.upstream.name
        )
        served.time = RequestClock.wall - Int64((RequestClock.nanoseconds - started) / 1_000)
        state = Mutex(State(served: served))
    }

    package var outlivesClient: Bool { false }

    /// Notes the outcome that the metrics have counted.
    func counted(as outcome: Outcome) {
        state.withLock { $0.outcome = outcome }
    }

    func hasKey(_ key: Digest128) {
        state.withLock { $0.served.key = key }
    }

    /// Adds the time of a transfer that the request waited for; there may be several.
    func upstreamTook(_ seconds: Double) {
        state.withLock { $0.served.upstreamSeconds = ($0.served.upstreamSeconds ?? 0) + seconds }
    }

    // MARK: The response

    package func began(status: Int, fields: Fields, length: Int?) {
        let member = CacheStatus.ownMember(of: fields)
        let isStream = fields.isEventStream
        state.withLock { state in
            state.isStream = isStream
            state.served.status = status
            state.served.cacheStatus = member
            state.served.detail = member.flatMap { CacheStatus.detail(of: $0) }
        }
    }

    package func wrote(_ bytes: [UInt8]) {
        state.withLock { $0.served.bytes += bytes.count }
    }

    package func finished() { end(isWhole: true) }

    package func aborted() { end(isWhole: false) }

    private func end(isWhole: Bool) {
        let seconds = Double(RequestClock.nanoseconds - started) / 1_000_000_000
        let ended = state.withLock { state -> (ServedRequest, isStream: Bool)? in
            guard !state.isOver else { return nil }
            state.isOver = true
            state.served.seconds = seconds
            state.served.conclude(state.outcome, isWhole: isWhole)
            return (state.served, state.isStream)
        }
        guard let (served, isStream) = ended else { return }
        requests.note(served)
        guard !isStream else { return }
        let match = upstream.rules.route(method: served.method, path: route, status: nil)
        metrics.responded(route: match?.index, seconds: seconds)
        if slowness > 0, seconds > slowness { report(served) }
    }
}

extension RequestNote {
    private func report(_ served: ServedRequest) {
        let text = { (seconds: Double) in "\((seconds * 1_000).rounded() / 1_000)" }
        var metadata: Logger.Metadata = [
            "method": "\(served.method)", "url": "\(served.url)", "upstream": "\(upstream.name)",
            "status": "\(served.status)", "outcome": "\(served.outcome.rawValue)", "seconds": "\(text(served.seconds))",
        ]
        if let seconds = served.upstreamSeconds { metadata["upstream_seconds"] = "\(text(seconds))" }
        log.warning("a request was slow", metadata: metadata)
    }
}

extension ServedRequest {
    fileprivate mutating func conclude(_ counted: Outcome?, isWhole: Bool) {
        if !isWhole {
            // The client has left, or the upstream's response was truncated.
            detail = detail ?? (status == 0 ? "client-left" : "broke-off")
            if status == 0 { status = Self.clientLeft }
        }
        if method == "HEAD" || status == 204 || status == 304 { bytes = 0 }
        outcome = counted ?? Outcome(cacheStatus: cacheStatus)
    }
}

extension Outcome {
    /// The outcome of a response that the metrics do not count by its request: a recorded one, or an error.
    fileprivate init(cacheStatus: String?) {
        self =
            switch cacheStatus {
            case let status? where status.hasPrefix("larder; hit"): .hit
            case let status? where status.hasPrefix("larder; fwd") && !status.contains("; detail="): .miss
            default: .error
            }
    }
}

extension CacheStatus {
    /// Larder's own member, the last of the list, because each cache appends its own.
    static func ownMember(of fields: Fields) -> String? {
        guard let list = fields.combined("cache-status"),
            let own = list.utf8.ranges(of: "larder;".utf8).last
        else { return nil }
        return String(list[own.lowerBound...])
    }

    /// The `detail` of Larder's own member.
    static func detail(of member: String) -> String? {
        guard let name = member.utf8.ranges(of: "; detail=".utf8).last else { return nil }
        return member[name.upperBound...].filter { $0 != "\"" }
    }
}
