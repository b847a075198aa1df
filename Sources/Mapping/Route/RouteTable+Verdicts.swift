/// What became of one rule of a table in one look-up.
public struct RouteVerdict: Sendable {
    /// The index of the declaration.
    public let index: Int
    /// Nil: this is the rule that applies.
    public let misfit: RouteMisfit?
}

extension RouteTable {
    /// Every rule with why it applies or does not, the one that applies first and then the nearest ones.
    ///
    /// For explaining: it costs a look at each rule.
    ///
    /// - Parameter declarations: those that the table was made of.
    public func verdicts(on subject: RouteSubject, declarations: [RouteDeclaration]) -> [RouteVerdict] {
        let winner = match(subject)?.index
        let components = Self.components(of: subject.path)
        let parameters = QueryParameters(subject.query)
        let verdicts = declarations.enumerated().compactMap { index, declaration -> RouteVerdict? in
            guard index != winner, let pattern = try? RoutePattern(declaration.path) else { return nil }
            let matching = components.map { pattern.matchingPrefix(of: $0) } ?? 0
            guard let components, pattern.matches(components) else {
                return RouteVerdict(index: index, misfit: .path(matching: matching))
            }
            let rule = RouteRule(declaration, pattern, index: index)
            if let misfit = rule.misfit(subject, parameters: parameters) {
                return RouteVerdict(index: index, misfit: misfit)
            }
            if let winner { return RouteVerdict(index: index, misfit: .lessSpecific(than: winner)) }
            return RouteVerdict(
                index: index,
                misfit: shadow(over: pattern, components, declarations).map { .shadowed(by: $0) }
            )
        }
        let first = winner.map { [RouteVerdict(index: $0, misfit: nil)] } ?? []
        return first + verdicts.sorted { ($0.distance, $0.index) < ($1.distance, $1.index) }
    }

    /// A rule whose pattern was chosen although none of its rules fits.
    private func shadow(over pattern: RoutePattern, _ components: [String], _ declarations: [RouteDeclaration]) -> Int?
    {
        declarations.indices.filter { index in
            guard let other = try? RoutePattern(declarations[index].path) else { return false }
            return other.matches(components) && other.isMoreSpecific(than: pattern)
        }.first
    }
}

extension RouteVerdict {
    /// How far the rule was from applying.
    fileprivate var distance: Int {
        switch misfit {
        case nil: 0
        case .lessSpecific: 1
        case .shadowed: 2
        case .contentType, .query: 3
        case .status: 4
        case .method: 5
        case .path(let matching): 1_000 - min(matching, 900)
        }
    }
}

extension RoutePattern {
    /// Whether the pattern matches a whole path.
    func matches(_ path: [String]) -> Bool {
        if components == [.rest] { return true }
        let matching = matchingPrefix(of: path)
        if components.last == .rest { return matching == components.count && path.count >= components.count }
        return matching == components.count && path.count == components.count
    }

    /// How many components from the start agree.
    func matchingPrefix(of path: [String]) -> Int {
        zip(components, path).prefix { component, text in
            switch component {
            case .literal(let literal): literal.utf8.elementsEqual(text.utf8)
            case .digits: !text.isEmpty && text.utf8.allSatisfy { $0 &- UInt8(ascii: "0") < 10 }
            case .any, .rest: true
            }
        }.count
    }

    /// Whether this one is asked first where both match: at the first component that differs.
    func isMoreSpecific(than other: RoutePattern) -> Bool {
        for (mine, theirs) in zip(components, other.components) where mine != theirs {
            return mine.precedence < theirs.precedence
        }
        return false
    }
}

extension RoutePattern.Component {
    fileprivate var precedence: Int {
        switch self {
        case .literal: 0
        case .digits: 1
        case .any: 2
        case .rest: 3
        }
    }
}
