@testable import Mapping

/// Documents with all that is known of their objects, in the bytes they came in where nothing newer is known.
extension NaiveRecomposer {
    /// The document with everything at its newest; nil if not every byte is known.
    func shown(_ document: String) -> String? {
        guard let (before, tree, after) = documents[document] else { return nil }
        var recomposer = self
        recomposer.containers = tree.containers
        return (try? recomposer.shown(tree)).map { before + $0 + after }
    }

    /// A value in its own place: as received, and each object in it at its newest.
    private func shown(_ tree: SpelledTree) throws -> String {
        if let name = tree.objectName { return try shown(tree, known[name] ?? [:], isStrange: false, at: []) }
        switch tree {
        case .scalar(let literal): return literal
        case .array(let elements, let inside):
            return "[" + inside
                + (try elements.map { $0.before + (try shown($0.value)) + $0.after }.joined(separator: ","))
                + "]"
        case .object(let members, let inside, _):
            return "{" + inside
                + (try members.map { $0.before + $0.literal + $0.between + (try shown($0.value)) + $0.after }
                    .joined(separator: ",")) + "}"
        }
    }

    /// An object in the shape of a tree; `isStrange`: the tree is another object's, so that all must be known.
    private func shown(_ tree: SpelledTree, _ facts: Facts, isStrange: Bool, at path: [String]) throws -> String {
        guard case .object(let members, let inside, _) = tree else { throw Unknown() }
        let counts = Dictionary(grouping: members, by: \.name).mapValues(\.count)
        return "{" + inside
            + (try members.map { member in
                let isRepeated = counts[member.name]! > 1
                if isRepeated, isStrange { throw Unknown() }
                let value =
                    isRepeated
                    ? try shown(member.value)
                    : try shown(member: member.value, facts, isStrange: isStrange, at: path + [member.name])
                return member.before + member.literal + member.between + value + member.after
            }.joined(separator: ",")) + "}"
    }

    private func shown(member tree: SpelledTree, _ facts: Facts, isStrange: Bool, at path: [String]) throws -> String {
        switch facts[path] {
        case nil:
            if isStrange { throw Unknown() }
            return try shown(tree)
        case .identity(let value):
            guard isStrange else { return try shown(tree) }
            return tree.canonical == value.canonical ? try shown(tree) : value.outline
        case .value(let value):
            if tree.canonical == value.canonical { return try shown(tree) }
            guard !(tree.isObject || tree.isArray) || fits(value, in: tree) else { throw Unknown() }
            return value.outline
        case .nothing(let null):
            let isElsewhere = tree.isObject || isStrange && tree.canonical != null.canonical
            return isElsewhere ? null.outline : try shown(tree)
        case .container(let isShared, let holdsProperty):
            if tree.isObject {
                return try shown(tree, facts, isStrange: isStrange || tree.objectName != nil, at: path)
            }
            if isStrange || isShared || holdsProperty && tree.canonical == "null" { throw Unknown() }
            return try shown(tree)
        case .relation(let value, let relation):
            switch relation.arity {
            case .one:
                let isLiteral = tree.isObject && tree.objectName == nil
                if !isLiteral, isSame(tree, value) { return try shown(tree) }
                return try shownAnew(value, relation.model, like: tree)
            case .many: return try shown(list: tree, newest: value, relation.model)
            case .keyed: return try shown(keyed: tree, newest: value, relation.model)
            }
        }
    }

    /// Whether a value shows the members that the one does in whose place it is put.
    private func fits(_ value: SpelledTree, in tree: SpelledTree) -> Bool {
        if value.isObject {
            let names = Set(value.members.map(\.name))
            guard tree.isObject, names == Set(tree.members.map(\.name)) else { return false }
            return names.allSatisfy { name in
                fits(
                    value.members.first { $0.name == name }!.value,
                    in: tree.members.first { $0.name == name }!.value
                )
            }
        }
        return value.elements.allSatisfy { element in
            !element.value.isObject && !element.value.isArray
                || tree.elements.contains { fits(element.value, in: $0.value) }
        }
    }

    /// Whether two values of a relation stand for one object, or are equal.
    private func isSame(_ left: SpelledTree, _ right: SpelledTree) -> Bool {
        if let mine = left.objectName, let theirs = right.objectName { return mine == theirs }
        if let mine = identity(left), let theirs = identity(right) { return mine == theirs }
        return left.canonical == right.canonical
    }

    private func identity(_ tree: SpelledTree) -> String? {
        tree.objectName.map { String($0.drop { $0 != ":" }.dropFirst()) } ?? tree.identity
    }

    /// The newest value of a place, in the style of what stands there or elsewhere.
    private func shownAnew(_ value: SpelledTree, _ model: String, like tree: SpelledTree) throws -> String {
        guard let identity = identity(value) else {
            guard let literal = value.literal else { throw Unknown() }
            return literal
        }
        if tree.isObject {
            let name = value.objectName ?? "\(model):\(identity)"
            guard let facts = known[name] else { throw Unknown() }
            return try shown(tree, facts, isStrange: true, at: [])
        }
        guard tree.identity != nil else { throw Unknown() }
        if let literal = value.literal { return literal }
        let isNumber = tree.isNumber && SpelledTree.scalar(identity).isNumber
        if isNumber { return identity }
        var literal: [UInt8] = []
        JSONString.append(identity, to: &literal)
        return text(literal)
    }

    private func shown(list tree: SpelledTree, newest value: SpelledTree, _ model: String) throws -> String {
        let isEqual =
            tree.isArray && value.isArray
            ? tree.elements.count == value.elements.count
                && zip(tree.elements, value.elements).allSatisfy { isSame($0.value, $1.value) }
            : isSame(tree, value)
        if isEqual { return try shown(tree) }
        guard value.isArray else {
            guard let literal = value.literal else { throw Unknown() }
            return literal
        }
        if value.elements.isEmpty { return "[]" }
        guard let first = tree.elements.first, let last = tree.elements.last else { throw Unknown() }
        let separator =
            try tree.separators.first ?? separator(afterOpening: first.before, between: value.elements.count)
        var free = tree.elements.map(\.value)
        let written = try value.elements.map { element in
            let isTarget = identity(element.value) != nil
            let kept =
                isTarget
                ? free.firstIndex { isSame($0, element.value) }
                : free.firstIndex { $0.objectName == nil && $0.outline == element.value.outline }
                    ?? free.firstIndex { isSame($0, element.value) }
            if let kept { return try self.shown(free.remove(at: kept)) }
            return try shown(new: element.value, model, among: tree.elements.map(\.value))
        }
        return "[" + first.before + written.joined(separator: separator) + last.after + "]"
    }

    /// What separates the elements of a list that has only one: as all of the document does, in one of two ways.
    private func separator(afterOpening opening: String, between count: Int) throws -> String {
        guard count > 1 else { return "" }
        let all = containers.flatMap { container in container.separators.map { (container.opening, $0) } }
        let inLines = all.filter { $0.1.contains("\n") }
        var candidates: Set<String> = []
        let alike = all.filter { $0.1.contains("\n") == opening.contains("\n") }
        if !alike.isEmpty, all.allSatisfy({ $1 == "," + $0 }) { candidates.insert("," + opening) }
        if inLines.isEmpty, !opening.contains("\n"), let first = all.first?.1, all.allSatisfy({ $0.1 == first }) {
            candidates.insert(first)
        }
        guard candidates.count == 1 else { throw Unknown() }
        return candidates.removeFirst()
    }

    private func shown(keyed tree: SpelledTree, newest value: SpelledTree, _ model: String) throws -> String {
        let isKeyed = tree.isObject && value.isObject
        let members = Dictionary(tree.members.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let isEqual =
            isKeyed
            ? tree.members.count == value.members.count
                && value.members.allSatisfy { each in members[each.name].map { isSame($0.value, each.value) } ?? false }
            : isSame(tree, value)
        if isEqual { return try shown(tree) }
        guard value.isObject else {
            guard let literal = value.literal else { throw Unknown() }
            return literal
        }
        if value.members.isEmpty { return "{}" }
        guard let first = tree.members.first, let last = tree.members.last else { throw Unknown() }
        let separator = try tree.separators.first ?? separator(afterOpening: first.before, between: value.members.count)
        let written = try value.members.map { each in
            let known = members[each.name]
            let content =
                if let known, isSame(known.value, each.value) {
                    try shown(known.value)
                } else {
                    try shown(new: each.value, model, among: known.map { [$0.value] } ?? tree.members.map(\.value))
                }
            return (known?.literal ?? each.literal) + first.between + content
        }
        return "{" + first.before + written.joined(separator: separator) + last.after + "}"
    }

    /// An element that was not there, like those that were.
    private func shown(new value: SpelledTree, _ model: String, among siblings: [SpelledTree]) throws -> String {
        guard identity(value) != nil || value.isObject else {
            guard let literal = value.literal else { throw Unknown() }
            return literal
        }
        let siblings = siblings.filter { $0.isObject || $0.identity != nil }
        if let first = siblings.first, siblings.allSatisfy({ !$0.isObject }) {
            guard identity(value) != nil else { throw Unknown() }
            return try shownAnew(value, model, like: first)
        }
        guard let first = siblings.first, siblings.allSatisfy({ $0.isObject && $0.shape == first.shape }) else {
            throw Unknown()
        }
        if identity(value) != nil { return try shownAnew(value, model, like: first) }
        guard let model = models[model] else { throw Unknown() }
        return try shown(first, facts(of: value, model), isStrange: true, at: [])
    }
}

extension SpelledTree {
    /// It, and all that it holds, as far as it has a separator or could have one.
    fileprivate var containers: [SpelledTree] {
        switch self {
        case .scalar: []
        case .array(let elements, _): [self] + elements.flatMap(\.value.containers)
        case .object(let members, _, _): [self] + members.flatMap(\.value.containers)
        }
    }

    /// What stands between its elements, commas included.
    fileprivate var separators: [String] {
        switch self {
        case .scalar: []
        case .array(let elements, _): zip(elements, elements.dropFirst()).map { $0.after + "," + $1.before }
        case .object(let members, _, _): zip(members, members.dropFirst()).map { $0.after + "," + $1.before }
        }
    }

    /// The white space behind its opening bracket.
    fileprivate var opening: String {
        switch self {
        case .scalar: ""
        case .array(let elements, let inside): elements.first?.before ?? inside
        case .object(let members, let inside, _): members.first?.before ?? inside
        }
    }
}
