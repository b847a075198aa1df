import Testing

@testable import Mapping

@Suite struct RestKitWireTests {
    private let human = ModelDeclaration(
        name: "Human",
        identity: ["id"],
        properties: [
            Wire.property("name"), Wire.property("cats", nil, .many("Cat")),
            Wire.property("favourite", nil, .one("Cat")),
        ]
    )
    private let cat = ModelDeclaration(name: "Cat", identity: ["id"], properties: [Wire.property("name")])
    private let humans = BodyRule(model: "Human", arity: .many)
    private let oneHuman = BodyRule(model: "Human", arity: .one)
    private let oneCat = BodyRule(model: "Cat", arity: .one)

    private func models(_ change: (inout ModelDeclaration) -> Void = { _ in }) throws -> Models {
        var human = human
        change(&human)
        return try Models([human, cat])
    }

    @Test func `RK-08: an object keyed by name is as many objects, their names from the keys`() throws {
        let models = try Models([
            ModelDeclaration(name: "User", identity: ["@key"], properties: [Wire.property("email")])
        ])
        let rule = BodyRule(model: "User", arity: .keyed, root: "users")
        let body = #"{"users":{"blake":{"email":"b"},"rachit":{"email":"r"}}}"#
        #expect(try Wire.names(body, rule, models) == ["User:blake", "User:rachit"])
        // The name is no member of the object, and moves with nothing; its members do.
        var shelf = Shelf(models)
        shelf.take("a", body, rule, at: 1)
        shelf.take("b", #"{"users":{"blake":{"email":"new"}}}"#, rule, at: 2)
        #expect(shelf.shown("a") == #"{"users":{"blake":{"email":"new"},"rachit":{"email":"r"}}}"#)
    }

    @Test func `RK-16: union joins stored and arriving elements, and is refused for a relation to one object`() throws {
        let models = try models { $0.properties[1].merge = .union }
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"cats":[{"id":1,"name":"Jeff"}]}"#, oneHuman, at: 1)
        shelf.take("b", #"{"id":1,"cats":[{"id":2,"name":"Zach"},{"id":1,"name":"Jeff"}]}"#, oneHuman, at: 2)
        #expect(shelf.known("Human", "1") == #"{"id":1,"cats":[1,2]}"#)
        // Each response keeps its own list.
        #expect(shelf.shown("a") == "=")
        #expect(shelf.shown("b") == "=")
        var wrong = human
        wrong.properties[2].merge = .union
        guard case .contradiction(_, "favourite", "Human") = Wire.error([wrong, cat]) else {
            Issue.record("a union of one object is a mistake")
            return
        }
    }

    @Test func `RK-17: under replace the new elements take the place of the known ones, and no object is deleted`()
        throws
    {
        let models = try models { $0.properties[1].merge = .replace }
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"cats":[{"id":1,"name":"Jeff"}]}"#, oneHuman, at: 1)
        shelf.take("b", #"{"id":1,"cats":[{"id":2,"name":"Zach"}]}"#, oneHuman, at: 2)
        #expect(shelf.known("Human", "1") == #"{"id":1,"cats":[2]}"#)
        #expect(shelf.known("Cat", "1") == #"{"id":1,"name":"Jeff"}"#)
    }

    @Test func `RK-17: deleting former objects is a mistake unless the relation shows which objects leave it`() throws {
        func error(_ change: (inout PropertyDeclaration) -> Void) -> String? {
            var wrong = human
            wrong.properties[1].former = .delete
            change(&wrong.properties[1])
            var tag = ModelDeclaration(name: "Tag")
            tag.properties = [Wire.property("name"), Wire.property("cats", nil, .many("Cat"))]
            return Wire.error([wrong, cat, tag])?.description
        }
        #expect(error { _ in } == nil)
        #expect(error { $0.relation = nil }?.contains("only a relation") == true)
        #expect(error { $0.relation = .many("Tag") }?.contains("no identity") == true)
        #expect(error { $0.merge = .union }?.contains("no object leaves") == true)
        #expect(error { $0.from = "tags[].cat" }?.contains("over the elements") == true)
        #expect(error { $0.from = "favourite.cats" }?.contains("within another relation") == true)
        #expect(error { ($0.relation, $0.from) = (.one("Cat"), "@self") }?.contains("needs a member") == true)
    }

    @Test(arguments: [
        #"{"house_id":7,"people":[{"name":"Blake"}]}"#, #"{"people":[{"name":"Blake"}],"house_id":7}"#,
    ])
    func `RK-18: a value of the parent identifies the child, wherever it stands`(house: String) throws {
        for source in ["@parent.house_id", "@root.house_id"] {
            let models = try Models([
                ModelDeclaration(
                    name: "House",
                    identity: ["house_id"],
                    properties: [Wire.property("people", nil, .many("Person"))]
                ),
                ModelDeclaration(name: "Person", identity: [source, "name"]),
            ])
            let one = BodyRule(model: "House", arity: .one)
            #expect(try Wire.names(house, one, models) == ["House:7", "Person:7:Blake"])
            let two = "[\(house),\(house.replacing("7", with: "8"))]"
            #expect(
                try Wire.names(two, BodyRule(model: "House", arity: .many), models)
                    == ["House:7", "Person:7:Blake", "House:8", "Person:8:Blake"]
            )
        }
    }

    @Test func `RK-18: without the value in the parent the child stays embedded`() throws {
        let models = try Models([
            ModelDeclaration(
                name: "House",
                identity: ["id"],
                properties: [Wire.property("people", nil, .many("Person"))]
            ),
            ModelDeclaration(name: "Person", identity: ["@parent.house_id", "name"]),
        ])
        let rule = BodyRule(model: "House", arity: .one)
        for missing in ["", #","house_id":null"#, #","house_id":{}"#, #","house_id":1,"house_id":2"#] {
            #expect(try Wire.names(#"{"id":1,"people":[{"name":"x"}]\#(missing)}"#, rule, models) == ["House:1"])
        }
    }

    @Test func `RK-19: URL, fields, captures and positions identify an object`() throws {
        let context = MappingContext(
            url: "/a/b?c=1",
            captures: ["owner": "o/p"],
            fields: ["etag": "\"e\""]
        )
        for (source, expected) in [
            ("@url", "/a/b?c=1"), ("@url.owner", "o/p"), ("@header.ETag", "\"e\""), ("@index", "1"),
        ] {
            let models = try Models([ModelDeclaration(name: "A", identity: [source])])
            let names = try Wire.names("[7,{}]", BodyRule(model: "A", arity: .many), models, context)
            #expect(names == ["A:\(expected)"])
            #expect(
                Wire.opaque("[7,{}]", BodyRule(model: "A", arity: .many), models) == .identityMissing
                    || source == "@index"
            )
        }
    }

    @Test func `RK-20: a number and its text are one identity`() throws {
        let names = try Wire.names(#"[{"id":12345},{"id":"12345"}]"#, humans, try models())
        #expect(Set(names).count == 1)
    }

    @Test func `RK-21: an identity of several members is all of them`() throws {
        let models = try Models([ModelDeclaration(name: "A", identity: ["id", "name", "date"])])
        let body = #"[{"id":1,"name":"a:b","date":"2020"},{"id":1,"name":"a","date":"b:2020"}]"#
        let names = try Wire.names(body, BodyRule(model: "A", arity: .many), models)
        #expect(names == [#"A:1:a\:b:2020"#, #"A:1:a:b\:2020"#])
    }

    @Test func `RK-22: an object without an identity is embedded, never a new one each time`() throws {
        var shelf = Shelf(try models())
        for time in 1...3 as ClosedRange<Int64> {
            shelf.take("a", #"[{"name":"x"},{"id":null,"name":"y"},{"id":1}]"#, humans, at: time)
        }
        #expect(shelf.states.count == 1)
    }

    @Test func `RK-23: repeated parents and children are stored once`() throws {
        var shelf = Shelf(try models())
        shelf.take(
            "a",
            #"[{"id":1,"cats":[{"id":1},{"id":2}]},{"id":2,"cats":[{"id":3},{"id":4}]},{"id":1,"cats":[{"id":1},{"id":2}]}]"#,
            humans,
            at: 1
        )
        #expect(shelf.states.keys.count { $0.model == "Human" } == 2)
        #expect(shelf.states.keys.count { $0.model == "Cat" } == 4)
    }

    @Test func `RK-24: ids spelled as number or text refer to the same stored objects`() throws {
        var shelf = Shelf(try models())
        shelf.take("c", #"{"id":418,"name":"old"}"#, oneCat, at: 1)
        shelf.take("a", #"{"id":1,"cats":[{"id":418,"name":"old"},{"id":7,"name":"x"}]}"#, oneHuman, at: 2)
        shelf.take("b", #"{"id":1,"cats":["418",7]}"#, oneHuman, at: 3)
        #expect(shelf.states.count == 3)
        #expect(shelf.shown("a") == "=")
        // Seven, two of them stored already: each is there once, whatever its spelling, when all have come.
        let ids = [418, 7, 1, 2, 3, 4, 5]
        shelf.take("d", #"{"id":2,"cats":[\#(ids.map { "\"\($0)\"" }.joined(separator: ","))]}"#, oneHuman, at: 4)
        #expect(shelf.states.keys.count { $0.model == "Cat" } == 2)
        for id in ids { shelf.take("c\(id)", #"{"id":\#(id),"name":"n"}"#, oneCat, at: 5) }
        #expect(shelf.states.keys.count { $0.model == "Cat" } == 7)
    }

    @Test func `RK-26: each id of a list points to an object of its own, and all parts of an identity count`() throws {
        let models = try Models([
            human, cat, ModelDeclaration(name: "Room", identity: ["house", "number"]),
        ])
        var shelf = Shelf(models)
        shelf.take("c", #"[{"id":1,"name":"a"},{"id":2,"name":"b"}]"#, BodyRule(model: "Cat", arity: .many), at: 1)
        shelf.take("h", #"{"id":1,"cats":[2,1]}"#, oneHuman, at: 2)
        #expect(shelf.known("Human", "1") == #"{"id":1,"cats":[2,1]}"#)
        let rooms = #"[{"house":1,"number":2},{"house":2,"number":1},{"house":1,"number":"2"},{"house":1}]"#
        #expect(
            try Wire.names(rooms, BodyRule(model: "Room", arity: .many), models) == [
                "Room:1:2", "Room:2:1", "Room:1:2",
            ]
        )
    }

    @Test func `RK-25: children before the parents that they point to are the same objects`() throws {
        let models = try Models([human, cat])
        let rule = BodyRule(
            model: "Cat",
            arity: .many,
            root: "cats",
            also: [BodyRule(model: "Human", arity: .many, root: "humans")]
        )
        for body in [
            #"{"cats":[{"id":1,"name":"a"}],"humans":[{"id":5,"cats":[1]}]}"#,
            #"{"humans":[{"id":5,"cats":["1"]}],"cats":[{"id":1,"name":"a"}]}"#,
        ] {
            var shelf = Shelf(models)
            shelf.take("a", body, rule, at: 1)
            #expect(Set(shelf.states.keys.map(\.description)) == ["Human:5", "Cat:1"])
            let state = try #require(shelf.states[ObjectName(model: "Human", identity: "5")])
            guard let cats = state.newest("cats", model: "Human", models: models) else {
                Issue.record("the relation is known")
                return
            }
            #expect(["[1]", #"["1"]"#].contains(text(cats)))
        }
    }

    @Test func `RK-27: references to nothing known stay references`() throws {
        var shelf = Shelf(try models())
        shelf.take("a", #"{"id":1,"cats":[5,6],"favourite":9}"#, oneHuman, at: 1)
        #expect(shelf.known("Human", "1") == #"{"id":1,"cats":[5,6],"favourite":9}"#)
        shelf.take("b", #"{"id":1,"name":"n"}"#, oneHuman, at: 2)
        #expect(shelf.known("Human", "1")?.contains(#""cats":[5,6]"#) == true)
    }

    @Test func `RK-28 RK-29: an object that was not modified later is skipped, its children are not`() throws {
        let models = try models { $0.modified = "updated" }
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"updated":"2020-01-02T00:00:00Z","name":"new"}"#, oneHuman, at: 1)
        shelf.take(
            "b",
            #"{"id":1,"updated":"2020-01-01T00:00:00Z","name":"old","cats":[{"id":3,"name":"c"}]}"#,
            oneHuman,
            at: 2
        )
        let state = try #require(shelf.states[ObjectName(model: "Human", identity: "1")])
        #expect(state.newest("name", model: "Human", models: models) == Wire.json(#""new""#))
        #expect(shelf.known("Cat", "3") == #"{"id":3,"name":"c"}"#)
    }

    @Test(arguments: [
        (#""2020-01-02T00:00:00Z""#, #""2020-01-02T00:00:00Z""#, false),
        (#""2020-01-02T00:00:00Z""#, #""2020-01-01T23:59:59Z""#, false),
        (#""2020-01-02T00:00:00Z""#, #""2020-01-02T00:00:00.5Z""#, true), ("5", "5", false), ("5", "4.5", false),
        ("5", "6", true), (#""v1""#, #""v1""#, false), (#""v1""#, #""v2""#, true),
    ])
    func `RK-28: an object that says it was not modified later changes nothing`(
        _ known: String,
        _ next: String,
        _ isTaken: Bool
    ) throws {
        let models = try models {
            $0.modified = "updated"
            $0.properties.append(Wire.property("updated"))
        }
        var shelf = Shelf(models)
        shelf.receive("a", #"{"id":1,"updated":\#(known),"name":"known"}"#, "Human")
        // The same time tells the same state: where the rest differs, it is the later response that is believed.
        let name = known == next ? "known" : "next"
        let changed = shelf.receive("b", #"{"id":1,"updated":\#(next),"name":"\#(name)"}"#, "Human")
        #expect(changed.isEmpty != isTaken)
        #expect(shelf.known("Human", "1")?.contains(#""name":"\#(isTaken ? "next" : "known")""#) == true)
    }

    @Test func `RK-33: an object that says it is deleted counts as deleted, and may come back`() throws {
        let models = try models { $0.deletedWhen = .member("status", isOneOf: [Wire.json(#""deleted""#)]) }
        let name = ObjectName(model: "Human", identity: "1")
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"name":"n","status":"live"}"#, oneHuman, at: 1)
        #expect(shelf.states[name]?.isDeleted(model: "Human", models: models) == false)
        shelf.take("b", #"{"id":1,"status":"deleted"}"#, oneHuman, at: 3)
        // An older response does not bring it back; nor does one that says nothing of it.
        shelf.take("c", #"{"id":1,"name":"m","status":"live"}"#, oneHuman, at: 2)
        shelf.take("d", #"{"id":1,"name":"m"}"#, oneHuman, at: 4)
        #expect(shelf.states[name]?.isDeleted(model: "Human", models: models) == true)
        shelf.take("e", #"{"id":1,"status":"live"}"#, oneHuman, at: 5)
        #expect(shelf.states[name]?.isDeleted(model: "Human", models: models) == false)
        let parts = try Wire.parts(#"{"id":1,"status":"deleted"}"#, oneHuman, models)
        #expect(models.saysDeleted(parts.occurrences[0].payload, of: "Human"))
    }

    private static func feed(_ choices: [ModelChoice]) throws -> Models {
        try Models([
            ModelDeclaration(name: "Entry", choices: choices),
            ModelDeclaration(name: "Boy", identity: ["id"]), ModelDeclaration(name: "Girl", identity: ["id"]),
        ])
    }

    @Test func `RK-34: an element that fits no choice stays raw`() throws {
        let models = try Self.feed([
            ModelChoice(model: "Boy", condition: .member("type", isOneOf: [Wire.json(#""Boy""#)])),
            ModelChoice(model: "Girl", condition: .member("type", isOneOf: [Wire.json(#""Girl""#)])),
        ])
        let body =
            #"[{"id":1,"type":"Boy"},{"id":2,"type":"Dog"},{"id":1,"type":"Girl"},{"type":"Girl","type":"Boy","id":4}]"#
        #expect(try Wire.names(body, BodyRule(model: "Entry", arity: .many), models) == ["Boy:1", "Girl:1"])
    }

    @Test func `RK-35: the first choice that fits wins, as the config orders them`() throws {
        let choices = [
            ModelChoice(model: "Boy", condition: .has("id")), ModelChoice(model: "Girl", condition: .has("type")),
        ]
        let body = #"[{"id":1,"type":"x"}]"#
        let rule = BodyRule(model: "Entry", arity: .many)
        #expect(try Wire.names(body, rule, try Self.feed(choices)) == ["Boy:1"])
        #expect(try Wire.names(body, rule, try Self.feed(choices.reversed())) == ["Girl:1"])
    }

    @Test(arguments: ["[]", "{}", "   ", ""])
    func `RK-36: an empty body gives no warning, but an empty object has no identity`(body: String) throws {
        let rule = body == "{}" ? oneHuman : humans
        // An object without anything in it has no identity either, which is told of; nothing else is.
        #expect(Wire.opaque(body, rule, try models()) == .some(body == "{}" ? .identityMissing : nil))
    }
}
