import HTTPSemantics

/// The head of a response, serialized.
struct ReplyHead {
    /// How the end of the body is marked.
    enum BodyEnd: Equatable {
        /// No body; written bytes are dropped.
        case noBody
        case length(Int)
        case chunked
        case close
    }

    var bytes: [UInt8] = []
    private(set) var bodyEnd = BodyEnd.noBody
    /// Whether the connection must be closed after this response.
    private(set) var closes: Bool

    /// Fields that only the connection sets.
    private static let ownFields: [StaticString] = [
        "connection", "keep-alive", "proxy-connection", "transfer-encoding", "content-length", "upgrade",
    ]

    init(
        status: Int,
        reason: String?,
        fields: Fields,
        framing: ReplyFraming,
        isHead: Bool,
        isHTTP11: Bool,
        closes: Bool,
        dateLine: [UInt8]
    ) {
        self.closes = closes
        bytes.reserveCapacity(512)
        appendStatusLine(status, reason)
        let ownFields = Self.ownFields
        for field in fields.lines where !ownFields.contains(where: { field.isNamed($0) }) { bytes.append(line: field) }
        if !fields.contains("date") { bytes += dateLine }
        frame(status: status, framing: framing, fields: fields, isHead: isHead, isHTTP11: isHTTP11)
        if self.closes {
            bytes += "Connection: close\r\n".utf8
        } else if !isHTTP11 {
            bytes += "Connection: keep-alive\r\n".utf8
        }
        bytes += "\r\n".utf8
    }

    /// Makes a 1xx head.
    init(informational status: Int, fields: Fields) {
        closes = false
        appendStatusLine(status, nil)
        for field in fields.lines { bytes.append(line: field) }
        bytes += "\r\n".utf8
    }

    /// Adds the framing fields, by RFC 9112 §6.3.
    private mutating func frame(status: Int, framing: ReplyFraming, fields: Fields, isHead: Bool, isHTTP11: Bool) {
        let isBodyless = isHead || status == 204 || status == 304 || status < 200
        if isBodyless {
            guard status != 204, status >= 200 else { return }
            if case .length(let length) = framing {
                // In a 304 this is the length of the corresponding 200 response (RFC 9110 §8.6), not of the absent body.
                guard status != 304 || length > 0 else { return }
                append("Content-Length", String(length))
            } else if case .none = framing, let declared = fields.text("content-length") {
                append("Content-Length", declared)
            } else if case .chunked = framing, isHTTP11 {
                append("Transfer-Encoding", "chunked")
            }
            return
        }
        switch framing {
        case .none:
            append("Content-Length", "0")
        case .length(let length):
            append("Content-Length", String(length))
            bodyEnd = .length(length)
        case .chunked where isHTTP11:
            append("Transfer-Encoding", "chunked")
            bodyEnd = .chunked
        case .chunked:
            bodyEnd = .close
            closes = true
        }
    }

    private mutating func appendStatusLine(_ status: Int, _ reason: String?) {
        bytes += "HTTP/1.1 \(status) ".utf8
        bytes.append(value: (reason ?? statusPhrase(status)).utf8)
        bytes += "\r\n".utf8
    }

    private mutating func append(_ name: String, _ value: String) {
        bytes.append(line: Field(name, value))
    }
}

extension [UInt8] {
    /// Adds a field line; a name that is not a token is left out, and control characters become spaces.
    ///
    /// So no upstream and no handler can start a line of its own.
    mutating func append(line field: Field) {
        let classes = ByteClass.table
        guard !field.name.isEmpty,
            field.name.allSatisfy({ classes[Int($0)] & ByteClass.token.rawValue != 0 })
        else { return }
        self += field.name
        self += ": ".utf8
        append(value: field.value)
        self += "\r\n".utf8
    }

    /// Adds text, with control characters replaced by spaces.
    fileprivate mutating func append(value: some Sequence<UInt8>) {
        let classes = ByteClass.table
        for byte in value { append(classes[Int(byte)] & ByteClass.value.rawValue != 0 ? byte : 0x20) }
    }
}
