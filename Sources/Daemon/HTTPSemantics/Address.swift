/// An address to listen at or connect to: `HOST:PORT`, `[IPv6]:PORT` or `unix:PATH`.
package enum Address: Sendable, Hashable, CustomStringConvertible {
    /// A host name or numeric address (IPv6 without brackets; empty for all), and a port; 0 lets the kernel choose.
    case tcp(host: String, port: UInt16)
    /// Permission bits and group name are for listening only: nil means 0600, and the process's own group.
    case unix(path: String, mode: UInt16? = nil, group: String? = nil)

    /// The text form, as in a config.
    package var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path, _, _): "unix:\(path)"
        }
    }

    package var isUnix: Bool { if case .unix = self { true } else { false } }

    package var port: UInt16? { if case .tcp(_, let port) = self { port } else { nil } }
}
