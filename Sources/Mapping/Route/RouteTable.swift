/// The rule that applies to a request or response.
public struct RouteMatch: Sendable {
    public let index: Int
    fileprivate let pattern: RoutePattern
    fileprivate let components: [String]

    /// The values of the named components, percent-decoded.
    public var captures: [String: String] {
        pattern.names.reduce(into: [:]) { captures, named in
            let value = pattern.components[named.position].match(components[named.position])
            captures[named.name] = value.map(String.init)
        }
    }
}

/// All routes of one table, compiled into a trie.
///
/// In each component a literal is preferred to a wildcard with a suffix, that to `#`, `#` to `*`, and `*` to `**`, with
/// backtracking, whatever the order of declaration. The path selects the node. Among the rules of that node, a method
/// outweighs a status, an exact status a class, a class no status, and all of these the query. If none of a node's
/// rules fits, the search does not fall through to a more general pattern unless one of them says so.
public struct RouteTable: Sendable {
    private struct Node: Sendable {
        var literals: [String: Int] = [:]
        /// The next node for each wildcard, the more specific first.
        var wildcards: [(component: RoutePattern.Component, next: Int)] = []
        /// The rules of the pattern that ends here.
        var rules: [RouteRule] = []
        /// The rules of the pattern that continues with `**`.
        var rest: [RouteRule] = []
    }

    private var nodes: [Node] = [Node()]
    /// The rules in the order of their declarations.
    private var rules: [RouteRule] = []

    /// A mistake in a declaration, with its index.
    public typealias Mistake = (index: Int, error: MappingError)

    /// Compiles a table; throws the first of `mistakes(in:)`.
    public init(_ declarations: [RouteDeclaration]) throws(MappingError) {
        var mistakes: [Mistake] = []
        self.init(declarations, &mistakes)
        if let first = mistakes.first { throw first.error }
    }

    /// Every mistake in the declarations, in their order.
    public static func mistakes(in declarations: [RouteDeclaration]) -> [Mistake] {
        var mistakes: [Mistake] = []
        _ = RouteTable(declarations, &mistakes)
        return mistakes
    }

    private init(_ declarations: [RouteDeclaration], _ mistakes: inout [Mistake]) {
        for (index, declaration) in declarations.enumerated() {
            do throws(MappingError) {
                let rule = RouteRule(
                    index: index,
                    declaration: declaration,
                    pattern: try RoutePattern(declaration.path)
                )
                if declaration.method == "HEAD" {
                    let reason = "HEAD falls under the rules of GET; write \"method: GET\""
                    mistakes.append((index, .unreachableRoute(declaration.path, reason: reason)))
                }
                if let earlier = insert(rule) {
                    mistakes.append((index, .duplicateRoute(declaration.path, first: earlier, second: index)))
                }
            } catch {
                mistakes.append((index, error))
            }
        }
    }

    /// The rule for a request, or for its response once there is one.
    public func match(_ subject: RouteSubject) -> RouteMatch? {
        guard !rules.isEmpty, let components = PathComponents.decoded(subject.path) else { return nil }
        let parameters = QueryParameters(subject.query)
        var best: RouteRule?
        _ = find(components) { rules in
            for rule in rules where rule.misfit(subject, parameters) == nil {
                if best.map({ $0.rank < rule.rank }) ?? true { best = rule }
            }
            return best != nil || Self.endsSearch(rules)
        }
        return best.map { RouteMatch(index: $0.index, pattern: $0.pattern, components: components) }
    }

    /// Whether no more general pattern is tried if none of a pattern's rules fits.
    private static func endsSearch(_ rules: [RouteRule]) -> Bool {
        !rules.isEmpty && !rules.contains(where: \.declaration.fallsThrough)
    }

    /// Visits the rules of the matching patterns, the most specific pattern first.
    ///
    /// Returns true when the search is over, as `ends` says of the rules of a pattern. A node is visited at most once,
    /// because its depth in the trie is the position in the path.
    private func find(
        _ components: [String],
        at position: Int = 0,
        under index: Int = 0,
        _ ends: (_ rules: [RouteRule]) -> Bool
    ) -> Bool {
        let node = nodes[index]
        if position == components.count {
            if ends(node.rules) { return true }
            // `**` requires at least one component, but alone it means every path, including the root.
            return position == 0 && ends(node.rest)
        }
        let component = components[position]
        if let next = node.literals[component], find(components, at: position + 1, under: next, ends) { return true }
        for (wildcard, next) in node.wildcards where wildcard.match(component) != nil {
            if find(components, at: position + 1, under: next, ends) { return true }
        }
        return ends(node.rest)
    }

    /// Adds a rule; returns the index of an earlier rule for the same pattern, method and status, if there is one.
    private mutating func insert(_ rule: RouteRule) -> Int? {
        let components = rule.pattern.components
        let list = components.last == .rest ? \Node.rest : \Node.rules
        let node = components.prefix { $0 != .rest }.reduce(0) { child(of: $0, for: $1) }
        if let earlier = nodes[node][keyPath: list].first(where: { $0.isAmbiguous(with: rule) }) {
            return earlier.index
        }
        nodes[node][keyPath: list].append(rule)
        rules.append(rule)
        return nil
    }

    private mutating func child(of node: Int, for component: RoutePattern.Component) -> Int {
        let new = nodes.count
        if case .literal(let text) = component {
            if let existing = nodes[node].literals[text] { return existing }
            nodes[node].literals[text] = new
        } else {
            if let existing = nodes[node].wildcards.first(where: { $0.component == component }) { return existing.next }
            nodes[node].wildcards.append((component, new))
            nodes[node].wildcards.sort { $0.component.precedence < $1.component.precedence }
        }
        nodes.append(Node())
        return new
    }

    /// Every rule with the reason why it does not apply: the one that applies first, then the nearest ones.
    public func verdicts(on subject: RouteSubject) -> [RouteVerdict] {
        let winner = match(subject)?.index
        let components = PathComponents.decoded(subject.path)
        let parameters = QueryParameters(subject.query)
        var found: Set<Int> = []
        // The first rule of the pattern at which the search ends, if none of its rules fits.
        var end: Int?
        if let components {
            _ = find(components) { rules in
                found.formUnion(rules.map(\.index))
                if Self.endsSearch(rules) { end = end ?? rules[0].index }
                return false
            }
        }
        func misfit(_ rule: RouteRule) -> RouteMisfit? {
            if rule.index == winner { return nil }
            guard found.contains(rule.index) else {
                return .path(matching: components.map { rule.pattern.matchingPrefix(of: $0) } ?? 0)
            }
            return rule.misfit(subject, parameters) ?? winner.map { .lessSpecific(than: $0) }
                ?? end.map { .shadowed(by: $0) }
        }
        return rules.map { ($0.index, misfit($0)) }
            .sorted { ($0.misfit?.distance ?? 0, $0.index) < ($1.misfit?.distance ?? 0, $1.index) }
    }
}

/// The result for one rule of a table in a look-up, with the reason why it does not apply; nil if it does.
public typealias RouteVerdict = (index: Int, misfit: RouteMisfit?)

/// The statuses that a route matches.
public enum StatusPattern: Sendable, Hashable {
    case exact(Int)
    /// A class of statuses by its first digit: 2 means 2xx.
    case `class`(Int)
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
    /// The required media type of the response, in lower case and without parameters; `*/*+json` is not supported.
    public var contentType: String?
    /// Whether a more general pattern is tried if none of the rules of this one fits.
    public var fallsThrough = false

    /// Declares a rule for a path; by default for every method and for 2xx.
    public init(path: String, method: String? = nil, status: StatusPattern = .class(2)) {
        (self.path, self.method, self.status) = (path, method, status)
    }
}

/// A request, and its response as far as it is known, to be matched with a route table.
public struct RouteSubject: Sendable {
    public var method: String
    /// The path as sent, percent-encoded, without prefix, base path and query.
    public var path: String
    /// The query after the question mark; nil if there is none.
    var query: String?
    /// The status; nil before the response: rules for one exact status then do not fit, those for 2xx do.
    public var status: Int?
    /// The media type of the response, in lower case and without parameters; nil if it is not known.
    public var contentType: String?

    /// Describes a request.
    public init(method: String, path: String, query: String? = nil, status: Int? = nil, contentType: String? = nil) {
        (self.method, self.path, self.query) = (method, path, query)
        (self.status, self.contentType) = (status, contentType)
    }
}

/// One compiled rule of a table, with its demands other than the path.
struct RouteRule: Sendable {
    let index: Int
    let declaration: RouteDeclaration
    let pattern: RoutePattern

    /// Why the rule does not fit a request; nil if it does.
    func misfit(_ subject: RouteSubject, _ parameters: QueryParameters) -> RouteMisfit? {
        // HEAD falls under the rules of GET.
        let asked = subject.method == "HEAD" ? "GET" : subject.method
        if let method = declaration.method, method != asked { return .method(method) }
        if !declaration.status.matches(subject.status) { return .status(declaration.status) }
        let missing = declaration.query.filter { !parameters.has($0.key, $0.value) }
        if let (name, value) = missing.min(by: { $0.key < $1.key }) { return .query(name: name, value: value) }
        guard let contentType = declaration.contentType, contentType != subject.contentType else { return nil }
        return .contentType(contentType)
    }

    /// The rank among rules of one pattern; a method outweighs a status, and a status outweighs the rest.
    var rank: Int {
        let path = (declaration.method == nil ? 0 : 3) + declaration.status.rank
        let (parameters, exact) = (declaration.query.count, declaration.query.values.count { $0 != nil })
        return ((path * 32 + min(parameters, 31)) * 32 + min(exact, 31)) * 2 + (declaration.contentType == nil ? 0 : 1)
    }

    /// Whether some request fits both rules of one pattern, and neither is more specific.
    func isAmbiguous(with other: RouteRule) -> Bool {
        let (mine, theirs) = (declaration, other.declaration)
        guard rank == other.rank, mine.method == theirs.method, mine.status == theirs.status,
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
    case method(String)
    case status(StatusPattern)
    case query(name: String, value: String?)
    case contentType(String)
    /// The rule fits, but the pattern or demands of this one are more specific.
    case lessSpecific(than: Int)
    /// A more specific pattern was chosen; none of its rules fits, and it does not fall through.
    case shadowed(by: Int)

    /// How far the rule was from applying.
    fileprivate var distance: Int {
        switch self {
        case .lessSpecific: 1
        case .shadowed: 2
        case .contentType, .query: 3
        case .status: 4
        case .method: 5
        case .path(let matching): 1_000 - min(matching, 900)
        }
    }
}

/// The decoded parameters of a query.
struct QueryParameters {
    private let pairs: [(name: String, value: String)]

    init(_ query: String?) {
        pairs = (query ?? "").utf8.split(separator: UInt8(ascii: "&")).map { pair in
            let equals = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            return (Self.decoded(pair[..<equals]), Self.decoded(pair[equals...].dropFirst()))
        }
    }

    /// Those of a path and query.
    init(ofURL url: String) {
        // A fragment is the digest of a request's body.
        self.init(url.firstIndex(of: "?").map { String(url[url.index(after: $0)...].prefix { $0 != "#" }) })
    }

    /// The value of the first parameter with a name.
    subscript(name: String) -> String? { pairs.first { $0.name.utf8.elementsEqual(name.utf8) }?.value }

    func has(_ name: String, _ value: String?) -> Bool {
        pairs.contains { pair in
            pair.name.utf8.elementsEqual(name.utf8) && value.map { $0.utf8.elementsEqual(pair.value.utf8) } ?? true
        }
    }

    private static func decoded(_ text: Substring.UTF8View) -> String {
        let spaced = text.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
        let plain = String(decoding: spaced, as: UTF8.self)
        return PathComponents.decode(plain.utf8[...]) ?? plain
    }
}
