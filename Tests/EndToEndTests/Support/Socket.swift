import Glibc
import Synchronization
import TestSupport

/// What can go wrong on a socket, as a test sees it.
enum SocketError: Error, Equatable, CustomStringConvertible {
    case refused
    case timedOut
    case reset
    case closed
    case system(call: String, code: Int32)

    var description: String {
        switch self {
        case .refused: "the connection was refused"
        case .timedOut: "nothing happened in time"
        case .reset: "the peer reset the connection"
        case .closed: "the peer closed the connection early"
        case .system(let call, let code): "\(call): \(String(cString: strerror(code)))"
        }
    }
}

/// One stream socket, closed with its owner.
///
/// Other threads may `shutDown()` it; only its owner closes it, so that a descriptor's number is never reused under a reader.
final class Socket: Sendable {
    let descriptor: Int32

    init(adopting descriptor: Int32) { self.descriptor = descriptor }

    deinit { Glibc.close(descriptor) }

    // MARK: Making one

    /// Takes a port of 127.0.0.1 without listening on it, 0 being any free one.
    ///
    /// Whoever connects is refused, and nobody else is given it. ``listen(port:backlog:)`` may have it as well.
    static func bound(port: UInt16 = 0) throws(SocketError) -> Socket {
        let socket = try make(AF_INET)
        try socket.set(SOL_SOCKET, SO_REUSEADDR, 1)
        try socket.set(SOL_SOCKET, SO_REUSEPORT, 1)
        let code = withLoopback(port) { bind(socket.descriptor, $0, $1) }
        guard code == 0 else { throw .system(call: "bind", code: errno) }
        return socket
    }

    /// Listens on 127.0.0.1; port 0 takes a free one.
    static func listen(port: UInt16 = 0, backlog: Int32 = 512) throws(SocketError) -> Socket {
        let socket = try bound(port: port)
        guard Glibc.listen(socket.descriptor, backlog) == 0 else { throw .system(call: "listen", code: errno) }
        return socket
    }

    /// Listens on a Unix-domain path.
    static func listen(unix path: String) throws(SocketError) -> Socket {
        let socket = try make(AF_UNIX)
        let code = withUnixAddress(path) { bind(socket.descriptor, $0, $1) }
        guard code == 0 else { throw .system(call: "bind", code: errno) }
        guard Glibc.listen(socket.descriptor, 512) == 0 else { throw .system(call: "listen", code: errno) }
        return socket
    }

    static func connect(port: UInt16) throws(SocketError) -> Socket {
        let socket = try make(AF_INET)
        try socket.set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
        let code = withLoopback(port) { Glibc.connect(socket.descriptor, $0, $1) }
        guard code == 0 else { throw errno == ECONNREFUSED ? .refused : .system(call: "connect", code: errno) }
        return socket
    }

    static func connect(unix path: String) throws(SocketError) -> Socket {
        let socket = try make(AF_UNIX)
        let code = withUnixAddress(path) { Glibc.connect(socket.descriptor, $0, $1) }
        guard code == 0 else {
            throw errno == ECONNREFUSED || errno == ENOENT ? .refused : .system(call: "connect", code: errno)
        }
        return socket
    }

    /// A free port for a program that is given its number.
    ///
    /// It is kept until the tests end, so that no other test's server or connection gets it before that program binds it.
    /// The program must set `SO_REUSEADDR`, as nearly all servers do.
    static func freePort() throws(SocketError) -> UInt16 {
        let socket = try bound()
        kept.withLock { $0.append(socket) }
        return socket.port
    }

    private static let kept = Mutex<[Socket]>([])

    // MARK: Using it

    /// The local port.
    var port: UInt16 {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutableBytes(of: &address) {
            _ = getsockname(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length)
        }
        return UInt16(bigEndian: address.sin_port)
    }

    /// Waits for the next connection; nil once the listener has been shut down.
    func accept() -> Socket? {
        while true {
            let accepted = GNU.accept4(descriptor, flags: Int32(SOCK_CLOEXEC.rawValue))
            if accepted >= 0 {
                let socket = Socket(adopting: accepted)
                try? socket.set(Int32(IPPROTO_TCP), TCP_NODELAY, 1)
                return socket
            }
            guard errno == EINTR || errno == ECONNABORTED else { return nil }
        }
    }

    func send(_ bytes: some Sequence<UInt8>) throws(SocketError) {
        let bytes = Array(bytes)
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress! + sent, $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count > 0 {
                sent += count
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN: throw .timedOut
            case ECONNRESET, EPIPE: throw .reset
            default: throw .system(call: "send", code: errno)
            }
        }
    }

    /// What has arrived, at most `limit` bytes; empty at the end of the stream.
    func receive(_ limit: Int = 65_536) throws(SocketError) -> [UInt8] {
        while true {
            var code: Int32 = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
                let received = recv(descriptor, buffer.baseAddress!, limit, 0)
                code = received < 0 ? errno : 0
                count = max(received, 0)
            }
            switch code {
            case 0: return bytes
            case EINTR: continue
            case EAGAIN: throw .timedOut
            case ECONNRESET: throw .reset
            default: throw .system(call: "recv", code: code)
            }
        }
    }

    /// How long `receive` and `send` wait.
    func limit(_ duration: Duration) throws(SocketError) {
        let (seconds, attoseconds) = duration.components
        var value = timeval(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(descriptor, SOL_SOCKET, option, &value, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    /// How much the kernel buffers for the peer; small values make a reader that lags felt soon.
    func receiveBuffer(_ bytes: Int32) throws(SocketError) { try set(SOL_SOCKET, SO_RCVBUF, bytes) }

    /// Makes the close that follows a reset instead of an orderly end.
    func resetOnClose() {
        var value = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &value, socklen_t(MemoryLayout<linger>.size))
    }

    /// Ends both directions and wakes whoever is blocked on the socket; any thread.
    func shutDown() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// Says that nothing more will be sent.
    func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    // MARK: Addresses

    private static func make(_ family: Int32) throws(SocketError) -> Socket {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw .system(call: "socket", code: errno) }
        return Socket(adopting: descriptor)
    }

    private func set(_ level: Int32, _ option: Int32, _ value: Int32) throws(SocketError) {
        var value = value
        let code = setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
        guard code == 0 else { throw .system(call: "setsockopt", code: errno) }
    }

    private static func withLoopback(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return withUnsafeBytes(of: &address) {
            body($0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
    }

    static func withUnixAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        return withUnsafeBytes(of: &address) {
            body($0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count))
        }
    }
}
