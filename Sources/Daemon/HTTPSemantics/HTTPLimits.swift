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
    /// Connections of one server; beyond: 503.
    package var maxConnections = 4096

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
    /// Requests of one connection served in one turn of the loop, before those of others.
    package var requestsPerTurn = 64
    /// Connections accepted from one listener in one turn of the loop.
    package var acceptsPerTurn = 32

    package init() {}
}
