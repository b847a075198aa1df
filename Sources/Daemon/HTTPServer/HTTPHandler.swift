package import HTTPSemantics

/// What answers the requests of one worker's connections; made once per worker and used on its thread only.
package protocol HTTPHandler: AnyObject {
    /// Answers a request, or takes it along: `connection.respond(…)` now, or `connection.deferReply(request)`.
    ///
    /// `request` is gone when this returns. A request that is neither answered nor deferred is answered 500.
    func received(_ request: borrowing RequestHead, on connection: HTTPConnection)
}

/// Something a server wants written to the log.
package struct HTTPNotice: Sendable {
    package enum Level: Sendable { case warning, error }

    package var level: Level
    /// Constant text; what varies is in `details`.
    package var message: String
    package var details: [String: String]
}
