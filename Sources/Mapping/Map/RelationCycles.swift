/// Finds models that refer to each other in endless circles.
///
/// Children made of their parents' members (`@self`) must not lead back. Models without an identity must not form a
/// circle of relations to one object, because such a chain would have no end. Circles through lists (trees) are
/// allowed.
struct RelationCycles {
    let declarations: [ModelDeclaration]
    /// The properties of each model, including those of its bases.
    private let members: [[PlanCompiler.Member]]
    /// By model, whether its objects have no identity.
    private let isKeyless: [Bool]
    private let indexes: [String: Int]

    init(declarations: [ModelDeclaration], members: [[PlanCompiler.Member]], isKeyless: [Bool]) {
        (self.declarations, self.members, self.isKeyless) = (declarations, members, isKeyless)
        indexes = Dictionary(declarations.enumerated().map { ($1.name, $0) }) { first, _ in first }
    }

    func mistakes() -> [(model: Int, error: MappingError)] {
        let ownMembers = edges { _, property in property.isItself }
        let keyless = edges { model, property in
            guard let relation = property.relation, relation.arity == .one, !property.isItself, isKeyless[model] else {
                return false
            }
            return indexes[relation.model].map { isKeyless[$0] } ?? false
        }
        return CycleDetection(ownMembers).cycles().map { ($0[0], error($0, "\"@self\"")) }
            + CycleDetection(keyless).cycles().map {
                ($0[0], error($0, "relations to one object each, and none of them has an identity"))
            }
    }

    private func error(_ circle: [Int], _ use: String) -> MappingError {
        .circle(circle.map { declarations[$0].name }, use: use)
    }

    /// By model, the models that it refers to.
    private func edges(_ isEdge: (Int, PropertyDeclaration) -> Bool) -> [[Int]] {
        members.enumerated().map { model, members in
            var seen: Set<Int> = []
            return members.compactMap { member in
                guard isEdge(model, member.declaration) else { return nil }
                return (member.declaration.relation?.model).flatMap { indexes[$0] }
            }.filter { seen.insert($0).inserted }
        }
    }
}
