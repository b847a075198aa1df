/// The limits of the inbound HTTP server, with their defaults and the response to a request that exceeds one.
package struct HTTPLimits: Sendable, Equatable {
    /// Bytes of a request target; beyond: 414.
    package var maxTarget = 8192
    /// Bytes of a request line and its fields together; beyond: 431.
    package var maxHead = 32 * 1024
    /// Field lines of a request; beyond: 431.
    package var maxFields = 100
    /// Bytes of a request body, without chunked coding; beyond: 413.
    package var maxBody = 1 << 30
    /// Connections of one server; beyond: one that is idle, or whose request is not complete, is closed, or the new one gets 503.
    package var maxConnections = 4096
    /// Connections above `maxConnections` that are accepted, to be refused with a 503; beyond: they are closed.
    package var maxSurplus = 1_024
    /// How long a connection must have been idle to be closed for a new one.
    package var idleBeforeClosing: Duration = .seconds(1)

    /// From the first byte of a head to its last; beyond: 408.
    package var headTimeout: Duration = .seconds(10)
    /// Between two parts of a body that is being read; beyond: 408.
    package var bodyIdle: Duration = .seconds(30)
    /// Between a response and the next request; beyond: the connection is closed.
    package var idle: Duration = .seconds(75)
    /// The time in which a client must accept at least one byte of its response; beyond: the connection is cut.
    package var writeStall: Duration = .seconds(60)
    /// How long a closing connection still reads, so that the client can receive the reason.
    package var linger: Duration = .seconds(3)

    /// Bytes of a request body held in memory before reading pauses.
    package var bodyWindow = 256 * 1024
    /// Bytes of requests and responses that wait on the connections of one worker, from which on a connection holds one response
    /// and the beginning of its next requests.
    package var buffered = 16 << 20
    /// Requests of one connection served in one turn of the loop, before those of others.
    package var requestsPerTurn = 64
    /// Connections accepted from one listener in one turn of the loop.
    package var acceptsPerTurn = 32

    package init() {}
}

/// How requests are sent to an upstream, with the defaults, which suit a REST API.
package struct UpstreamOptions: Sendable, Equatable {
    package var timeouts = UpstreamTimeouts()
    /// Bytes of a response's head, interim responses included, of which libcurl allows at most 300 KiB; beyond: 502.
    package var maxHeadBytes = 256 << 10
    /// A file with the certificates of trusted authorities (PEM); nil for the system's.
    package var caFile: String?
    package var proxy = ProxyChoice.environment
    /// The maximum number of requests of one client under way, and so of its connections over HTTP/1.1.
    ///
    /// Uploads count separately. Further requests wait; 0 means no limit.
    package var maxConnectionsPerHost = 256
    /// The maximum number of requests of one credential under way, uploads included; further ones wait; 0 for no limit.
    package var maxPerCredential = 0
    /// The maximum number of uploads of one client under way, on additional connections; further ones wait; 0 for no limit.
    package var maxUploads = 128
    /// The minimum speed in bytes per second, below which a request is ended while others wait for its slot.
    package var minimumRate = 1 << 10
    /// The number of idle connections, of all hosts, kept for reuse.
    package var maxIdleConnections = 64
    /// The longest idle time of a connection for an unsafe request, or one with a body, in whole seconds.
    ///
    /// libcurl rounds the idle time down, so 1 s means less than two. Such a request cannot be repeated if the server closes the
    /// connection at this very moment, which servers do to idle connections. So a new connection is made instead.
    package var unsafeReuseAge: Duration = .seconds(1)
    /// Whether HTTP/2 is offered over TLS.
    package var http2 = false

    package init() {}

    package enum ProxyChoice: Sendable, Equatable {
        /// The proxy named by `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`.
        case environment
        case none
        /// A proxy's URL, such as `http://proxy:3128` or `socks5h://proxy`.
        case url(String)
    }
}

/// The time limits for the steps of a request to an upstream.
package struct UpstreamTimeouts: Sendable, Equatable {
    /// For name resolution, the connection and its TLS handshake together.
    package var connect: Duration = .seconds(5)
    /// For the wait for a connection slot.
    package var queue: Duration = .seconds(30)
    /// From the end of the request, or the last interim response, to the response's complete head.
    package var firstByte: Duration = .seconds(30)
    /// Between two pieces of the body; nil for no limit, as event streams need it.
    package var stall: Duration? = .seconds(30)

    /// The limits that an upstream or a route sets itself; nil for those of the level above.
    package struct Changes: Sendable, Equatable {
        package var connect: Duration?
        package var firstByte: Duration?
        package var stall: Duration?

        package init() {}
    }

    /// These limits with an upstream's or a route's own.
    package func applying(_ changes: Changes) -> UpstreamTimeouts {
        var timeouts = self
        timeouts.connect = changes.connect ?? connect
        timeouts.firstByte = changes.firstByte ?? firstByte
        timeouts.stall = changes.stall ?? stall
        return timeouts
    }
}
