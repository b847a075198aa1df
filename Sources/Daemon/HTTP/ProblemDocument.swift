/// An answer of Larder's own that says what went wrong, as RFC 9457 wants it.
struct ProblemDocument: Sendable, Equatable {
    /// The value of a member beyond the standard ones.
    enum Value: Sendable, Equatable {
        case string(String)
        case integer(Int)
        case bool(Bool)
    }

    /// A member beyond the standard ones.
    struct Member: Sendable, Equatable {
        var name: String
        var value: Value
    }

    /// A URI for the kind of problem; `about:blank` says that the status tells it all.
    var type = "about:blank"
    var title: String
    var status: Int
    var detail: String?
    var instance: String?
    /// Members beyond the standard ones, in this order.
    var extra: [Member] = []

    static let mediaType = "application/problem+json"

    /// A problem whose title is the phrase of its status unless another is given.
    init(status: Int, title: String? = nil, detail: String? = nil) {
        self.status = status
        self.title = title ?? statusPhrase(status)
        self.detail = detail
    }

    /// The document as JSON text with a final line feed.
    var bytes: [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(256)
        append("type", .string(type), to: &text)
        append("title", .string(title), to: &text)
        append("status", .integer(status), to: &text)
        if let detail { append("detail", .string(detail), to: &text) }
        if let instance { append("instance", .string(instance), to: &text) }
        for member in extra { append(member.name, member.value, to: &text) }
        text.append(contentsOf: "}\n".utf8)
        return text
    }

    private func append(_ name: String, _ value: Value, to text: inout [UInt8]) {
        text.append(text.isEmpty ? UInt8(ascii: "{") : UInt8(ascii: ","))
        Self.appendString(name, to: &text)
        text.append(UInt8(ascii: ":"))
        switch value {
        case .string(let string): Self.appendString(string, to: &text)
        case .integer(let number): text.append(contentsOf: String(number).utf8)
        case .bool(let flag): text.append(contentsOf: (flag ? "true" : "false").utf8)
        }
    }

    private static func appendString(_ string: String, to text: inout [UInt8]) {
        text.append(UInt8(ascii: "\""))
        for byte in string.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                text.append(UInt8(ascii: "\\"))
                text.append(byte)
            case 0..<0x20:
                text.append(contentsOf: "\\u00".utf8)
                for digit in [byte >> 4, byte & 15] {
                    text.append("0123456789abcdef".utf8.dropFirst(Int(digit)).first!)
                }
            default: text.append(byte)
            }
        }
        text.append(UInt8(ascii: "\""))
    }
}
