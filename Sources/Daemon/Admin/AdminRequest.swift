import FoundationEssentials
package import HTTPSemantics
import HTTPServer
package import Store

/// A request to the admin side, read into plain values.
struct AdminRequest: Sendable {
    let method: String
    /// The path's components, percent-decoded one by one, so that `%2F` can be part of an id.
    let components: [String]
    /// The query's parameters in order, decoded.
    var query: [(name: String, value: String)]
    let fields: Fields
    let body: [UInt8]
    /// A body that the route reads itself, because it may be a large file.
    var upload: RequestBody?

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

    /// A parameter of the query; nil when it is absent or empty.
    func value(_ name: String) -> String? {
        query.first { $0.name == name }.flatMap { $0.value.isEmpty ? nil : $0.value }
    }

    /// All values of a parameter of the query, in order.
    func values(_ name: String) -> [String] {
        query.filter { $0.name == name }.map(\.value)
    }

    /// Undoes percent-encoding; nil for a broken escape or bytes that are not UTF-8.
    private static func decode(_ text: Substring.UTF8View, plusIsSpace: Bool) -> String? {
        var bytes: [UInt8] = []
        var rest = text[...]
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let high = rest.popFirst().flatMap(FieldSyntax.hexDigit),
                    let low = rest.popFirst().flatMap(FieldSyntax.hexDigit)
                else { return nil }
                bytes.append(high << 4 | low)
            case UInt8(ascii: "+") where plusIsSpace: bytes.append(0x20)
            default: bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

/// A member of a small JSON body: a text, a whole number or a flag.
enum AdminScalar: Sendable, Equatable, Decodable {
    case null
    case flag(Bool)
    case number(Int64)
    case text(String)

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let flag = try? container.decode(Bool.self) {
            self = .flag(flag)
        } else if let number = try? container.decode(Int64.self) {
            self = .number(number)
        } else {
            self = .text(try container.decode(String.self))
        }
    }

    /// The value as a text; nil for flags, null and the empty text.
    var text: String? {
        switch self {
        case .text(let text): text.isEmpty ? nil : text
        case .number(let number): String(number)
        case .flag, .null: nil
        }
    }

    /// The value as a flag; a parameter without a value means true.
    var flag: Bool? {
        switch self {
        case .flag(let flag): flag
        case .text("true"), .text("1"), .text(""): true
        case .text("false"), .text("0"): false
        case .text, .number, .null: nil
        }
    }
}

extension AdminRequest {
    /// A parameter of the query that is true or false; false where it is absent.
    func flag(_ name: String) throws(ProblemDocument) -> Bool {
        guard let value = values(name).first else { return false }
        guard let flag = AdminScalar.text(value).flag else {
            throw .badRequest("\(name) must be true or false; it was \"\(value)\"")
        }
        return flag
    }

    /// The members of the JSON object in the body, sorted by name; none when the body is empty.
    ///
    /// The media type does not matter: `curl -d` calls everything a form, and the guard keeps foreign pages out, not the
    /// type.
    func members() throws(ProblemDocument) -> [(name: String, value: AdminScalar)] {
        if body.allSatisfy({ $0 == 0x20 || (0x09...0x0D).contains($0) }) { return [] }
        do {
            let members = try JSONDecoder().decode([String: AdminScalar].self, from: Data(body))
            return members.sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
        } catch {
            throw .badRequest("the body must be one JSON object whose members are texts, whole numbers or flags")
        }
    }
}

/// Which page of a list is wanted.
struct Paging: Sendable, Equatable {
    static let maximum = 1000
    static let parameters = [
        AdminRoute.Parameter(
            name: "limit",
            kind: .integer,
            sentence: "Rows of a page, 1 to \(maximum); 100 by default."
        ),
        AdminRoute.Parameter(name: "after", sentence: "The `next` of the previous page."),
    ]

    let limit: Int
    var after: Int64?

    init(_ request: AdminRequest) throws(ProblemDocument) {
        limit = try Self.limit(request)
        if let text = request.value("after") {
            guard let cursor = Int64(text) else { throw .badRequest("after must be the `next` of the previous page") }
            after = cursor
        }
    }

    /// The page's size alone, for lists whose `after` is no number.
    static func limit(_ request: AdminRequest) throws(ProblemDocument) -> Int {
        guard let text = request.value("limit") else { return 100 }
        guard let number = Int(text), (1...maximum).contains(number) else {
            throw .badRequest("limit must be a number from 1 to \(maximum)")
        }
        return number
    }
}

/// Whose data is wanted.
enum Ownership {
    static let parameters = [
        AdminRoute.Parameter(name: "upstream", sentence: "An upstream's name; every upstream's unless given."),
        AdminRoute.Parameter(
            name: "principal",
            sentence: "A principal's label, such as `anonymous`; every principal's unless given."
        ),
    ]
}

/// A response of the admin side.
struct AdminResponse: Sendable {
    var status = 200
    var fields = Fields()
    var body: [UInt8] = []
    /// Starts the response with these fields, writes its body for as long as it likes, and ends it; nil: `body` is all.
    var stream: (@Sendable (Reply, Fields) -> Void)?

    /// JSON, ended by a line feed for terminals.
    static func json(_ body: some Encodable, status: Int = 200) -> AdminResponse {
        text(AdminJSON.encode(body) + [0x0A], type: "application/json", status: status)
    }

    static func text(_ body: [UInt8], type: String, status: Int = 200) -> AdminResponse {
        AdminResponse(status: status, fields: Fields([Field("Content-Type", type)]), body: body)
    }

    static func problem(_ problem: ProblemDocument) -> AdminResponse {
        var response = text(problem.bytes, type: ProblemDocument.mediaType, status: problem.status)
        response.fields.lines += problem.fields.lines
        return response
    }
}

extension ProblemDocument {
    /// `detail` says what happened, and what to do about it.
    package init(_ status: Int, _ detail: String, fields: Fields = Fields()) {
        self.init(status: status, detail: detail)
        self.fields = fields
    }

    /// What the store could not do.
    package init(_ error: StoreError) {
        self.init(error == .closed ? 503 : 500, error.description)
    }

    package static func badRequest(_ detail: String) -> ProblemDocument { ProblemDocument(400, detail) }

    static func notFound(_ detail: String) -> ProblemDocument { ProblemDocument(404, detail) }
}
