import Glibc
import HTTPSemantics
package import HTTPServer
package import Store

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
