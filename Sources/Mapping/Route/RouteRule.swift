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
