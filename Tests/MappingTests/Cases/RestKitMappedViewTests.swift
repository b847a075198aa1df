@testable import Mapping
import Testing

/// What RestKit's and normalizr's cases say of the mapped view.
@Suite struct RestKitMappedViewTests {
    private func coercing(_ conversion: ConversionDeclaration) throws -> MapperFixture {
        try MapperFixture(
            ModelDeclaration("A", Property("value", "value", as: conversion).with { $0.coerces = true }),
            ModelDeclaration("B", Property("value", "value", as: conversion))
        )
    }

    @Test func `RK-01: an absent member stays absent`() throws {
        let fixture = try MapperFixture(ModelDeclaration("A", Property("name"), Property("x")))
        #expect(fixture.one(#"{"x":1}"#, "A").body == #"{"x":1}"#)
    }

    @Test func `RK-03: an object with nothing but null is mapped`() throws {
        let shown = try MapperFixture(ModelDeclaration("A", Property("name"))).one(#"{"name":null}"#, "A")
        #expect(shown.isMapped && shown.warnings.isEmpty)
    }

    @Test func `RK-04: null in place of a number is shown, and an object in its place is left out`() throws {
        let fixture = try MapperFixture(ModelDeclaration("A", Property("n").with { $0.checks = [.type([.number])] }))
        #expect(fixture.one(#"{"n":null}"#, "A").body == #"{"n":null}"#)
        let shown = fixture.one(#"{"n":{"wrong":"data"}}"#, "A")
        #expect(shown.body == "{}" && shown.kinds == [.quarantined])
    }

    @Test func `RK-05: a single value becomes a list of one only where that is declared, and is marked so`() throws {
        let fixture = try coercing(.arrayOf(.named("string")))
        let shown = fixture.one(#"{"value":"Blue"}"#, "A")
        #expect(shown.body == #"{"value":["Blue"]}"# && shown.kinds == [.coerced])
        #expect(fixture.one(#"{"value":"Blue"}"#, "B").body == #"{"value":"Blue"}"#)
        let checked = try MapperFixture(
            ModelDeclaration("C", Property("value").with { ($0.coerces, $0.checks) = (true, [.type([.array])]) })
        )
        #expect(checked.one(#"{"value":"Blue"}"#, "C").body == #"{"value":["Blue"]}"#)
    }

    @Test func `RK-06: one object is a list of one, with a warning`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("A", Property("bs", many: "B")),
            ModelDeclaration("B", Property("n"))
        )
        let shown = fixture.one(#"{"bs":{"n":1}}"#, "A")
        #expect(shown.body == #"{"bs":[{"n":1}]}"# && shown.kinds == [.objectForList] && shown.pointers == ["/bs"])
    }

    @Test func `RK-08: objects keyed by name know their names`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("A", Property(name: "users", from: "users", relation: .keyed("User"))),
            ModelDeclaration("User", identity: ["name"], Property("name", "@key"), Property("age"))
        )
        let body = #"{"users":{"blake":{"age":1},"rachit":{"age":2},"none":null,"odd":true}}"#
        let shown = fixture.one(body, "A")
        #expect(
            shown.body
                == #"{"users":{"blake":{"name":"blake","age":1},"rachit":{"name":"rachit","age":2},"none":null}}"#
        )
        #expect(shown.pointers == ["/users/odd"])
        #expect(try fixture.unmap(shown.body, "A") == #"{"users":{"blake":{"age":1},"rachit":{"age":2},"none":null}}"#)
        #expect(
            fixture.map(#"{"x":{"age":3}}"#, BodyRule(model: "User", arity: .keyed)).body
                == #"{"x":{"name":"x","age":3}}"#
        )
        #expect(fixture.one(#"{"users":[]}"#, "A").warnings.isEmpty)
    }

    @Test(arguments: [
        ("true", true), ("T", true), ("yes", true), ("Y", true), ("false", false), ("f", false), ("No", false),
        ("n", false),
    ])
    func `RK-09: text is read as a boolean only where that is declared`(word: String, value: Bool) throws {
        let fixture = try coercing(.named("boolean"))
        #expect(fixture.one(#"{"value":"\#(word)"}"#, "A").body == #"{"value":\#(value)}"#)
        #expect(fixture.one(#"{"value":"\#(word)"}"#, "B").kinds == [.conversionFailed])
    }

    @Test func `RK-10, RK-11: numbers become text, and text numbers, exactly and only where declared`() throws {
        let string = try coercing(.named("string"))
        #expect(string.one(#"{"value":123}"#, "A").body == #"{"value":"123"}"#)
        #expect(string.one(#"{"value":true}"#, "A").body == #"{"value":"true"}"#)
        #expect(string.one(#"{"value":123}"#, "B").kinds == [.conversionFailed])
        let integer = try coercing(.named("integer"))
        #expect(integer.one(#"{"value":"69726278940360707"}"#, "A").body == #"{"value":69726278940360707}"#)
        let shown = integer.list(#"[{"value":"1"},{"value":"2"}]"#, "A")
        // Marked once for the property.
        #expect(shown.body == #"[{"value":1},{"value":2}]"# && shown.kinds == [.coerced])
    }

    @Test func `RK-13: a key path wins over the relation that it completes`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("User", Property("address.city", "nested.city"), Property("address", one: "Address")),
            ModelDeclaration("Address", Property("city"), Property("zip"))
        )
        let shown = fixture.one(#"{"address":{"city":"Carrboro","zip":1},"nested":{"city":"New York"}}"#, "User")
        #expect(shown.body == #"{"address":{"city":"New York","zip":1}}"#)
    }

    @Test func `the longest of several completing paths wins, through several relations`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("A", Property("b", one: "B"), Property("b.c.n", "outer"), Property("b.m", "m")),
            ModelDeclaration("B", Property("c", one: "C"), Property("c.n", "inner"), Property("m")),
            ModelDeclaration("C", Property("n"))
        )
        #expect(
            fixture.one(#"{"b":{"c":{"n":1},"inner":2},"outer":3,"m":4}"#, "A").body == #"{"b":{"c":{"n":3},"m":4}}"#
        )
        #expect(fixture.one(#"{"b":{"c":{"n":1},"inner":2}}"#, "A").body == #"{"b":{"c":{"n":2}}}"#)
        #expect(fixture.one(#"{"outer":3}"#, "A").body == #"{"b":{"c":{"n":3}}}"#)
        #expect(try fixture.unmap(#"{"b":{"c":{"n":3},"m":4}}"#, "A") == #"{"outer":3,"m":4}"#)
    }

    @Test func `RK-14: a child made of its parent's members exists if any of these is present`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "Place",
                Property("name"),
                Property(name: "location", from: "@self", relation: .one("Location"))
            ),
            ModelDeclaration("Location", Property("lat", "latitude"), Property("lon", "longitude"))
        )
        let body = #"{"name":"x","latitude":1.0,"longitude":2}"#
        let shown = fixture.one(body, "Place")
        #expect(shown.body == #"{"name":"x","location":{"lat":1.0,"lon":2}}"#)
        #expect(try fixture.unmap(shown.body, "Place") == body)
        let without = fixture.one(#"{"name":"x"}"#, "Place")
        #expect(without.body == #"{"name":"x"}"# && without.warnings.isEmpty)
    }

    @Test func `RK-14: an absent child has no missing and no synthetic members`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "Place",
                Property("name"),
                Property(name: "location", from: "@self", relation: .one("Location"))
            ),
            ModelDeclaration(
                "Location",
                Property("lat", "latitude").with { $0.isRequired = true },
                Property("unit").with { $0.defaultValue = json(#""deg""#) }
            )
        )
        let without = fixture.one(#"{"name":"x"}"#, "Place")
        #expect(without.body == #"{"name":"x"}"# && without.warnings.isEmpty && without.synthetic.isEmpty)
        let shown = fixture.one(#"{"latitude":1}"#, "Place")
        #expect(shown.body == #"{"location":{"lat":1,"unit":"deg"}}"# && shown.synthetic == ["/location/unit"])
    }

    @Test func `RK-15: an absent relation stays absent, and a null relation null`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("A", Property("b", one: "B"), Property("n")),
            ModelDeclaration("B")
        )
        #expect(fixture.one(#"{"n":1}"#, "A").body == #"{"n":1}"#)
        #expect(fixture.one(#"{"b":null}"#, "A").body == #"{"b":null}"#)
    }

    @Test func `RK-19: URL, captures, fields and positions are shown, and not written back`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration(
                "A",
                Property("url", "@url"),
                Property("owner", "@url.owner"),
                Property("etag", "@header.ETag"),
                Property("rank", "@index"),
                Property("missing", "@url.nothing"),
                Property("n")
            )
        )
        let context = MappingContext(url: "/a?b=\"c\"", captures: ["owner": "é"], fields: ["etag": "\"x\""])
        let rule = BodyRule(model: "A", arity: .many)
        let shown = fixture.map(#"[{"n":1},{"n":2}]"#, rule, in: context)
        let around = #""url":"/a?b=\"c\"","owner":"é","etag":"\"x\"","#
        #expect(shown.body == #"[{\#(around)"rank":0,"n":1},{\#(around)"rank":1,"n":2}]"#)
        #expect(try fixture.unmap(shown.body, rule) == #"[{"n":1},{"n":2}]"#)
    }

    @Test func `NZ-03, RK-18: a property can be read from the parent and from the outermost object`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("House", identity: ["id"], Property("rooms", many: "Room")),
            ModelDeclaration("Room", identity: ["@parent.id", "n"], Property("lamps", many: "Lamp")),
            ModelDeclaration("Lamp", Property("house", "@root.id"), Property("room", "@parent.n"), Property("on"))
        )
        let body = #"[{"id":7,"rooms":[{"n":1,"lamps":[{"on":true}]}]}]"#
        let shown = fixture.list(body, "House")
        #expect(shown.body == #"[{"id":7,"rooms":[{"parent_id":7,"n":1,"lamps":[{"house":7,"room":1,"on":true}]}]}]"#)
        #expect(try fixture.unmap(shown.body, BodyRule(model: "House", arity: .many)) == body)
    }

    @Test(arguments: [
        // Around the outermost objects there is only what wraps them: no object, unless `envelope` makes it one.
        (BodyRule(model: "Room", arity: .many, root: "rooms"), [], #"[{"n":1}]"#),
        (
            BodyRule(
                model: "Room",
                arity: .many,
                root: "rooms",
                also: [BodyRule(model: "Lamp", arity: .one, root: "lamp")]
            ),
            [], #"{"rooms":[{"n":1}],"lamp":{"house":7,"on":true}}"#
        ),
        (
            BodyRule(model: "Room", arity: .many, root: "rooms", envelope: "House"), ["Room:7:1"],
            #"{"id":7,"rooms":[{"parent_id":7,"n":1}]}"#
        ),
        (
            BodyRule(
                model: "Room",
                arity: .many,
                root: "rooms",
                envelope: "House",
                also: [BodyRule(model: "Lamp", arity: .one, root: "lamp")]
            ),
            ["Room:7:1"], #"{"id":7,"rooms":[{"parent_id":7,"n":1}],"lamp":{"house":7,"parent":7,"on":true}}"#
        ),
        // What is told of beside an object lies in it.
        (
            BodyRule(model: "House", arity: .one, also: [BodyRule(model: "Lamp", arity: .one, root: "lamp")]),
            ["House:7"], #"{"id":7,"lamp":{"house":7,"parent":7,"on":true}}"#
        ),
    ])
    func `RK-18: a declared envelope is the parent of its content, for identities and the mapped view alike`(
        rule: BodyRule,
        names: [String],
        view: String
    ) throws {
        let models = try Models([
            ModelDeclaration("House", identity: ["id"]),
            ModelDeclaration("Room", identity: ["@parent.id", "n"]),
            ModelDeclaration("Lamp", Property("house", "@root.id"), Property("parent", "@parent.id"), Property("on")),
        ])
        let body = #"{"id":7,"rooms":[{"n":1}],"lamp":{"on":true}}"#
        switch Decomposer(models: models).decompose(json(body), as: rule) {
        case .opaque: #expect(names.isEmpty)
        case .objects(let parts): #expect(parts.occurrences.map(\.name.description) == names)
        }
        let mapper = DocumentMapper(models: models)
        let shown = mapper.map(json(body), as: rule)
        #expect(text(shown.body) == view)
        // Written back and mapped again it is the same.
        let written = try mapper.unmap(shown.body, as: rule)
        #expect(written.warnings.isEmpty)
        #expect(text(mapper.map(written.body, as: rule).body) == view)
    }

    @Test func `NZ-05, NZ-07: null is null, and a reference to nothing known is a bare identity`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("A", identity: ["id"], Property("b", one: "A"), Property("c", one: "A"))
        )
        let shown = fixture.mapper.mapObject(json(#"{"id":1,"b":null,"c":"\u0001A:x"}"#), model: "A")
        #expect(text(shown.body) == #"{"id":1,"b":null,"c":"x"}"#)
    }
}
