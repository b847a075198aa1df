import HTTPSemantics
import HTTPServer

/// A request to the admin side, read into plain values.
struct AdminRequest: Sendable {
    let method: String
    /// The path's components, percent-decoded one by one, so that `%2F` can be part of an id.
    let components: [String]
    /// The query's parameters in order, decoded.
    var query: [(name: String, value: String)]
    let fields: Fields
    let body: [UInt8]

    /// What a path pattern captured, by name.
    var captures: [String: String] = [:]

    /// Reads a request; nil when its target is not valid percent-encoded UTF-8 text.
    init?(method: String, path: String, query: String?, fields: Fields = Fields(), body: [UInt8] = []) {
        var components: [String] = []
        var inner = path.utf8[...]
        if inner.first == UInt8(ascii: "/") { inner.removeFirst() }
        if inner.last == UInt8(ascii: "/") { inner.removeLast() }
        // An empty component is one: an unset variable in a path must not make another path of it.
        for piece in inner.isEmpty ? [] : inner.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            guard let component = Self.decode(piece, plusIsSpace: false) else { return nil }
            components.append(component)
        }
        var parameters: [(name: String, value: String)] = []
        for pair in (query ?? "").utf8.split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = Self.decode(parts[0], plusIsSpace: true),
                let value = parts.count == 2 ? Self.decode(parts[1], plusIsSpace: true) : ""
            else { return nil }
            parameters.append((name, value))
        }
        self.method = method
        self.components = components
        self.query = parameters
        self.fields = fields
        self.body = body
    }

    /// Whether a browser asks for a page to show.
    var wantsPage: Bool { fields.combined("accept")?.contains("text/html") == true }

    /// Undoes percent-encoding; nil for a broken escape or bytes that are not UTF-8.
    private static func decode(_ text: Substring.UTF8View, plusIsSpace: Bool) -> String? {
        var bytes: [UInt8] = []
        var rest = text[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap(hexDigit), let low = rest.popFirst().flatMap(hexDigit) else {
                    return nil
                }
                bytes.append(high << 4 | low)
            case UInt8(ascii: "+") where plusIsSpace: bytes.append(0x20)
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func hexDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x37
        case 0x61...0x66: byte - 0x57
        default: nil
        }
    }
}

/// What the admin side answers.
struct AdminResponse: Sendable {
    var status = 200
    var fields = Fields()
    var body: [UInt8] = []
    /// Writes the body for as long as it likes, begins the answer with these fields, and ends it; nil: `body` is all.
    var stream: (@Sendable (Reply, Fields) -> Void)?

    /// A JSON document, ended by a line feed for the sake of terminals.
    static func json(_ document: JSONText, status: Int = 200) -> AdminResponse {
        text(document.bytes + [0x0A], type: "application/json", status: status)
    }

    static func text(_ body: [UInt8], type: String, status: Int = 200) -> AdminResponse {
        AdminResponse(status: status, fields: Fields([Field("Content-Type", type)]), body: body)
    }

    static func problem(_ problem: Problem) -> AdminResponse {
        var response = text(problem.document.bytes, type: ProblemDocument.mediaType, status: problem.status)
        response.fields.lines += problem.fields.lines
        return response
    }
}
