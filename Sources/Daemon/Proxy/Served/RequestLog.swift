import Glibc
import HTTPSemantics
package import HTTPServer
package import Store
import Synchronization

/// The last requests and what they were given, for those who watch.
///
/// Requests that pass `ProxyCore` are always noted. Hits from memory are noted only while somebody watches: the access log is
/// on, a stream follows, or the list was asked for within the last minute. Otherwise a hit costs one relaxed load here.
///
/// Any thread. Bounded: the oldest make room.
package final class RequestLog: Sendable {
    /// How many requests are kept.
    package static let capacity = 1_000
    /// For how long hits are noted after the list was asked for.
    private static let attention: UInt64 = 60_000_000_000

    /// Until when hits are noted, in ns of the monotonic clock.
    private let watchedUntil = Atomic<UInt64>(0)
    fileprivate let state = Mutex(State())

    fileprivate struct State {
        /// The request with number n is at n % capacity.
        var kept: [ServedRequest] = []
        var lastID: Int64 = 0
        /// Who gets every request as it is noted.
        var sink: (@Sendable (ServedRequest) -> Void)?
        /// Who hears that there are new ones.
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

    /// Notes a request that is over.
    func note(_ request: ServedRequest) {
        let (sink, listeners, noted) = state.withLock { state in
            var noted = request
            state.lastID += 1
            noted.id = state.lastID
            if state.kept.count < Self.capacity {
                // The number 1 is at 1: the first place is filled by the number `capacity`.
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

    /// Those after a number, the oldest first; hits are noted for the next minute.
    ///
    /// A number that was never given is one of an earlier run of the daemon: everything came after it.
    ///
    /// - Parameter limit: if more are kept, the last ones are given.
    package func requests(after id: Int64, limit: Int) -> (requests: [ServedRequest], last: Int64) {
        state.withLock { state in
            state.askedUntil = RequestClock.nanoseconds + Self.attention
            watch(state)
            return state.requests(after: id, limit: limit)
        }
    }

    /// The same for a listener, who watches anyway: all that are kept.
    package func requests(after id: Int64) -> (requests: [ServedRequest], last: Int64) {
        state.withLock { $0.requests(after: id, limit: Self.capacity) }
    }

    /// The number of the last one.
    package var lastID: Int64 { state.withLock { $0.lastID } }

    /// Calls back, on any thread, whenever requests were noted; gives what `stopListening` takes.
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

    /// Has every request from now on given to a sink, which returns at once; for the life of the process.
    package func setSink(_ sink: @escaping @Sendable (ServedRequest) -> Void) {
        state.withLock { state in
            state.sink = sink
            watch(state)
        }
    }

    /// Within the lock, so that no two changes are stored in the wrong order.
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

/// One request of a client and what it was given, for people: in the access log, in `/requests`, on the dashboard.
///
/// Nothing in it is secret: the URL is that of the cache key, in which credentials are redacted.
package struct ServedRequest: Sendable, Equatable {
    /// Counts up from 1 since the daemon started.
    package var id: Int64 = 0
    /// When its head had been read, in µs since 1970.
    package var time: Int64 = 0
    package var client: ClientAddress
    package var method: String
    /// Path and query as they go upstream, redacted; as sent, where no upstream has the address.
    package var url: String
    /// The upstream's name; nil where none has the address.
    package var upstream: String?
    package var status = 0
    package var outcome = Outcome.error
    /// Larder's member of `Cache-Status`.
    package var cacheStatus: String?
    /// What `Cache-Status` says in `detail`.
    package var detail: String?
    /// Bytes of the response's body.
    package var bytes = 0
    /// From the request's head to the response's last byte, as far as Larder is concerned.
    package var seconds = 0.0
    /// How much of that the upstream took; nil where it was not asked.
    package var upstreamSeconds: Double?
    /// The digest of the cache key; nil where there is none.
    package var key: Digest128?

    /// The status of a request whose client left before the response began; nginx's.
    package static let clientLeft = 499
    /// URLs are cut to so many bytes.
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

/// Who sent a request: the address of the machine, or the user at the other end of a Unix socket.
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
    /// Nanoseconds that only grow.
    static var nanoseconds: UInt64 { read(CLOCK_MONOTONIC, 1_000_000_000) }

    /// Microseconds since 1970, to show to people.
    static var wall: Int64 { Int64(read(CLOCK_REALTIME, 1_000_000)) }

    private static func read(_ clock: clockid_t, _ unitsPerSecond: UInt64) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) * unitsPerSecond + UInt64(time.tv_nsec) / (1_000_000_000 / unitsPerSecond)
    }
}
