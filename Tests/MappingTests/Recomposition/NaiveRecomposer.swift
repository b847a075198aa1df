@testable import Mapping

/// Puts documents together from trees, one rule after the other as the laws have them.
struct NaiveRecomposer {
    /// Not every byte is known.
    struct Unknown: Error {}

    /// What is known of one member of an object.
    enum Fact {
        /// A value that moves whole.
        case value(SpelledTree)
        /// An object whose members are known one by one.
        case container(isShared: Bool, holdsProperty: Bool)
        /// Null in place of such an object.
        case nothing(SpelledTree)
        case relation(SpelledTree, Relation)
        /// Shown wherever the object is, and never moved into what shows it already.
        case identity(SpelledTree)
    }

    typealias Facts = [[String]: Fact]

    let models: [String: NaiveModel]
    private(set) var known: [String: Facts] = [:]
    /// Those of the document that is being shown.
    var containers: [SpelledTree] = []
    private(set) var documents: [String: (before: String, tree: SpelledTree, after: String)] = [:]

    init(_ declarations: [ModelDeclaration]) {
        models = Dictionary(uniqueKeysWithValues: declarations.map { ($0.name, NaiveModel($0)) })
    }

    /// Takes in a response that is newer than all before; false, and nothing is taken in, if it contradicts itself.
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
        case .value(let tree), .relation(let tree, _), .identity(let tree), .nothing(let tree):
            tree.objectName ?? tree.outline
        case .container: "{}"
        }
    }

    /// The tree with the objects of declared models named.
    private func named(_ tree: SpelledTree, _ relation: Relation) -> SpelledTree {
        let model = relation.model
        switch (relation.arity, tree) {
        case (.one, .object), (.many, .object): return named(tree, of: model)
        case (.many, .array(let elements, let inside)):
            let elements = elements.map { element in
                var element = element
                if element.value.isObject { element.value = named(element.value, of: model) }
                return element
            }
            return .array(elements, inside: inside)
        case (.keyed, .object(let members, let inside, let name)):
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

    func facts(of tree: SpelledTree, _ model: NaiveModel) -> Facts {
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
                if relation.arity == .one, value.isObject, value.objectName == nil,
                    let target = models[relation.model]
                {
                    facts[path] = .container(isShared: true, holdsProperty: false)
                    collect(value, target.root, target, isShared: target.sharesAll, at: path, into: &facts)
                } else {
                    facts[path] = .relation(value, relation)
                }
            } else if let child, !child.children.isEmpty, value.isObject {
                facts[path] = .container(isShared: isShared || child.isProperty, holdsProperty: child.holdsProperty)
                collect(value, child, model, isShared: isShared || child.isProperty, at: path, into: &facts)
            } else if path == [model.identity], value.identity != nil || !isShared && child?.isProperty != true {
                facts[path] = .identity(value)
            } else if isShared || child?.isProperty == true {
                facts[path] = .value(value)
            } else if child?.holdsProperty == true, value.canonical == "null" {
                facts[path] = .nothing(value)
            }
        }
    }
}
