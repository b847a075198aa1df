/// Which properties of a model are read from which place.
struct PropertyNames {
    private var byPointer: [String: [String]] = [:]
    private var order: [String: Int] = [:]

    init(model: Int, models: Models) {
        // Of a cluster, whatever its base and its concrete models declare.
        var indexes = [model]
        var position = 0
        while position < indexes.count {
            let declaration = models.declarations[indexes[position]]
            for name in declaration.choices.map(\.model) + (declaration.base.map { [$0] } ?? []) {
                if let other = models.index(of: name), !indexes.contains(other) { indexes.append(other) }
            }
            position += 1
        }
        for declaration in indexes.map({ models.declarations[$0] }) {
            for property in declaration.properties {
                for source in Self.sources(of: property, naming: declaration.naming) {
                    guard let steps = KeyPathSyntax.steps(of: source) else { continue }
                    // A member of an array's elements is known as part of the array.
                    let names = steps.prefix { $0 != .elements }.compactMap { [$0].names?.first }
                    let pointer = "/" + MemberPath(names).text
                    order[pointer] = min(order[pointer] ?? .max, order.count)
                    if byPointer[pointer]?.contains(property.name) != true {
                        byPointer[pointer, default: []].append(property.name)
                    }
                }
            }
        }
    }

    private static func sources(of property: PropertyDeclaration, naming: Naming) -> [String] {
        if !property.parts.isEmpty { return property.parts.map(\.from) }
        return property.from.isEmpty ? MemberNaming(naming).members(for: property.name) : [property.from]
    }

    subscript(pointer: String) -> [String] { byPointer[pointer] ?? [] }

    func position(_ member: Provenance.Member) -> Int { order[member.pointer] ?? .max }
}
