package import CachePolicy
import HTTPSemantics
import HTTPServer
import Logging
import Settings
import Store
import Upstream

/// The health of an upstream, judged by its responses and failures.
///
/// A value: events go in with their time, in µs since 1970, and news for the log comes out.
package struct UpstreamHealth: Sendable {
    /// Whether the upstream can be asked, as far as its latest responses show.
    package enum State: String, Sendable {
        /// No request was sent yet.
        case unused
        case reachable
        /// The last request got no response, or a gateway's error instead.
        case failing
        /// Larder is backing off from it.
        case backingOff = "backing_off"
    }

    /// A change for the log.
    enum News: Equatable {
        /// Requests fail. Further failures are not logged until the upstream has been reachable.
        case fails
        case recovered(after: Duration, failures: Int)
    }

    package private(set) var requests = 0
    /// The number of requests that count as failures.
    package private(set) var failures = 0
    /// The last failure, kept even if the upstream has been reachable since.
    package private(set) var lastError: (time: Int64, message: String)?
    package private(set) var failingSince: Int64?
    /// When it may be asked again; in the past once the pause is over.
    private var backOffEnd: Int64 = 0
    /// The latest state of each limited resource, by the upstream's name for it.
    private var limits: [String: RateLimit] = [:]
    /// Failures since the upstream was last reachable.
    private var failuresInARow = 0
    private var isAnnounced = false
    private var lastWarning = Int64.min

    /// The least time between two warnings, in µs, so that an upstream which fails every other request does not fill the log.
    static let quiet: Int64 = 10_000_000
    /// The maximum number of limited resources.
    private static let resources = 32

    /// Counts a request that got no response, or a gateway's error.
    mutating func failed(_ message: String, at time: Int64) -> News? {
        requests += 1
        failures += 1
        failuresInARow += 1
        lastError = (time, message)
        if failingSince == nil { failingSince = time }
        guard !isAnnounced, lastWarning == .min || time - lastWarning >= Self.quiet else { return nil }
        (isAnnounced, lastWarning) = (true, time)
        return .fails
    }

    mutating func responded(at time: Int64) -> News? {
        requests += 1
        guard let since = failingSince else { return nil }
        let news = News.recovered(after: .microseconds(max(0, time - since)), failures: failuresInARow)
        let wasAnnounced = isAnnounced
        (failingSince, failuresInARow, isAnnounced) = (nil, 0, false)
        return wasAnnounced ? news : nil
    }

    /// Counts a request whose end shows nothing about the upstream, such as a client that disconnects.
    mutating func gaveUp() { requests += 1 }
    mutating func backsOff(until time: Int64) { backOffEnd = max(backOffEnd, time) }

    mutating func limited(_ limit: RateLimit) {
        let name = limit.resource ?? ""
        guard limits[name] != nil || limits.count < Self.resources else { return }
        limits[name] = limit
    }

    package func state(at now: Int64) -> State {
        if backOffEnd > now { return .backingOff }
        if failingSince != nil { return .failing }
        return requests == 0 ? .unused : .reachable
    }

    /// When the upstream may be asked again; nil if it may be asked now.
    package func backOffUntil(at now: Int64) -> Int64? { backOffEnd > now ? backOffEnd : nil }

    /// The latest state of each limited resource, by name.
    package var allLimits: [RateLimit] { limits.sorted { $0.key < $1.key }.map(\.value) }

    /// The limit with the smallest share left; an expired one only if there is no other.
    package func tightestLimit(at now: Int64) -> RateLimit? {
        let seconds = now / 1_000_000
        let current = allLimits.filter { $0.reset.map { $0 > seconds } ?? true }
        return (current.isEmpty ? allLimits : current).min { $0.share < $1.share }
    }

    package init() {}
}

extension RateLimit {
    fileprivate var share: Double {
        guard let limit, limit > 0 else { return remaining == 0 ? 0 : 1 }
        return Double(remaining) / Double(limit)
    }
}

/// Records the health of upstreams at the end of each transfer, and logs its changes.
extension Fetches {
    /// Records what the end of a transfer shows about its upstream.
    func record(_ result: Result<TransferSummary, UpstreamError>, status: Int?, of request: ProxyRequest) {
        let metrics = metrics.upstream(request.upstream.name)
        let time = RequestClock.wall
        var failure: (words: String, cure: String?)?
        switch result {
        case .failure(let error) where !error.isAboutUpstream: return metrics.record { $0.gaveUp() }
        case .failure(let error): failure = (error.message, error.cure(for: request.upstream.settings))
        case .success(let summary) where summary.defect != nil:
            failure = summary.defect.map { ($0.message, $0.cure(for: request.upstream.settings)) }
        // A gateway reports that the origin behind it is unavailable.
        case .success where status.map { 502...504 ~= $0 } ?? false:
            failure = ("a gateway responded with \(status ?? 0) \(statusPhrase(status ?? 0))", nil)
        case .success: break
        }
        guard let failure else {
            guard case .recovered(let pause, let count)? = metrics.record({ $0.responded(at: time) }) else { return }
            let metadata: Logger.Metadata = [
                "upstream": "\(request.upstream.name)", "after": "\(Self.rounded(pause))",
                "failed_requests": "\(count)",
            ]
            log.notice("the upstream is reachable again", metadata: metadata)
            return
        }
        let url = request.upstream.url(of: request.key.url)
        let message = "\(request.message.method) \(url): \(failure.words)"
        guard metrics.record({ $0.failed(message, at: time) }) == .fails else { return }
        var metadata: Logger.Metadata = [
            "upstream": "\(request.upstream.name)", "method": "\(request.message.method)", "url": "\(url)",
            "host": "\(request.upstream.settings.url.host)", "cause": "\(failure.words)",
        ]
        if let cure = failure.cure { metadata["remedy"] = "\(cure)" }
        log.warning("the upstream fails; further failures are counted until it is reachable again", metadata: metadata)
    }

    /// Whole seconds, if there are any: `3m12s`.
    private static func rounded(_ duration: Duration) -> String {
        Units.text(duration >= .seconds(1) ? .seconds(duration.components.seconds) : duration)
    }
}

extension UpstreamError {
    var isAboutUpstream: Bool {
        switch self {
        case .invalidRequest, .queueTimeout, .tooSlow, .requestBodyFailed, .cancelled: false
        case .couldNotResolve, .refused, .connectTimeout, .proxy, .tls, .firstByteTimeout, .stalled, .reset, .truncated,
            .badResponse, .headTooLarge, .decoding, .unprovenEnd:
            true
        }
    }

    /// What the operator can check or change, naming config keys; nil if only the upstream can fix it.
    func cure(for upstream: Configuration.Upstream) -> String? {
        let key = { (name: String) in "upstreams.\(upstream.name).\(name)" }
        let proxy: String
        switch upstream.proxy {
        case .environment: proxy = "\(key("proxy")), or http_proxy and https_proxy of the service"
        case .none, .url: proxy = key("proxy")
        }
        switch self {
        case .tls(let reason): return Self.cure(ofTLS: reason, upstream, key)
        case .couldNotResolve: return "check \(key("url")) and the machine's DNS; behind a proxy, set \(proxy)"
        case .refused: return "check \(key("url")), or whether a firewall requires a proxy (\(proxy))"
        case .connectTimeout:
            return "check the network, or whether a firewall requires a proxy (\(proxy)); timeouts.connect waits longer"
        case .proxy: return "check \(proxy)"
        case .firstByteTimeout: return "timeouts.first_byte waits longer"
        case .stalled: return "timeouts.stall waits longer"
        case .headTooLarge: return "raise limits.upstream_head"
        case .badResponse where !upstream.http2:
            return "check that \(key("url")) is a web server's; if it has HTTP/2 only, set \(key("http2")): true"
        case .badResponse: return "check that \(key("url")) is a web server's; \(key("http2")): false avoids HTTP/2"
        case .unprovenEnd(.stream): return "set \(key("http2")): false"
        case .invalidRequest, .queueTimeout, .tooSlow, .requestBodyFailed, .cancelled, .reset, .truncated, .decoding,
            .unprovenEnd(.closure):
            return nil
        }
    }

    /// The remedy for a TLS error, found by OpenSSL's wording as libcurl passes it on.
    private static func cure(ofTLS reason: String, _ upstream: Configuration.Upstream, _ key: (String) -> String)
        -> String
    {
        let says = { (words: String) in reason.lowercased().contains(words) }
        if says("expired") || says("not yet valid") {
            return "the upstream's certificate is out of date, or this machine's clock is wrong"
        }
        if says("match") { return "the certificate is another host's: check the host in \(key("url"))" }
        if says("wrong version number") || says("packet length too long") {
            return "the port does not speak TLS: check \(key("url")), perhaps it is http://"
        }
        if says("no application protocol") { return "the server has HTTP/2 only: set \(key("http2")): true" }
        if says("setting certificate") { return "\(key("ca_file")) cannot be read, or is no PEM file" }
        return upstream.caFile == nil
            ? "if the upstream has a certificate of your own authority, name that authority's PEM file in \(key("ca_file"))"
            : "\(key("ca_file")) replaces the system's authorities: check that it contains the one of this upstream"
    }
}
