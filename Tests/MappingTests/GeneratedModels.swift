import TestSupport

@testable import Mapping

/// Makes models with everything that a config can declare, for bodies such as `BodyGenerator` makes.
struct ModelGenerator {
    private var random: SeededGenerator

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
    }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    private mutating func pick<Value>(_ values: [Value]) -> Value { values.randomElement(using: &random)! }

    /// Models of one upstream; `Issue` is among them.
    mutating func models() throws -> Models {
        for _ in 0..<200 {
            // What contradicts itself is refused, with an error; this one is drawn again.
            if let models = try? Models(declarations()) { return models }
        }
        return try Tracker.models()
    }

    private mutating func declarations() -> [ModelDeclaration] {
        var names = ["Issue", "User", "Label", "Signature"]
        if chance(50) { names += ["Staff", "Bot"] }
        return names.map { name in
            var model = ModelDeclaration(name: name)
            model.identity = identity(of: name)
            model.keys = chance(30) ? [pick(["login", "number", "title"])] : []
            model.properties = properties(in: names)
            model.sharesAll = chance(20)
            model.local = chance(20) ? ["undeclared"] : []
            model.modified = chance(10) ? "updated_at" : nil
            model.distinguishesTypes = chance(20)
            model.deletedWhen = chance(10) ? .has("nested") : nil
            if name == "Staff" || name == "Bot" {
                model.base = chance(70) ? "User" : nil
                model.identity = model.base == nil ? model.identity : []
            }
            if name == "User", names.count > 4, chance(70) {
                model.choices = [
                    ModelChoice(model: "Staff", condition: .has("name")),
                    ModelChoice(model: "Bot", condition: chance(50) ? .not(.has("login")) : nil),
                ]
            }
            return model
        }
    }

    private mutating func identity(of name: String) -> [String] {
        switch Int.random(in: 0..<10, using: &random) {
        case 0: []
        case 1: ["id", pick(["title", "name", "login"])]
        case 2: ["@parent.id", pick(["@index", "name", "@key"])]
        case 3: ["@root.id", "id"]
        case 4: ["@url.owner", "id"]
        case 5: ["@key"]
        default: ["id"]
        }
    }

    private mutating func properties(in models: [String]) -> [PropertyDeclaration] {
        let sources = [
            "title", "state", "login", "name", "undeclared", "head.ref", "head.x", "nested", "nested.user",
            "signatures[].user", "labels[].name", "labels[].nested", "parent.title",
        ]
        let relations: [(String, Relation)] = [
            ("user", .one(pick(models))), ("labels", .many(pick(models))), ("parent", .one("Issue")),
            ("signature", chance(50) ? .one(pick(models)) : .keyed(pick(models))),
            ("signatures", .many(pick(models))), ("signatures[].user", .many(pick(models))),
            ("head", .keyed(pick(models))), ("head.user", .one(pick(models))),
        ]
        var properties: [PropertyDeclaration] = []
        for (index, source) in sources.shuffled(using: &random).prefix(5).enumerated() {
            properties.append(property("p\(index)", source))
        }
        for (index, (source, relation)) in relations.shuffled(using: &random).prefix(4).enumerated() {
            var property = property("r\(index)", source)
            property.relation = relation
            properties.removeAll { $0.from == source }
            properties.append(property)
        }
        return properties
    }

    private mutating func property(_ name: String, _ source: String) -> PropertyDeclaration {
        var property = PropertyDeclaration(name: name, from: source)
        property.merge = chance(70) ? .latest : pick(MergePolicy.allCases)
        property.isRequired = chance(10)
        if chance(20) { property.checks = [pick([.type([.string]), .length(minimum: 1, maximum: 3), .notNull])] }
        return property
    }
}
