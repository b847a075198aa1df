import Basics
package import CachePolicy
import Glibc
import HTTPSemantics
import HTTPServer
import Logging
import Mapping
import Settings
package import Store
import Synchronization
import Upstream

/// The latest requests and how they were served, for the access log, `/requests` and the dashboard.
///
/// Requests that pass `ProxyCore` are always noted. Hits from memory are noted only while they are wanted: the access log is on,
/// a stream follows, or the list was requested within the last minute. Otherwise a hit costs one relaxed load here.
/// Any thread. Bounded: new requests replace the oldest.
package final class RequestLog: Sendable {
    package static let capacity = 1_000
    /// How long hits are noted after the list was requested.
    private static let attention: UInt64 = 60_000_000_000

    /// Of this many hits from memory that are not noted, one is counted in the lists and by its route, for all of them.
    package static let sampleSize = 64
    /// Where hits are rare, one is counted after this many ns in any case.
    static let sampleTime: UInt64 = 1_000_000_000

    /// Who asks how much.
    package let top = TopLists()
    /// Until when hits are noted, in ns of the monotonic clock.
    private let watchedUntil = Atomic<UInt64>(0)
    fileprivate let state = Mutex(State())

    fileprivate struct State {
        /// The last one has the number `lastID`.
        var kept = RecentList<ServedRequest>(limit: RequestLog.capacity)
        var lastID: Int64 = 0
        /// A list, so that a request takes it as it is.
        var listeners: [(number: Int, call: @Sendable (ServedRequest) -> Void)] = []
        var lastListener = 0
        var askedUntil: UInt64 = 0
    }

    package init() {}

    /// Whether a hit is to be noted.
    ///
    /// - Parameter now: in ns of the monotonic clock; a loop's coarse one will do.
    @inline(__always)
    func recordsHits(at now: UInt64) -> Bool { watchedUntil.load(ordering: .relaxed) > now }

    func record(_ request: ServedRequest) {
        top.count(request)
        let (listeners, noted) = state.withLock { state in
            var noted = request
            state.lastID += 1
            noted.id = state.lastID
            state.kept.append(noted)
            return (state.listeners, noted)
        }
        for listener in listeners { listener.call(noted) }
    }

    /// The requests after a number, the oldest first; hits are noted for the next minute.
    ///
    /// A number never used belongs to an earlier run of the daemon, so all requests came after it.
    package func requests(after id: Int64, limit: Int) -> (requests: [ServedRequest], last: Int64) {
        state.withLock { state in
            state.askedUntil = RequestClock.nanoseconds + Self.attention
            watch(state)
            return state.requests(after: id, limit: limit)
        }
    }

    /// All kept requests after a number, for a listener, which keeps hits noted anyway.
    package func requests(after id: Int64) -> (requests: [ServedRequest], last: Int64) {
        state.withLock { $0.requests(after: id, limit: Self.capacity) }
    }

    /// The request with this number; nil if it is not kept any more, or not yet.
    package func request(_ id: Int64) -> ServedRequest? {
        state.withLock { state in
            guard id > 0, id <= state.lastID, state.lastID - id < state.kept.count else { return nil }
            return state.kept[state.kept.count - 1 - Int(state.lastID - id)]
        }
    }

    package var lastID: Int64 { state.withLock { $0.lastID } }

    /// Calls back, on any thread, with every request from now on; returns the argument for `stopListening`.
    ///
    /// A listener must return at once.
    @discardableResult
    package func listen(_ listener: @escaping @Sendable (ServedRequest) -> Void) -> Int {
        state.withLock { state in
            state.lastListener += 1
            state.listeners.append((state.lastListener, listener))
            watch(state)
            return state.lastListener
        }
    }

    package func stopListening(_ number: Int) {
        state.withLock { state in
            state.listeners.removeAll { $0.number == number }
            watch(state)
        }
    }

    /// Runs within the lock, so that no two changes are stored in the wrong order.
    private func watch(_ state: borrowing State) {
        watchedUntil.store(state.listeners.isEmpty ? state.askedUntil : .max, ordering: .relaxed)
    }
}

extension RequestLog.State {
    fileprivate func requests(after id: Int64, limit: Int) -> (requests: [ServedRequest], last: Int64) {
        let new = lastID - (id > lastID ? 0 : max(id, 0))
        return (Array(kept.suffix(min(limit, Int(new)))), lastID)
    }
}

/// A client's request and how it was served, for display: in the access log, in `/requests`, on the dashboard.
///
/// It contains no secret: the URL is that of the cache key, in which credentials are redacted.
package struct ServedRequest: Sendable, Equatable {
    /// Counts up from 1 since the daemon started.
    package var id: Int64 = 0
    /// When its head was read, in µs since 1970.
    package var time: Int64 = 0
    package var client: ClientAddress
    package var method: String
    /// Path and query as clients send them, redacted.
    package var url: String
    /// The upstream's name; nil if it matches none.
    package var upstream: String?
    /// The path of its route, as the config writes it.
    package var route: String?
    /// The label of whose credentials it has; nil before they were looked at.
    package var principal: String?
    /// The client's program: the first product in `User-Agent`.
    package var program: String?
    /// As the client got it; `clientLeft` if it left before.
    package var status = 0
    package var outcome = Outcome.error
    /// Larder's member of `Cache-Status`.
    package var cacheStatus: CacheStatus?
    /// If the response is incomplete, `client-left` or `broke-off`.
    package var end: String?
    /// The `detail` of `cacheStatus`; else that of an incomplete response.
    package var detail: String? { cacheStatus?.detail ?? end }
    /// Why the upstream was asked although the stored response was within its lifetime.
    package var reason: String?
    /// Why its response was not stored; nil for those that joined another one's fetch.
    package var notStored: String?
    /// The line of config with which it would have been a hit.
    package var remedy: String?
    package var bytes = 0
    /// The time from the request's head to the response's last byte within Larder, in seconds.
    package var seconds = 0.0
    /// The upstream's share of that time, in seconds; nil if it was not asked.
    package var upstreamSeconds: Double?
    package var key: Digest128?

    /// The status of a request whose client left before the response began; nginx uses the same.
    static let clientLeft = 499
    /// The maximum length of URLs in bytes; longer ones are cut.
    static let urlLimit = 4_096

    init(client: ClientAddress, method: String, url: String, upstream: String?) {
        (self.client, self.method) = (client, method)
        self.url = url.utf8.count <= Self.urlLimit ? url : String(url.prefix(Self.urlLimit / 4)) + "…"
        self.upstream = upstream
    }

    package var keyText: String? { key.map { $0.high.hexadecimal(width: 16) + $0.low.hexadecimal(width: 16) } }
}

/// The sender of a request: a machine's address, or the user at the other end of a Unix socket.
package struct ClientAddress: Sendable, Equatable {
    /// As `Request.peer`.
    let bytes: [UInt8]
    let isUser: Bool

    init(peer: [UInt8], at entrance: Address) { (bytes, isUser) = (peer, entrance.isUnix) }

    /// `127.0.0.1`, `::1`, `uid:1000`; `-` where it is unknown.
    package var text: String {
        if isUser, bytes.count == 4 { return "uid:\(bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) })" }
        guard bytes.count == 4 || bytes.count == 16 else { return "-" }
        var room = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &room, socklen_t(room.count)) != nil
        else { return "-" }
        return room.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }
}

enum RequestClock {
    static var nanoseconds: UInt64 { UInt64(SystemClock.nanoseconds(CLOCK_MONOTONIC)) }
    /// In µs since 1970.
    static var wall: Int64 { SystemClock.nanoseconds(CLOCK_REALTIME) / 1_000 }
}

/// Observes a request and its response, and hands the result to the `RequestLog` at the end.
///
/// Any thread. The request carries it, so that each step can add what it finds out.
final class RequestNote: ReplyObserver {
    private let requests: RequestLog
    private let repeated: RepeatedLines
    /// Seconds from which a request counts as slow; 0 for never.
    private let slowness: Double
    private let outcomes: WorkerMetrics
    private let metrics: UpstreamMetrics
    private let upstream: ProxiedUpstream
    /// The path and the query for matching routes.
    private let route: (path: String, query: String?)
    private let started: UInt64
    private let state: Mutex<State>

    private struct State {
        var served: ServedRequest
        var outcome: Outcome?
        /// Whether the response is a stream of events, whose duration means nothing.
        var isStream = false
        var isCounted = false
        var isOver = false
        var isKnown = true
    }

    /// - Parameter started: when the request's head was read, in ns of the monotonic clock.
    init(_ incoming: IncomingRequest, at place: Address, started: UInt64, _ proxy: ProxyCore) {
        requests = proxy.requests
        repeated = proxy.repeated
        slowness = Double(incoming.upstream.daemon.slowRequests.nanoseconds) / 1_000_000_000
        outcomes = proxy.outcomes
        metrics = proxy.metrics.upstream(incoming.upstream.name)
        upstream = incoming.upstream
        route = (incoming.route, incoming.query)
        self.started = started
        let (message, url) = (incoming.message, upstream.clientURL(ofURL: incoming.url))
        let client = ClientAddress(peer: message.peer, at: place)
        var served = ServedRequest(client: client, method: message.method, url: url, upstream: upstream.name)
        served.time = RequestClock.wall - Int64((RequestClock.nanoseconds - started) / 1_000)
        served.program = message.fields[.userAgent].flatMap(ClientProgram.name)
        state = Mutex(State(served: served))
    }

    var outlivesClient: Bool { false }

    /// Records the `Cache-Status` of the response that is about to begin.
    func served(as status: CacheStatus) { state.withLock { $0.served.cacheStatus = status } }

    /// Records how the request is served; of several, the last before the response begins counts.
    func recordOutcome(_ outcome: Outcome) { state.withLock { $0.outcome = outcome } }
    func recordAsked(because reason: Plan.Reason) { state.withLock { $0.served.reason = reason.detail?.text } }
    func recordPrincipal(_ principal: String?) { state.withLock { $0.served.principal = principal } }
    func recordRemedy(_ remedy: FreshnessRemedy) { state.withLock { $0.served.remedy = remedy.line } }
    func recordNotStored(because reason: NotStoredReason) { state.withLock { $0.served.notStored = reason.text } }
    /// Whether this machine knows what the response shows, and has announced it to its fleet.
    var isKnown: Bool { state.withLock(\.isKnown) }
    func recordKnown(_ isKnown: Bool) { state.withLock { $0.isKnown = isKnown } }
    func recordKey(_ key: Digest128) { state.withLock { $0.served.key = key } }

    /// Adds the time of a transfer that the request waited for; there may be several.
    func upstreamTook(_ seconds: Double) {
        state.withLock { $0.served.upstreamSeconds = ($0.served.upstreamSeconds ?? 0) + seconds }
    }

    // MARK: The response

    func began(status: Int, fields: Fields, length: Int?) {
        let isStream = fields.isEventStream
        state.withLock { state in
            state.isStream = isStream
            state.served.status = status
            count(&state)
        }
    }

    /// Counts the request, once: when its response begins, or at its end if it got none.
    private func count(_ state: inout State) {
        guard !state.isCounted else { return }
        state.isCounted = true
        outcomes.count(state.outcome ?? Outcome(state.served.cacheStatus))
    }

    func wrote(_ bytes: [UInt8]) { state.withLock { $0.served.bytes += bytes.count } }
    func finished() { end(isWhole: true) }
    func aborted() { end(isWhole: false) }

    private func end(isWhole: Bool) {
        let seconds = Double(RequestClock.nanoseconds - started) / 1_000_000_000
        let ended = state.withLock { state -> (ServedRequest, isStream: Bool)? in
            guard !state.isOver else { return nil }
            state.isOver = true
            count(&state)
            state.served.seconds = seconds
            state.served.conclude(state.outcome, isWhole: isWhole)
            return (state.served, state.isStream)
        }
        guard let (ended, isStream) = ended else { return }
        var served = ended
        served.route = upstream.routePath(method: served.method, path: route.path, query: route.query)
        requests.record(served)
        metrics.count(served, isTimed: !isStream)
        if !isStream, slowness > 0, seconds > slowness { report(served) }
    }

    private func report(_ served: ServedRequest) {
        let text = { (seconds: Double) in "\((seconds * 1_000).rounded() / 1_000)" }
        var metadata: Logger.Metadata = [
            "method": "\(served.method)", "url": "\(served.url)",
            "status": "\(served.status)", "outcome": "\(served.outcome.rawValue)", "seconds": "\(text(served.seconds))",
        ]
        if let seconds = served.upstreamSeconds { metadata["upstream_seconds"] = "\(text(seconds))" }
        repeated.log(.warning, "a request was slow", about: ["upstream": "\(upstream.name)"], metadata)
    }
}

extension ServedRequest {
    fileprivate mutating func conclude(_ recorded: Outcome?, isWhole: Bool) {
        if !isWhole {
            // The client has left, or the upstream's response was truncated.
            end = status == 0 ? "client-left" : "broke-off"
            if status == 0 { (status, cacheStatus) = (Self.clientLeft, nil) }
        }
        if method == "HEAD" || status == 204 || status == 304 { bytes = 0 }
        outcome = recorded ?? Outcome(cacheStatus)
    }
}

extension Outcome {
    /// The outcome of a response for which none was recorded, such as one of a recording.
    fileprivate init(_ status: CacheStatus?) {
        switch status {
        case let status? where status.isHit: self = .hit
        case let status? where status.isForwarded && status.details.isEmpty: self = .miss
        default: self = .error
        }
    }
}

extension Reply {
    var note: RequestNote? { observers.lazy.compactMap { $0 as? RequestNote }.first }
}
