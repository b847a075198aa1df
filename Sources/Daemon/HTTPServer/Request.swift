package import HTTPSemantics

/// A request as a value: what leaves the worker when it cannot be answered at once.
package struct Request: Sendable {
    package var method: String
    /// The target in origin form: path and query; `*` for `OPTIONS *`.
    package var target: String
    var form: TargetForm
    /// The authority asked for: that of an absolute-form target, else the Host field's.
    var authority: String?
    /// All field lines as they arrived, hop-by-hop ones included.
    package var fields: Fields
    /// Nil when no body follows.
    package var body: RequestBody?
    /// The address of the client without its port, or the user at the other end of a Unix socket; empty where nobody asked.
    package var peer: [UInt8] = []

    var isAbsoluteForm: Bool { form == .absolute }
}

/// A request and the means to answer it, both good for any thread.
package struct Exchange: Sendable {
    package let request: Request
    package let reply: Reply

    package init(request: Request, reply: Reply) {
        self.request = request
        self.reply = reply
    }
}

extension RequestHead {
    /// The head as a value that may be kept and sent anywhere.
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
            form: form,
            authority: authority.map { String(decoding: $0, as: UTF8.self) },
            fields: Fields(lines),
            body: body
        )
    }
}

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
