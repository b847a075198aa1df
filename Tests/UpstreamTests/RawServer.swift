import Foundation
import Glibc
import Synchronization

/// A server of raw sockets: each connection is handed to a script on a thread of its own, which says every byte itself.
final class RawServer: Sendable {
    private struct State {
        var heads: [String] = []
        var connections = 0
        var open: Set<Int32> = []
        var isStopped = false
    }

    let port: Int
    private let listener: Int32
    private let state = Mutex(State())

    /// Listens on a free port of the loopback address, or on a Unix socket.
    init(unixPath: String? = nil, script: @escaping @Sendable (Connection) -> Void) {
        signal(SIGPIPE, SIG_IGN)
        if let unixPath {
            listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            Self.bind(listener, to: unixPath)
            port = 0
        } else {
            listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            port = Self.bindToFreePort(listener)
        }
        listen(listener, 1024)
        Thread.detachNewThread { [self] in
            acceptAll(script)
            // Here, not in `stop()`: the number of a closed descriptor is given to the next socket, whose connections this
            // thread would take if it came to accept only then.
            Glibc.close(listener)
        }
    }

    private static func bind(_ listener: Int32, to path: String) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                precondition(Glibc.bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0)
            }
        }
    }

    /// A free port that nobody else is given, and on which nobody listens, until the descriptor is closed.
    static func bound() -> (descriptor: Int32, port: Int) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        return (descriptor, bindToFreePort(descriptor))
    }

    private static func bindToFreePort(_ listener: Int32) -> Int {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                precondition(Glibc.bind(listener, $0, length) == 0)
                getsockname(listener, $0, &length)
            }
            return Int(UInt16(bigEndian: $0.pointee.sin_port))
        }
    }

    private func acceptAll(_ script: @escaping @Sendable (Connection) -> Void) {
        while true {
            let descriptor = accept(listener, nil, nil)
            if descriptor < 0 {
                // The client of a waiting connection may have given up.
                guard errno == EINTR || errno == ECONNABORTED else { return }
                continue
            }
            let number: Int? = state.withLock { state in
                if state.isStopped { return nil }
                defer { state.connections += 1 }
                state.open.insert(descriptor)
                return state.connections
            }
            guard let number else {
                Glibc.close(descriptor)
                return
            }
            let thread = Thread { [self] in
                let connection = Connection(number: number, descriptor: descriptor, server: self)
                script(connection)
                connection.close()
            }
            thread.stackSize = 256 << 10
            thread.start()
        }
    }

    func note(_ head: String) {
        state.withLock { $0.heads.append(head) }
    }

    func closed(_ descriptor: Int32) {
        state.withLock { _ = $0.open.remove(descriptor) }
        Glibc.close(descriptor)
    }

    /// The heads of all requests so far.
    var heads: [String] { state.withLock { $0.heads } }
    var connectionCount: Int { state.withLock { $0.connections } }
    var url: String { "http://127.0.0.1:\(port)" }

    /// Ends the server; scripts that wait for bytes get none.
    func stop() {
        state.withLock { state in
            state.isStopped = true
            for descriptor in state.open { shutdown(descriptor, Int32(SHUT_RDWR)) }
        }
        shutdown(listener, Int32(SHUT_RDWR))
    }
}
