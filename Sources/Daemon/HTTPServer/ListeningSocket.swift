import EventLoops
import Glibc
package import HTTPSemantics

struct ListeningSocket: Sendable {
    let descriptor: Int32
    let address: Address

    private static let backlog: Int32 = 1024

    func close() { Glibc.close(descriptor) }

    // MARK: TCP

    /// Opens `count` sockets on each address of a host.
    ///
    /// Blocks while the name is resolved. The kernel distributes connections over sockets that share an address.
    ///
    /// - Parameter besideOwn: whether this process may listen on the port at another address that includes this one.
    static func tcp(host: String, port: UInt16, count: Int, besideOwn: Bool = false) throws(ListenError)
        -> [[ListeningSocket]]
    {
        let shown = "\(Address.tcp(host: host, port: port))"
        var port = port
        var opened: [[ListeningSocket]] = []
        var failure: ListenError?
        for candidate in try addresses(host: host, shown: shown) {
            do throws(ListenError) {
                let group = try share(candidate, port: port, count: count, shown: shown, besideOwn: besideOwn)
                // `localhost:0` means the same port on each of its addresses.
                port = group[0].address.port ?? port
                opened.append(group)
            } catch {
                // A machine without IPv6 can still listen on IPv4.
                guard case .system(_, _, let number) = error, number == EADDRNOTAVAIL || number == EAFNOSUPPORT else {
                    for group in opened { for socket in group { socket.close() } }
                    throw error
                }
                failure = error
            }
        }
        if opened.isEmpty { throw failure ?? .unknownHost(host, reason: "it has no address") }
        return opened
    }

    private static func addresses(host: String, shown: String) throws(ListenError) -> [SocketAddress] {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_PASSIVE
        var list: UnsafeMutablePointer<addrinfo>?
        let failure = getaddrinfo(host.isEmpty || host == "*" ? nil : host, "0", &hints, &list)
        guard failure == 0 else { throw .unknownHost(shown, reason: String(cString: gai_strerror(failure))) }
        defer { freeaddrinfo(list) }
        var found: [SocketAddress] = []
        var next = list
        while let entry = next {
            found.append(SocketAddress(entry.pointee.ai_addr, entry.pointee.ai_addrlen))
            next = entry.pointee.ai_next
        }
        return found
    }

    private static func share(
        _ address: SocketAddress,
        port: UInt16,
        count: Int,
        shown: String,
        besideOwn: Bool
    ) throws(ListenError) -> [ListeningSocket] {
        var address = address
        address.port = port
        // SO_REUSEPORT would let a second daemon of the same user join silently, and let the kernel choose a port in use.
        // So the first socket is bound without it, and the option is set afterwards for the others, and for addresses that a
        // reload adds beside this one.
        let first = try bind(address, sharesPort: besideOwn, shown: shown)
        address.port = first.address.port ?? port
        set(first.descriptor, SOL_SOCKET, SO_REUSEPORT)
        var group = [try first.listening(shown)]
        for _ in 1..<count {
            do throws(ListenError) {
                group.append(try bind(address, sharesPort: true, shown: shown).listening(shown))
            } catch {
                for socket in group { socket.close() }
                throw error
            }
        }
        return group
    }

    private static func bind(_ address: SocketAddress, sharesPort: Bool, shown: String) throws(ListenError)
        -> ListeningSocket
    {
        let descriptor = try open(address.family, shown)
        set(descriptor, SOL_SOCKET, SO_REUSEADDR)
        if sharesPort { set(descriptor, SOL_SOCKET, SO_REUSEPORT) }
        if address.family == AF_INET6 { set(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY) }
        // Accepted sockets inherit this option: responses go out at once.
        set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY)
        try bind(descriptor, address, shown)
        return ListeningSocket(descriptor: descriptor, address: SocketAddress.bound(descriptor).readable)
    }

    // MARK: Unix

    /// Opens a socket at a path, replacing a stale one.
    static func unix(path: String, mode: UInt16?, group: String?) throws(ListenError) -> ListeningSocket {
        let shown = "unix:\(path)"
        guard let address = SocketAddress(path: path) else { throw .pathTooLong(path) }
        try removeStale(path, address)
        let descriptor = try open(AF_UNIX, shown)
        try bind(descriptor, address, shown)
        // No client can connect before `listen`, so the permissions hold from the first connection on.
        let socket = ListeningSocket(descriptor: descriptor, address: .unix(path: path))
        do throws(ListenError) {
            try permit(path, mode: mode, group: group)
            return try socket.listening(shown)
        } catch {
            unlink(path)
            throw error
        }
    }

    /// Sets who may connect to a socket.
    static func permit(_ path: String, mode: UInt16?, group: String?) throws(ListenError) {
        if let group { try assign(path, to: group) }
        guard chmod(path, mode_t(mode ?? 0o600)) == 0 else {
            throw .system(address: "unix:\(path)", call: "chmod", errno: errno)
        }
    }

    private static func removeStale(_ path: String, _ address: SocketAddress) throws(ListenError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else { throw .notASocket(path: path) }
        let probe = try open(AF_UNIX, "unix:\(path)")
        defer { Glibc.close(probe) }
        let outcome = address.withPointer { pointer, count in
            SystemCall.retried { Int(connect(probe, pointer, count)) }
        }
        guard case .failed(ECONNREFUSED) = outcome else { throw .inUse("unix:\(path)") }
        unlink(path)
    }

    private static func assign(_ path: String, to group: String) throws(ListenError) {
        var entry = Glibc.group()
        var result: UnsafeMutablePointer<Glibc.group>?
        var room = [CChar](repeating: 0, count: 16 * 1024)
        getgrnam_r(group, &entry, &room, room.count, &result)
        guard result != nil else { throw .unknownGroup(group) }
        guard chown(path, uid_t.max, entry.gr_gid) == 0
        else { throw .system(address: "unix:\(path)", call: "chown", errno: errno) }
    }

    // MARK: Inherited

    /// Takes over a socket opened by another process, such as systemd.
    static func inherited(_ descriptor: Int32) throws(ListenError) -> ListeningSocket {
        var isListening: Int32 = 0
        var count = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &count) == 0, isListening != 0
        else { throw .notListening(descriptor: descriptor) }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        let address = SocketAddress.bound(descriptor)
        if address.family != AF_UNIX { set(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY) }
        return ListeningSocket(descriptor: descriptor, address: address.readable)
    }

    // MARK: Steps

    private static func open(_ family: Int32, _ shown: String) throws(ListenError) -> Int32 {
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        switch SystemCall.retried({ Int(socket(family, kind, 0)) }) {
        case .done(let descriptor): return Int32(descriptor)
        case .failed(let number): throw .system(address: shown, call: "socket", errno: number)
        }
    }

    private static func bind(_ descriptor: Int32, _ address: SocketAddress, _ shown: String) throws(ListenError) {
        let outcome = address.withPointer { pointer, count in
            SystemCall.retried { Int(Glibc.bind(descriptor, pointer, count)) }
        }
        if case .failed(let number) = outcome {
            Glibc.close(descriptor)
            throw number == EADDRINUSE ? .inUse(shown) : .system(address: shown, call: "bind", errno: number)
        }
    }

    private func listening(_ shown: String) throws(ListenError) -> ListeningSocket {
        if case .failed(let number) = SystemCall.retried({ Int(listen(descriptor, Self.backlog)) }) {
            close()
            throw number == EADDRINUSE ? .inUse(shown) : .system(address: shown, call: "listen", errno: number)
        }
        return self
    }

    private static func set(_ descriptor: Int32, _ level: Int32, _ option: Int32) {
        var on: Int32 = 1
        setsockopt(descriptor, level, option, &on, socklen_t(MemoryLayout<Int32>.size))
    }
}

enum SocketCall {
    /// Reads the bytes that have arrived; returns 0 at the end.
    static func receive(_ descriptor: Int32, _ memory: UnsafeMutableRawPointer, _ count: Int) -> SystemCall.Outcome<Int>
    {
        SystemCall.retried { recv(descriptor, memory, count, 0) }
    }

    static func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> SystemCall.Outcome<Int> {
        SystemCall.retried { Glibc.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Writes as much of several pieces as the socket accepts.
    static func send(_ descriptor: Int32, _ vectors: UnsafeMutableBufferPointer<iovec>) -> SystemCall.Outcome<Int> {
        var message = msghdr()
        message.msg_iov = vectors.baseAddress
        message.msg_iovlen = vectors.count
        return SystemCall.retried { sendmsg(descriptor, &message, Int32(MSG_NOSIGNAL)) }
    }

    /// Signals the end of output to the client, which may still send.
    static func endSending(_ descriptor: Int32) { _ = shutdown(descriptor, Int32(SHUT_WR)) }

    /// The number of sent bytes that the client's side has not acknowledged.
    static func unacknowledged(_ descriptor: Int32) -> Int {
        var count: Int32 = 0
        return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 ? Int(count) : 0
    }

    /// The number of bytes that have arrived and are not read yet.
    static func unread(_ descriptor: Int32) -> Int {
        var count: Int32 = 0
        return ioctl(descriptor, UInt(FIONREAD), &count) == 0 ? Int(count) : 0
    }

    /// Makes the next `close` a reset, which no client can mistake for a regular end.
    static func resetOnClose(_ descriptor: Int32) {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }
}

/// The server's address through which a connection came in.
package final class Entrance: Sendable {
    /// As bound.
    package let address: Address
    /// The address as it was given to `Server.listen`; nil for an inherited socket.
    package let configured: Address?

    init(address: Address, configured: Address?) { (self.address, self.configured) = (address, configured) }
}

/// The reason why an address cannot be listened on.
package enum ListenError: Error, Sendable, Equatable {
    case unknownHost(String, reason: String)
    case inUse(String)
    case notASocket(path: String)
    case pathTooLong(String)
    case unknownGroup(String)
    case notListening(descriptor: Int32)
    case system(address: String, call: String, errno: Int32)
}

extension ListenError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unknownHost(let host, let reason): "cannot listen on \(host): \(reason)"
        case .inUse(let address):
            "cannot listen on \(address): another process does already; --listen and --admin choose other addresses "
                + "(port 0: any free one)"
        case .notASocket(let path): "cannot listen on unix:\(path): there is a file of that name that is not a socket"
        case .pathTooLong(let path): "cannot listen on unix:\(path): a socket's path has at most 107 bytes"
        case .unknownGroup(let group): "there is no group \(group)"
        case .notListening(let descriptor): "descriptor \(descriptor) is not a listening stream socket"
        case .system(let address, "bind", EACCES) where !address.hasPrefix("unix:"):
            "cannot listen on \(address): ports below 1024 are for root; use a higher one"
        case .system(let address, let call, let errno):
            "cannot listen on \(address): \(call): \(SystemCall.message(errno))"
        }
    }
}
