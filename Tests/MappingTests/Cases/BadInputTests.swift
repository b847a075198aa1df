import Testing

@testable import Mapping

/// Bodies and declarations that expect the worst: a warning or an error each time, never a crash or a merged stranger.
@Suite struct BadInputTests {
    private let many = BodyRule(model: "A", shape: .many)

    private func models(_ identity: String...) throws -> Models {
        try Models([ModelDeclaration(name: "A", identity: identity, properties: [Wire.property("x")])])
    }

    @Test func `ids are texts and numbers of reasonable length, each its own`() throws {
        let long = String(repeating: "x", count: 10_000)
        let digits = String(repeating: "9", count: 10_000)
        let body =
            #"[{"id":"\#(long)"},{"id":\#(digits)},{"id":true},{"id":false},{"id":{}},{"id":[1]},{"id":-1},{"id":1.5},{"id":1.50},{"id":-0},{"id":0}]"#
        let parts = try Wire.parts(body, many, try models("id"))
        #expect(parts.occurrences.map(\.name.identity) == ["-1", "1.5", "1.5", "0", "0"])
        #expect(parts.warnings.map(\.kind) == [.identityUnusable])
        #expect(parts.warnings.first?.count == 6)
    }

    @Test func `long, empty and missing values from the context are no identity`() throws {
        let models = try models("@url.owner", "id")
        for owner in ["", String(repeating: "o", count: 10_000)] {
            let context = MappingContext(captures: ["owner": owner])
            let decomposed = Normaliser(models: models).decompose(Wire.json(#"[{"id":1}]"#), as: many, in: context)
            guard case .opaque(let warning) = decomposed else {
                Issue.record("an object without an owner")
                continue
            }
            #expect(warning != nil)
        }
    }

    @Test func `names with dots, empty names and names that look alike are themselves`() throws {
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

    @Test func `an id that occurs twice is none`() throws {
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

    @Test func `clusters nested by the hundred are read a bounded number of times`() throws {
        let models = try Models([
            ModelDeclaration(
                name: "A",
                identity: ["@parent.id", "id"],
                properties: [Wire.property("a", nil, .one("A"))],
                choices: [ModelChoice(model: "B", condition: .has("b"))]
            ),
            ModelDeclaration(name: "B", properties: [Wire.property("b")], base: "A"),
        ])
        let body =
            (0..<400).map { #"{"id":\#($0),"b":1,"a":"# }.joined() + "null" + String(repeating: "}", count: 400)
        let parts = Normaliser(models: models).decompose(Wire.json(body), as: BodyRule(model: "A", shape: .one))
        if case .objects(let parts) = parts { #expect(parts.recomposes(to: Wire.json(body))) }
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
    func `what is no value of the context is a mistake`(source: String) {
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
                ModelDeclaration(name: "A", properties: [list], deletedWhen: .has("users.id"))
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
            found.map(\.error.kind) == ["invalidMerge", "invalidMerge", "invalidMerge", "invalidKeyPath"]
        )
    }

    @Test func `a circle of bases is told of once, whoever is upon it`() {
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

    @Test func `what is wrong with clusters hides nothing else`() {
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

    @Test func `key paths longer than any JSON is deep are none`() {
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

    @Test func `a circle of objects without identity is found beside one that has an end`() {
        let found = errors(
            ModelDeclaration("A", Property("b", one: "B"), Property("c", one: "C")),
            ModelDeclaration("B", identity: ["id"], Property("a", one: "A")),
            ModelDeclaration("C", Property("d", one: "D")),
            ModelDeclaration("D", Property("a", one: "A"))
        )
        #expect(found.map(\.kind) == ["circle"])
        #expect(found.first?.description.contains("A, C, D") == true)
    }

    @Test func `what names an object is not secret`() {
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

    @Test func `versions are the base's`() {
        #expect(
            errors(
                ModelDeclaration(name: "A", identity: ["id"], version: 1, migrations: [Migration(to: 1)]),
                ModelDeclaration(name: "B", base: "A", version: 1, migrations: [Migration(to: 1)])
            ) == [.versionWithinCluster(model: "B", base: "A")]
        )
    }

    @Test func `a place within what another property writes is none`() {
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

    @Test func `a default of a relation is of its shape`() {
        func found(_ relation: Relation, _ value: String) -> Int {
            errors(
                ModelDeclaration(
                    "A",
                    identity: ["id"],
                    Property(name: "a", from: "a", relation: relation, defaultValue: json(value))
                )
            ).count
        }
        #expect(found(.one("A"), "5") == 1 && found(.many("A"), "{}") == 1 && found(.keyed("A"), "[]") == 1)
        #expect(found(.one("A"), "null") == 0 && found(.many("A"), "[]") == 0 && found(.keyed("A"), "{}") == 0)
    }
}

extension MappingError {
    /// The name of the case.
    fileprivate var kind: String { Mirror(reflecting: self).children.first?.label ?? "" }
}

/// The way back, and looks at single objects, where something is missing.
@Suite struct IncompleteTests {
    @Test func `what was left out of a list leaves no other element in its place on the way back`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("A", Property("users", many: "User"), Property("names", "users[].name")),
            ModelDeclaration("User", Property("age"))
        )
        let shown = fixture.one(#"{"users":[{"name":"a","age":1},7,{"name":"b","age":2}]}"#, "A")
        #expect(shown.body == #"{"users":[{"age":1},{"age":2}],"names":["a",null,"b"]}"#)
        let back = try fixture.mapper.unmap(json(shown.body), as: BodyRule(model: "A", shape: .one))
        #expect(text(back.body) == #"{"users":[{"age":1},{"age":2}]}"#)
        #expect(back.warnings.map(\.kind) == [.notWritten] && back.warnings.map(\.pointer) == ["/names"])
        let whole = #"{"users":[{"age":1,"name":"a"},{"age":2,"name":"b"}]}"#
        #expect(try fixture.unmap(fixture.one(whole, "A").body, "A") == whole)
    }

    @Test func `key paths lead through references to what is known, and end at what is not`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "Post",
                identity: ["id"],
                Property("author", one: "User"),
                Property("authorName", "author.name"),
                Property("city", "author.home.city"),
                Property("home", "author.home")
            ),
            ModelDeclaration("User", identity: ["id"], Property("name"), Property("home", one: "Home")),
            ModelDeclaration("Home", identity: ["id"], Property("city"))
        )
        func shown(_ known: [String: String]) -> String {
            let payload = json(#"{"id":1,"author":"\u0001User:7"}"#)
            let mapped = fixture.mapper.mapObject(payload, model: "Post", expandsRelations: false) { name in
                known[name.description].map(json)
            }
            #expect(mapped.warnings.isEmpty)
            return text(mapped.body)
        }
        let user = #"{"id":7,"name":"ada","home":"\u0001Home:x"}"#
        #expect(shown([:]) == #"{"id":1,"author":7}"#)
        #expect(shown(["User:7": user]) == #"{"id":1,"author":7,"authorName":"ada","home":"x"}"#)
        #expect(
            shown(["User:7": user, "Home:x": #"{"id":"x","city":"Ulm"}"#])
                == #"{"id":1,"author":7,"authorName":"ada","city":"Ulm","home":"x"}"#
        )
        // One that refers to itself ends.
        #expect(shown(["User:7": #"{"id":7,"home":"\u0001User:7"}"#]) == #"{"id":1,"author":7,"home":7}"#)
    }

    @Test func `names of members that nothing is shown under are told`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("Base", identity: ["id"], Property("friend", one: "Base")).with {
                $0.choices = [ModelChoice(model: "Red", condition: .has("heat"))]
            },
            ModelDeclaration("Red", Property("heat")).with { $0.base = "Base" },
            ModelDeclaration("Open", Property("a")).with { $0.sharesAll = true }
        )
        let names = ["id", "friend", "friend.heat", "friend.friend.id", "heat", "Heat", "friend.x", "id.x", ""]
        #expect(fixture.mapper.unknownMembers(among: names, of: ["Base"]) == ["Heat", "friend.x", "id.x", ""])
        #expect(fixture.mapper.unknownMembers(among: ["whatever"], of: ["Open"]).isEmpty)
    }

    @Test func `what policies have gathered goes along with migrations`() throws {
        let models = try Models([
            ModelDeclaration(
                name: "Thing",
                identity: ["id"],
                properties: [
                    Wire.property("total", merge: .sum), Wire.property("tags", "meta.tags", merge: .union),
                    Wire.property("first", merge: .keep),
                ],
                version: 1,
                migrations: [
                    Migration(
                        to: 1,
                        renamed: [.init(from: "count", to: "total"), .init(from: "info", to: "meta")],
                        converted: [.init(member: "first", transform: .date(.unixSeconds))],
                        removed: ["gone"]
                    )
                ]
            )
        ])
        let old = try Models([
            ModelDeclaration(
                name: "Thing",
                identity: ["id"],
                properties: [
                    Wire.property("total", "count", merge: .sum), Wire.property("tags", "info.tags", merge: .union),
                    Wire.property("first", merge: .keep), Wire.property("gone", merge: .keep),
                ]
            )
        ])
        var shelf = Shelf(old)
        let one = BodyRule(model: "Thing", shape: .one)
        shelf.take("a", #"{"id":1,"count":5,"info":{"tags":["x"]},"first":0,"gone":1}"#, one, at: 1)
        shelf.take("b", #"{"id":1,"count":3,"info":{"tags":["y"]},"first":9}"#, one, at: 2)
        let gathered = try #require(shelf.states.values.first).accumulation
        let migrated = models.migrate(gathered, of: "Thing", from: 0)
        let values = migrated.values { models.merge(of: $0, model: 0) }.map { "\($0.text)=\(text($1))" }.sorted()
        #expect(values == [#"first="1970-01-01T00:00:00Z""#, #"meta/tags=["x","y"]"#, "total=8"])
        #expect(models.migrate(gathered, of: "Thing", from: 1) == gathered)
    }
}
