import Glibc
import HTTPServer

/// A socket that the service manager opened for us.
package struct InheritedListener: Sendable, Equatable {
    package let descriptor: Int32
    /// The unit's `FileDescriptorName=`; without one, the name of its socket unit; `unknown` when the manager gave none.
    let name: String
    let address: BoundAddress
}

/// Why an inherited descriptor cannot be listened on.
package enum ListenDescriptorsError: Error, Equatable, CustomStringConvertible {
    case notOpen(descriptor: Int32)
    case notListening(descriptor: Int32, name: String)

    package var description: String {
        switch self {
        case .notOpen(let descriptor):
            "LISTEN_FDS promises descriptor \(descriptor), which is not open: is LISTEN_FDS set by hand?"
        case .notListening(let descriptor, let name):
            "descriptor \(descriptor) (\(name)) from the service manager is not a listening stream socket: use ListenStream= with Accept=no"
        }
    }
}

/// The sockets handed over by a service manager (sd_listen_fds(3)).
package enum ListenDescriptors {
    /// The first descriptor of the protocol.
    static let first: Int32 = 3

    /// Takes the inherited sockets, and takes their variables out of the environment so that no child believes them its own.
    ///
    /// Call it once, at start, while the process has one thread: changing the environment is not safe later.
    package static func take(
        environment: [String: String],
        process: Int32 = getpid(),
        first: Int32 = first
    ) throws(ListenDescriptorsError) -> [InheritedListener] {
        for variable in ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"] { unsetenv(variable) }
        guard environment["LISTEN_PID"].flatMap({ Int32($0) }) == process,
            let count = environment["LISTEN_FDS"].flatMap({ Int32($0) }), count > 0, count < 1024
        else { return [] }
        let names = (environment["LISTEN_FDNAMES"] ?? "").split(separator: ":", omittingEmptySubsequences: false)
        var listeners: [InheritedListener] = []
        for index in 0..<count {
            let descriptor = first + index
            let name = Int(index) < names.count && !names[Int(index)].isEmpty ? String(names[Int(index)]) : "unknown"
            let flags = fcntl(descriptor, F_GETFD)
            guard flags >= 0 else { throw .notOpen(descriptor: descriptor) }
            _ = fcntl(descriptor, F_SETFD, flags | FD_CLOEXEC)
            guard option(SO_ACCEPTCONN, of: descriptor) == 1,
                option(SO_TYPE, of: descriptor) == Int32(SOCK_STREAM.rawValue)
            else { throw .notListening(descriptor: descriptor, name: name) }
            let address = SocketAddress.bound(descriptor).boundAddress
            listeners.append(InheritedListener(descriptor: descriptor, name: name, address: address))
        }
        return listeners
    }

    private static func option(_ option: Int32, of descriptor: Int32) -> Int32? {
        var value: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, SOL_SOCKET, option, &value, &length) == 0 ? value : nil
    }
}

extension [InheritedListener] {
    /// Tells the two sides apart.
    ///
    /// The names `data` and `admin` decide; without them, whatever is bound to one of the admin addresses of the config
    /// (`127.0.0.1:8788`, `unix:/run/larder/admin.sock`) is the admin side, everything else serves data.
    package func sorted(adminAddresses: [String]) -> (data: [InheritedListener], admin: [InheritedListener]) {
        var data: [InheritedListener] = []
        var admin: [InheritedListener] = []
        for listener in self {
            let isAdmin =
                listener.name == "admin" || (listener.name != "data" && adminAddresses.contains("\(listener.address)"))
            if isAdmin { admin.append(listener) } else { data.append(listener) }
        }
        return (data, admin)
    }
}
