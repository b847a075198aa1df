import Testing

@testable import Mapping

@Suite struct NormalizrWireTests {
    private let models: Models
    private let one = BodyRule(model: "User", arity: .one)
    private let many = BodyRule(model: "User", arity: .many)

    init() throws {
        models = try Models([
            ModelDeclaration(
                name: "User",
                identity: ["id"],
                properties: [Wire.property("name"), Wire.property("friends", nil, .many("User"))]
            ),
            ModelDeclaration(
                name: "Entry",
                choices: [
                    ModelChoice(model: "User", condition: .member("type", isOneOf: [Wire.json(#""user""#)])),
                    ModelChoice(model: "Post", condition: .member("type", isOneOf: [Wire.json(#""post""#)])),
                ]
            ),
            ModelDeclaration(name: "Post", identity: ["id"], properties: [Wire.property("title")]),
            ModelDeclaration(name: "Feed", identity: ["id"], properties: [Wire.property("items", nil, .many("Entry"))]),
        ])
    }

    @Test func `NZ-01: circular input is each entity once, with references`() throws {
        let parts = try Wire.parts(#"{"id":1,"friends":[{"id":2,"friends":[1]},{"id":1,"friends":[]}]}"#, one, models)
        #expect(text(parts.occurrences[0].payload) == #"{"id":1,"friends":["\u0001User:2","\u0001User:1"]}"#)
    }

    @Test func `NZ-02: one id twice in one response is one object; members that disagree are not observed`() {
        var shelf = Shelf(models)
        shelf.take("a", #"[{"id":1,"name":"a","x":1},{"id":1,"friends":[]}]"#, many, at: 1)
        #expect(shelf.states.count == 1)
        #expect(shelf.known("User", "1")?.contains(#""friends":[]"#) == true)
        shelf.take("b", #"[{"id":2,"name":"a"},{"id":2,"name":"b"}]"#, many, at: 2)
        #expect(shelf.shown("b") == "=")
    }

    @Test func `NZ-03: an id may be the key, or the parent's`() throws {
        let models = try Models([
            ModelDeclaration(name: "Gist", identity: ["id"], properties: [Wire.property("files", nil, .keyed("File"))]),
            ModelDeclaration(name: "File", identity: ["@parent.id", "@key"], properties: [Wire.property("size")]),
        ])
        let rule = BodyRule(model: "Gist", arity: .one)
        let body = #"{"files":{"a":{"size":1},"b":{"size":2}},"id":5}"#
        #expect(try Wire.names(body, rule, models) == ["Gist:5", "File:5:a", "File:5:b"])
        var shelf = Shelf(models)
        shelf.take("a", body, rule, at: 1)
        shelf.take("b", #"{"id":5,"files":{"b":{"size":3},"c":{"size":4}}}"#, rule, at: 2)
        #expect(shelf.shown("a") == #"{"files":{"b":{"size":3},"c":{"size":4}},"id":5}"#)
        #expect(shelf.shown("b") == "=")
    }

    @Test func `NZ-04: objects without an id stay separate`() throws {
        #expect(try Wire.names(#"[{"name":"a"},{"name":"b"},{"id":""},{"id":3}]"#, many, models) == ["User:3"])
    }

    @Test func `NZ-05: null where an object is expected is null`() throws {
        #expect(try Wire.names(#"[null,{"id":1,"friends":null}]"#, many, models) == ["User:1"])
    }

    @Test func `NZ-06: a list of several models keeps each element's model`() throws {
        let feed = BodyRule(model: "Feed", arity: .one)
        let body = #"{"id":1,"items":[{"type":"user","id":1,"name":"u"},{"id":1,"type":"post","title":"p"},{"id":2}]}"#
        let parts = try Wire.parts(body, feed, models)
        #expect(text(parts.occurrences[0].payload) == #"{"id":1,"items":["\u0001User:1","\u0001Post:1",{"id":2}]}"#)
        var shelf = Shelf(models)
        shelf.take("a", body, feed, at: 1)
        shelf.take(
            "b",
            #"{"id":1,"items":[{"id":1,"type":"post","title":"q"},{"type":"user","id":1,"name":"v"}]}"#,
            feed,
            at: 2
        )
        #expect(
            shelf.shown("a")
                == #"{"id":1,"items":[{"id":1,"type":"post","title":"q"},{"type":"user","id":1,"name":"v"}]}"#
        )
    }

    @Test func `NZ-07: a reference to an unknown object creates no object`() {
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"friends":[{"id":2,"name":"x"}]}"#, one, at: 1)
        shelf.take("b", #"{"id":1,"friends":[2,99]}"#, one, at: 2)
        #expect(shelf.shown("a") == "?")
    }
}
