import EventLoops

/// Where to listen, as configured.
package enum ListenAddress: Sendable, Equatable {
    /// A host name or numeric address (IPv6 without brackets; empty for all), and a port; 0 lets the kernel choose.
    case tcp(host: String, port: UInt16)
    /// A path, the socket's permissions, and its group by name; nil leaves the group as it is.
    case unix(path: String, mode: UInt32 = 0o600, group: String? = nil)
    /// A listening socket that somebody else has opened.
    case inherited(descriptor: Int32)
}

extension ListenAddress: CustomStringConvertible {
    package var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path, _, _): "unix:\(path)"
        case .inherited(let descriptor): "descriptor \(descriptor)"
        }
    }
}

/// Where a server does listen.
package enum BoundAddress: Sendable, Hashable {
    case tcp(host: String, port: UInt16)
    case unix(path: String)

    var port: UInt16? {
        if case .tcp(_, let port) = self { port } else { nil }
    }
}

extension BoundAddress: CustomStringConvertible {
    package var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}

/// Where a connection came in: which of a server's addresses.
package final class Entrance: Sendable {
    package let address: BoundAddress
    /// The address as it was given to `HTTPServer.listen`.
    package let configured: ListenAddress

    init(address: BoundAddress, configured: ListenAddress) {
        self.address = address
        self.configured = configured
    }
}

/// Why an address cannot be listened on.
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
        case .inUse(let address): "cannot listen on \(address): somebody listens there already"
        case .notASocket(let path): "cannot listen on unix:\(path): there is a file of that name that is not a socket"
        case .pathTooLong(let path): "cannot listen on unix:\(path): a socket's path has at most 107 bytes"
        case .unknownGroup(let group): "there is no group \(group)"
        case .notListening(let descriptor): "descriptor \(descriptor) is not a listening stream socket"
        case .system(let address, let call, let errno):
            "cannot listen on \(address): \(call): \(SystemCall.message(errno))"
        }
    }
}
