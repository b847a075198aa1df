/// A response of Larder's own that describes an error (RFC 9457).
package struct ProblemDocument: Error, Sendable, Equatable {
    /// The value of a member beyond the standard ones.
    package enum Value: Sendable, Equatable {
        case string(String)
        case integer(Int)
        case bool(Bool)
        /// JSON text.
        case json([UInt8])

        fileprivate var json: JSONText {
            switch self {
            case .string(let text): .string(text)
            case .integer(let number): .integer(number)
            case .bool(let flag): .bool(flag)
            case .json(let text): .raw(text)
            }
        }
    }

    /// A member beyond the standard ones.
    package struct Member: Sendable, Equatable {
        package var name: String
        package var value: Value

        package init(name: String, value: Value) {
            self.name = name
            self.value = value
        }
    }

    /// A URI for the kind of problem; `about:blank` if the status is sufficient.
    package var type = "about:blank"
    package var title: String
    package var status: Int
    package var detail: String?
    var instance: String?
    /// The seconds after which to try again, if that makes sense; sent as `Retry-After`, not in the document.
    package var retryAfter: Int64?
    /// Members beyond the standard ones, in this order.
    package var extra: [Member] = []
    /// Fields of the response besides the media type, such as `Allow`; not part of the document.
    package var fields = Fields()

    package static let mediaType = "application/problem+json"

    /// Makes a problem; its title is the phrase of its status unless another is given.
    package init(status: Int, title: String? = nil, detail: String? = nil) {
        self.status = status
        self.title = title ?? statusPhrase(status)
        self.detail = detail
    }

    /// The document as JSON text with a final line feed.
    package var bytes: [UInt8] {
        var members: [(name: String, value: JSONText)] = [
            ("type", .string(type)), ("title", .string(title)), ("status", .integer(status)),
        ]
        if let detail { members.append(("detail", .string(detail))) }
        if let instance { members.append(("instance", .string(instance))) }
        members += extra.map { (name: $0.name, value: $0.value.json) }
        return JSONText.object(members).bytes + [UInt8(ascii: "\n")]
    }
}
