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
        /// Whether a property is declared for a place below this one.
        var holdsProperty: Bool { children.values.contains { $0.isProperty || $0.holdsProperty } }
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
