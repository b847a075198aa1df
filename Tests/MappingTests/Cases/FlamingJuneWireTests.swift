import Testing

@testable import Mapping

@Suite struct FlamingJuneWireTests {
    private static let user = ModelDeclaration(
        name: "User",
        identity: ["id"],
        keys: ["login"],
        properties: [Wire.property("name"), Wire.property("login"), Wire.property("friend", nil, .one("User"))]
    )
    private static let post = ModelDeclaration(
        name: "Post",
        identity: ["id"],
        properties: [
            Wire.property("title"), Wire.property("user", nil, .one("User")),
            Wire.property("readers", nil, .many("User")), Wire.property("tags", nil, .many("Tag")),
        ]
    )
    private static let tag = ModelDeclaration(name: "Tag", properties: [Wire.property("name")])
    private let models: Models
    private let posts = BodyRule(model: "Post", arity: .many)
    private let onePost = BodyRule(model: "Post", arity: .one)
    private let oneUser = BodyRule(model: "User", arity: .one)

    init() throws {
        models = try Models([Self.user, Self.post, Self.tag])
    }

    @Test func `FJ-04: a list and an object under keys of their own are both read, and either may be missing`() throws {
        let rule = BodyRule(
            model: "Post",
            arity: .many,
            root: "posts",
            also: [BodyRule(model: "Post", arity: .one, root: "post")]
        )
        let body = #"{"post":{"id":9},"posts":[{"id":1},{"id":2}]}"#
        #expect(try Wire.names(body, rule, models) == ["Post:9", "Post:1", "Post:2"])
        // Either alone is regular and warns of nothing.
        #expect(try Wire.parts(#"{"posts":[{"id":1}]}"#, rule, models).warnings.isEmpty)
        #expect(try Wire.parts(#"{"post":{"id":1}}"#, rule, models).warnings.isEmpty)
        #expect(Wire.opaque(#"{"other":1}"#, rule, models) == .envelopeMissing)
    }

    @Test func `FJ-05: a body without its envelope stays raw, with a warning`() {
        #expect(
            Wire.opaque(#"{"id":1}"#, BodyRule(model: "Post", arity: .one, root: "data"), models) == .envelopeMissing
        )
    }

    @Test func `FJ-06: one object under the key of a list is one object, with a warning`() throws {
        let parts = try Wire.parts(
            #"{"data":{"id":1}}"#,
            BodyRule(model: "Post", arity: .many, root: "data"),
            models
        )
        #expect(parts.occurrences.map(\.name.identity) == ["1"])
        #expect(parts.warnings.map(\.kind) == [.objectForList])
    }

    @Test(arguments: ["7", "true", #""text""#]) func `FJ-07: a scalar is an opaque document`(body: String) {
        #expect(Wire.opaque(body, onePost, models) == .notAnObject)
    }

    @Test func `FJ-07: null is an opaque document without a warning`() {
        #expect(Wire.opaque("null", onePost, models) == .some(nil))
    }

    @Test func `FJ-08: a member that is absent from a later payload stays known`() {
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"name":"x","login":"l"}"#, oneUser, at: 1)
        shelf.take("b", #"{"id":1,"login":"m"}"#, oneUser, at: 2)
        #expect(shelf.known("User", "1") == #"{"id":1,"login":"m","name":"x"}"#)
    }

    @Test func `FJ-14: a user embedded in two posts is one object`() throws {
        var shelf = Shelf(models)
        shelf.take(
            "a",
            #"[{"id":3,"user":{"id":7,"name":"old"}},{"id":13,"user":{"id":7,"name":"old"}}]"#,
            posts,
            at: 1
        )
        #expect(shelf.states.keys.count { $0.model == "User" } == 1)
        shelf.take("b", #"{"id":7,"name":"new"}"#, oneUser, at: 2)
        #expect(shelf.shown("a") == #"[{"id":3,"user":{"id":7,"name":"new"}},{"id":13,"user":{"id":7,"name":"new"}}]"#)
    }

    @Test func `FJ-15: a bare id refers to the known object with that id`() {
        var shelf = Shelf(models)
        shelf.take("u", #"{"id":42,"name":"n"}"#, oneUser, at: 1)
        shelf.take("a", #"{"id":1,"user":{"id":41,"name":"x"}}"#, onePost, at: 2)
        shelf.take("b", #"{"id":1,"user":42}"#, onePost, at: 3)
        // The list that shows users whole now shows the one that the bare id points to.
        #expect(shelf.shown("a") == #"{"id":1,"user":{"id":42,"name":"n"}}"#)
    }

    @Test func `FJ-16: a bare id of an unknown object creates no object, and refers to the object once it arrives`() {
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"user":{"id":41,"name":"x"}}"#, onePost, at: 1)
        shelf.take("b", #"{"id":1,"user":42}"#, onePost, at: 2)
        #expect(shelf.states[ObjectName(model: "User", identity: "42")] == nil)
        #expect(shelf.shown("a") == "?")
        #expect(shelf.known("Post", "1") == #"{"id":1,"user":42}"#)
        shelf.take("u", #"{"id":42,"name":"n"}"#, oneUser, at: 3)
        #expect(shelf.shown("a") == #"{"id":1,"user":{"id":42,"name":"n"}}"#)
    }

    @Test func `FJ-17: null in a relation creates no object`() throws {
        #expect(try Wire.names(#"{"id":1,"user":null}"#, onePost, models) == ["Post:1"])
    }

    @Test func `FJ-18: 7 and "7" are one identity, unless the model says otherwise`() throws {
        let body = #"[{"id":7},{"id":"7"},{"id":"x"}]"#
        #expect(try Wire.names(body, BodyRule(model: "User", arity: .many), models) == ["User:7", "User:7", "User:x"])
        var strict = Self.user
        strict.distinguishesTypes = true
        let strictModels = try Models([strict, Self.post, Self.tag])
        #expect(
            try Wire.names(body, BodyRule(model: "User", arity: .many), strictModels)
                == ["User:7", #"User:"7""#, "User:x"]
        )
        var shelf = Shelf(strictModels)
        shelf.take("a", #"{"id":1,"readers":[7,"7"]}"#, onePost, at: 1)
        shelf.take("b", #"{"id":1,"readers":[{"id":"7"},{"id":7}]}"#, onePost, at: 2)
        #expect(shelf.shown("a") == #"{"id":1,"readers":["7",7]}"#)
        #expect(shelf.known("Post", "1") == #"{"id":1,"readers":["7",7]}"#)
    }

    @Test func `FJ-19: objects with a null id stay apart, each where it is`() throws {
        let parts = try Wire.parts(#"[{"id":null,"title":"a"},{"id":null,"title":"b"},{"id":1}]"#, posts, models)
        #expect(parts.occurrences.map(\.name.identity) == ["1"])
    }

    @Test func `FJ-20: objects of a model without identity are embedded and not counted`() throws {
        let body = #"{"id":1,"tags":[{"name":"a"},{"name":"b"}]}"#
        #expect(try Wire.names(body, onePost, models) == ["Post:1"])
    }

    @Test func `FJ-21: the identity is where the model says`() throws {
        let models = try Models([
            ModelDeclaration(name: "A", identity: ["_id"]), ModelDeclaration(name: "B", identity: ["meta.uuid"]),
        ])
        #expect(try Wire.names(#"{"_id":5,"id":1}"#, BodyRule(model: "A", arity: .one), models) == ["A:5"])
        #expect(
            try Wire.names(#"{"meta":{"uuid":"u"},"id":1}"#, BodyRule(model: "B", arity: .one), models) == ["B:u"]
        )
    }

    @Test func `FJ-22: one id of two models is two objects`() throws {
        #expect(try Wire.names(#"{"id":1,"user":{"id":1}}"#, onePost, models) == ["Post:1", "User:1"])
    }

    @Test func `FJ-23: an object parsed as base and as concrete model is one object`() throws {
        let models = try Models([
            ModelDeclaration(name: "Person", identity: ["id"], properties: [Wire.property("name")]),
            ModelDeclaration(name: "Author", properties: [Wire.property("books")], base: "Person"),
        ])
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"name":"old","books":1}"#, BodyRule(model: "Author", arity: .one), at: 1)
        shelf.take("b", #"{"id":1,"name":"new"}"#, BodyRule(model: "Person", arity: .one), at: 2)
        shelf.take("c", #"{"id":1,"books":2}"#, BodyRule(model: "Person", arity: .one), at: 3)
        #expect(Array(shelf.states.keys.map(\.description)) == ["Person:1"])
        #expect(shelf.shown("a") == #"{"id":1,"name":"new","books":2}"#)
    }

    @Test func `FJ-24: two payloads of one object are merged`() {
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"name":"n"}"#, oneUser, at: 1)
        shelf.take("b", #"{"id":1,"login":"l"}"#, oneUser, at: 2)
        #expect(shelf.known("User", "1") == #"{"id":1,"login":"l","name":"n"}"#)
    }

    @Test func `FJ-25: an object within its own friend is one object`() throws {
        let names = try Wire.names(#"{"id":1,"friend":{"id":2,"friend":{"id":1}}}"#, oneUser, models)
        #expect(names == ["User:1", "User:2", "User:1"])
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"friend":{"id":2,"friend":{"id":1}}}"#, oneUser, at: 1)
        #expect(shelf.states.count == 2)
        #expect(shelf.shown("a") == "=")
    }

    @Test func `FJ-28: a list of ids is a list of references`() {
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"readers":[1,2]}"#, onePost, at: 1)
        shelf.take("b", #"{"id":1,"readers":[{"id":2},{"id":3}]}"#, onePost, at: 2)
        #expect(shelf.shown("a") == #"{"id":1,"readers":[2,3]}"#)
    }

    @Test func `FJ-29: a list of objects and ids is read element by element`() throws {
        let body = #"{"id":1,"readers":[{"id":1,"name":"x"},2]}"#
        #expect(try Wire.names(body, onePost, models) == ["Post:1", "User:1"])
        var shelf = Shelf(models)
        shelf.take("a", body, onePost, at: 1)
        shelf.take("b", #"{"id":1,"name":"y"}"#, oneUser, at: 2)
        #expect(shelf.shown("a") == #"{"id":1,"readers":[{"id":1,"name":"y"},2]}"#)
    }

    @Test func `FJ-42: an older response that is stored later changes no newer value`() {
        var shelf = Shelf(models)
        shelf.take("a", #"{"id":1,"name":"new"}"#, oneUser, at: 5)
        shelf.take("b", #"{"id":1,"name":"old"}"#, oneUser, at: 1)
        #expect(shelf.known("User", "1") == #"{"id":1,"name":"new"}"#)
        #expect(shelf.shown("b") == #"{"id":1,"name":"new"}"#)
    }
}
