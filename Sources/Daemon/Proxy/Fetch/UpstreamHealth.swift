import Basics
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
    /// Whether the upstream can be asked, and whether it does its work, as far as its latest responses show.
    package enum State: String, Sendable {
        /// No request was sent yet.
        case unused
        case reachable
        /// The last request got no response.
        case unreachable
        /// Clients that may get a stale response get it at once, because the upstream does not respond in time (`Circuit`).
        case slow
        /// It responds, but many of its latest responses were errors (`RecentResponses`).
        case failing
        /// Larder is backing off from it.
        case backingOff = "backing_off"
    }

    /// A change for the log.
    enum News: Equatable {
        /// Requests get no response. Further failures are not logged until there is one.
        case unreachable
        /// - Parameter held: requests that were not sent meanwhile.
        case reachable(after: Duration, failures: Int, held: Int)
        /// Its responses fail. Further ones are not logged until they succeed again.
        case fails(errors: Int, of: Int)
        case works(after: Duration, failures: Int)
    }

    package private(set) var requests = 0
    /// The number of requests that count as failures.
    package private(set) var failures = 0
    /// The last failure, kept even if the upstream has been reachable since.
    package private(set) var lastError: (time: Int64, message: String)?
    package private(set) var unreachableSince: Int64?
    package private(set) var failingSince: Int64?
    package private(set) var slowSince: Int64?
    /// Whether requests are sent to it, in the mode `auto`.
    private(set) var circuit = Circuit.State.closed
    /// When it may be asked again; in the past once the pause is over.
    private var backOffEnd: Int64 = 0
    /// Whether that follows from a rate limit that is used up; else the upstream has asked for the pause.
    package private(set) var isBackOffForLimit = false
    /// The latest state of each limited resource, by the upstream's name for it.
    private var limits: [String: RateLimit] = [:]
    private var recent = RecentResponses()
    /// Requests without a response since the last response, and those that were not sent.
    private var (failuresInARow, held) = (0, 0)
    /// Errors since its responses began to fail.
    private var errors = 0
    private var isAnnounced = false
    private var lastWarning = Int64.min

    /// The least time between two warnings, in µs, so that an upstream which fails every other request does not fill the log.
    static let quiet: Int64 = 10_000_000
    /// The maximum number of limited resources.
    private static let resources = 32

    /// Counts a request that got no response.
    mutating func gotNoResponse(_ message: String, at time: Int64) -> News? {
        requests += 1
        failures += 1
        failuresInARow += 1
        lastError = (time, message)
        if unreachableSince == nil { unreachableSince = time }
        guard !isAnnounced, lastWarning == .min || time - lastWarning >= Self.quiet else { return nil }
        (isAnnounced, lastWarning) = (true, time)
        return .unreachable
    }

    /// Counts a response.
    ///
    /// - Parameter error: why it counts as a failure; nil if it does not.
    mutating func responded(_ error: String? = nil, at time: Int64) -> [News] {
        requests += 1
        var news: [News] = []
        if let since = unreachableSince {
            let pause = Duration.microseconds(max(0, time - since))
            if isAnnounced { news.append(.reachable(after: pause, failures: failuresInARow, held: held)) }
            (unreachableSince, failuresInARow, held, isAnnounced) = (nil, 0, 0, false)
        }
        recent.add(isError: error != nil, at: time)
        if let error {
            failures += 1
            errors += 1
            lastError = (time, error)
        }
        if let since = failingSince {
            guard error == nil, recent.isWorking else { return news }
            news.append(.works(after: .microseconds(max(0, time - since)), failures: errors))
            (failingSince, errors) = (nil, 0)
        } else if recent.isFailing {
            (failingSince, errors) = (recent.firstError ?? time, recent.errors)
            news.append(.fails(errors: recent.errors, of: recent.count))
        }
        return news
    }

    /// Counts a request whose end shows nothing about the upstream, such as a client that disconnects.
    mutating func gaveUp() { requests += 1 }
    /// Counts a request that was not sent because the upstream cannot be reached.
    mutating func heldBack() { held += 1 }
    mutating func recordBackOff(until time: Int64, isForLimit: Bool) {
        guard time > backOffEnd else { return }
        (backOffEnd, isBackOffForLimit) = (time, isForLimit)
    }
    mutating func recordCircuit(_ state: Circuit.State, at time: Int64) {
        (circuit, slowSince) = (state, state == .slow ? time : nil)
    }

    mutating func recordLimit(_ limit: RateLimit) {
        let name = limit.resource ?? ""
        guard limits[name] != nil || limits.count < Self.resources else { return }
        limits[name] = limit
    }

    package func state(at now: Int64) -> State {
        if backOffEnd > now { return .backingOff }
        if unreachableSince != nil { return .unreachable }
        if slowSince != nil { return .slow }
        if failingSince != nil { return .failing }
        return requests == 0 ? .unused : .reachable
    }

    /// Whether requests are held back because it cannot be reached.
    package var isHeldBack: Bool { circuit == .open || circuit == .halfOpen }

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

/// The latest responses of an upstream: at most twenty, of the last half minute.
struct RecentResponses: Sendable {
    private var entries = RecentList<(time: Int64, isError: Bool)>(limit: 20)
    /// In µs.
    private static let span: Int64 = 30_000_000
    /// So many errors are no accident.
    private static let leastErrors = 5

    mutating func add(isError: Bool, at time: Int64) {
        entries.removeAll { time - $0.time > Self.span }
        entries.append((time, isError))
    }

    var count: Int { entries.count }
    var errors: Int { entries.count(where: \.isError) }
    var firstError: Int64? { entries.first(where: \.isError)?.time }

    /// At least half of them are errors.
    var isFailing: Bool { errors >= Self.leastErrors && 2 * errors >= count }
    /// Fewer than a quarter are errors: a share in between changes nothing, so that the state does not flicker.
    var isWorking: Bool { 4 * errors < count }
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
        let metrics = counters(of: request.upstream)
        let time = RequestClock.wall
        let failed = status.flatMap { StatusFacts.isServerError($0) ? Failure(status: $0, of: request) : nil }
        switch result {
        case .failure(let error) where !error.isAboutUpstream:
            // The rest of an error is not needed once a stored response was served in its place.
            guard let failed else { return metrics.record { $0.gaveUp() } }
            responded(failed, to: request, at: time)
        case .failure(let error) where status == nil:
            let failure = Failure(error, of: request)
            if let news = metrics.record({ $0.gotNoResponse(failure.message, at: time) }) { log(news, failure) }
        case .failure(let error): brokeOff(Failure(error, of: request), at: time)
        case .success(let summary):
            if let defect = summary.defect { return brokeOff(Failure(defect, of: request), at: time) }
            if status == 401 { request.upstream.settings.credential?.value.refuse() }
            responded(failed, to: request, at: time)
        }
    }

    private func brokeOff(_ failure: Failure, at time: Int64) {
        let subject: Logger.Metadata = ["upstream": "\(failure.request.upstream.name)", "cause": "\(failure.words)"]
        repeated.log(.warning, "the upstream's response broke off", about: subject, failure.metadata)
        responded(failure, to: failure.request, at: time)
    }

    private func responded(_ failure: Failure?, to request: ProxyRequest, at time: Int64) {
        let news = counters(of: request.upstream).record { $0.responded(failure?.message, at: time) }
        for one in news { log(one, failure ?? Failure("", nil, of: request)) }
    }

    /// A request that counts as a failure.
    private struct Failure {
        let request: ProxyRequest
        let words: String
        /// What the operator can check or change, if anything.
        let cure: String?

        init(_ words: String, _ cure: String?, of request: ProxyRequest) {
            (self.words, self.cure, self.request) = (words, cure, request)
        }

        init(_ error: UpstreamError, of request: ProxyRequest) {
            self.init(error.message, error.cure(for: request.upstream.settings), of: request)
        }

        init(status: Int, of request: ProxyRequest) {
            self.init("the upstream responded with \(status) \(statusPhrase(status))", nil, of: request)
        }

        var url: String { request.upstream.url(of: request.key.url) }
        var message: String { "\(request.message.method) \(url): \(words)" }

        var metadata: Logger.Metadata {
            var metadata: Logger.Metadata = [
                "method": "\(request.message.method)", "url": "\(url)",
                "host": "\(request.upstream.settings.url.host)", "cause": "\(words)",
            ]
            if let cure { metadata["remedy"] = "\(cure)" }
            return metadata
        }
    }

    private func log(_ news: UpstreamHealth.News, _ failure: Failure) {
        var metadata: Logger.Metadata = ["upstream": "\(failure.request.upstream.name)"]
        switch news {
        case .unreachable:
            metadata.merge(failure.metadata) { $1 }
            log.warning(
                "the upstream cannot be reached; further failures are counted until it is reachable again",
                metadata: metadata
            )
        case .reachable(let pause, let failures, let held):
            metadata["after"] = "\(Units.roundedText(pause))"
            (metadata["failed_requests"], metadata["held_back"]) = ("\(failures)", "\(held)")
            log.notice("the upstream is reachable again", metadata: metadata)
        case .fails(let errors, let count):
            metadata.merge(failure.metadata) { $1 }
            metadata["failed"] = "\(errors) of the last \(count) responses"
            log.warning(
                "the upstream's responses fail; further failures are counted until they succeed again",
                metadata: metadata
            )
        case .works(let pause, let failures):
            (metadata["after"], metadata["failed_requests"]) = ("\(Units.roundedText(pause))", "\(failures)")
            log.notice("the upstream's responses succeed again", metadata: metadata)
        }
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
