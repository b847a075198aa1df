@testable import Mapping
import Testing

@Suite struct MappingPlanTests {
    private func mistakes(_ declarations: ModelDeclaration...) -> [ModelMistake] {
        Models.mistakes(in: declarations)
    }

    @Test func `every mistake is found, with its model and property`() {
        let found = mistakes(
            ModelDeclaration(
                "A",
                Property("a", "@nowhere"),
                Property("b", "x..y"),
                Property("c").with { $0.defaultValue = json("{") }
            ),
            ModelDeclaration("B", Property("x"), Property("y", one: "Nobody")).with { $0.base = "None" }
        )
        #expect(
            found.contains(
                ModelMistake(model: 0, property: 0, error: .unknownContext("@nowhere", property: "a", model: "A"))
            )
        )
        #expect(
            found.contains(
                ModelMistake(model: 0, property: 1, error: .invalidKeyPath("x..y", usedBy: "property b", model: "A"))
            )
        )
        #expect(
            found.contains(ModelMistake(model: 0, property: 2, error: .notJSON("default", property: "c", model: "A")))
        )
        #expect(
            found.contains(
                ModelMistake(model: 1, property: 1, error: .unknownModel("Nobody", property: "y", model: "B"))
            )
        )
        #expect(
            found.contains(
                ModelMistake(model: 1, property: nil, error: .unknownModel("None", property: "base", model: "B"))
            )
        )
        #expect(found.count == 5)
    }

    @Test(arguments: ["child.nothing", "plain.x", "nobody.x", "list.x", "child.list.x"])
    func `MT-43: a write path needs a relation to one object and a property of it`(path: String) {
        let found = mistakes(
            ModelDeclaration(
                "A",
                Property("child", one: "B"),
                Property("list", many: "B"),
                Property("plain"),
                Property(path, "z")
            ),
            ModelDeclaration("B", Property("x"), Property("list", many: "A"))
        )
        #expect(found == [ModelMistake(model: 0, property: 3, error: .writesIntoNothing(path, model: "A"))])
    }

    @Test func `a write path may lead to a property of one of a cluster's models`() {
        let found = mistakes(
            ModelDeclaration("A", Property("child", one: "B"), Property("child.special", "z")),
            ModelDeclaration("B").with { $0.choices = [ModelChoice(model: "C", condition: nil)] },
            ModelDeclaration("C", Property("special")).with { $0.base = "B" }
        )
        #expect(found.isEmpty)
    }

    @Test func `declarations that exclude each other are mistakes`() {
        for property in [
            Property("a", one: "A").with { $0.conversion = .named("date") },
            Property("a", "@self"),
            Property("a").with { ($0.isRequired, $0.defaultValue) = (true, json("1")) },
            Property(name: "a", from: "", relation: .one("A"), parts: [.init(name: "x", from: "x")]),
        ] {
            let found = mistakes(ModelDeclaration("A", identity: ["id"], property)).map(\.error)
            guard case .contradiction? = found.first else {
                Issue.record("\(property) gives \(found)")
                continue
            }
        }
    }

    @Test func `circles without end are mistakes, trees and circles of objects with identity are not`() {
        func circle(_ change: (inout PropertyDeclaration) -> Void, identity: [String] = []) -> [MappingError] {
            mistakes(
                ModelDeclaration("A", Property("b", one: "B").with(change)),
                ModelDeclaration("B", identity: identity, Property("a", one: "A"))
            ).map(\.error)
        }
        let use = "relations to one object each, and none of them has an identity"
        #expect(circle { _ in } == [.circle(["A", "B"], use: use)])
        #expect(circle({ _ in }, identity: ["id"]).isEmpty)
        #expect(circle { $0.relation = .many("B") }.isEmpty)
        let itself = Property(name: "a", from: "@self", relation: .one("A"))
        #expect(
            mistakes(ModelDeclaration("A", identity: ["id"], itself)).map(\.error) == [.circle(["A"], use: "\"@self\"")]
        )
        #expect(
            mistakes(ModelDeclaration("A").with { $0.base = "B" }, ModelDeclaration("B").with { $0.base = "A" }).map(
                \.error
            )
            .contains { if case .circularCluster = $0 { true } else { false } }
        )
    }

    @Test func `MT-42: two sources or parts that write to one place are a mistake`() {
        let parts = Property(name: "span", from: "", parts: [.init(name: "a", from: "x")])
        #expect(
            mistakes(ModelDeclaration("A", Property("x"), parts)).map(\.error) == [
                .sameKeyPath("x", properties: ["x", "span"], model: "A")
            ]
        )
        #expect(
            mistakes(ModelDeclaration("A", Property("a", "x"), Property("b", "x"))).map(\.error)
                == [.sameKeyPath("x", properties: ["a", "b"], model: "A")]
        )
    }

    @Test func `each mistake's message mentions the model`() {
        for error in [
            MappingError.unknownContext("@x", property: "p", model: "M"),
            .notJSON("default", property: "p", model: "M"),
            .writesIntoNothing("a.b", model: "M"), .sameOutput("x", properties: ["a", "b"], model: "M"),
            .contradiction("no", property: "p", model: "M"),
            .circle(["A", "B"], use: "\"@self\""),
        ] {
            #expect(error.description.contains("model"))
        }
    }
}
