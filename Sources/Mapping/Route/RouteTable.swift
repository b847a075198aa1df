/// The rule that a request or answer fell under.
public struct RouteMatch: Sendable {
    /// The index of the declaration.
    public let index: Int
    /// What the named components matched, percent-decoded, in path order.
    public let captures: [(name: String, value: String)]
}

/// All routes of one table, compiled once into a trie.
///
/// Per component a literal is preferred to `#`, `#` to `*`, `*` to `**`, with
/// backtracking, whatever the order of declaration. The path chooses the node;
/// among the rules of that node a named method outweighs a status, an exact
/// status a class, a class none at all. A node whose rules do not fit does not
/// fall through to a more general one.
public struct RouteTable: Sendable {
    private struct Rule: Sendable {
        var index: Int
        var method: String?
        var status: StatusPattern
        var names: [(position: Int, name: String)]
    }

    private struct Node: Sendable {
        var literals: [String: Int] = [:]
        var digits: Int?
        var any: Int?
        /// Rules of the pattern that ends here.
        var rules: [Rule] = []
        /// Rules of the pattern that goes on with `**`.
        var rest: [Rule] = []
    }

    private var nodes: [Node] = [Node()]

    /// A declaration that is wrong, by its index, and why.
    public typealias Mistake = (index: Int, error: MappingError)

    /// Compiles a table; the error is the first of `mistakes(in:)`.
    public init(_ declarations: [RouteDeclaration]) throws(MappingError) {
        let (table, mistakes) = Self.compile(declarations)
        if let first = mistakes.first { throw first.error }
        self = table
    }

    /// Every mistake in the declarations, in their order.
    public static func mistakes(in declarations: [RouteDeclaration]) -> [Mistake] {
        compile(declarations).mistakes
    }

    /// The rule for a request, or for its answer once there is a status.
    ///
    /// - Parameters:
    ///   - method: in capitals; HEAD falls under the rules of GET.
    ///   - path: as sent, percent-encoded, without prefix, base path and query.
    ///   - status: nil before the answer: rules for one exact status then do not fit, those for 2xx do.
    public func match(method: String, path: String, status: Int?) -> RouteMatch? {
        guard !isEmpty else { return nil }
        let pieces = PathComponents.split(path)
        // An empty component matches nothing, not even a wildcard.
        guard pieces.allSatisfy({ !$0.isEmpty }) else { return nil }
        // What does not decode can still be matched by a wildcard, in the spelling it came in.
        let components = pieces.map { PathComponents.decode($0) ?? String(Substring($0)) }
        guard let rules = rules(for: components, at: 0, under: 0) else { return nil }
        let method = method == "HEAD" ? "GET" : method
        let best = rules.filter { ($0.method == nil || $0.method == method) && $0.status.matches(status) }
            .max { Self.rank($0) < Self.rank($1) }
        guard let best else { return nil }
        return RouteMatch(index: best.index, captures: best.names.map { ($0.name, components[$0.position]) })
    }

    /// Whether nothing is declared.
    private var isEmpty: Bool { nodes.count == 1 && nodes[0].rules.isEmpty && nodes[0].rest.isEmpty }

    private init() {}

    private static func compile(_ declarations: [RouteDeclaration]) -> (table: RouteTable, mistakes: [Mistake]) {
        var table = RouteTable()
        var mistakes: [Mistake] = []
        for (index, declaration) in declarations.enumerated() {
            do {
                let pattern = try RoutePattern(declaration.path)
                guard let earlier = table.insert(pattern, declaration, index: index) else { continue }
                mistakes.append((index, .duplicateRoute(declaration.path, first: earlier, second: index)))
            } catch {
                mistakes.append((index, error))
            }
        }
        return (table, mistakes)
    }

    /// The rules of the most specific pattern that matches.
    ///
    /// A node is visited at most once per look-up, because its depth in the trie is the position in the path.
    private func rules(for components: [String], at position: Int, under index: Int) -> [Rule]? {
        let node = nodes[index]
        if position == components.count {
            if !node.rules.isEmpty { return node.rules }
            // `**` wants at least one component, but standing alone it means every path, the root included.
            return position == 0 && !node.rest.isEmpty ? node.rest : nil
        }
        let component = components[position]
        if let next = node.literals[component], let found = rules(for: components, at: position + 1, under: next) {
            return found
        }
        if let next = node.digits, component.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }),
            let found = rules(for: components, at: position + 1, under: next)
        {
            return found
        }
        if let next = node.any, let found = rules(for: components, at: position + 1, under: next) {
            return found
        }
        return node.rest.isEmpty ? nil : node.rest
    }

    /// Adds a rule; the index of an earlier rule for the same pattern, method and status if there is one.
    private mutating func insert(_ pattern: RoutePattern, _ declaration: RouteDeclaration, index: Int) -> Int? {
        var node = 0
        let endsInRest = pattern.components.last == .rest
        for component in endsInRest ? pattern.components.dropLast() : pattern.components[...] {
            node = child(of: node, for: component)
        }
        let existing = endsInRest ? nodes[node].rest : nodes[node].rules
        if let earlier = existing.first(where: {
            $0.method == declaration.method && $0.status == declaration.status
        }) {
            return earlier.index
        }
        let rule = Rule(
            index: index,
            method: declaration.method,
            status: declaration.status,
            names: pattern.names
        )
        if endsInRest { nodes[node].rest.append(rule) } else { nodes[node].rules.append(rule) }
        return nil
    }

    private mutating func child(of node: Int, for component: RoutePattern.Component) -> Int {
        let existing: Int? =
            switch component {
            case .literal(let text): nodes[node].literals[text]
            case .digits: nodes[node].digits
            case .any, .rest: nodes[node].any
            }
        if let existing { return existing }
        let new = nodes.count
        nodes.append(Node())
        switch component {
        case .literal(let text): nodes[node].literals[text] = new
        case .digits: nodes[node].digits = new
        case .any, .rest: nodes[node].any = new
        }
        return new
    }

    private static func rank(_ rule: Rule) -> Int { (rule.method == nil ? 0 : 3) + rule.status.rank }
}
