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

    /// A rule for a path; without more, for every method and for 2xx.
    public init(path: String, method: String? = nil, status: StatusPattern = .class(2)) {
        self.path = path
        self.method = method
        self.status = status
    }
}
