import Testing

@testable import Mapping

/// Declarations that contradict themselves, each told of.
@Suite struct ContradictionTests {
    private func errors(_ declarations: ModelDeclaration...) -> [MappingError] {
        Models.mistakes(in: declarations).map(\.error)
    }

    @Test func `all mistakes of one model are found, each at its property`() {
        let found = Models.mistakes(in: [
            ModelDeclaration(
                name: "A",
                identity: ["id"],
                properties: [
                    Wire.property("good"), Wire.property("a", nil, .one("A"), merge: .union),
                    Wire.property("b", checks: [.type([.string])], merge: .sum),
                    Wire.property("c", checks: [.type([.object, .null])], merge: .union),
                ],
                local: ["x..y"]
            )
        ])
        #expect(found.map(\.property) == [1, 2, 3, nil])
        #expect(
            found.map(\.error.kind) == ["contradiction", "contradiction", "contradiction", "invalidKeyPath"]
        )
    }

    @Test func `a circle of base models is reported once, however many models inherit from it`() {
        let found = errors(
            ModelDeclaration(name: "D", base: "B"),
            ModelDeclaration(name: "A", base: "B"),
            ModelDeclaration(name: "B", base: "C"),
            ModelDeclaration(name: "C", base: "A"),
            ModelDeclaration(name: "E", base: "E")
        )
        #expect(found == [.circularCluster(["A", "B", "C"]), .circularCluster(["E"])])
        #expect(found.last?.description.contains("its own base") == true)
    }

    @Test func `a mistake in a cluster hides no other mistake`() {
        let found = errors(
            ModelDeclaration(name: "A", base: "B"),
            ModelDeclaration(name: "B", base: "A"),
            ModelDeclaration(name: "C", choices: [ModelChoice(model: "C", condition: nil)]),
            ModelDeclaration(name: "D", identity: ["id"], base: "Nobody"),
            ModelDeclaration(name: "E", identity: ["a[].b"], keys: ["a..b"], local: ["x", "x"], version: 1),
            ModelDeclaration(name: "F", identity: ["id"], version: 1, migrations: [Migration(to: 2)])
        )
        let expected: [MappingError] = [
            .circularCluster(["A", "B"]), .circularCluster(["C"]),
            .unknownModel("Nobody", property: "base", model: "D"),
            .invalidKeyPath("a[].b", usedBy: "identity", model: "E"),
            .invalidKeyPath("a..b", usedBy: "keys", model: "E"),
            .namedTwice("x", usedBy: "local", model: "E"), .invalidMigration(2, model: "F", version: 1),
        ]
        for error in expected { #expect(found.contains(error), "\(error) is not among \(found)") }
        #expect(found.count == expected.count)
    }

    @Test func `a key path longer than JSON's depth limit is refused`() {
        for path in [
            Array(repeating: "a", count: 100_000).joined(separator: "."), "a" + String(repeating: "[]", count: 50_000),
        ] {
            let found = errors(
                ModelDeclaration("A", identity: [path], Property("x", path), Property("y", "@parent." + path))
            )
            #expect(found.allSatisfy { $0.kind == "invalidKeyPath" } && !found.isEmpty)
            #expect(found.allSatisfy { $0.description.utf8.count < 400 })
        }
        #expect(
            errors(ModelDeclaration("A", Property("x", Array(repeating: "a", count: 512).joined(separator: "."))))
                .isEmpty
        )
    }

    @Test func `an endless circle of objects without identity is found beside one that ends`() {
        let found = errors(
            ModelDeclaration("A", Property("b", one: "B"), Property("c", one: "C")),
            ModelDeclaration("B", identity: ["id"], Property("a", one: "A")),
            ModelDeclaration("C", Property("d", one: "D")),
            ModelDeclaration("D", Property("a", one: "A"))
        )
        #expect(found.map(\.kind) == ["circle"])
        #expect(found.first?.description.contains("A, C, D") == true)
    }

    @Test func `a member that identifies an object cannot be secret`() {
        #expect(
            errors(ModelDeclaration(name: "A", identity: ["id"], secret: ["id"]))
                == [.secretIdentity("id", usedBy: "identity", model: "A")]
        )
        #expect(
            errors(ModelDeclaration(name: "A", identity: ["id"], keys: ["auth.login"], secret: ["auth"]))
                == [.secretIdentity("auth.login", usedBy: "keys", model: "A")]
        )
        #expect(errors(ModelDeclaration(name: "A", identity: ["id"], secret: ["identity"])).isEmpty)
    }

    @Test func `a derived model may not have a version of its own`() {
        #expect(
            errors(
                ModelDeclaration(name: "A", identity: ["id"], version: 1, migrations: [Migration(to: 1)]),
                ModelDeclaration(name: "B", base: "A", version: 1, migrations: [Migration(to: 1)])
            ) == [.versionWithinCluster(model: "B", base: "A")]
        )
    }

    @Test func `an output path within what another property writes is refused`() {
        let inner = Property("a").with { $0.output = .path("b.c") }
        let expected = [MappingError.outputWithin("b.c", outer: "b", properties: ["a", "b"], model: "A")]
        #expect(errors(ModelDeclaration("A", inner, Property("b"))) == expected)
        #expect(errors(ModelDeclaration("A", Property("b"), inner)) == expected)
        // Into a child it may lead, and what is only read may lie within what is read.
        #expect(errors(ModelDeclaration("A", identity: ["id"], Property("b", one: "A"), inner)).isEmpty)
        #expect(errors(ModelDeclaration("A", Property("b"), Property("c", "b.c"))).isEmpty)
        #expect(errors(ModelDeclaration("A", inner, Property("b").with { $0.output = .none })).isEmpty)
    }

    @Test(arguments: [
        (ValueCheck.type([.string]), "5", true), (.length(minimum: 3, maximum: nil), #""ab""#, true),
        (.pattern("[a-z]+"), #""A""#, true), (.oneOf([json("1")]), "2", true),
        (.range(minimum: json("1"), maximum: nil), "0", true), (.notNull, "null", true),
        (.type([.string]), "null", false),
        (.oneOf([json("1")]), "1.0", false),
    ])
    func `a default passes the checks of its own property`(_ check: ValueCheck, _ value: String, _ isWrong: Bool) {
        let property = Property("a").with { ($0.checks, $0.defaultValue) = ([check], json(value)) }
        let found = errors(ModelDeclaration("A", property))
        #expect(found.map(\.kind) == (isWrong ? ["contradiction"] : []))
    }

    @Test func `a relation's default must have the relation's shape`() {
        func found(_ relation: Relation, _ value: String) -> Int {
            var property = Property(name: "a", from: "a", relation: relation)
            property.defaultValue = json(value)
            return errors(ModelDeclaration("A", identity: ["id"], property)).count
        }
        #expect(found(.one("A"), "5") == 1 && found(.many("A"), "{}") == 1 && found(.keyed("A"), "[]") == 1)
        #expect(found(.one("A"), "null") == 0 && found(.many("A"), "[]") == 0 && found(.keyed("A"), "{}") == 0)
    }
}

extension MappingError {
    /// The name of the case.
    fileprivate var kind: String { Mirror(reflecting: self).children.first?.label ?? "" }
}
