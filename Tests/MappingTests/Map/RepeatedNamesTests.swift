import Testing

@testable import Mapping

/// Members with one name in one object, and names that only look alike.
///
/// Of several the last is shown, with all that lies in it; what occurs twice decides nothing.
@Suite struct RepeatedNamesTests {
    private func fixture() throws -> MapperFixture {
        try MapperFixture(
            ModelDeclaration(
                "Issue",
                identity: ["id"],
                Property("login", "user.login"),
                Property("name", "user.name"),
                Property("city", "user.home.city"),
                Property("tags", "labels[].name"),
                Property("dotted", "a\\.b"),
                Property("nested", "a.b"),
                Property("accent", "caf\u{E9}"),
                Property("files", "files").with { $0.relation = .keyed("File") }
            ),
            ModelDeclaration("File", Property("size"), Property("issue", "@parent.user.login"))
        )
    }

    @Test(arguments: [
        // Nothing of the first remains, however deep, in whatever spelling.
        (#"{"user":{"login":"a","home":{"city":"x"}},"user":{"name":"b"}}"#, #"{"name":"b"}"#, ["/user"]),
        (#"{"user":{"login":"a"},"\u0075ser":{"login":"b"}}"#, #"{"login":"b"}"#, ["/user"]),
        (#"{"user":{"login":"a"},"user":null}"#, #"{"login":null,"name":null,"city":null}"#, ["/user"]),
        (#"{"user":null,"user":{"login":"a"}}"#, #"{"login":"a"}"#, ["/user"]),
        (#"{"id":1,"user":{"home":{"city":"x"},"home":{}}}"#, #"{"id":1}"#, ["/user/home"]),
        (#"{"user":{"login":"a","login":"b","login":"c"}}"#, #"{"login":"c"}"#, ["/user/login", "/user/login"]),
        (#"{"labels":[{"name":"a"}],"labels":[]}"#, #"{"tags":[]}"#, ["/labels"]),
        (#"{"labels":[{"name":"a","n\u0061me":"b"}]}"#, #"{"tags":["b"]}"#, ["/labels/0/name"]),
        (#"{"files":{"x":{"size":1},"y":{},"x":{"size":2}}}"#, #"{"files":{"y":{},"x":{"size":2}}}"#, ["/files/x"]),
        (
            #"{"user":{"login":"a"},"files":{"x":{}},"user":{"login":"b"}}"#,
            #"{"login":"b","files":{"x":{"issue":"b"}}}"#, ["/user"]
        ),
        // Not one name: by case, Unicode form, dots, or for being empty.
        (#"{"id":1,"User":{"login":"a"},"user":{"Login":"b"},"":1,"":2}"#, #"{"id":1}"#, []),
        ("{\"cafe\u{301}\":1,\"caf\u{E9}\":2}", #"{"accent":2}"#, []),
        (#"{"a.b":1,"a":{"b":2}}"#, #"{"dotted":1,"nested":2}"#, []),
        (#"{"a.b":1,"a\u002eb":2,"a":{"b":3}}"#, #"{"dotted":2,"nested":3}"#, ["/a.b"]),
    ])
    func `of members with the same name the last is shown, with its whole content`(
        body: String,
        shown: String,
        pointers: [String]
    ) throws {
        let found = try fixture().one(body, "Issue")
        #expect(found.body == shown)
        let collisions = found.warnings.filter { $0.kind == .keyCollision }
        #expect(collisions.compactMap(\.pointer) == pointers)
    }

    @Test func `an identity member that occurs twice is shown, and identifies no object`() throws {
        let fixture = try fixture()
        let found = fixture.one(#"{"id":1,"\u0069d":2,"user":{"login":"a"}}"#, "Issue")
        #expect(found.body == #"{"id":2,"login":"a"}"#)
        #expect(found.kinds == [.keyCollision])
        let models = try Models([ModelDeclaration("Issue", identity: ["id"], Property("title"))])
        for body in [#"[{"id":1,"id":1}]"#, #"[{"id":1,"\u0069d":2}]"#, #"[{"id":null,"id":2}]"#] {
            #expect(Wire.opaque(body, BodyRule(model: "Issue", arity: .many), models) != .none)
        }
    }

    @Test func `a member that occurs twice decides no condition, and changes no other response`() throws {
        let fixture = try MapperFixture(
            ModelDeclaration("A", identity: ["id"], Property("type")).with {
                $0.choices = [ModelChoice(model: "B", condition: .member("type", isOneOf: [json("1")]))]
            },
            ModelDeclaration("B", Property("b")).with { $0.base = "A" }
        )
        #expect(fixture.one(#"{"id":1,"type":1,"b":2}"#, "A").body == #"{"id":1,"type":1,"b":2}"#)
        #expect(fixture.one(#"{"id":1,"type":1,"type":1,"b":2}"#, "A").body == #"{"id":1,"type":1}"#)
        var shelf = Shelf(try Models([ModelDeclaration("A", identity: ["id"], Property("x"))]))
        let one = BodyRule(model: "A", arity: .one)
        shelf.take("a", #"{"id":1,"x":1}"#, one, at: 1)
        shelf.take("b", #"{"id":1,"x":2,"x":3}"#, one, at: 2)
        // Both are as they came.
        #expect(shelf.compose("a") == .unchanged && shelf.compose("b") == .unchanged)
    }
}
