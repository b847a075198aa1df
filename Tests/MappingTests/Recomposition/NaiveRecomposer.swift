@testable import Mapping

/// What a tree of declared members says, as far as the naive account goes: identities of one member, no clusters, no
/// policies, no checks.
final class NaiveModel {
    /// What is declared of one member.
    final class Node {
        var children: [String: Node] = [:]
        var relation: Relation?
        var isProperty = false
        var isLocal = false
    }

    let root = Node()
    let name: String
    let identity: String?
    let sharesAll: Bool

    init(_ declaration: ModelDeclaration) {
        name = declaration.name
        identity = declaration.identity.first
        sharesAll = declaration.sharesAll
        let relations = Set(declaration.properties.filter { $0.relation != nil }.map(\.from))
        for property in declaration.properties {
            let path = property.from.split(separator: ".").map(String.init)
            // A way through a relation belongs to the other model.
            let passes = (1..<max(path.count, 1)).contains {
                relations.contains(path.prefix($0).joined(separator: "."))
            }
            guard !passes else { continue }
            let node = node(path)
            node.isProperty = true
            node.relation = property.relation ?? node.relation
        }
        for local in declaration.local { node(local.split(separator: ".").map(String.init)).isLocal = true }
    }

    private func node(_ path: [String]) -> Node {
        path.reduce(root) { node, name in
            if let child = node.children[name] { return child }
            let child = Node()
            node.children[name] = child
            return child
        }
    }
}

/// Puts documents together from trees, one rule after the other as the laws have them.
struct NaiveRecomposer {
    /// Not every byte is known.
    struct Unknown: Error {}

    /// What is known of one member of an object.
    enum Fact {
        /// A value that moves whole.
        case value(SpelledTree)
        /// An object whose members are known one by one.
        case container(isShared: Bool)
        case relation(SpelledTree, Relation)
        /// Shown wherever the object is, and never moved into what shows it already.
        case identity(SpelledTree)
    }

    typealias Facts = [[String]: Fact]

    private let models: [String: NaiveModel]
    private var known: [String: Facts] = [:]
    private var documents: [String: (before: String, tree: SpelledTree, after: String)] = [:]

    init(_ declarations: [ModelDeclaration]) {
        models = Dictionary(uniqueKeysWithValues: declarations.map { ($0.name, NaiveModel($0)) })
    }

    // MARK: Receiving

    /// Takes in an answer that is newer than all before; false, and nothing is taken in, if it contradicts itself.
    mutating func receive(_ document: String, _ body: String, _ model: String, isList: Bool) -> Bool {
        let (before, plain, after) = SpelledTree.read(body)
        let tree = named(plain, isList ? .many(model) : .one(model))
        var news: [(name: String, facts: Facts)] = []
        collect(tree, into: &news)
        for (name, facts) in Dictionary(grouping: news, by: \.name) {
            for path in Set(facts.flatMap(\.facts.keys)) {
                guard Set(facts.compactMap { $0.facts[path] }.map(Self.spelling)).count == 1 else { return false }
            }
            _ = name
        }
        for (name, facts) in news {
            var all = known[name] ?? [:]
            for (path, fact) in facts {
                // What stood in an object goes with it.
                if case .container = fact {
                } else {
                    all = all.filter { !($0.key.count > path.count && $0.key.starts(with: path)) }
                }
                all[path] = fact
            }
            known[name] = all
        }
        documents[document] = (before, tree, after)
        return true
    }

    private static func spelling(_ fact: Fact) -> String {
        switch fact {
        case .value(let tree), .relation(let tree, _), .identity(let tree): tree.objectName ?? tree.outline
        case .container: "{}"
        }
    }

    /// The tree with the objects of declared models named.
    private func named(_ tree: SpelledTree, _ relation: Relation) -> SpelledTree {
        switch (relation, tree) {
        case (.one(let model), .object), (.many(let model), .object): return named(tree, of: model)
        case (.many(let model), .array(let elements, let inside)):
            let elements = elements.map { element in
                var element = element
                if element.value.isObject { element.value = named(element.value, of: model) }
                return element
            }
            return .array(elements, inside: inside)
        case (.keyed(let model), .object(let members, let inside, let name)):
            let members = members.map { member in
                var member = member
                if member.value.isObject { member.value = named(member.value, of: model) }
                return member
            }
            return .object(members, inside: inside, name: name)
        default: return tree
        }
    }

    private func named(_ tree: SpelledTree, of model: String) -> SpelledTree {
        guard let model = models[model], case .object(let members, let inside, _) = inner(tree, model.root) else {
            return tree
        }
        let identities = members.filter { $0.name == model.identity }
        let identity = identities.count == 1 ? identities[0].value.identity : nil
        return .object(members, inside: inside, name: identity.map { "\(model.name):\($0)" })
    }

    private func inner(_ tree: SpelledTree, _ node: NaiveModel.Node) -> SpelledTree {
        guard case .object(let members, let inside, let name) = tree else { return tree }
        let walked = members.map { member in
            var member = member
            if let child = node.children[member.name] {
                if let relation = child.relation {
                    member.value = named(member.value, relation)
                } else if !child.children.isEmpty {
                    member.value = inner(member.value, child)
                }
            }
            return member
        }
        return .object(walked, inside: inside, name: name)
    }

    /// What a tree tells of each object in it, in the order of the text.
    private func collect(_ tree: SpelledTree, into news: inout [(name: String, facts: Facts)]) {
        if let name = tree.objectName, let model = model(of: name) { news.append((name, facts(of: tree, model))) }
        for member in tree.members { collect(member.value, into: &news) }
        for element in tree.elements { collect(element.value, into: &news) }
    }

    private func model(of name: String) -> NaiveModel? { models[String(name.prefix { $0 != ":" })] }

    private func facts(of tree: SpelledTree, _ model: NaiveModel) -> Facts {
        var facts: Facts = [:]
        collect(tree, model.root, model, isShared: model.sharesAll, at: [], into: &facts)
        return facts
    }

    private func collect(
        _ tree: SpelledTree,
        _ node: NaiveModel.Node,
        _ model: NaiveModel,
        isShared: Bool,
        at path: [String],
        into facts: inout Facts
    ) {
        for (name, members) in Dictionary(grouping: tree.members, by: \.name) where members.count == 1 {
            let value = members[0].value
            let path = path + [name]
            let child = node.children[name]
            if child?.isLocal == true { continue }
            if let relation = child?.relation {
                if case .one(let target) = relation, value.isObject, value.objectName == nil,
                    let target = models[target]
                {
                    facts[path] = .container(isShared: true)
                    collect(value, target.root, target, isShared: target.sharesAll, at: path, into: &facts)
                } else {
                    facts[path] = .relation(value, relation)
                }
            } else if let child, !child.children.isEmpty, value.isObject {
                facts[path] = .container(isShared: isShared || child.isProperty)
                collect(value, child, model, isShared: isShared || child.isProperty, at: path, into: &facts)
            } else if isShared || child?.isProperty == true {
                facts[path] = .value(value)
            } else if path == [model.identity] {
                facts[path] = .identity(value)
            }
        }
    }

    // MARK: Showing

    /// The document with everything at its newest; nil if not every byte is known.
    func shown(_ document: String) -> String? {
        guard let (before, tree, after) = documents[document] else { return nil }
        return (try? shown(tree)).map { before + $0 + after }
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
            return tree.canonical == value.canonical ? try shown(tree) : value.outline
        case .container(let isShared):
            if tree.isObject {
                return try shown(tree, facts, isStrange: isStrange || tree.objectName != nil, at: path)
            }
            if isStrange || isShared { throw Unknown() }
            return try shown(tree)
        case .relation(let value, .one(let model)):
            let isLiteral = tree.isObject && tree.objectName == nil
            if !isLiteral, isSame(tree, value) { return try shown(tree) }
            return try shownAnew(value, model, like: tree)
        case .relation(let value, .many(let model)):
            return try shown(list: tree, newest: value, model)
        case .relation(let value, .keyed(let model)):
            return try shown(keyed: tree, newest: value, model)
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
            tree.elements.count > 1 ? first.after + "," + tree.elements[1].before : "," + first.before
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
        let separator =
            tree.members.count > 1 ? first.after + "," + tree.members[1].before : "," + first.before
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
