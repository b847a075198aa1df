import Testing

@testable import Mapping

/// Bodies and declarations that expect the worst: a warning or an error each time, never a crash or a merged stranger.
@Suite struct BadInputTests {
    private let many = BodyRule(model: "A", arity: .many)

    private func models(_ identity: String...) throws -> Models {
        try Models([ModelDeclaration(name: "A", identity: identity, properties: [Wire.property("x")])])
    }

    @Test func `texts and numbers of reasonable length are ids, and equal numbers are one id`() throws {
        let long = String(repeating: "x", count: 10_000)
        let digits = String(repeating: "9", count: 10_000)
        let body =
            #"[{"id":"\#(long)"},{"id":\#(digits)},{"id":true},{"id":false},{"id":{}},{"id":[1]},{"id":-1},{"id":1.5},{"id":1.50},{"id":-0},{"id":0}]"#
        let parts = try Wire.parts(body, many, try models("id"))
        #expect(parts.occurrences.map(\.name.identity) == ["-1", "1.5", "1.5", "0", "0"])
        #expect(parts.warnings.map(\.kind) == [.identityUnusable])
        #expect(parts.warnings.first?.count == 6)
    }

    @Test func `an empty or overlong value from the context identifies no object`() throws {
        let models = try models("@url.owner", "id")
        for owner in ["", String(repeating: "o", count: 10_000)] {
            let context = MappingContext(captures: ["owner": owner])
            let decomposed = Decomposer(models: models).decompose(Wire.json(#"[{"id":1}]"#), as: many, in: context)
            guard case .opaque(let warning) = decomposed else {
                Issue.record("an object without an owner")
                continue
            }
            #expect(warning != nil)
        }
    }

    @Test func `member names with dots, empty names and look-alike names stay distinct`() throws {
        let models = try Models([
            ModelDeclaration(name: "A", identity: ["a\\.b"], properties: [Wire.property("e", "caf\u{E9}")])
        ])
        let body = "[{\"a.b\":1},{\"a\":{\"b\":2}},{\"A.B\":3},{\"\":4}]"
        #expect(try Wire.names(body, many, models) == ["A:1"])
        var shelf = Shelf(models)
        shelf.take("a", "[{\"a.b\":1,\"caf\u{E9}\":1,\"cafe\u{301}\":1,\"CAF\u{C9}\":1}]", many, at: 1)
        shelf.take("b", "[{\"a.b\":1,\"caf\u{E9}\":2,\"cafe\u{301}\":2,\"CAF\u{C9}\":2}]", many, at: 2)
        #expect(shelf.shown("a") == "[{\"a.b\":1,\"caf\u{E9}\":2,\"cafe\u{301}\":1,\"CAF\u{C9}\":1}]")
        // Ids that only look alike are two.
        let names = try Wire.parts(
            "[{\"id\":\"\u{E9}\"},{\"id\":\"e\u{301}\"},{\"id\":\"a\"},{\"id\":\"A\"}]",
            many,
            try self.models("id")
        ).occurrences.map(\.name)
        #expect(Set(names).count == 4)
    }

    @Test func `an id that occurs twice in an object identifies nothing`() throws {
        let parts = try Wire.parts(#"[{"id":1,"id":1},{"id":1,"\u0069d":2},{"id":3}]"#, many, try models("id"))
        #expect(parts.occurrences.map(\.name.identity) == ["3"])
        #expect(parts.warnings.map(\.kind) == [.identityRepeated])
    }

    @Test(arguments: [
        #"[{"a":[{"b":1}]}]"#, #"[{"a":"b"}]"#, #"[{"a":null}]"#, #"[{"a":7}]"#, #"[{"a":{"b":{"c":1}}}]"#,
    ])
    func `key paths through arrays, strings and nulls lead nowhere`(body: String) throws {
        #expect(Wire.opaque(body, many, try models("a.b")) != .none)
    }

    @Test func `hundreds of nested clusters are decomposed and put together unchanged`() throws {
        let models = try Models([
            ModelDeclaration(
                name: "A",
                identity: ["id"],
                properties: [Wire.property("a", nil, .one("A"))],
                choices: [ModelChoice(model: "B", condition: .has("b"))]
            ),
            ModelDeclaration(name: "B", properties: [Wire.property("b")], base: "A"),
        ])
        let body =
            (0..<400).map { #"{"id":\#($0),"b":1,"a":"# }.joined() + "null" + String(repeating: "}", count: 400)
        let parts = try Wire.parts(body, BodyRule(model: "A", arity: .one), models)
        #expect(parts.recomposes(to: Wire.json(body)))
    }

    @Test func `a model that is its own base, or its own choice, is a mistake`() {
        #expect(
            Wire.error([ModelDeclaration(name: "A", base: "B"), ModelDeclaration(name: "B", base: "A")])
                == .circularCluster(["A", "B"])
        )
        #expect(
            Wire.error([ModelDeclaration(name: "A", choices: [ModelChoice(model: "A", condition: nil)])])
                == .circularCluster(["A"])
        )
        #expect(
            Wire.error([ModelDeclaration(name: "A", base: "Z")]) == .unknownModel("Z", property: "base", model: "A")
        )
        #expect(
            Wire.error([ModelDeclaration(name: "A", choices: [ModelChoice(model: "Z", condition: nil)])])
                == .unknownModel("Z", property: "cluster", model: "A")
        )
    }

    @Test(arguments: ["@", "@url.", "@parent", "@unknown.x", "@index.x", "@parent.a..b", "@root.a[].b"])
    func `a reference to an unknown context value is a mistake`(source: String) {
        #expect(
            Wire.error([ModelDeclaration(name: "A", identity: [source])])
                == .invalidKeyPath(source, usedBy: "identity", model: "A")
        )
    }

    @Test func `identities, keys and conditions cross neither arrays nor relations`() {
        let list = Wire.property("users", nil, .one("A"))
        #expect(
            Wire.error([ModelDeclaration(name: "A", identity: ["tags[].id"])])
                == .invalidKeyPath("tags[].id", usedBy: "identity", model: "A")
        )
        guard
            case .crossesRelation("users.id", "deleted_when", _, _, _) = Wire.error([
                ModelDeclaration("A", list).with { $0.deletedWhen = .has("users.id") }
            ])
        else {
            Issue.record("a condition on another object's member is a mistake")
            return
        }
    }

    @Test func `migrations rise to the model's version`() {
        #expect(
            Wire.error([ModelDeclaration(name: "A", version: 1, migrations: [Migration(to: 2)])])
                == .invalidMigration(2, model: "A", version: 1)
        )
        #expect(
            Wire.error([
                ModelDeclaration(name: "A", version: 2, migrations: [Migration(to: 1), Migration(to: 1)])
            ]) == .invalidMigration(1, model: "A", version: 2)
        )
    }
}
