/// The statuses that a route matches.
public enum StatusPattern: Sendable, Hashable {
    /// One status, such as 201.
    case exact(Int)
    /// A class of statuses by its first digit: 2 means 2xx.
    case `class`(Int)
    /// Every status.
    case any

    /// Whether the pattern matches a status; nil, before the response, counts as 2xx but as no exact status.
    func matches(_ status: Int?) -> Bool {
        switch self {
        case .any: true
        case .exact(let wanted): status == wanted
        case .class(let digit): (status ?? 200) / 100 == digit
        }
    }

    /// The rank of the pattern: the more specific, the higher.
    var rank: Int {
        switch self {
        case .any: 0
        case .class: 1
        case .exact: 2
        }
    }
}

/// One rule of a route table, identified by its index in the declared list.
public struct RouteDeclaration: Sendable, Equatable {
    /// The path pattern, without prefix, base path and query.
    public var path: String
    /// The method in capitals, or nil for any; GET includes HEAD.
    public var method: String?
    /// The statuses; 2xx by default.
    public var status: StatusPattern
    /// Required query parameters, decoded, with their value, or nil for any value.
    public var query: [String: String?] = [:]
    /// The required media type of the response, in lower case and without parameters.
    ///
    /// Forms such as `*/*+json` are not supported.
    public var contentType: String?
    /// Whether a more general pattern is tried if none of the rules of this one fits.
    public var fallsThrough = false

    /// Declares a rule for a path; by default for every method and for 2xx.
    public init(path: String, method: String? = nil, status: StatusPattern = .class(2)) {
        self.path = path
        self.method = method
        self.status = status
    }
}

/// A request, and its response as far as it is known, to be matched with a route table.
public struct RouteSubject: Sendable {
    /// The method in capitals.
    public var method: String
    /// The path as sent, percent-encoded, without prefix, base path and query.
    public var path: String
    /// The query after the question mark; nil if there is none.
    public var query: String?
    /// The status.
    ///
    /// Nil before the response: rules for one exact status then do not fit, those for 2xx do.
    public var status: Int?
    /// The media type of the response, in lower case and without parameters; nil if it is not known.
    public var contentType: String?

    /// Describes a request.
    public init(method: String, path: String, query: String? = nil, status: Int? = nil, contentType: String? = nil) {
        self.method = method
        self.path = path
        self.query = query
        self.status = status
        self.contentType = contentType
    }
}

/// One compiled rule of a table, with its demands other than the path.
struct RouteRule: Sendable {
    let index: Int
    let declaration: RouteDeclaration
    /// The names of components, with the position of each.
    let names: [(position: Int, name: String)]

    init(_ declaration: RouteDeclaration, _ pattern: RoutePattern, index: Int) {
        (self.index, self.declaration, names) = (index, declaration, pattern.names)
    }

    /// Why the rule does not fit a request; nil if it does.
    func misfit(_ subject: RouteSubject, parameters: QueryParameters) -> RouteMisfit? {
        if let method = declaration.method, method != subject.ruleMethod { return .method(method) }
        if !declaration.status.matches(subject.status) { return .status(declaration.status) }
        let query = declaration.query.sorted { $0.key < $1.key }
        if let (name, value) = query.first(where: { !parameters.has($0.key, $0.value) }) {
            return .query(name: name, value: value)
        }
        guard let contentType = declaration.contentType, contentType != subject.contentType else { return nil }
        return .contentType(contentType)
    }

    /// The rank among rules of one pattern; a method outweighs a status, and a status outweighs the rest.
    var rank: Int {
        let path = (declaration.method == nil ? 0 : 3) + declaration.status.rank
        return path * 64 + min(declaration.query.count, 31) * 2 + (declaration.contentType == nil ? 0 : 1)
    }

    /// Whether some request fits both rules of one pattern, and neither is more specific.
    func isAmbiguous(with other: RouteRule) -> Bool {
        let (mine, theirs) = (declaration, other.declaration)
        guard mine.method == theirs.method, mine.status == theirs.status, mine.query.count == theirs.query.count,
            mine.contentType == theirs.contentType
        else { return false }
        // The same parameter with two values distinguishes them.
        return !mine.query.contains { name, value in
            guard let value, let other = theirs.query[name], let other else { return false }
            return value != other
        }
    }
}

/// Why a rule does not apply to a request.
public enum RouteMisfit: Sendable, Equatable {
    /// The path differs after this many components.
    case path(matching: Int)
    /// The rule is for this method.
    case method(String)
    /// The rule is for these statuses.
    case status(StatusPattern)
    /// The rule requires this query parameter.
    case query(name: String, value: String?)
    /// The rule requires this media type.
    case contentType(String)
    /// The rule fits, but the pattern or demands of this one are more specific.
    case lessSpecific(than: Int)
    /// A more specific pattern was chosen; none of its rules fits, and it does not fall through.
    case shadowed(by: Int)
}

extension RouteSubject {
    /// The method that rules are compared with: HEAD falls under the rules of GET.
    var ruleMethod: String { method == "HEAD" ? "GET" : method }
}

/// The decoded parameters of a query.
struct QueryParameters {
    private let pairs: [(name: String, value: String)]

    init(_ query: String?) {
        pairs = (query ?? "").utf8.split(separator: UInt8(ascii: "&")).map { pair in
            let equals = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            return (
                Self.decoded(pair[..<equals]),
                equals == pair.endIndex ? "" : Self.decoded(pair[pair.index(after: equals)...])
            )
        }
    }

    func has(_ name: String, _ value: String?) -> Bool {
        pairs.contains { pair in
            guard pair.name.utf8.elementsEqual(name.utf8) else { return false }
            return value.map { $0.utf8.elementsEqual(pair.value.utf8) } ?? true
        }
    }

    private static func decoded(_ text: Substring.UTF8View) -> String {
        let spaced = text.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
        let plain = String(decoding: spaced, as: UTF8.self)
        return PathComponents.decode(plain.utf8[...]) ?? plain
    }
}
