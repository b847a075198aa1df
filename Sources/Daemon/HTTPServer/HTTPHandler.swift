package import HTTPSemantics

/// Serves the requests of one worker's connections; made once per worker and used on its thread only.
package protocol HTTPHandler: AnyObject {
    /// Serves a request now with `connection.respond(…)`, or takes it over with `connection.deferReply(…)`.
    ///
    /// `request` is invalid after this returns. A request that is neither served nor deferred gets a 500.
    func received(_ request: borrowing RequestHead, on connection: HTTPConnection)
}

/// An error of the server for the log.
package struct HTTPNotice: Sendable {
    /// Constant text; variable parts are in `details`.
    package var message: String
    package var details: [String: String]
}
