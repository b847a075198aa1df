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
