/// A response of Larder's own that describes an error (RFC 9457).
package struct ProblemDocument: Error, Sendable, Equatable {
    /// A URI for the kind of problem; `about:blank` if the status is sufficient.
    package var type = "about:blank"
    package var title: String
    package var status: Int
    package var detail: String?
    /// The seconds after which to try again, if that makes sense; sent as `Retry-After`, not in the document.
    package var retryAfter: Int64?
    /// Members beyond the standard ones, in this order.
    package var extra: [(name: String, value: JSONText)] = []
    /// Fields of the response besides the media type, such as `Allow`; not part of the document.
    package var fields = Fields()

    package static let mediaType = "application/problem+json"

    /// Makes a problem; its title is the phrase of its status unless another is given.
    package init(status: Int, title: String? = nil, detail: String? = nil) {
        self.status = status
        self.title = title ?? statusPhrase(status)
        self.detail = detail
    }

    package static func == (one: ProblemDocument, other: ProblemDocument) -> Bool {
        one.bytes == other.bytes && one.retryAfter == other.retryAfter && one.fields == other.fields
    }

    /// The document as JSON text with a final line feed.
    package var bytes: [UInt8] {
        var members: [(name: String, value: JSONText)] = [
            ("type", .string(type)), ("title", .string(title)), ("status", .integer(status)),
        ]
        if let detail { members.append(("detail", .string(detail))) }
        return JSONText.object(members + extra).bytes + [UInt8(ascii: "\n")]
    }
}

/// The reason phrase registered for a status code; empty for an unregistered one.
package func statusPhrase(_ status: Int) -> String { phrases[status] ?? "" }

private let phrases: [Int: String] = [
    100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints",
    200: "OK", 201: "Created", 202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content",
    205: "Reset Content", 206: "Partial Content", 207: "Multi-Status", 208: "Already Reported", 226: "IM Used",
    300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other", 304: "Not Modified",
    305: "Use Proxy", 307: "Temporary Redirect", 308: "Permanent Redirect",
    400: "Bad Request", 401: "Unauthorized", 402: "Payment Required", 403: "Forbidden", 404: "Not Found",
    405: "Method Not Allowed", 406: "Not Acceptable", 407: "Proxy Authentication Required", 408: "Request Timeout",
    409: "Conflict", 410: "Gone", 411: "Length Required", 412: "Precondition Failed", 413: "Content Too Large",
    414: "URI Too Long", 415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed",
    421: "Misdirected Request", 422: "Unprocessable Content", 423: "Locked", 424: "Failed Dependency",
    425: "Too Early", 426: "Upgrade Required", 428: "Precondition Required", 429: "Too Many Requests",
    431: "Request Header Fields Too Large", 451: "Unavailable For Legal Reasons",
    500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
    504: "Gateway Timeout", 505: "HTTP Version Not Supported", 506: "Variant Also Negotiates",
    507: "Insufficient Storage", 508: "Loop Detected", 511: "Network Authentication Required",
]
