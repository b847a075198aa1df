import TestSupport
import Testing

@testable import Mapping

/// What is wrong with declarations is told in full: nothing is refused that was not among the mistakes.
@Suite struct WrongModelsTests {
    @Test(arguments: 0..<6 as Range<UInt64>)
    func `models are refused exactly if there are mistakes, and each mistake names an existing model`(seed: UInt64) {
        var generator = WrongModels(seed: seed)
        var sound = 0
        for round in 0..<400 {
            let declarations = generator.declarations(faults: round % 5)
            let mistakes = Models.mistakes(in: declarations)
            #expect(mistakes.allSatisfy { declarations.indices.contains($0.model) })
            #expect(
                mistakes.allSatisfy { mistake in
                    mistake.property.map { declarations[mistake.model].properties.indices.contains($0) } ?? true
                }
            )
            do throws(MappingError) {
                _ = try Models(declarations)
                sound += 1
                #expect(mistakes.isEmpty, "seed \(seed): \(mistakes.map(\.error)) of what is taken: \(declarations)")
            } catch {
                #expect(!mistakes.isEmpty, "seed \(seed): not among the mistakes: \(error) \(declarations)")
            }
        }
        #expect(sound > 20)
    }

    /// Objects of which no choice decides are read as what all models upon their base declare together.
    @Test(arguments: [
        (ModelDeclaration("Staff", Property("p", "login")), ModelDeclaration("Bot", Property("q", "login"))),
        (
            ModelDeclaration("Staff", Property("a"), Property("p", "m.x")).with { $0.keys = ["login"] },
            ModelDeclaration("Bot", Property("q", "login")).with { $0.keys = ["q"] }
        ),
        (
            ModelDeclaration("Staff").with { $0.local = ["team.name"] },
            ModelDeclaration("Bot", Property("team", one: "User"))
        ),
        (
            ModelDeclaration("Staff").with { $0.keys = ["team.name"] },
            ModelDeclaration("Bot", Property("team", one: "User"))
        ),
        (
            ModelDeclaration("Staff").with { $0.deletedWhen = .has("team.name") },
            ModelDeclaration("Bot", Property("team", many: "User"))
        ),
        (
            ModelDeclaration("Staff").with { $0.secret = ["login"] },
            ModelDeclaration("Bot").with { $0.keys = ["login"] }
        ),
        (
            ModelDeclaration("Staff").with { $0.modified = "team.at" },
            ModelDeclaration("Bot", Property("team", one: "User"))
        ),
        (
            ModelDeclaration("Staff", Property("p").with { $0.parts = [.init(name: "x", from: "login")] }),
            ModelDeclaration("Bot", Property("q", "login").with { $0.merge = .sum })
        ),
    ])
    func `two models with one base are refused exactly if a mistake is reported`(
        staff: ModelDeclaration,
        bot: ModelDeclaration
    ) {
        let declarations =
            [ModelDeclaration("User", identity: ["id"])] + [staff, bot].map { $0.with { $0.base = "User" } }
        let mistakes = Models.mistakes(in: declarations)
        do throws(MappingError) {
            _ = try Models(declarations)
            #expect(mistakes.isEmpty)
        } catch {
            #expect(!mistakes.isEmpty, "not among the mistakes: \(error)")
        }
    }
}

/// Makes declarations that contradict themselves and each other.
struct WrongModels {
    private var random: SeededGenerator
    private var faults = 0

    init(seed: UInt64) { random = SeededGenerator(seed: seed &+ 4711) }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

    private mutating func pick<Value>(_ values: [Value]) -> Value { values.randomElement(using: &random)! }

    /// A value that is wrong, now and then, and more often the more faults there are to be.
    private mutating func pick<Value>(_ values: [Value], or wrong: [Value]) -> Value {
        chance(faults * 3) ? pick(wrong) : pick(values)
    }

    mutating func declarations(faults: Int) -> [ModelDeclaration] {
        self.faults = faults
        var names = ["User", "Staff", "Bot", "Team"].filter { _ in chance(80) }
        if names.isEmpty { names = ["User"] }
        if chance(faults) { names.append(pick(["user", "", "Us er", "User"])) }
        return names.map { model($0, among: names) }
    }

    private mutating func model(_ name: String, among names: [String]) -> ModelDeclaration {
        var model = ModelDeclaration(name: name)
        let members = ["id", "login", "title", "team", "team.id", "p0", "@parent.id", "a\\.b"]
        let wrong = ["", "a..b", "tags[].id", "@nowhere", "teams", "[]", "@self", "@parent.a[].b"]
        if name != "Team", name != "User", chance(70) { model.base = pick(["User"], or: ["Nobody", name, "Staff"]) }
        model.identity = model.base == nil ? [pick(["id"], or: members + wrong)] : []
        if chance(10) { model.identity += [pick(["login"], or: members + wrong)] }
        model.keys = chance(20) ? [pick(["login"], or: members + wrong)] : []
        model.local = chance(20) ? [pick(["score", "title"], or: members + wrong)] : []
        model.secret = chance(15) ? [pick(["token"], or: members + wrong)] : []
        model.modified = chance(15) ? pick(["updated"], or: members + wrong) : nil
        model.deletedWhen = chance(15) ? condition(members, wrong) : nil
        model.sharesAll = chance(10)
        model.naming = chance(20) ? .snakeCase(acronyms: []) : .exact
        if chance(15) {
            model.version = 1
            model.migrations = [
                Migration(
                    to: pick([1], or: [0, 2]),
                    renamed: [.init(from: pick(["a"], or: wrong), to: "b")],
                    converted: chance(50) ? [.init(member: "c", conversion: conversion())] : [],
                    removed: [pick(["d"], or: wrong)]
                )
            ]
        }
        if name == "User", chance(50) {
            model.choices = ["Staff", "Bot"].filter { names.contains($0) || chance(faults) }.map {
                ModelChoice(model: $0, condition: chance(80) ? condition(members, wrong) : nil)
            }
        }
        for index in 0..<Int.random(in: 0...4, using: &random) {
            model.properties.append(property(index, members, wrong, names))
        }
        return model
    }

    private mutating func condition(_ members: [String], _ wrong: [String]) -> Condition {
        let member = pick(["type", "title"], or: members + wrong)
        return chance(70)
            ? .has(member) : .all([.not(.member(member, isOneOf: [pick([json("1")], or: [json("{")])]))])
    }

    private mutating func property(
        _ index: Int,
        _ members: [String],
        _ wrong: [String],
        _ names: [String]
    ) -> PropertyDeclaration {
        let name = pick(["p\(index)"], or: ["P0", "p0", "", "p 1", "team.p0", "p0.p1", "p0.p0", "span"])
        let source = pick(
            ["title", "login", "m\(index)", "m\(index).x", "m\(index)[].y", "@root.total", "@index", "a\\.b"],
            or: members + wrong + ["@self", "team.title", "team[].id", "title.x"]
        )
        var property = PropertyDeclaration(name: name, from: source)
        if chance(25) {
            let other = pick(names + ["User"], or: ["Nobody"])
            property.relation = pick([.one(other), .many(other), .keyed(other)])
            if chance(60) { property.from = pick(["team", "teams", "m\(index)"]) }
        } else if chance(25) {
            property.conversion = conversion()
        }
        if chance(15) {
            property.parts = [
                .init(name: "t", from: pick(["title", "login", "@url"], or: wrong + members)),
                .init(name: "u", from: pick(["n\(index)"], or: ["title"])),
            ]
        }
        property.coerces = chance(10)
        property.isRequired = chance(10)
        if chance(15) { property.checks = [check()] }
        if chance(10) { property.defaultValue = json(pick(["null", "1", #""x""#], or: ["{", "[]", ""])) }
        property.merge = chance(80) ? .latest : pick(MergePolicy.allCases)
        property.former = chance(faults * 2) ? .delete : .keep
        if chance(15) {
            property.output = pick(
                [.none, .path("w\(index)")],
                or: [.path("title"), .path("a..b"), .path("title.x"), .path("@url")]
            )
        }
        return property
    }

    private mutating func check() -> ValueCheck {
        pick(
            [.type([.string]), .length(minimum: 0, maximum: 3), .notNull, .pattern("[a-z]+"), .oneOf([json("1")])],
            or: [
                .type([]), .length(minimum: 3, maximum: 1), .pattern("("), .oneOf([]), .oneOf([json("{")]),
                .range(minimum: json("x"), maximum: nil), .range(minimum: json("2"), maximum: json("1")),
            ]
        )
    }

    private mutating func conversion() -> ConversionDeclaration {
        pick(
            [.named("date"), .date(.unixSeconds), .arrayOf(.named("url")), .number(grouping: ",", decimal: ".")],
            or: [
                .named("nothing"), .chain([]), .values([], fallback: nil, reverseFallback: nil), .enumeration([]),
                .date(.pattern("'", zone: "UTC")), .date(.pattern("yyyy", zone: "Mars/X")),
                .number(grouping: ".", decimal: "."), .oneWay(.named("date"), back: .fail),
                .enumeration([.init(wire: "a", mapped: "x"), .init(wire: "b", mapped: "x")]),
                .values([.init(wire: json("{"), mapped: json("1"))], fallback: nil, reverseFallback: nil),
            ]
        )
    }
}
