/// An answer of Larder's own that tells a program and a person what went wrong (RFC 9457).
struct Problem: Error, Sendable {
    static let mediaType = "application/problem+json"

    let status: Int
    /// The same words for every problem of this kind.
    let title: String
    /// What happened this time, and what to do about it.
    let detail: String
    /// Fields of the answer besides the media type, such as `Allow`.
    var fields = Fields()

    init(_ status: Int, _ title: String, _ detail: String, fields: Fields = Fields()) {
        self.status = status
        self.title = title
        self.detail = detail
        self.fields = fields
    }

    /// The document.
    ///
    /// Its `type` is the default, `about:blank`: the status says what kind of problem it is.
    var body: [UInt8] {
        let document: JSONText = [
            "type": "about:blank", "title": .string(title), "status": .integer(status), "detail": .string(detail),
        ]
        return document.bytes + [0x0A]
    }
}

extension Problem {
    static func badRequest(_ detail: String) -> Problem {
        Problem(400, "Bad request", detail)
    }

    static func notFound(_ detail: String) -> Problem {
        Problem(404, "Not found", detail)
    }

    static func notBuilt(_ what: String) -> Problem {
        Problem(501, "Not built yet", "\(what) is reserved and not built yet in this version of Larder")
    }
}
