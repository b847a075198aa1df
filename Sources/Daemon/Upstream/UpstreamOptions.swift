/// How an upstream client behaves; every property has a default that suits a REST API.
package struct UpstreamOptions: Sendable {
    /// Sent as `User-Agent` where the request has none; none by default.
    var userAgent: String?
    /// The times a request may take, where it brings none of its own.
    package var timeouts = UpstreamTimeouts()
    /// The most that a response's head may have, interim responses included, in bytes; libcurl allows no more than 300 KiB.
    package var maxHeadBytes = 256 << 10
    /// The file with the certificates of trusted authorities (PEM); the system's if nil.
    package var caFile: String?
    package var proxy = ProxyChoice.environment
    /// Requests of one client under way at a time, uploads apart, and so connections over HTTP/1.1; further ones wait; 0 for no
    /// limit.
    package var maxConnectionsPerHost = 256
    /// Uploads of one client under way at a time, on connections besides; further ones wait; 0 for no limit.
    package var maxUploads = 128
    /// Bytes a second: what moves more slowly is ended while others wait for its slot.
    package var minimumRate = 1 << 10
    /// How many idle connections, of all hosts, are kept for reuse.
    var maxIdleConnections = 64
    /// How long a connection may have been idle to carry an unsafe request, or one with a body, in whole seconds; libcurl
    /// rounds the idle time down, so that 1 s means less than two.
    ///
    /// Such a request is not repeated if the server closes the connection at this very moment, which servers do to
    /// connections that have been idle for some time; a fresh connection is made instead.
    var unsafeReuseAge: Duration = .seconds(1)
    /// Whether HTTP/2 is offered over TLS.
    package var http2 = true

    package init() {}

    /// The way to the upstream.
    package enum ProxyChoice: Sendable, Equatable {
        /// As `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy` say.
        case environment
        case none
        /// A proxy's URL, such as `http://proxy:3128` or `socks5h://proxy`.
        case url(String)
    }
}

/// How long the steps of a request may take.
package struct UpstreamTimeouts: Sendable, Equatable {
    /// For name resolution, the connection and its TLS handshake together.
    package var connect: Duration = .seconds(5)
    /// For a place among the connections that may be open.
    var queue: Duration = .seconds(30)
    /// From the whole request sent, or the last interim response, to the response's whole head.
    package var firstByte: Duration = .seconds(30)
    /// Between two pieces of the body; nil for no limit, as event streams want it.
    package var stall: Duration? = .seconds(30)
}
