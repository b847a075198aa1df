import TestSupport
import Testing

@testable import Mapping

/// Makes models with everything that a config can declare, for bodies such as `BodyGenerator` makes.
struct ModelGenerator {
    private var random: SeededGenerator
    /// Whether some members must not reach the disk.
    private let isSecretive: Bool

    init(seed: UInt64, isSecretive: Bool = false) {
        random = SeededGenerator(seed: seed)
        self.isSecretive = isSecretive
    }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    private mutating func pick<Value>(_ values: [Value]) -> Value { values.randomElement(using: &random)! }

    /// Models of one upstream; `Issue` is among them.
    mutating func models() throws -> Models {
        var refusals: [MappingError] = []
        for _ in 0..<400 {
            let declarations = declarations()
            do throws(MappingError) {
                return try Models(declarations)
            } catch {
                // What contradicts itself is refused, and told of by what finds all mistakes; another one is drawn.
                if Models.mistakes(in: declarations).isEmpty { Untold.record(error, declarations) }
                refusals.append(error)
            }
        }
        throw refusals[0]
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
            model.modified = chance(20) ? "updated_at" : nil
            model.distinguishesTypes = chance(20)
            model.deletedWhen =
                chance(20) ? pick([.has("nested"), .member("state", isOneOf: [json(#""deleted""#), json("0")])]) : nil
            model.onDelete = chance(20) ? pick(DeletionPolicy.allCases) : nil
            model.naming = chance(20) ? .snakeCase(acronyms: ["PR"]) : .exact
            if chance(20) { addMigrations(to: &model) }
            if isSecretive, chance(20) { model.secret = ["token"] }
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

    private mutating func addMigrations(to model: inout ModelDeclaration) {
        guard model.base == nil, model.name != "Staff", model.name != "Bot" else { return }
        model.version = 2
        model.migrations = [
            Migration(to: 1, renamed: [.init(from: "headline", to: "title")], removed: chance(50) ? ["old"] : []),
            Migration(to: 2, converted: [.init(member: "state", conversion: .named("string"))]),
        ]
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
            "signatures[].user", "labels[].name", "labels[].nested", "parent.title", "user.manager.login", "number",
            "updated_at", "a\\.b", "caf\u{E9}", "Title", "a\\[]", "matrix[][].name", "files.1.name", "@url.owner",
            "@url",
            "@header.etag", "@index", "@parent.title", "@root.title",
        ]
        let relations: [(String, Relation)] = [
            ("user", .one(pick(models))), ("labels", .many(pick(models))), ("parent", .one("Issue")),
            ("signature", chance(50) ? .one(pick(models)) : .keyed(pick(models))),
            ("signatures", .many(pick(models))), ("signatures[].user", .many(pick(models))),
            ("head", .keyed(pick(models))), ("head.user", .one(pick(models))), ("manager", .one(pick(models))),
            ("matrix[][]", .many(pick(models))), ("files", .keyed(pick(models))),
        ]
        var properties: [PropertyDeclaration] = []
        for (index, source) in sources.shuffled(using: &random).prefix(5).enumerated() {
            properties.append(property("p\(index)", source))
        }
        for (index, (source, relation)) in relations.shuffled(using: &random).prefix(4).enumerated() {
            var property = property("r\(index)", source)
            property.relation = relation
            property.conversion = nil
            property.defaultValue = nil
            property.former = chance(10) ? .delete : .keep
            properties.removeAll { $0.from == source }
            properties.append(property)
        }
        if chance(15) {
            var folded = PropertyDeclaration(name: "span", from: "span")
            folded.parts = [
                .init(name: "x", from: "head.x"), .init(name: "t", from: "title"), .init(name: "o", from: "@url"),
            ]
            properties.append(folded)
        }
        if chance(15) { properties.append(PropertyDeclaration(name: "login", from: "")) }
        if chance(15), let child = properties.first(where: { $0.relation?.arity == .one }) {
            properties.append(PropertyDeclaration(name: "\(child.name).p0", from: "state"))
        }
        return properties
    }

    private mutating func property(_ name: String, _ source: String) -> PropertyDeclaration {
        var property = PropertyDeclaration(name: name, from: source)
        property.merge = chance(70) ? .latest : pick(MergePolicy.allCases)
        property.isRequired = chance(10)
        if chance(20) { property.conversion = pick(Self.conversions) }
        if chance(10) { property.coerces = true }
        if chance(10), !property.isRequired { property.defaultValue = json("null") }
        if chance(10), !source.hasPrefix("@") { property.output = pick([.none, .path("written.\(name)")]) }
        if chance(20) { property.checks = [pick([.type([.string]), .length(minimum: 1, maximum: 3), .notNull])] }
        return property
    }

    private static let conversions: [ConversionDeclaration] = [
        .named("string"), .named("boolean"), .named("integer"), .named("decimal"), .named("date"), .named("url"),
        .named("base64"), .date(.unixSeconds), .number(grouping: ",", decimal: "."),
        .enumeration([.init(wire: "text", mapped: "words"), .init(wire: "id", mapped: "name")]),
        .values([.init(wire: json("0"), mapped: json(#""zero""#))], fallback: json("null"), reverseFallback: nil),
        .arrayOf(.named("string")), .dictionaryOf(.named("string")), .chain([.named("string"), .named("string")]),
        .oneWay(.named("string"), back: .raw),
    ]
}

/// What is refused and not found by what finds all mistakes.
enum Untold {
    static func record(_ error: MappingError, _ declarations: [ModelDeclaration]) {
        Issue.record("not among the mistakes: \(error)\n\(declarations)")
    }
}
