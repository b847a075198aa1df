import Testing

@testable import Mapping

@Suite struct MantleWireTests {
    private let one = BodyRule(model: "Thing", arity: .one)
    private let many = BodyRule(model: "Thing", arity: .many)

    private func models(_ properties: PropertyDeclaration...) throws -> Models {
        try Models([ModelDeclaration(name: "Thing", identity: ["id"], properties: properties)])
    }

    @Test func `MT-08: a value that fails its check is quarantined, and the raw response stays`() throws {
        let models = try models(Wire.property("name", checks: [.length(minimum: 1, maximum: 9)]), Wire.property("age"))
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"name":"short","age":1}"#, one, at: 1)
        let warnings = shelf.take("b", #"{"age":2,"name":"much too long","id":1}"#, one, at: 2)
        #expect(warnings.map(\.kind) == [.quarantined])
        #expect(warnings.first?.pointer == "/name")
        #expect(warnings.first?.property == "name")
        #expect(warnings.first?.model == "Thing")
        // It moves nowhere, the rest does; its own answer shows it as it came.
        #expect(shelf.shown("a") == #"{"id":1,"name":"short","age":2}"#)
        #expect(shelf.shown("b") == "=")
        #expect(shelf.known("Thing", "1") == #"{"age":2,"name":"short","id":1}"#)
        // Alone, nothing better is known: it is left out of what is known.
        var alone = Shelf(models)
        for body in [#"{"name":"much too long","id":1}"#, #"{"id":1,"name":"much too long"}"#] {
            alone.states = [:]
            alone.take("c", body, one, at: 1)
            #expect(alone.known("Thing", "1") == #"{"id":1}"#)
        }
    }

    @Test func `MT-08: a repeated misfit is one warning that counts`() throws {
        let models = try models(Wire.property("name", checks: [.type([.string])]))
        let body = "[" + (0..<50).map { #"{"id":\#($0),"name":\#($0)}"# }.joined(separator: ",") + "]"
        let parts = try Wire.parts(body, many, models)
        #expect(parts.warnings.count == 1)
        #expect(parts.warnings.first?.count == 50)
    }

    @Test func `MT-09: a required property that is absent is warned of, null is there`() throws {
        let models = try models(Wire.property("name", required: true), Wire.property("x", "a.b", required: true))
        let warned = try Wire.parts(#"[{"id":1},{"id":2,"name":null,"a":{"b":1}},{"id":3,"a":{}}]"#, many, models)
        #expect(warned.warnings.map(\.kind) == [.requiredMissing, .requiredMissing])
        #expect(warned.warnings.map(\.property) == ["name", "x"])
        #expect(warned.warnings.map(\.count) == [2, 2])
        #expect(warned.occurrences.count == 3)
    }

    private func flavours() throws -> Models {
        try Models([
            ModelDeclaration(
                name: "Thing",
                identity: ["id"],
                properties: [Wire.property("flavor")],
                choices: [
                    ModelChoice(model: "Chocolate", condition: .has("bitterness")),
                    ModelChoice(model: "Strawberry", condition: .has("freshness")),
                ]
            ),
            ModelDeclaration(name: "Chocolate", properties: [Wire.property("bitterness")], base: "Thing"),
            ModelDeclaration(name: "Strawberry", properties: [Wire.property("freshness")], base: "Thing"),
        ])
    }

    @Test func `MT-22: a member chooses the concrete model; without it the object has the base model`() throws {
        let models = try flavours()
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"flavor":"x","bitterness":1,"freshness":1}"#, one, at: 1)
        shelf.take("b", #"{"id":1,"flavor":"y","bitterness":2,"freshness":2}"#, one, at: 2)
        // Chocolate comes first: freshness is no property of it.
        #expect(shelf.shown("a") == #"{"id":1,"flavor":"y","bitterness":2,"freshness":1}"#)
        shelf.take("c", #"{"id":1,"flavor":"z"}"#, one, at: 3)
        #expect(shelf.shown("a") == #"{"id":1,"flavor":"z","bitterness":2,"freshness":1}"#)
        #expect(try Wire.names(#"{"id":2}"#, one, models) == ["Thing:2"])
    }

    private static let accounts = [
        ModelDeclaration(
            name: "Account",
            identity: ["id"],
            properties: [Wire.property("login")],
            choices: [
                ModelChoice(model: "Team", condition: .member("type", isOneOf: [Wire.json(#""team""#)])),
                ModelChoice(model: "Person", condition: nil),
            ]
        ),
        ModelDeclaration(
            name: "Team",
            properties: [
                Wire.property("plan"), Wire.property("seats", merge: .sum), Wire.property("lead", nil, .one("User")),
                Wire.property("size", checks: [.range(minimum: Wire.json("0"), maximum: nil)]),
            ],
            base: "Account"
        ),
        ModelDeclaration(name: "Person", properties: [Wire.property("bio")], base: "Account"),
        ModelDeclaration(name: "User", identity: ["id"], properties: [Wire.property("name")]),
    ]

    @Test(arguments: [[0, 1, 2], [0, 2, 1], [2, 0, 1], [1, 0, 2]])
    func `MT-22: a version without the member that chooses is read as the model that is known of the object`(
        order: [Int]
    ) throws {
        let models = try Models(Self.accounts)
        var shelf = Shelf(models)
        let bodies = [
            #"{"id":1,"type":"team","login":"a","plan":"p","bio":"x","seats":1}"#,
            #"{"id":1,"login":"b","plan":"q","bio":"y","seats":2}"#,
            #"{"id":1,"login":"c","lead":{"id":7,"name":"Ada"}}"#,
        ]
        let rule = BodyRule(model: "Account", arity: .one)
        for index in order { shelf.take("\(index)", bodies[index], rule, at: Int64(index + 1) * 10) }
        #expect(shelf.shown("0") == #"{"id":1,"type":"team","login":"c","plan":"q","bio":"x","seats":1}"#)
        #expect(shelf.shown("1") == #"{"id":1,"login":"c","plan":"q","bio":"y","seats":2}"#)
        #expect(shelf.shown("2") == "=")
        let known = try #require(shelf.known("Account", "1"))
        // What no model declared when it was shown is added to no sum.
        let seats = order[0] == 1 ? #""seats":1"# : #""seats":3"#
        for part in [#""type":"team""#, #""login":"c""#, #""plan":"q""#, seats] {
            #expect(known.contains(part), "\(known)")
        }
    }

    @Test func `MT-25 MT-26 MT-27 MT-28: list elements that are no objects stay, the others are stored`() throws {
        let models = try models(Wire.property("name"))
        #expect(try Wire.names(#"[{"id":1},"x",null,[],{"id":2}]"#, many, models) == ["Thing:1", "Thing:2"])
        #expect(Wire.opaque(#"["foo","bar"]"#, many, models) == .some(nil))
    }

    @Test func `MT-48 MA-04: a sum adds the values of different responses, and counts each response once`() throws {
        let models = try models(Wire.property("name"), Wire.property("count", merge: .sum))
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"name":"foo","count":5}"#, one, at: 1)
        shelf.take("b", #"{"id":1,"name":"bar","count":3}"#, one, at: 2)
        #expect(shelf.known("Thing", "1") == #"{"id":1,"name":"bar","count":8}"#)
        // The same response again is no other one.
        shelf.take("b", #"{"id":1,"name":"bar","count":3}"#, one, at: 3)
        shelf.take("b", #"{"id":1,"name":"bar","count":4}"#, one, at: 4)
        #expect(shelf.known("Thing", "1") == #"{"id":1,"name":"bar","count":9}"#)
        // Each response keeps its own number; the name moves.
        #expect(shelf.shown("a") == #"{"id":1,"name":"bar","count":5}"#)
    }

    @Test(arguments: [
        (["0.1", "0.2"], "0.3"), (["1e2", "-100"], "0"), (["9007199254740993", "1"], "9007199254740994"),
        (["1e-3", "1"], "1.001"), (["-5", "3"], "-2"), (["1e400", "1e400"], "2e400"), (["1e900", "1"], "1e900"),
        (["1", "1e999999999999"], "1"),
    ])
    func `MT-48: sums are exact`(numbers: [String], expected: String) {
        var sum = DecimalSum()
        for number in numbers { sum.add(Wire.json(number).withUnsafeBufferPointer { JSONNumber($0) }) }
        #expect(text(sum.literal) == expected)
    }

    @Test func `MT-48: keep holds the first value that is not null`() throws {
        let models = try models(Wire.property("name", merge: .keep), Wire.property("x"))
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"name":null}"#, one, at: 1)
        shelf.take("c", #"{"id":1,"name":"second"}"#, one, at: 3)
        #expect(shelf.known("Thing", "1") == #"{"id":1,"name":"second"}"#)
        shelf.take("b", #"{"id":1,"name":"first"}"#, one, at: 2)
        shelf.take("d", #"{"id":1,"name":"third","x":1}"#, one, at: 4)
        #expect(shelf.known("Thing", "1") == #"{"id":1,"name":"first","x":1}"#)
        #expect(shelf.shown("b") == "=")
    }

    @Test func `MT-49: a member that a payload lacks stays known`() throws {
        var shelf = Shelf(try models(Wire.property("name"), Wire.property("count")))
        shelf.take("a", #"{"id":1,"name":"foo","count":5}"#, one, at: 1)
        shelf.take("b", #"{"id":1,"count":3}"#, one, at: 2)
        #expect(shelf.known("Thing", "1")?.contains(#""name":"foo""#) == true)
    }

    @Test func `MT-50: only members that base and concrete model share move between them`() throws {
        var shelf = Shelf(try flavours())
        shelf.take("a", #"{"id":1,"flavor":"x","bitterness":1}"#, one, at: 1)
        shelf.take("b", #"{"id":1,"flavor":"y"}"#, one, at: 2)
        #expect(shelf.shown("a") == #"{"id":1,"flavor":"y","bitterness":1}"#)
        shelf.take("a", #"{"id":1,"flavor":"z","bitterness":3}"#, one, at: 3)
        #expect(shelf.shown("b") == #"{"id":1,"flavor":"z"}"#)
    }

    @Test func `MT-51: local members are not compared`() throws {
        let models = try Models([
            ModelDeclaration(name: "Thing", identity: ["id"], properties: [Wire.property("name")], local: ["score"])
        ])
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"name":"x","score":1}"#, one, at: 1)
        shelf.take("b", #"{"id":1,"name":"x","score":2}"#, one, at: 2)
        #expect(shelf.shown("a") == "=")
        // It is no change of the object; a new name is.
        var counted = Shelf(models)
        counted.receive("a", #"{"id":1,"name":"x","score":1}"#, "Thing")
        #expect(counted.receive("b", #"{"id":1,"name":"x","score":2}"#, "Thing").isEmpty)
        #expect(!counted.receive("c", #"{"id":1,"name":"y","score":2}"#, "Thing").isEmpty)
    }

    @Test func `MT-52: no part of what is stored contains a secret`() throws {
        let models = try Models([
            ModelDeclaration(
                name: "Thing",
                identity: ["id"],
                properties: [Wire.property("name"), Wire.property("owner", nil, .one("Thing"))],
                secret: ["token", "auth.key", "keys[].value"]
            )
        ])
        let body =
            #"{"token":"SECRET","id":1,"auth":{"key":"SECRET"},"keys":[{"value":"SECRET","n":1}],"owner":{"token":"SECRET","id":2},"name":"n"}"#
        let parts = try Wire.parts(body, one, models)
        #expect(parts.showsSecret)
        let stored = ([parts.skeleton] + parts.occurrences.map(\.payload)).map(text).joined()
        #expect(!stored.contains("SECRET") && !stored.contains("token"))
        #expect(parts.occurrences.map(\.name.identity) == ["1", "2"])
        #expect(text(parts.occurrences[0].payload).contains(#""keys":[{"n":1}]"#))
        #expect(!(try Wire.parts(#"{"id":1,"token":null}"#, one, models)).showsSecret)
    }

    @Test(arguments: [(0, #"{"full_name":"M","age":"1970-01-01T00:00:10Z"}"#), (1, #"{"name":"M","age":10}"#)])
    func `MT-54 MT-57: an older object is read as of the newer version`(version: Int, expected: String) throws {
        let models = try Models([
            ModelDeclaration(
                name: "Thing",
                version: 2,
                migrations: [
                    Migration(
                        to: 1,
                        renamed: [Migration.Rename(from: "nested.n", to: "name")],
                        removed: ["gone", "absent"]
                    ),
                    Migration(
                        to: 2,
                        renamed: [Migration.Rename(from: "name", to: "full_name")],
                        converted: [Migration.Conversion(member: "age", conversion: .date(.unixSeconds))]
                    ),
                ]
            )
        ])
        let old = #"{"nested":{"n":"M"},"gone":[1],"age":10}"#
        let migrated = text(models.migrate(Wire.json(old), of: "Thing", from: version))
        if version == 0 {
            #expect(migrated.contains(#""full_name":"M""#) && !migrated.contains("gone"))
            #expect(migrated.contains("1970-01-01"))
        } else {
            // From version 1 on it has a name, or none.
            let later = text(models.migrate(Wire.json(expected), of: "Thing", from: 1))
            #expect(later.contains(#""full_name":"M""#) && !later.contains(#""name""#))
        }
        #expect(models.migrate(Wire.json(old), of: "Thing", from: 2) == Wire.json(old))
    }

    @Test func `MT-58: models that hold each other without identity are embedded`() throws {
        let models = try Models([
            ModelDeclaration(
                name: "Thing",
                properties: [Wire.property("owner", nil, .one("User")), Wire.property("users", nil, .many("User"))]
            ),
            ModelDeclaration(
                name: "User",
                properties: [Wire.property("name"), Wire.property("groups", nil, .many("Thing"))]
            ),
        ])
        let body = #"{"owner":{"name":"a","groups":[{"users":[]}]},"users":[{"name":"b"},{"name":"c"}]}"#
        #expect(Wire.opaque(body, one, models) == .some(nil))
        let deep = String(repeating: #"{"owner":{"groups":["#, count: 100) + String(repeating: "]}}", count: 100)
        #expect(Wire.opaque(deep, one, models) == .some(nil))
    }

    @Test func `MA-01: the same identity twice is one object`() throws {
        var shelf = Shelf(try models(Wire.property("name")))
        shelf.take("a", #"[{"id":1,"name":"x"},{"id":1,"name":"x"}]"#, many, at: 1)
        #expect(shelf.states.count == 1)
    }

    @Test func `MA-02: a value that fails its check is no identity`() throws {
        let models = try models(Wire.property("id", checks: [.type([.integer])]))
        let parts = try Wire.parts(#"[{"id":"x"},{"id":1}]"#, many, models)
        #expect(parts.occurrences.map(\.name.identity) == ["1"])
        #expect(Set(parts.warnings.map(\.kind)) == [.quarantined, .identityMissing])
    }

    @Test func `MA-03: a list that no longer names a child unlinks it and keeps it`() throws {
        let models = try Models([
            ModelDeclaration(
                name: "Thing",
                identity: ["id"],
                properties: [Wire.property("children", nil, .many("Child"))]
            ),
            ModelDeclaration(name: "Child", identity: ["id"], properties: [Wire.property("n")]),
        ])
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"children":[{"id":1,"n":1},{"id":2,"n":2},{"id":3,"n":3}]}"#, one, at: 1)
        shelf.take("b", #"{"id":1,"children":[{"id":1,"n":1},{"id":3,"n":3}]}"#, one, at: 2)
        #expect(shelf.shown("a") == #"{"id":1,"children":[{"id":1,"n":1},{"id":3,"n":3}]}"#)
        #expect(shelf.known("Child", "2") == #"{"id":2,"n":2}"#)
        #expect(shelf.states.count == 4)
    }

    @Test func `MA-05: absent, null and empty are told apart for members and relations alike`() throws {
        let models = try Models([
            ModelDeclaration(
                name: "Thing",
                identity: ["id"],
                properties: [Wire.property("name"), Wire.property("children", nil, .many("Thing"))]
            )
        ])
        for (later, expected) in [
            ("{\"id\":1}", #"{"id":1,"children":[2],"name":"n"}"#),
            (#"{"id":1,"name":null,"children":null}"#, #"{"id":1,"name":null,"children":null}"#),
            (#"{"id":1,"name":"","children":[]}"#, #"{"id":1,"name":"","children":[]}"#),
        ] {
            var shelf = Shelf(models)
            shelf.take("a", #"{"id":1,"children":[2],"name":"n"}"#, one, at: 1)
            shelf.take("b", later, one, at: 2)
            #expect(shelf.known("Thing", "1") == expected)
        }
    }

    @Test func `MA-06 MA-07: a failing member does not change the known object, nor a failing child its parent`() throws
    {
        let models = try Models([
            ModelDeclaration(
                name: "Thing",
                identity: ["id"],
                properties: [
                    Wire.property("age", checks: [.range(minimum: Wire.json("0"), maximum: nil)]),
                    Wire.property("child", checks: [.type([.object])]),
                ]
            )
        ])
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"age":5,"child":{}}"#, one, at: 1)
        shelf.take("b", #"{"id":1,"age":-5,"child":7}"#, one, at: 2)
        #expect(shelf.known("Thing", "1") == #"{"id":1,"age":5,"child":{}}"#)
    }

    @Test func `MA-07: a child without a usable identity is reported; its siblings and its parent are stored`() throws {
        let models = try Models([
            ModelDeclaration(
                name: "Thing",
                identity: ["id"],
                properties: [Wire.property("name"), Wire.property("children", nil, .many("Child"))]
            ),
            ModelDeclaration(
                name: "Child",
                identity: ["id"],
                properties: [Wire.property("id"), Wire.property("n", checks: [.type([.number])])]
            ),
        ])
        let body = #"{"id":1,"name":"p","children":[{"id":1,"n":"x"},{"id":true,"n":2},{"id":3,"n":3}]}"#
        let parts = try Wire.parts(body, one, models)
        #expect(parts.occurrences.map(\.name.description) == ["Thing:1", "Child:1", "Child:3"])
        #expect(Set(parts.warnings.map(\.kind)) == [.quarantined, .identityUnusable])
        var shelf = Shelf(models)
        shelf.take("a", body, one, at: 1)
        #expect(shelf.known("Thing", "1")?.contains(#""name":"p""#) == true)
        #expect(shelf.known("Child", "1") == #"{"id":1}"#)
        #expect(shelf.known("Child", "3") == #"{"id":3,"n":3}"#)
    }

    @Test func `MA-08 MA-09: a cycle of parent and children is walked once, in order`() throws {
        let models = try Models([
            ModelDeclaration(
                name: "Thing",
                identity: ["id"],
                properties: [Wire.property("children", nil, .many("Child"))]
            ),
            ModelDeclaration(
                name: "Child",
                identity: ["id"],
                properties: [Wire.property("parent", nil, .one("Thing"))]
            ),
        ])
        let body = #"{"id":1,"children":[{"id":3,"parent":{"id":1}},{"id":2,"parent":1}]}"#
        #expect(try Wire.names(body, one, models) == ["Thing:1", "Child:3", "Thing:1", "Child:2"])
        var shelf = Shelf(models)
        shelf.take("a", body, one, at: 1)
        #expect(shelf.shown("a") == "=")
    }
}
