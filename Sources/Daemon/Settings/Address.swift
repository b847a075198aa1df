/// Where to listen or connect: `HOST:PORT`, `[IPv6]:PORT` or `unix:PATH`.
package enum Address: Sendable, Hashable, CustomStringConvertible {
    case tcp(host: String, port: UInt16)
    /// Permission bits and group name apply to listening only; nil leaves what the process has.
    case unix(path: String, mode: UInt16? = nil, group: String? = nil)

    /// Reads an address; the error says what to write instead.
    package init(_ text: String) throws(AddressError) {
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            guard !path.isEmpty else { throw AddressError("\"unix:\" needs a path after it") }
            guard !path.utf8.contains(0) else { throw AddressError("a socket path has no NUL in it") }
            // sockaddr_un holds 108 bytes, the final NUL among them.
            guard path.utf8.count < 108 else {
                throw AddressError("the socket path is \(path.utf8.count) bytes long; Linux takes 107 at most")
            }
            self = .unix(path: path)
            return
        }
        if text.hasPrefix("/") { throw AddressError("\"\(text)\" looks like a socket's path; write \"unix:\(text)\"") }
        if text.contains("://") { throw AddressError("\"\(text)\" is a URL; write HOST:PORT or unix:PATH") }
        guard let colon = text.lastIndex(of: ":") else {
            throw AddressError("\"\(text)\" has no port; write HOST:PORT, for example \"127.0.0.1:8787\", or unix:PATH")
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            throw AddressError("\"\(text)\" is ambiguous; write an IPv6 address in brackets: \"[\(host)]:PORT\"")
        }
        guard !host.isEmpty else {
            throw AddressError(
                "\"\(text)\" has no host; write \"127.0.0.1\(text)\" (or \"0.0.0.0\(text)\" for every interface)"
            )
        }
        let digits = text[text.index(after: colon)...]
        guard digits.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }), let port = UInt16(digits) else {
            throw AddressError("\"\(digits)\" is not a port; a port is a number from 0 to 65535 (0: any free one)")
        }
        guard host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "@") })
        else {
            throw AddressError("\"\(host)\" is not a host name or address")
        }
        self = .tcp(host: String(host), port: port)
    }

    /// The spelling that `init` reads.
    package var description: String {
        switch self {
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .unix(let path, _, _): "unix:\(path)"
        }
    }

    /// Whether only programs on this machine reach it.
    var isLocal: Bool {
        switch self {
        case .unix: true
        case .tcp(let host, _): host == "localhost" || host == "::1" || host.hasPrefix("127.")
        }
    }
}

/// What is wrong with an address.
package struct AddressError: Error, Equatable, CustomStringConvertible {
    package let description: String

    init(_ description: String) {
        self.description = description
    }
}
