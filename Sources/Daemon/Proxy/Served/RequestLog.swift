import Glibc
import HTTPSemantics
package import HTTPServer
package import Store
import Synchronization

/// The latest requests and how they were served, for the access log, `/requests` and the dashboard.
///
/// Requests that pass `ProxyCore` are always noted. Hits from memory are noted only while they are wanted: the access log is on,
/// a stream follows, or the list was requested within the last minute. Otherwise a hit costs one relaxed load here.
///
/// Any thread. Bounded: new requests replace the oldest.
package final class RequestLog: Sendable {
    /// The number of requests kept.
    package static let capacity = 1_000
    /// How long hits are noted after the list was requested.
    private static let attention: UInt64 = 60_000_000_000

    /// Until when hits are noted, in ns of the monotonic clock.
    private let watchedUntil = Atomic<UInt64>(0)
    fileprivate let state = Mutex(State())

    fileprivate struct State {
        /// The request with number n is at n % capacity.
        var kept: [ServedRequest] = []
        var lastID: Int64 = 0
        /// Receives every request as it is noted.
        var sink: (@Sendable (ServedRequest) -> Void)?
        /// Callbacks for new requests.
        var listeners: [Int: @Sendable () -> Void] = [:]
        var lastListener = 0
        var askedUntil: UInt64 = 0
    }

    package init() {}

    /// Whether a hit is to be noted.
    ///
    /// - Parameter now: in ns of the monotonic clock; a loop's coarse one will do.
    @inline(__always)
    func notesHits(at now: UInt64) -> Bool { watchedUntil.load(ordering: .relaxed) > now }

    /// Notes a finished request.
    func note(_ request: ServedRequest) {
        let (sink, listeners, noted) = state.withLock { state in
            var noted = request
            state.lastID += 1
            noted.id = state.lastID
            if state.kept.count < Self.capacity {
                // Number 1 is at index 1; index 0 is filled by number `capacity`.
                if state.kept.isEmpty { state.kept.append(noted) }
                state.kept.append(noted)
            } else {
                state.kept[Int(noted.id % Int64(Self.capacity))] = noted
            }
            return (state.sink, Array(state.listeners.values), noted)
        }
        sink?(noted)
        for listener in listeners { listener() }
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

    /// The number of the latest request.
    package var lastID: Int64 { state.withLock { $0.lastID } }

    /// Calls back, on any thread, whenever requests were noted; returns the argument for `stopListening`.
    package func listen(_ listener: @escaping @Sendable () -> Void) -> Int {
        state.withLock { state in
            state.lastListener += 1
            state.listeners[state.lastListener] = listener
            watch(state)
            return state.lastListener
        }
    }

    package func stopListening(_ number: Int) {
        state.withLock { state in
            state.listeners[number] = nil
            watch(state)
        }
    }

    /// Passes every request from now on to a sink, which must return at once; for the life of the process.
    package func setSink(_ sink: @escaping @Sendable (ServedRequest) -> Void) {
        state.withLock { state in
            state.sink = sink
            watch(state)
        }
    }

    /// Runs within the lock, so that no two changes are stored in the wrong order.
    private func watch(_ state: borrowing State) {
        let isWatched = state.sink != nil || !state.listeners.isEmpty
        watchedUntil.store(isWatched ? .max : state.askedUntil, ordering: .relaxed)
    }
}

extension RequestLog.State {
    fileprivate func requests(after id: Int64, limit: Int) -> (requests: [ServedRequest], last: Int64) {
        let first = max(id > lastID ? 0 : id, lastID - Int64(min(limit, RequestLog.capacity)))
        guard first < lastID else { return ([], lastID) }
        return ((first + 1...lastID).map { kept[Int($0 % Int64(RequestLog.capacity))] }, lastID)
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
    /// Path and query as they go upstream, redacted; as sent, if it matches no upstream.
    package var url: String
    /// The upstream's name; nil if it matches none.
    package var upstream: String?
    package var status = 0
    package var outcome = Outcome.error
    /// Larder's member of `Cache-Status`.
    package var cacheStatus: String?
    /// The `detail` in that member.
    package var detail: String?
    /// Bytes of the response's body.
    package var bytes = 0
    /// The time from the request's head to the response's last byte within Larder, in seconds.
    package var seconds = 0.0
    /// The upstream's share of that time, in seconds; nil if it was not asked.
    package var upstreamSeconds: Double?
    /// The digest of the cache key, if there is one.
    package var key: Digest128?

    /// The status of a request whose client left before the response began; nginx uses the same.
    package static let clientLeft = 499
    /// The maximum length of URLs in bytes; longer ones are cut.
    static let urlLimit = 4_096

    package init(client: ClientAddress, method: String, url: String, upstream: String?) {
        self.client = client
        self.method = method
        self.url = url.utf8.count <= Self.urlLimit ? url : String(url.prefix(Self.urlLimit / 4)) + "…"
        self.upstream = upstream
    }

    /// The digest as 32 hexadecimal digits.
    package var keyText: String? {
        key.map { $0.high.hexadecimal(width: 16) + $0.low.hexadecimal(width: 16) }
    }
}

/// The sender of a request: a machine's address, or the user at the other end of a Unix socket.
package struct ClientAddress: Sendable, Equatable {
    /// As `Request.peer`.
    let bytes: [UInt8]
    let isUser: Bool

    package init(peer: [UInt8], at entrance: BoundAddress) {
        bytes = peer
        isUser = if case .unix = entrance { true } else { false }
    }

    /// `127.0.0.1`, `::1`, `uid:1000`; `-` where it is unknown.
    package var text: String {
        if isUser, bytes.count == 4 { return "uid:\(bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) })" }
        guard bytes.count == 4 || bytes.count == 16 else { return "-" }
        var room = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(bytes.count == 4 ? AF_INET : AF_INET6, bytes, &room, socklen_t(room.count)) != nil else {
            return "-"
        }
        return room.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }
}

/// The clocks by which requests are timed.
enum RequestClock {
    /// A monotonic clock in nanoseconds.
    static var nanoseconds: UInt64 { read(CLOCK_MONOTONIC, 1_000_000_000) }

    /// Microseconds since 1970, for display.
    static var wall: Int64 { Int64(read(CLOCK_REALTIME, 1_000_000)) }

    private static func read(_ clock: clockid_t, _ unitsPerSecond: UInt64) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) * unitsPerSecond + UInt64(time.tv_nsec) / (1_000_000_000 / unitsPerSecond)
    }
}
