import Testing

@testable import Mapping

/// Declarations far larger than anybody writes: what is done with them grows as they do, so that all of this ends at once.
@Suite struct LargeModelTests {
    private static let count = 8000

    private func many(_ name: (Int) -> String, _ change: (inout PropertyDeclaration) -> Void = { _ in })
        -> [PropertyDeclaration]
    {
        (0..<Self.count).map { number in
            var property = PropertyDeclaration(name: "p\(number)", from: name(number))
            change(&property)
            return property
        }
    }

    @Test func `a model of thousands of properties is checked, compiled and mapped`() throws {
        var model = ModelDeclaration(name: "A", identity: ["id"])
        model.properties = many({ "member\($0)" }) { $0.checks = [.notNull] }
        model.local = (0..<Self.count).map { "other\($0)" }
        model.secret = (0..<Self.count).map { "secret\($0)" }
        #expect(Models.mistakes(in: [model]).isEmpty)
        let models = try Models([model])
        #expect(models.columns(of: "A").count == Self.count + 2)
        let body = #"{"id":1,"member7999":7}"#
        let mapped = DocumentMapper(models: models).map(json(body), as: BodyRule(model: "A", arity: .one))
        #expect(text(mapped.body) == #"{"id":1,"p7999":7}"#)
    }

    @Test func `thousands of mistakes are all reported`() {
        var model = ModelDeclaration(name: "A", identity: ["id"])
        model.properties = many({ _ in "same" })
        #expect(Models.mistakes(in: [model]).count == Self.count - 1)
        model.properties = many({ "@nothing\($0)" })
        #expect(Models.mistakes(in: [model]).count == Self.count)
        model.properties = many({ "x\($0)" }) { ($0.merge, $0.relation) = (.sum, .one("A")) }
        #expect(Models.mistakes(in: [model]).count == Self.count)
        let copies = (0..<Self.count).map { _ in ModelDeclaration(name: "A", identity: ["id"]) }
        #expect(Models.mistakes(in: copies) == [ModelMistake(model: 1, error: .duplicateModel("A", other: "A"))])
    }

    @Test func `thousands of write paths find the child that they complete`() throws {
        let child = ModelDeclaration(name: "B", identity: [], properties: many({ "m\($0)" }))
        var model = ModelDeclaration(name: "A", identity: ["id"])
        model.properties = [PropertyDeclaration(name: "b", from: "b", relation: .one("B"))]
        model.properties += (0..<Self.count).map { PropertyDeclaration(name: "b.p\($0)", from: "x\($0)") }
        #expect(Models.mistakes(in: [model, child]).isEmpty)
        _ = try Models([model, child])
    }

    @Test func `hundreds of models in one chain of bases, and thousands side by side, are compiled`() throws {
        let chain = (0..<300).map { number in
            ModelDeclaration(
                name: "M\(number)",
                identity: number == 0 ? ["id"] : [],
                properties: [PropertyDeclaration(name: "p\(number)", from: "m\(number)")],
                base: number == 0 ? nil : "M\(number - 1)"
            )
        }
        #expect(Models.mistakes(in: chain).isEmpty)
        #expect(try Models(chain).columns(of: "M299").count == 302)
        var others = (0..<Self.count / 2).map { number in
            ModelDeclaration(
                name: "N\(number)",
                identity: ["id"],
                properties: [
                    PropertyDeclaration(
                        name: "next",
                        from: "next",
                        relation: .one("N\((number + 1) % (Self.count / 2))")
                    )
                ]
            )
        }
        #expect(Models.mistakes(in: others).isEmpty)
        // Without identities the ring has no end, and is told of once.
        for index in others.indices { others[index].identity = [] }
        #expect(Models.mistakes(in: others).count == 1)
    }

    @Test func `thousands of concrete models of one cluster are compiled`() throws {
        var base = ModelDeclaration(name: "Base", identity: ["id"])
        let concrete = (0..<1000).map { number in
            ModelDeclaration(
                name: "C\(number)",
                properties: [PropertyDeclaration(name: "p\(number)", from: "m\(number)")],
                base: "Base"
            )
        }
        base.choices = concrete.map { ModelChoice(model: $0.name, condition: .has("m\($0.name.dropFirst())")) }
        let models = [base] + concrete
        #expect(Models.mistakes(in: models).isEmpty)
        let mapper = DocumentMapper(models: try Models(models))
        let mapped = mapper.map(json(#"{"id":1,"m999":2}"#), as: BodyRule(model: "Base", arity: .one))
        #expect(text(mapped.body) == #"{"id":1,"p999":2}"#)
    }

    @Test func `a concrete model without a condition does not change how its base distinguishes identities`() throws {
        let base = ModelDeclaration("A", identity: ["id"]).with { $0.distinguishesTypes = true }
        let concrete = ModelDeclaration(name: "B", properties: [Wire.property("x")], base: "A")
        let names = try Wire.names(
            #"[{"id":7},{"id":"7"}]"#,
            BodyRule(model: "A", arity: .many),
            Models([base, concrete])
        )
        #expect(Set(names).count == 2)
    }
}
