package import HTTPSemantics

/// A request as a value that can leave the worker's thread.
package struct Request: Sendable {
    package var method: String
    /// The target in origin form: path and query; `*` for `OPTIONS *`.
    package var target: String
    /// All field lines as they arrived, including hop-by-hop ones.
    package var fields: Fields
    /// Nil if there is no body.
    package var body: RequestBody?
    /// The client's address without its port, or the user at the other end of a Unix socket; empty if it was not looked up.
    package var peer: [UInt8] = []
}

/// A request with its reply; both may be used on any thread.
package struct Exchange: Sendable {
    package let request: Request
    package let reply: Reply

    package init(request: Request, reply: Reply) { (self.request, self.reply) = (request, reply) }
}

extension RequestHead {
    /// A copy of the head that may be kept and sent to any thread.
    package func owned(body: RequestBody? = nil) -> Request {
        var lines: [Field] = []
        lines.reserveCapacity(fieldCount)
        for index in 0..<fieldCount {
            let field = field(at: index)
            lines.append(Field(name: Array(field.name), value: Array(field.value)))
        }
        return Request(
            method: String(decoding: methodBytes, as: UTF8.self),
            target: String(decoding: target, as: UTF8.self),
            fields: Fields(lines),
            body: body
        )
    }
}

/// Serves the requests of one worker's connections; made once per worker and used on its thread only.
package protocol HTTPHandler: AnyObject {
    /// Serves a request now with `connection.respond(…)`, or takes it over with `connection.deferReply(request)`.
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
