import Glibc

/// What the kernel knows of one TCP socket at one moment.
///
/// libcurl tells that a connection is gone; this tells how far a request had got on it.
struct SocketFacts: Equatable {
    /// All bytes that the other side's kernel has acknowledged.
    var acknowledged: UInt64
    /// Bytes handed to our kernel that are not acknowledged yet.
    var unacknowledged: UInt64
    /// All bytes received, read or not; the other side's FIN counts as one.
    var received: UInt64
    /// The connection's state in the kernel's numbers.
    var state: UInt8

    /// Nil for sockets that are not TCP.
    init?(_ socket: Int32) {
        // Linux's `tcp_info` up to `tcpi_bytes_received`, which glibc's older declaration of the structure lacks.
        let size = 136
        var length = socklen_t(size)
        let facts = withUnsafeTemporaryAllocation(byteCount: size, alignment: 8) { room -> SocketFacts? in
            let failed = getsockopt(socket, Int32(IPPROTO_TCP), TCP_INFO, room.baseAddress, &length)
            guard failed == 0, Int(length) >= size else { return nil }
            return SocketFacts(
                acknowledged: room.load(fromByteOffset: 120, as: UInt64.self),
                unacknowledged: 0,
                received: room.load(fromByteOffset: 128, as: UInt64.self),
                state: room.load(as: UInt8.self)
            )
        }
        guard var facts else { return nil }
        var waiting: Int32 = 0
        if ioctl(socket, UInt(TIOCOUTQ), &waiting) == 0 { facts.unacknowledged = UInt64(max(0, waiting)) }
        self = facts
    }

    init(acknowledged: UInt64, unacknowledged: UInt64, received: UInt64, state: UInt8) {
        self.acknowledged = acknowledged
        self.unacknowledged = unacknowledged
        self.received = received
        self.state = state
    }

    /// `TCP_CLOSE`: after a reset, whether or not a FIN came before it.
    private static let closed: UInt8 = 7
    /// `TCP_TIME_WAIT`, `TCP_CLOSE_WAIT`, `TCP_LAST_ACK`, `TCP_CLOSING`.
    private static let statesAfterFIN: Set<UInt8> = [6, 8, 9, 11]

    /// Whether the other side has acknowledged anything that was sent since the earlier facts.
    func hasAcknowledgedMore(than before: SocketFacts) -> Bool {
        acknowledged > before.acknowledged + before.unacknowledged
    }

    /// Whether a byte of an answer has come since the earlier facts.
    func hasReceivedMore(than before: SocketFacts) -> Bool {
        guard received > before.received else { return false }
        if received - before.received > 1 { return true }
        if Self.statesAfterFIN.contains(state) { return false }
        // After a reset the one byte may have been a FIN; a byte of an answer would have brought an acknowledgement.
        return state != Self.closed || hasAcknowledgedMore(than: before)
    }

    /// What became of the request that was sent on the connection since the earlier facts, now that it is gone.
    func fate(since before: SocketFacts) -> RequestFate {
        if hasAcknowledgedMore(than: before) { return .received }
        let hasFIN = Self.statesAfterFIN.contains(state) || received > before.received
        return hasFIN ? .notReceived : .unknown
    }

    /// Whether bytes wait to be read, where nothing else is known of a socket.
    static func hasBytes(_ socket: Int32) -> Bool {
        var byte: UInt8 = 0
        return recv(socket, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
    }
}

/// What became of a request whose connection from the pool ended without a byte of an answer.
///
/// - A server that ends an idle connection sends a FIN. If that acknowledges nothing of the request, the server had closed
///   before the request came, and will never read it.
/// - A server that has read all there was and then closes sends a FIN that acknowledges the request.
/// - A server that closes with the request still unread resets the connection, and so does a network that has forgotten it;
///   mostly before anything was acknowledged, which takes some 40 ms when nobody reads. Only a server that reads and then,
///   within that time, resets on purpose looks the same.
/// - A reset after an acknowledgement may come from a server that has read the request: nothing is risked.
enum RequestFate: Sendable, Equatable {
    /// The upstream has it, or a part of it: it is not sent again.
    case received
    /// The upstream closed before it came: any request may be sent again.
    case notReceived
    /// The connection was reset before anything was acknowledged: what is idempotent may be sent again (RFC 9110 §9.2.2).
    case unknown

    /// Whether the request may be sent again.
    func permitsRepeating(isIdempotent: Bool) -> Bool {
        switch self {
        case .received: false
        case .notReceived: true
        case .unknown: isIdempotent
        }
    }
}
