/// Which statuses a route speaks of.
public enum StatusPattern: Sendable, Hashable {
    /// One status: 201.
    case exact(Int)
    /// A class of statuses by its first digit: 2 is 2xx.
    case `class`(Int)
    /// Every status.
    case any

    /// Whether an answer with this status is meant; nil is a request not answered yet, taken to be going well.
    func matches(_ status: Int?) -> Bool {
        switch self {
        case .any: true
        case .exact(let wanted): status == wanted
        case .class(let digit): (status ?? 200) / 100 == digit
        }
    }

    /// The more it says, the higher it ranks.
    var rank: Int {
        switch self {
        case .any: 0
        case .class: 1
        case .exact: 2
        }
    }
}

/// One rule of a route table, known by its index in the list it was declared in.
public struct RouteDeclaration: Sendable, Equatable {
    /// The path pattern, without prefix, base path and query.
    public var path: String
    /// The method in capitals, nil for any; GET speaks of HEAD as well.
    public var method: String?
    /// The statuses; 2xx where nothing is said.
    public var status: StatusPattern
    /// Query parameters that must be there, decoded: with this value, or with any where it is nil.
    public var query: [String: String?] = [:]
    /// The media type that an answer must have, in lower case and without parameters; `*/*+json` forms are not known.
    public var contentType: String?
    /// Whether a more general pattern is asked where none of the rules for this one fits.
    public var fallsThrough = false

    /// A rule for a path; without more, for every method and for 2xx.
    public init(path: String, method: String? = nil, status: StatusPattern = .class(2)) {
        self.path = path
        self.method = method
        self.status = status
    }
}

/// A request, and its answer as far as it is known, as route tables are asked about it.
public struct RouteSubject: Sendable {
    /// In capitals.
    public var method: String
    /// As sent, percent-encoded, without prefix, base path and query.
    public var path: String
    /// What follows the question mark; nil without one.
    public var query: String?
    /// Nil before the answer: rules for one exact status then do not fit, those for 2xx do.
    public var status: Int?
    /// The answer's media type, in lower case and without parameters; nil where it is not known.
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
